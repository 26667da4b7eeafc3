//! [`SemArray`]: the array, its promises, and the order in which it serves sets.

use crate::raw::RawSemArray;
use crate::set::Wait;
use crate::{Builder, Error, Op, Permit, Set};
use core::fmt;
use core::ops::Deref;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::time::Duration;
use ulocks_core::Private;
use ulocks_core::policy::InOneProcess;
use ulocks_core::spin::NoSpin;
use ulocks_core::time::Deadline;

/// An array of semaphores on which sets of operations take effect all at one moment, or not at all.
/// They are the semaphores of System V, in user space, for the threads of one process.
///
/// A semaphore is a number, from 0 to a limit. A set is a list of operations ([`Op`]), each on one
/// semaphore. An operation adds to the number, subtracts from it, or waits until it is zero. A
/// subtraction waits until the number is great enough. The methods are those of [`SemArrayWith`]:
/// [`apply`](SemArrayWith::apply) performs a set, and [`acquire`](SemArrayWith::acquire) performs
/// one whose effect is given back when its [`Permit`] is dropped.
///
/// # Meaning
/// The operations of a set are evaluated in their order, and each sees what the earlier ones did.
/// With `[wait_zero(0), add(0, 1)]` semaphore 0 is a lock; `[add(0, 5), sub(0, 2)]` proceeds on 0,
/// and `[sub(0, 2), add(0, 5)]` does not. The first operation that cannot proceed decides about the
/// set: the set waits, or it fails if that operation is one [without waiting](Op::no_wait). If an
/// operation would exceed the limit, the set fails. A set that fails has changed nothing.
///
/// The thread that makes it possible for a waiting set to proceed performs that set, before any
/// thread sees the values that make it possible. So a waiting set does not miss a zero that is
/// there for a moment between two calls. A zero within a set, between its operations, is never
/// seen. A waiting set is evaluated again whenever a semaphore changes that decides about it: the
/// semaphore at which it stops, and the semaphores of its earlier operations. It may then fail with
/// [`WouldBlock`](Error::WouldBlock), if it stops at an operation without waiting, or with
/// [`ValueOutOfRange`](Error::ValueOutOfRange).
///
/// What happened before a set was performed happens before the return of every call that sees its
/// effect. All sets are performed as if one after the other.
///
/// # Fairness
/// As on Linux, unless the [`Builder`] asks for strict fairness. An arriving set is tried first,
/// past the waiting ones. No set waits that could proceed, so an arriving set takes only what no
/// waiting set could use at that moment. But a set that needs much at once may never find it
/// together while others take turns with it. When a value changes, waiting sets are served in this
/// order: first the sets that change nothing, since they take nothing. Then, of the sets that can
/// proceed, the one that has waited longest, whichever semaphore it stopped at. How long a set
/// waits has no bound.
///
/// [`Fairness::Strict`](crate::Fairness::Strict) bounds it. A set that has waited for `after` is
/// *aged*. The oldest aged set stops others: a set that came later waits at an operation that takes
/// from the aged set, even if it could proceed. Such an operation is a subtraction where the aged
/// set subtracts, or an addition where it waits for zero. Only the aged set's operations up to the
/// one at which it stops count. So the aged set waits until the holders of what it needs have given
/// that back, at most once for each of its operations. Then the next set is the oldest.
///
/// Three things do not stop for an aged set:
/// - a set that also gives it something that it needs, since perhaps no other set would;
/// - a value that is [set](RawSemArray::set);
/// - a permit that is given back.
///
/// Sets that take one thing from it and give it another, by turns, can keep it waiting for ever.
///
/// A thread may hold what the aged set needs, and ask for more before it gives that back. It would
/// wait for the aged set, which waits for it. So from time to time the oldest aged set lets all
/// sets pass, once, that it stops. The first time comes when it has been aged for twice `after`,
/// but for 10 ms at least, and a second at most. Each further interval is twice as long, up to a
/// second. So the bound above holds for what is given back within such an interval. If others hold
/// for longer what it needs, they may take it again at the end of each.
///
/// # Blocking
/// If nothing is in its way, one operation is one compare-exchange, or one load for a zero that it
/// finds, which on processors other than x86 follows a fence. A set that names each semaphore once
/// is one compare-exchange and one store for each, and one fence. If it comes again and again, its
/// semaphores stay locked for the first of them. Then it is one compare-exchange and one fence, and
/// a store for each. Four things can be in the way:
/// - a call that is changing the same semaphore;
/// - a semaphore that stays locked for another, the first of a set;
/// - waiting sets that the change may let proceed;
/// - waiting sets of several operations that the semaphore decides about.
///
/// Then the call locks its semaphores, which no longer stay locked for others, completes the sets
/// that can proceed, publishes the values, and wakes. One system call wakes up to 32 threads of a
/// group; threads that fall asleep on one CPU for neighbouring semaphores share a group. The call
/// does not wait for them, and they have nothing to do but return.
///
/// Some calls also take a mutex of the whole array:
/// - a set of several operations that has to wait;
/// - a call that changes a semaphore that decides about such a waiting set;
/// - a set that finds its semaphores locked again and again.
///
/// With [`Fairness::Strict`](crate::Fairness::Strict) every waiting set counts as one of several
/// operations.
///
/// A set that cannot proceed sleeps in the kernel at once; [`SemArrayWith`] has policies that spin
/// first. A thread that finds a semaphore or the mutex locked by another call spins for up to 4 us,
/// and then sleeps. It does so even in [`try_apply`](SemArrayWith::try_apply), which does not wait
/// until its set can proceed, but waits until other calls are done. No thread yields to the
/// scheduler. A timed set is tried at least once, and may end later than its deadline by the
/// patience of its policy and the delay of the scheduler. If another thread completes it while it
/// times out, it succeeds.
///
/// # Errors
/// All of [`Error`], and none of them changes a value. First come the errors of a set that the
/// array would never perform: too long, an index out of range, an amount beyond the limit.
///
/// # Tasks
/// A task waits by [`acquire_async`](SemArrayWith::acquire_async), in the queues of the threads.
///
/// # Panics
/// [`with_values`](SemArrayWith::with_values), if a value is greater than the default limit. No
/// operation panics, but a future that is polled after it was ready.
///
/// # Aborts
/// If the kernel refuses to let a thread sleep, or to wake one, because a seccomp filter forbids
/// it. A panic would leave other threads waiting for ever.
///
/// # Process-shared
/// No: semaphores point to the stacks of waiting threads, and to futures. An array lives in one
/// process.
///
/// # Signals and forks
/// Not for signal handlers: the call that the handler interrupts may have locked the semaphore, and
/// then the handler would wait for ever. An operation with nothing in its way would be safe, as a
/// single compare-exchange; but that cannot be known before. A signal that is handled while a set
/// sleeps does not end the sleep, except in
/// [`apply_interruptible`](SemArrayWith::apply_interruptible). A child of `fork` gets a private
/// copy of the array. What other threads acquired is not given back there. If another thread waited
/// or was in a call at that moment, the child must not use the copy. Permits go to sets of threads
/// that are not there.
///
/// # Memory
/// A hundred and twenty-eight bytes a semaphore, a pair of cache lines of its own. They are
/// allocated when the array is made, so an array cannot be a constant, and zeroed memory is no
/// array. After that, [`values`](RawSemArray::values) allocates. So do sets of more than eight
/// operations: the [`Set`] that holds them, the permit that gives them back, and a call that finds
/// something in its way. So does a call that wakes more than 32 tasks. Threads sleep in static
/// memory. A call that performs a set does not touch the array after the store that publishes the
/// last of its semaphores. So a thread that has seen all of the effect may free the array at once,
/// while the call is still returning. With counters this does not hold, because the call counts
/// after that. Nor does it hold if the set waits until a deadline, interruptibly, as a task, or
/// with strict fairness. Its thread may come to look after it when another thread performs it.
///
/// # System V
/// What differs from `semop(2)`:
/// - The [limit](Builder::limit) and the [length of a set](Builder::max_ops) can be chosen.
/// - There are permits instead of `SEM_UNDO`: they give back when they are dropped, not when a
///   process dies.
/// - A signal handler ends a sleep only in
///   [`apply_interruptible`](SemArrayWith::apply_interruptible).
/// - An empty set succeeds.
/// - To add or subtract 0 changes nothing, and to wait for zero is an operation of its own.
/// - An operation on more than the limit fails at once. The kernel would let it wait, or fail at
///   another operation first.
/// - There is no record of the last thread that operated on a semaphore, and of the time.
///
/// Two more differences concern when a waiting set is evaluated. A set of several operations that
/// changes nothing is evaluated by the kernel when an operation leaves some semaphore at zero. Here
/// it is evaluated whenever a semaphore changes that decides about it. When the first set of
/// several operations falls asleep, the kernel moves the waiting sets of all semaphores to one
/// queue. That queue is ordered by semaphore, not by age; here the order is always by age. So if
/// such a set has an operation without waiting, it may end otherwise or earlier. And
/// [`waiters`](RawSemArray::waiters) may count it at another of its semaphores.
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

/// A [`SemArray`] with another policy: its waiters spin before they sleep, or it has counters.
///
/// To spin pays if sets wait for a few microseconds and CPUs are idle. It does not pay if many sets
/// sleep, and are woken together.
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

// An array runs no user's code but wakers, whose panics it catches. So a panic leaves it whole.
impl<P: InOneProcess> UnwindSafe for SemArrayWith<P> {}
impl<P: InOneProcess> RefUnwindSafe for SemArrayWith<P> {}

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

    /// Performs the operations, all at one moment. Waits until that is possible.
    ///
    /// # Errors
    /// [`Error::SetTooLong`] and [`Error::IndexOutOfRange`] at once. [`Error::ValueOutOfRange`] at
    /// once or after a sleep. [`Error::WouldBlock`], at once or after a sleep, if the set stops at
    /// an operation [without waiting](Op::no_wait). [`Error::Closed`].
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

    /// Performs the operations if that is possible now, like [`apply`](Self::apply) of operations
    /// without waiting.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if it is not possible; otherwise as [`apply`](Self::apply).
    #[inline]
    pub fn try_apply(&self, ops: &[Op]) -> Result<(), Error> {
        self.0.apply(ops, Wait::No)
    }

    /// Performs the operations, or times out after `timeout`. It tries at least once.
    ///
    /// # Errors
    /// [`Error::TimedOut`]; otherwise as [`apply`](Self::apply).
    pub fn apply_for(&self, ops: &[Op], timeout: Duration) -> Result<(), Error> {
        match self.try_apply(ops) {
            Err(Error::WouldBlock) => self.apply_until(ops, Deadline::after(timeout)),
            done => done,
        }
    }

    /// Performs the operations, or times out at `deadline`: an `Instant`, a `SystemTime` or a
    /// [`Deadline`]. It tries at least once.
    ///
    /// # Errors
    /// [`Error::TimedOut`]; otherwise as [`apply`](Self::apply).
    #[inline]
    pub fn apply_until(&self, ops: &[Op], deadline: impl Into<Deadline>) -> Result<(), Error> {
        self.0.apply(ops, Wait::Until(Some(deadline.into())))
    }

    /// As [`apply_until`](Self::apply_until), or without a deadline as [`apply`](Self::apply). But
    /// a signal handler that runs while the set sleeps ends the call, however the handler was
    /// installed. A handler that runs before the sleep does not.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; otherwise as [`apply_until`](Self::apply_until).
    pub fn apply_interruptible(&self, ops: &[Op], deadline: Option<Deadline>) -> Result<(), Error> {
        self.0.apply(ops, Wait::Interruptible(deadline))
    }

    /// As [`apply`](Self::apply), with a permit that gives back.
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

    /// As [`try_apply`](Self::try_apply), with a permit that gives back.
    ///
    /// # Errors
    /// As [`try_apply`](Self::try_apply).
    pub fn try_acquire(&self, set: impl Into<Set>) -> Result<Permit<'_, P>, Error> {
        self.permit(set.into(), |ops| self.try_apply(ops))
    }

    /// As [`apply_for`](Self::apply_for), with a permit that gives back.
    ///
    /// # Errors
    /// As [`apply_for`](Self::apply_for).
    pub fn acquire_for(&self, set: impl Into<Set>, timeout: Duration) -> Result<Permit<'_, P>, Error> {
        self.permit(set.into(), |ops| self.apply_for(ops, timeout))
    }

    /// As [`apply_until`](Self::apply_until), with a permit that gives back.
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

    /// The array without permits, for its limits, its fairness, and its counters.
    pub fn raw(&self) -> &RawSemArray<P> {
        &self.0
    }
}

/// The array's values, waiters, limits and end.
impl<P: InOneProcess> Deref for SemArrayWith<P> {
    type Target = RawSemArray<P>;

    fn deref(&self) -> &RawSemArray<P> {
        &self.0
    }
}

impl<P: InOneProcess> fmt::Debug for SemArrayWith<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SemArray").field("len", &self.len()).finish_non_exhaustive()
    }
}
