//! [`SemArray`], its builder, and the order it serves in.

use crate::raw::{RawSemArray, Wait, Waiters};
use crate::{Builder, Error, Op, Permit, Set};
use core::fmt;
use core::time::Duration;
use ulocks_core::spin::NoSpin;
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Private, futex};

/// A policy of one process: a [`Private`] one. Whatever policy is that is this, too.
pub trait InOneProcess: Policy<Scope = futex::Private> {}
impl<P: Policy<Scope = futex::Private>> InOneProcess for P {}

/// Who may pass whom. What each promises is told at [`SemArray`](SemArray#fairness).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fairness {
    /// As System V on Linux: whoever comes is tried first; of those that sleep the oldest that can
    /// proceed does. A set that needs much may wait for ever while others take turns with what it
    /// needs.
    #[default]
    Barging,
    /// A set that has slept for `after` stops those that come later from taking what it still
    /// needs, until it has it. Of several such sets the oldest does.
    Strict {
        /// How long it is passed by others; zero for not at all.
        after: Duration,
    },
}

/// An array of semaphores on which sets of operations take effect all at one moment or not at all:
/// the semaphores of System V, in user space, for the threads of one process.
///
/// A semaphore is a number, from 0 to a limit. A set is a list of operations ([`Op`]), each on one
/// semaphore: to add to it, to subtract from it, which waits until the number is as great, or to
/// wait until it is zero. The methods are [`SemArrayWith`]'s: [`apply`](SemArrayWith::apply)
/// performs a set, [`acquire`](SemArrayWith::acquire) one whose effect is given back when its
/// [`Permit`] is dropped.
///
/// # Meaning
/// The operations of a set are evaluated in their order, and each sees what those before it did:
/// with `[wait_zero(0), add(0, 1)]` semaphore 0 is a lock, `[add(0, 5), sub(0, 2)]` proceeds on 0,
/// `[sub(0, 2), add(0, 5)]` does not. The first one that cannot proceed decides about the set: the
/// set waits, or fails if that operation is one [without waiting](Op::no_wait); if it would exceed
/// the limit, the set fails. Whatever fails has changed nothing.
///
/// A set that sleeps is performed by whoever makes that possible, before anybody sees the values
/// that make it possible. So a zero is not missed that was there for a moment between two calls;
/// one that occurs within a set, between its operations, was never there. While a set sleeps it is
/// evaluated again whenever a semaphore changes that decides about it: the one at which it stops,
/// and those of the operations before. It may end with [`WouldBlock`](Error::WouldBlock) then, if
/// it stops at an operation without waiting, or with [`ValueOutOfRange`](Error::ValueOutOfRange).
///
/// What happened before a set was performed happens before the return of every set, and of every
/// look at a value, that sees its effect. All sets are performed as if one after the other.
///
/// # Fairness
/// As on Linux, unless the [`Builder`] is told otherwise. Whoever comes is tried first, past those
/// that sleep. Since no set sleeps that could proceed, a newcomer takes only what no sleeper could
/// use at that moment; but a set that needs much at once may never find it together while others
/// take turns with it. When a value changes, those that sleep are served in this order: sets that
/// change nothing, since they take nothing; then, of those that can proceed, the one that has slept
/// longest, whichever semaphore it stopped at. How long a set waits has no bound.
///
/// [`Fairness::Strict`] bounds it. A set that has slept for `after` is an *elder*, and the eldest
/// of them stops others: a set that came later waits, even if it could proceed, at an operation
/// that takes from the eldest, which is a subtraction where the eldest subtracts, and an addition
/// where it waits for zero. It does so as far as the eldest has got, up to the operation at which
/// that one stops. So the eldest waits until those who have what it needs have given it back, once
/// for each of its operations at most, and then the next is the eldest. Three things stop for
/// nobody: a set that also gives to the eldest something that it needs, since nobody else might; a
/// value that is [set](SemArrayWith::set); a permit that is given back. Sets that take one thing
/// from it and give it another, by turns, can keep it waiting for ever.
///
/// Who has what the eldest needs, and asks for more before it gives that back, would wait for the
/// eldest, which waits for it. To undo that, the eldest lets all that it stops pass, once, after 10
/// ms, after 20 more, 40 more, up to a second. The bound above is for what is given back within
/// such an interval.
///
/// # Blocking
/// One operation with nobody in the way is one compare-exchange, or for a zero that is found one
/// load. A set with nobody in the way that names each semaphore once is one compare-exchange and
/// one store for each, and a fence. In the way are another call that is changing the same
/// semaphore, sleepers that the change may help, and sets of several operations that sleep and that
/// the semaphore decides about. Then a call locks its semaphores, completes whoever can proceed,
/// publishes, and wakes: one system call for up to 32 that sleep in the same group, which those are
/// that fell asleep on one CPU for neighbouring semaphores. It waits for none of them, and they
/// have nothing to do but return. A mutex of the whole array is taken, too, by a set of several
/// operations that has to sleep, by whoever touches a semaphore that decides about one that sleeps,
/// and by a set that finds its semaphores locked again and again; by no other. With
/// [`Fairness::Strict`] every sleeper counts as such a set.
///
/// A set that cannot proceed sleeps in the kernel at once; [`SemArrayWith`] has policies that look
/// a while before. Who finds a semaphore locked by another call, or the mutex, looks for up to 5 us
/// and then sleeps, even in [`try_apply`](SemArrayWith::try_apply): that one does not wait until
/// its set can proceed, but until other calls are done with what they do. Nobody yields to the
/// scheduler. A timed set is tried at least once, and may end late by what the scheduler takes; if
/// others complete it while it gives up, it succeeds.
///
/// # Errors
/// All of [`Error`], and with each of them nothing has changed. First come those of a set that the
/// array would never perform, whatever its values are: too long, an index out of range, an amount
/// beyond the limit.
///
/// # Panics
/// [`with_values`](SemArrayWith::with_values), if a value is greater than the default limit. No
/// operation does.
///
/// # Aborts
/// If the kernel refuses to let a waiter sleep, or to wake a sleeper: a seccomp filter forbids it.
/// A panic would leave other threads waiting for ever.
///
/// # Process-shared
/// No: semaphores point to their sleepers. An array lives in one process.
///
/// # Signals and forks
/// Not for signal handlers: a semaphore may be locked by the very call that the handler interrupts,
/// and to wait for that is to wait for ever. One operation with nobody in the way would be safe, a
/// single compare-exchange; but that nobody is in the way cannot be known before. Signals are
/// handled while a set sleeps, and the sleep goes on, unless it is
/// [`apply_interruptible`](SemArrayWith::apply_interruptible). A child of `fork` gets a private
/// copy of the array; if another thread slept or was in a call at that moment, the copy must not be
/// used.
///
/// # Memory
/// A hundred and twenty-eight bytes a semaphore, a pair of cache lines of its own, allocated when
/// the array is made; so an array cannot be made by a constant, and zeroed memory is none. Nothing
/// is allocated afterwards, but by [`values`](SemArrayWith::values), and for sets of more than
/// eight operations: by a [`Set`] that holds them, by a permit that gives them back, and by a call
/// that does not find its way free. Who sleeps does so in static memory. A call that performs a set
/// touches the array no more after the store that publishes the last of its semaphores, so that
/// whoever has seen all of its effect may free the array at once, while the call is still
/// returning; with counters it counts after that.
///
/// # System V
/// What differs from `semop(2)`: the [limit](Builder::limit) and the [length of a
/// set](Builder::max_ops) can be chosen. There are permits instead of `SEM_UNDO`: they give back
/// when they are dropped, not when a process dies. A signal handler ends a sleep only for who asks
/// for it. An empty set succeeds. To add or subtract 0 changes nothing, and to wait for zero is an
/// operation of its own. An operation on more than the limit is refused at once, where the kernel
/// would let it wait, or fail elsewhere first. There is no record of who operated on a semaphore
/// last, and when.
///
/// Two differences are in when a sleeping set is evaluated that has several operations and changes
/// nothing. The kernel does that when an operation leaves some semaphore at zero; here it is done
/// whenever a semaphore changes that decides about the set. And when a first set of several
/// operations falls asleep, the kernel puts the sleepers of all semaphores into one line, by
/// semaphore and not by age; here it is always by age. So such a set, if one of its operations is
/// without waiting, may end otherwise or earlier, and [`waiters`](SemArrayWith::waiters) may count
/// it at another of its semaphores.
///
/// # Examples
/// Philosophers, each with two forks or none:
/// ```
/// use std::thread;
/// use ulocks_semarray::{Op, SemArray};
///
/// let forks = SemArray::with_values([1; 5]);
/// thread::scope(|table| {
///     for left in 0..5 {
///         let (forks, right) = (&forks, (left + 1) % 5);
///         table.spawn(move || {
///             for _ in 0..100 {
///                 let both = forks.acquire([Op::sub(left, 1), Op::sub(right, 1)]).unwrap();
///                 // eats
///                 drop(both);
///             }
///         });
///     }
/// });
/// assert_eq!(forks.values(), [1; 5]);
/// ```
///
/// A reader-writer lock of two counts, the writers and the readers inside:
/// ```
/// use ulocks_semarray::{Error, Op, SemArray};
///
/// const WRITERS: usize = 0;
/// const READERS: usize = 1;
/// const READ: [Op; 2] = [Op::wait_zero(WRITERS), Op::add(READERS, 1)];
/// const WRITE: [Op; 3] = [Op::wait_zero(WRITERS), Op::wait_zero(READERS), Op::add(WRITERS, 1)];
///
/// let lock = SemArray::new(2);
/// let (one, other) = (lock.acquire(READ)?, lock.acquire(READ)?);
/// assert_eq!(lock.try_acquire(WRITE).err(), Some(Error::WouldBlock));
/// drop((one, other));
/// let writing = lock.acquire(WRITE)?;
/// assert_eq!(lock.try_acquire(READ).err(), Some(Error::WouldBlock));
/// # drop(writing);
/// # Ok::<_, Error>(())
/// ```
///
/// A buffer of eight places, and a consumer that takes three items at a time:
/// ```
/// use std::thread;
/// use ulocks_semarray::{Error, Op, SemArray};
///
/// const FREE: usize = 0;
/// const FULL: usize = 1;
///
/// let places = SemArray::with_values([8, 0]);
/// thread::scope(|scope| {
///     scope.spawn(|| {
///         for _ in 0..30 {
///             places.apply(&[Op::sub(FREE, 1)])?; // fills the place
///             places.apply(&[Op::add(FULL, 1)])?;
///         }
///         Ok::<_, Error>(())
///     });
///     for _ in 0..10 {
///         places.apply(&[Op::sub(FULL, 3)])?; // empties three
///         places.apply(&[Op::add(FREE, 3)])?;
///     }
///     Ok::<_, Error>(())
/// })?;
/// assert_eq!(places.values(), [8, 0]);
/// # Ok::<_, Error>(())
/// ```
pub type SemArray = SemArrayWith<Private<NoSpin>>;

/// A [`SemArray`] with another policy: one that looks a while before it sleeps, or with counters
/// inside.
///
/// Patience pays where sets wait for a few microseconds and there are CPUs to spare; where many
/// sleep, and are woken together, it does not.
///
/// ```
/// use ulocks_core::Private;
/// use ulocks_core::spin::Patience;
/// use ulocks_semarray::{Builder, Op, SemArrayWith};
///
/// let patient: SemArrayWith<Private<Patience<20_000>>> = Builder::new(4).max_ops(1_000).build()?;
/// patient.apply(&[Op::add(3, 7)])?;
/// assert_eq!(patient.value(3), Ok(7));
/// # Ok::<_, ulocks_semarray::Error>(())
/// ```
pub struct SemArrayWith<P: InOneProcess>(pub(crate) RawSemArray<P>);

impl<P: InOneProcess> SemArrayWith<P> {
    /// `len` semaphores, all of them zero.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self::with_values(vec![0; len])
    }

    /// Semaphores with these values.
    ///
    /// # Panics
    /// If a value is greater than [`Builder::LIMIT`]; a [`Builder`] makes arrays with another
    /// limit.
    #[must_use]
    pub fn with_values(values: impl Into<Vec<u32>>) -> Self {
        Builder::with_values(values).build().unwrap_or_else(|error| panic!("{error}"))
    }

    /// A [`Builder`] of an array of `len` semaphores.
    pub fn builder(len: usize) -> Builder {
        Builder::new(len)
    }

    /// Performs the operations, all at once, waiting until that is possible.
    ///
    /// # Errors
    /// [`Error::SetTooLong`], [`Error::IndexOutOfRange`], [`Error::ValueOutOfRange`] at once, the
    /// latter also after a sleep; [`Error::WouldBlock`], at once or after a sleep, if an operation
    /// stops the set that is one [without waiting](Op::no_wait); [`Error::Closed`].
    ///
    /// # Examples
    /// ```
    /// use ulocks_semarray::{Error, Op, SemArray};
    ///
    /// let array = SemArray::with_values([3, 0]);
    /// array.apply(&[Op::sub(0, 3), Op::wait_zero(1), Op::add(1, 1)])?;
    /// assert_eq!(array.values(), [0, 1]);
    /// assert_eq!(array.apply(&[Op::add(0, 9), Op::sub(1, 2).no_wait()]), Err(Error::WouldBlock));
    /// assert_eq!(array.values(), [0, 1]);
    /// # Ok::<_, Error>(())
    /// ```
    #[inline]
    pub fn apply(&self, ops: &[Op]) -> Result<(), Error> {
        self.0.apply(ops, Wait::Until(None))
    }

    /// Performs the operations if that is possible now. As [`apply`](Self::apply) of operations
    /// none of which waits.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if it is not possible; else as [`apply`](Self::apply).
    #[inline]
    pub fn try_apply(&self, ops: &[Op]) -> Result<(), Error> {
        self.0.apply(ops, Wait::No)
    }

    /// Performs the operations, or gives up after `timeout`. It tries at least once.
    ///
    /// # Errors
    /// [`Error::TimedOut`]; else as [`apply`](Self::apply).
    pub fn apply_for(&self, ops: &[Op], timeout: Duration) -> Result<(), Error> {
        match self.try_apply(ops) {
            Err(Error::WouldBlock) => self.apply_until(ops, Deadline::after(timeout)),
            done => done,
        }
    }

    /// Performs the operations, or gives up at `deadline`: an `Instant`, a `SystemTime` or a
    /// [`Deadline`]. It tries at least once.
    ///
    /// # Errors
    /// [`Error::TimedOut`]; else as [`apply`](Self::apply).
    #[inline]
    pub fn apply_until(&self, ops: &[Op], deadline: impl Into<Deadline>) -> Result<(), Error> {
        self.0.apply(ops, Wait::Until(Some(deadline.into())))
    }

    /// As [`apply_until`](Self::apply_until), or as [`apply`](Self::apply) without a deadline, and
    /// a signal handler that runs while the set sleeps ends that, however the handler was
    /// installed. One that runs before it sleeps does not.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; else as [`apply_until`](Self::apply_until).
    pub fn apply_interruptible(&self, ops: &[Op], deadline: Option<Deadline>) -> Result<(), Error> {
        self.0.apply(ops, Wait::Interruptible(deadline))
    }

    /// As [`apply`](Self::apply), for what is to be given back.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    ///
    /// # Examples
    /// ```
    /// use ulocks_semarray::{SemArray, Set};
    ///
    /// const CPUS: usize = 0;
    /// const LICENCES: usize = 1;
    ///
    /// let free = SemArray::with_values([4, 1]);
    /// let job = free.acquire(Set::new().sub(CPUS, 2).sub(LICENCES, 1))?;
    /// assert_eq!(free.values(), [2, 0]);
    /// drop(job);
    /// assert_eq!(free.values(), [4, 1]);
    /// # Ok::<_, ulocks_semarray::Error>(())
    /// ```
    pub fn acquire(&self, set: impl Into<Set>) -> Result<Permit<'_, P>, Error> {
        self.permit(set.into(), |ops| self.apply(ops))
    }

    /// As [`try_apply`](Self::try_apply), for what is to be given back.
    ///
    /// # Errors
    /// As [`try_apply`](Self::try_apply).
    pub fn try_acquire(&self, set: impl Into<Set>) -> Result<Permit<'_, P>, Error> {
        self.permit(set.into(), |ops| self.try_apply(ops))
    }

    /// As [`apply_for`](Self::apply_for), for what is to be given back.
    ///
    /// # Errors
    /// As [`apply_for`](Self::apply_for).
    pub fn acquire_for(&self, set: impl Into<Set>, timeout: Duration) -> Result<Permit<'_, P>, Error> {
        self.permit(set.into(), |ops| self.apply_for(ops, timeout))
    }

    /// As [`apply_until`](Self::apply_until), for what is to be given back.
    ///
    /// # Errors
    /// As [`apply_until`](Self::apply_until).
    pub fn acquire_until(
        &self,
        set: impl Into<Set>,
        deadline: impl Into<Deadline>,
    ) -> Result<Permit<'_, P>, Error> {
        self.permit(set.into(), |ops| self.apply_until(ops, deadline))
    }

    fn permit(
        &self,
        set: Set,
        apply: impl FnOnce(&[Op]) -> Result<(), Error>,
    ) -> Result<Permit<'_, P>, Error> {
        apply(&set)?;
        Ok(Permit::new(&self.0, set))
    }

    /// The value of semaphore `index` at this moment. If a call is changing it, that call's
    /// outcome.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`].
    pub fn value(&self, index: usize) -> Result<u32, Error> {
        self.0.value(index)
    }

    /// All values at one moment. This locks one semaphore after the other, and whoever wants to
    /// change one that is locked waits until all have been read.
    #[must_use]
    pub fn values(&self) -> Vec<u32> {
        self.0.values()
    }

    /// How many sets sleep at semaphore `index` at this moment: each where its first operation is
    /// that cannot proceed, or that stops for an elder.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`].
    pub fn waiters(&self, index: usize) -> Result<Waiters, Error> {
        self.0.waiters(index)
    }

    /// Gives semaphore `index` this value, and completes whoever can proceed then. It does not
    /// change what permits give back.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`], [`Error::ValueOutOfRange`], [`Error::Closed`].
    pub fn set(&self, index: usize, value: u32) -> Result<(), Error> {
        self.0.set(index, value)
    }

    /// Gives the semaphores these values, all at once, and completes whoever can proceed then. It
    /// does not change what permits give back.
    ///
    /// # Errors
    /// [`Error::WrongNumber`] if there are not as many values as semaphores;
    /// [`Error::ValueOutOfRange`], [`Error::Closed`].
    pub fn set_all(&self, values: &[u32]) -> Result<(), Error> {
        self.0.set_all(values)
    }

    /// Ends the array: whoever sleeps gets [`Error::Closed`], and so does whoever comes. Values
    /// stay as they are, and can be read; permits give nothing back any more. To close once more
    /// changes nothing.
    ///
    /// # Examples
    /// ```
    /// use std::thread;
    /// use ulocks_semarray::{Error, Op, SemArray};
    ///
    /// let array = SemArray::new(1);
    /// thread::scope(|scope| {
    ///     let sleeper = scope.spawn(|| array.apply(&[Op::sub(0, 1)]));
    ///     array.close();
    ///     assert_eq!(sleeper.join().unwrap(), Err(Error::Closed));
    /// });
    /// ```
    pub fn close(&self) {
        self.0.close();
    }

    /// Whether the array was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// How many semaphores there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The array without permits, for its limits, its fairness, and its counters.
    pub fn raw(&self) -> &RawSemArray<P> {
        &self.0
    }
}

impl<P: InOneProcess> fmt::Debug for SemArrayWith<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SemArray").field("len", &self.len()).finish_non_exhaustive()
    }
}
