//! [`Semaphore`]: a count of permits and a strict queue.

mod interruptible;
#[cfg(feature = "arc_lock")]
mod owned;
mod permit;
mod queue;
mod raw;
mod task;
mod word;

pub use interruptible::AcquireError;
#[cfg(feature = "arc_lock")]
pub use owned::{AcquireOwnedAsync, OwnedPermit};
pub use permit::Permit;
pub use raw::RawSemaphore;
pub use task::{AcquireAsync, RawAcquireAsync};

use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::time::Duration;
use ulocks_core::Private;
use ulocks_core::policy::InOneProcess;
use ulocks_core::raw::Metered;
use ulocks_core::time::Deadline;

/// More permits than a semaphore can have were released: it would have more than
/// [`MAX_PERMITS`](SemaphoreWith::MAX_PERMITS). None of them is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyPermits;

impl fmt::Display for TooManyPermits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "too many permits: a semaphore has at most {}", RawSemaphore::<Private>::MAX_PERMITS)
    }
}

impl core::error::Error for TooManyPermits {}

/// The semaphore is [closed](SemaphoreWith::close): it gives no permits any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the semaphore is closed")
    }
}

impl core::error::Error for Closed {}

/// A counting semaphore that serves in the order of arrival: no thread overtakes a waiter, also if
/// it wants fewer permits or is faster.
///
/// This one is for the threads of one process, with the default patience and without counters;
/// [`SemaphoreWith`] has the others, and the methods.
///
/// # Fairness
/// Strict. A waiter is served before each thread that arrives after it. While there is a waiter,
/// the permits are for the waiters. A request for many at the head of the queue holds up small ones
/// behind it, until it is served or times out. [`try_acquire`](SemaphoreWith::try_acquire) fails
/// then, whatever the count says. So a thread waits until the waiters before it are served, and no
/// thread starves. Of two threads that arrive at the same moment either may be first.
///
/// Each such order has a cost. The head waiter may have to be woken while other threads that run
/// could have gone on. To protect data with a single permit, use a mutex.
///
/// # Blocking
/// If there are permits and no waiters, an acquisition is one atomic read-modify-write, and so is a
/// release. Otherwise the thread enqueues at once. A head waiter spins for up to the
/// [`FIRST_NS`](ulocks_core::spin::Spin::FIRST_NS) of the policy, 30 us by default, and then sleeps
/// in the kernel. On four CPUs and more, as many waiters behind it are awake as can spin, as those
/// of a [`FairMutex`](crate::FairMutex); all others sleep. A release makes one system call for each
/// thread it wakes, for one or two that are not served yet, and none if all are awake. It never
/// waits. A timed acquisition tries at least once, also if its deadline has passed already.
///
/// # Closing
/// [`close`](SemaphoreWith::close) ends the giving of permits, for good. All waiters leave without
/// permits at once, and each later acquisition fails, also of zero permits. Permits that were
/// acquired before stay what they are, and go back as before. So
/// [`available_permits`](SemaphoreWith::available_permits) tells when the last of them is back, and
/// what their holders did happens before it does.
///
/// A program that closes a semaphore waits for permits by
/// [`acquire_unless_closed`](SemaphoreWith::acquire_unless_closed), which returns [`Closed`].
/// [`acquire`](SemaphoreWith::acquire), `acquire_many` and their owned forms panic then. The `try_`
/// methods return `None` at once, also before their time is up, and
/// [`is_closed`](SemaphoreWith::is_closed) tells why.
///
/// # Tasks
/// A task waits by [`acquire_async`](SemaphoreWith::acquire_async), in the queue of the threads:
/// the waiter that came first is served first. Its future may be dropped at any moment, and no
/// permit is lost. A release, or a close, that wakes more than 32 tasks allocates.
/// [`task`](ulocks_core::task) has the rest.
///
/// # Errors
/// A release that would make more than [`MAX_PERMITS`](SemaphoreWith::MAX_PERMITS) changes nothing
/// and says so: [`TooManyPermits`]. What the `interruptible` methods say is [`AcquireError`].
///
/// # Panics
/// If more permits are asked for than there can be: the wait would never end. If 1,073,741,823
/// threads wait already. `acquire`, `acquire_many`, `acquire_owned` and `acquire_many_owned` of a
/// closed semaphore.
///
/// # Aborts
/// If the kernel refuses to let a waiter sleep, or to wake a sleeper: a seccomp filter forbids it.
/// A panic would leave other threads waiting for ever.
///
/// # Process-shared
/// No: the type is for the threads of one process. A waiter that is killed would keep its place in
/// the queue, and the permits of a process that dies would be lost. Between processes there are
/// `ulocks_shm::Semaphore` and `ulocks_shm::SemArray`, to which both come back.
///
/// ```compile_fail
/// use ulocks_core::Shared;
/// use ulocks_fair::SemaphoreWith;
///
/// static ACROSS_PROCESSES: SemaphoreWith<Shared> = SemaphoreWith::new(1);
/// ```
///
/// # Signals and forks
/// A signal handler may release and close, whatever it interrupts, also a release or an acquisition
/// of the same semaphore. If tasks wait it may not: it would call their wakers. It may also try to
/// acquire. Signals are handled while a thread waits, and the wait goes on;
/// [`acquire_interruptible`](SemaphoreWith::acquire_interruptible) gives up instead. A child of
/// `fork` gets a copy of the semaphore, with the count that it had. Permits of other threads are
/// not given back there. The child can release what the forking thread acquired, and acquire again,
/// unless threads waited. If threads waited, the child uses the copy no more, and forgets its
/// permits. A release would write to the places of the waiters, which were on stacks that it uses
/// anew.
///
/// # Memory
/// 24 bytes: the counts of permits and of waiters in one word, so that one look tells both, and the
/// queue in two others. Nothing is allocated. The step that publishes the permits is the last
/// access of a release. So the thread that acquires them may free or unmap the semaphore at once,
/// while the release is still returning. What happened before a release happens before the return
/// of the acquisition that gets its permits, and of each count of free permits that includes them.
/// What happened before the first close happens before each [`Closed`] that is returned. A
/// semaphore may be moved or dropped whatever its count is.
///
/// # Examples
/// At most three at once:
/// ```
/// use ulocks_fair::Semaphore;
///
/// static SLOTS: Semaphore = Semaphore::new(3);
///
/// std::thread::scope(|scope| {
///     for _ in 0..8 {
///         scope.spawn(|| {
///             let _slot = SLOTS.acquire();
///             // no more than three are here
///         });
///     }
/// });
/// assert_eq!(SLOTS.available_permits(), 3);
/// ```
///
/// Things that are handed from one thread to another:
/// ```
/// use std::time::Duration;
/// use ulocks_fair::Semaphore;
///
/// let ready = Semaphore::new(0);
/// std::thread::scope(|scope| {
///     scope.spawn(|| ready.release(2).expect("there are few"));
///     ready.acquire().forget();
///     ready.acquire().forget();
/// });
/// assert!(ready.try_acquire().is_none());
/// assert!(ready.try_acquire_for(Duration::from_millis(1)).is_none());
/// ```
///
/// Workers that wait for work, until there is none any more:
/// ```
/// use ulocks_fair::Semaphore;
///
/// let work = Semaphore::new(0);
/// std::thread::scope(|scope| {
///     for _ in 0..2 {
///         scope.spawn(|| {
///             while let Ok(piece) = work.acquire_unless_closed() {
///                 piece.forget();
///             }
///         });
///     }
///     work.release(5).expect("there are few");
///     work.close();
/// });
/// assert!(work.is_closed() && work.try_acquire().is_none());
/// ```
pub type Semaphore = SemaphoreWith<Private>;

/// A [`Semaphore`] with another policy: with other patience, or with counters inside.
///
/// ```
/// use ulocks_core::meter::Counted;
/// use ulocks_core::raw::Metered;
/// use ulocks_core::spin::NoSpin;
/// use ulocks_core::Private;
/// use ulocks_fair::SemaphoreWith;
///
/// static IMPATIENT: SemaphoreWith<Private<NoSpin>> = SemaphoreWith::new(1);
/// static COUNTED: SemaphoreWith<Private<NoSpin, Counted>> = SemaphoreWith::new(1);
///
/// drop((COUNTED.acquire(), IMPATIENT.acquire()));
/// let counters = COUNTED.counts();
/// assert_eq!((counters.acquired, counters.contended), (1, 0));
/// ```
#[repr(transparent)]
pub struct SemaphoreWith<P: InOneProcess>(RawSemaphore<P>);

// A semaphore runs no user's code but wakers, whose panics it catches. So a panic leaves it whole.
impl<P: InOneProcess> UnwindSafe for SemaphoreWith<P> {}
impl<P: InOneProcess> RefUnwindSafe for SemaphoreWith<P> {}

impl<P: InOneProcess> SemaphoreWith<P> {
    /// The most permits a semaphore can have: 1,073,741,823.
    pub const MAX_PERMITS: u32 = RawSemaphore::<P>::MAX_PERMITS;

    ulocks_core::const_fn! {
        /// A semaphore with `permits` permits.
        ///
        /// # Panics
        /// If there are more than [`MAX_PERMITS`](Self::MAX_PERMITS).
        pub fn new(permits: u32) -> Self {
            Self(RawSemaphore::new(permits))
        }
    }

    /// Acquires a permit, and waits in the queue as long as that takes.
    ///
    /// # Panics
    /// If the semaphore is [closed](Self::close), or is while the thread waits; if 1,073,741,823
    /// threads wait already.
    #[inline]
    #[track_caller]
    pub fn acquire(&self) -> Permit<'_, P> {
        self.acquire_many(1)
    }

    /// Acquires `count` permits together, and waits in the queue as long as that takes.
    ///
    /// The waiters behind it wait as long. Zero permits are acquired at once.
    ///
    /// # Panics
    /// If the semaphore is [closed](Self::close), or is while the thread waits; if `count` is more
    /// than [`MAX_PERMITS`](Self::MAX_PERMITS); if 1,073,741,823 threads wait already.
    #[inline]
    #[track_caller]
    pub fn acquire_many(&self, count: u32) -> Permit<'_, P> {
        self.0.acquire(count);
        Permit::new(self, count)
    }

    /// Acquires a permit, and waits in the queue until there is one or the semaphore is closed.
    ///
    /// # Errors
    /// If the semaphore is [closed](Self::close), or is while the thread waits.
    ///
    /// # Panics
    /// If 1,073,741,823 threads wait already.
    #[inline]
    #[track_caller]
    pub fn acquire_unless_closed(&self) -> Result<Permit<'_, P>, Closed> {
        self.acquire_many_unless_closed(1)
    }

    /// Acquires `count` permits together, and waits in the queue until there are as many or the
    /// semaphore is closed.
    ///
    /// # Errors
    /// If the semaphore is [closed](Self::close), or is while the thread waits.
    ///
    /// # Panics
    /// If `count` is more than [`MAX_PERMITS`](Self::MAX_PERMITS); if 1,073,741,823 threads wait
    /// already.
    #[inline]
    #[track_caller]
    pub fn acquire_many_unless_closed(&self, count: u32) -> Result<Permit<'_, P>, Closed> {
        self.0.acquire_unless_closed(count).map(|()| Permit::new(self, count))
    }

    /// Acquires a permit if there is one, no waiter, and the semaphore is not closed.
    #[inline]
    pub fn try_acquire(&self) -> Option<Permit<'_, P>> {
        self.try_acquire_many(1)
    }

    /// Acquires `count` permits if there are as many, no waiters, and the semaphore is not closed.
    #[inline]
    pub fn try_acquire_many(&self, count: u32) -> Option<Permit<'_, P>> {
        self.0.try_acquire(count).then(|| Permit::new(self, count))
    }

    /// Acquires a permit, or gives up after `timeout`, or when the semaphore is closed.
    ///
    /// # Panics
    /// As [`acquire_unless_closed`](Self::acquire_unless_closed).
    #[inline]
    #[track_caller]
    pub fn try_acquire_for(&self, timeout: Duration) -> Option<Permit<'_, P>> {
        self.try_acquire_many_for(1, timeout)
    }

    /// Acquires a permit, or gives up at `deadline`, an `Instant` or a [`Deadline`], or when the
    /// semaphore is closed.
    ///
    /// # Panics
    /// As [`acquire_unless_closed`](Self::acquire_unless_closed).
    #[inline]
    #[track_caller]
    pub fn try_acquire_until(&self, deadline: impl Into<Deadline>) -> Option<Permit<'_, P>> {
        self.try_acquire_many_until(1, deadline)
    }

    /// Acquires `count` permits together, or gives up after `timeout`, or when the semaphore is
    /// closed.
    ///
    /// # Panics
    /// As [`acquire_many_unless_closed`](Self::acquire_many_unless_closed).
    #[inline]
    #[track_caller]
    pub fn try_acquire_many_for(&self, count: u32, timeout: Duration) -> Option<Permit<'_, P>> {
        // No closure, since it would be the caller.
        if let Some(permit) = self.try_acquire_many(count) {
            return Some(permit);
        }
        self.try_acquire_many_until(count, Deadline::after(timeout))
    }

    /// Acquires `count` permits together, or gives up at `deadline`, an `Instant` or a
    /// [`Deadline`], or when the semaphore is closed.
    ///
    /// # Panics
    /// As [`acquire_many_unless_closed`](Self::acquire_many_unless_closed).
    #[inline]
    #[track_caller]
    pub fn try_acquire_many_until(&self, count: u32, deadline: impl Into<Deadline>) -> Option<Permit<'_, P>> {
        self.0.acquire_until(count, deadline.into()).then(|| Permit::new(self, count))
    }

    /// Puts `count` permits in, and serves waiters. The permits need not have been acquired before.
    ///
    /// # Blocking
    /// Never waits, so a signal handler may release, unless tasks wait: it would call a waker.
    ///
    /// # Errors
    /// If there would be more than [`MAX_PERMITS`](Self::MAX_PERMITS); then nothing has changed.
    #[inline]
    pub fn release(&self, count: u32) -> Result<(), TooManyPermits> {
        self.0.release(count)
    }

    /// [`release`](Self::release) for a caller that knows that there is room: tokio's name.
    ///
    /// # Panics
    /// If there would be more than [`MAX_PERMITS`](Self::MAX_PERMITS); then nothing has changed.
    ///
    /// # Examples
    /// ```
    /// let connections = ulocks_fair::Semaphore::new(1);
    /// connections.add_permits(2);
    /// connections.acquire_many(3).forget();
    /// assert_eq!(connections.available_permits(), 0);
    /// ```
    pub fn add_permits(&self, count: u32) {
        self.release(count).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Closes the semaphore, for good: waiters leave without permits, and later acquisitions fail.
    ///
    /// A thread that has permits keeps them, also a waiter that got them before and has not woken
    /// up yet. They go back as before, and can be released and counted. To close it again changes
    /// nothing.
    ///
    /// # Blocking
    /// Never waits, so a signal handler may close, unless tasks wait: it would call wakers. It
    /// makes a system call for each thread that sleeps.
    ///
    /// # Examples
    /// ```
    /// use ulocks_fair::{Closed, Semaphore};
    ///
    /// let connections = Semaphore::new(1);
    /// let last = connections.acquire();
    /// std::thread::scope(|scope| {
    ///     let waiter = scope.spawn(|| connections.acquire_unless_closed().map(drop));
    ///     connections.close();
    ///     assert_eq!(waiter.join().unwrap(), Err(Closed));
    /// });
    /// drop(last);
    /// assert_eq!(connections.available_permits(), 1);
    /// ```
    pub fn close(&self) {
        self.0.close();
    }

    /// Whether the semaphore was closed. What happened before the close happens before this
    /// returns `true`.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// How many permits are free at this moment. While there are waiters, these permits are too few
    /// for the head waiter, or are on their way to it.
    ///
    /// What happened before the releases that are counted happens before this returns.
    #[inline]
    pub fn available_permits(&self) -> u32 {
        self.0.available()
    }

    /// The semaphore without guards.
    pub fn raw(&self) -> &RawSemaphore<P> {
        &self.0
    }
}

impl<P: InOneProcess> Metered for SemaphoreWith<P> {
    type Meter = P::Meter;

    fn meter(&self) -> &P::Meter {
        self.0.meter()
    }
}

impl<P: InOneProcess> Default for SemaphoreWith<P> {
    /// A semaphore without permits.
    fn default() -> Self {
        Self::new(0)
    }
}

impl<P: InOneProcess> fmt::Debug for SemaphoreWith<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("available_permits", &self.0.available())
            .field("waiters", &self.0.waiters())
            .field("closed", &self.0.is_closed())
            .finish()
    }
}
