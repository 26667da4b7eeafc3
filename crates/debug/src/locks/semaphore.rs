//! [`CheckedSemaphore`]: a semaphore whose waiters are listed, and that may be a lock.

use crate::locks::call::called;
use crate::locks::listed::{Listed, check, dropped};
use crate::rules::current::current;
use crate::rules::handler;
use crate::rules::waiting::waiting;
use crate::seen::access::Access;
use crate::seen::asked::Asked;
use crate::seen::class::{Class, Origin};
use crate::seen::identity::Identity;
use core::fmt;
use core::ops::Deref;
use core::panic::Location;
use core::time::Duration;
use ulocks_core::Private;
use ulocks_core::time::Deadline;
use ulocks_fair::{AcquireError, Closed, Permit, RawSemaphore, Semaphore};

/// A [`Semaphore`] whose waiters are in the list of [`waiters`](crate::waiters).
///
/// A permit has no holder: any thread may release one. So there are no rules to break, a wait for
/// permits adds nothing to the order of locks, and no deadlock is found through it. A semaphore
/// that is used as a lock says so by [`acquire_as_lock`](Self::acquire_as_lock), and has a holder.
///
/// # Fairness and blocking
/// Those of [`Semaphore`], whose methods it has. An acquisition first tries once.
///
/// # Panics, errors
/// Those of [`Semaphore`].
///
/// # Memory
/// Two words beside those of the semaphore. All-zero memory has no permits. The first wait of a
/// thread allocates.
///
/// # Signals and forks
/// A signal handler may release and close, and try to acquire. It must not wait.
///
/// # Examples
/// ```
/// use ulocks_debug::{Semaphore, waiters};
///
/// static SLOTS: Semaphore = Semaphore::new(1);
/// let slot = SLOTS.acquire();
/// let other = std::thread::spawn(|| drop(SLOTS.acquire()));
/// while waiters().is_empty() {
///     std::thread::yield_now();
/// }
/// assert_eq!(waiters()[0].lock.name, "Semaphore");
/// drop(slot);
/// other.join().unwrap();
/// ```
pub struct CheckedSemaphore {
    inner: Semaphore,
    /// With how many permits it was made.
    made_with: u32,
    identity: Identity,
}

type Raw = RawSemaphore<Private>;

impl CheckedSemaphore {
    /// The most permits a semaphore can have.
    pub const MAX_PERMITS: u32 = Semaphore::MAX_PERMITS;

    /// A semaphore with `permits` permits.
    ///
    /// # Panics
    /// If there are more than [`MAX_PERMITS`](Self::MAX_PERMITS).
    #[track_caller]
    pub const fn new(permits: u32) -> Self {
        Self::with_origin(permits, Origin::made::<()>(Location::caller()))
    }

    /// A semaphore of a named class.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub const fn new_in(class: &'static Class, permits: u32) -> Self {
        Self::with_origin(permits, Origin::named(class))
    }

    const fn with_origin(permits: u32, origin: Origin) -> Self {
        Self { inner: Semaphore::new(permits), made_with: permits, identity: Identity::new(origin) }
    }

    /// Lists the thread as a waiter while `wait` waits.
    #[cold]
    #[track_caller]
    fn listed<T>(&self, timed: bool, wait: impl FnOnce() -> T) -> T {
        let Some(me) = current() else { return wait() };
        let lock = core::ptr::from_ref(self).addr();
        let asked = self.identity.asked::<Raw>(lock, Access::Permits, 0, Location::caller());
        waiting(me, &asked, timed, wait)
    }

    /// Acquires a permit, and waits in the queue as long as that takes.
    ///
    /// # Panics
    /// As that of [`Semaphore`].
    #[inline]
    #[track_caller]
    pub fn acquire(&self) -> Permit<'_> {
        self.acquire_many(1)
    }

    /// Acquires `count` permits together, and waits in the queue as long as that takes.
    ///
    /// # Panics
    /// As that of [`Semaphore`].
    #[inline]
    #[track_caller]
    pub fn acquire_many(&self, count: u32) -> Permit<'_> {
        match self.inner.try_acquire_many(count) {
            Some(permit) => permit,
            None => self.listed(false, || self.inner.acquire_many(count)),
        }
    }

    /// Acquires a permit, and waits in the queue until there is one or the semaphore is closed.
    ///
    /// # Errors
    /// If the semaphore is [closed](Semaphore::close), or is while the thread waits.
    ///
    /// # Panics
    /// As that of [`Semaphore`].
    #[inline]
    #[track_caller]
    pub fn acquire_unless_closed(&self) -> Result<Permit<'_>, Closed> {
        self.acquire_many_unless_closed(1)
    }

    /// Acquires `count` permits together, and waits in the queue until there are as many or the
    /// semaphore is closed.
    ///
    /// # Errors
    /// If the semaphore is [closed](Semaphore::close), or is while the thread waits.
    ///
    /// # Panics
    /// As that of [`Semaphore`].
    #[inline]
    #[track_caller]
    pub fn acquire_many_unless_closed(&self, count: u32) -> Result<Permit<'_>, Closed> {
        match self.inner.try_acquire_many(count) {
            Some(permit) => Ok(permit),
            None => self.listed(false, || self.inner.acquire_many_unless_closed(count)),
        }
    }

    /// Acquires a permit, or gives up after `timeout`, or when the semaphore is closed.
    ///
    /// # Panics
    /// As [`acquire_unless_closed`](Self::acquire_unless_closed).
    #[inline]
    #[track_caller]
    pub fn try_acquire_for(&self, timeout: Duration) -> Option<Permit<'_>> {
        self.try_acquire_many_for(1, timeout)
    }

    /// Acquires a permit, or gives up at `deadline`, an `Instant` or a [`Deadline`], or when the
    /// semaphore is closed.
    ///
    /// # Panics
    /// As [`acquire_unless_closed`](Self::acquire_unless_closed).
    #[inline]
    #[track_caller]
    pub fn try_acquire_until(&self, deadline: impl Into<Deadline>) -> Option<Permit<'_>> {
        self.try_acquire_many_until(1, deadline)
    }

    /// Acquires `count` permits together, or gives up after `timeout`, or when the semaphore is
    /// closed.
    ///
    /// # Panics
    /// As [`acquire_many_unless_closed`](Self::acquire_many_unless_closed).
    #[inline]
    #[track_caller]
    pub fn try_acquire_many_for(&self, count: u32, timeout: Duration) -> Option<Permit<'_>> {
        match self.inner.try_acquire_many(count) {
            Some(permit) => Some(permit),
            None => self.listed(true, || self.inner.try_acquire_many_for(count, timeout)),
        }
    }

    /// Acquires `count` permits together, or gives up at `deadline`, an `Instant` or a
    /// [`Deadline`], or when the semaphore is closed.
    ///
    /// # Panics
    /// As [`acquire_many_unless_closed`](Self::acquire_many_unless_closed).
    #[inline]
    #[track_caller]
    pub fn try_acquire_many_until(&self, count: u32, deadline: impl Into<Deadline>) -> Option<Permit<'_>> {
        match self.inner.try_acquire_many(count) {
            Some(permit) => Some(permit),
            None => self.listed(true, || self.inner.try_acquire_many_until(count, deadline)),
        }
    }

    /// Acquires a permit, or gives up when a signal handler runs while the thread sleeps, or when
    /// the semaphore is closed.
    ///
    /// # Errors
    /// As that of [`Semaphore`].
    ///
    /// # Panics
    /// As [`acquire_unless_closed`](Self::acquire_unless_closed).
    #[inline]
    #[track_caller]
    pub fn acquire_interruptible(&self) -> Result<Permit<'_>, AcquireError> {
        self.acquire_many_interruptible(1)
    }

    /// As [`acquire_interruptible`](Self::acquire_interruptible), giving up also at `deadline`, an
    /// `Instant` or a [`Deadline`].
    ///
    /// # Errors
    /// As that of [`Semaphore`].
    ///
    /// # Panics
    /// As [`acquire_unless_closed`](Self::acquire_unless_closed).
    #[inline]
    #[track_caller]
    pub fn acquire_interruptible_until(
        &self,
        deadline: impl Into<Deadline>,
    ) -> Result<Permit<'_>, AcquireError> {
        self.acquire_many_interruptible_until(1, deadline)
    }

    /// Acquires `count` permits together, or gives up when a signal handler runs while the thread
    /// sleeps, or when the semaphore is closed.
    ///
    /// # Errors
    /// As that of [`Semaphore`].
    ///
    /// # Panics
    /// As [`acquire_many_unless_closed`](Self::acquire_many_unless_closed).
    #[inline]
    #[track_caller]
    pub fn acquire_many_interruptible(&self, count: u32) -> Result<Permit<'_>, AcquireError> {
        self.acquire_many_interruptible_until(count, Deadline::NEVER)
    }

    /// As [`acquire_many_interruptible`](Self::acquire_many_interruptible), giving up also at
    /// `deadline`, an `Instant` or a [`Deadline`].
    ///
    /// # Errors
    /// As that of [`Semaphore`].
    ///
    /// # Panics
    /// As [`acquire_many_unless_closed`](Self::acquire_many_unless_closed).
    #[inline]
    #[track_caller]
    pub fn acquire_many_interruptible_until(
        &self,
        count: u32,
        deadline: impl Into<Deadline>,
    ) -> Result<Permit<'_>, AcquireError> {
        match self.inner.try_acquire_many(count) {
            Some(permit) => Ok(permit),
            None => self.listed(true, || self.inner.acquire_many_interruptible_until(count, deadline)),
        }
    }

    /// Acquires the one permit of a semaphore that is used as a lock, and waits as long as that
    /// takes. The thread that has it is its holder.
    ///
    /// It is for a semaphore whose permit always goes back by the thread that took it. All rules of
    /// a mutex hold for it then, with the order of locks and deadlocks.
    ///
    /// What other methods of the semaphore do is not seen. If some threads acquire the permit by
    /// [`acquire`](Self::acquire), or give one back by `release`, deadlocks may be missed, and
    /// reported that `release` would end.
    ///
    /// # Panics
    /// If the semaphore was not made with one permit. If a rule is broken, unless
    /// [`set_policy`](crate::set_policy) says otherwise. As that of [`Semaphore`].
    ///
    /// # Examples
    /// ```
    /// use ulocks_debug::{Rule, Semaphore, held};
    ///
    /// let printer = Semaphore::new(1);
    /// let permit = printer.acquire_as_lock();
    /// assert_eq!(held().locks()[0].lock.name, "Semaphore");
    /// assert!(printer.try_acquire_as_lock().is_none());
    /// # drop(permit);
    /// ```
    #[track_caller]
    pub fn acquire_as_lock(&self) -> LockPermit<'_> {
        self.assert_is_lock();
        let Some(me) = current() else {
            return LockPermit { _entry: Listed::new(None), permit: self.inner.acquire() };
        };
        let asked = self.asked_as_lock();
        check(me, &asked);
        let permit = match self.inner.try_acquire() {
            Some(permit) => permit,
            None => waiting(me, &asked, false, || self.inner.acquire()),
        };
        LockPermit { _entry: Listed::new(Some((me, &asked))), permit }
    }

    /// As [`acquire_as_lock`](Self::acquire_as_lock), if that needs no waiting.
    ///
    /// # Panics
    /// If the semaphore was not made with one permit.
    #[track_caller]
    pub fn try_acquire_as_lock(&self) -> Option<LockPermit<'_>> {
        self.assert_is_lock();
        let asked = self.asked_as_lock();
        let me = current();
        if let Some(me) = me {
            handler::look(me, &asked, false);
        }
        let permit = self.inner.try_acquire()?;
        Some(LockPermit { _entry: Listed::new(me.map(|me| (me, &asked))), permit })
    }

    #[track_caller]
    fn assert_is_lock(&self) {
        assert_eq!(self.made_with, 1, "a lock is a semaphore with one permit");
    }

    #[track_caller]
    fn asked_as_lock(&self) -> Asked {
        let lock = core::ptr::from_ref(self).addr();
        self.identity.asked::<Raw>(lock, Access::Exclusive, 0, Location::caller())
    }

    /// The name of its class, or "Semaphore".
    #[track_caller]
    pub fn name(&self) -> &'static str {
        self.identity.find::<Raw>(Location::caller()).0.name()
    }
}

/// The permit of a semaphore that is used as a lock; its drop gives it back. It is the thread's.
#[must_use = "dropped at once, it gives the permit back"]
pub struct LockPermit<'a> {
    // Dropped first: a thread is taken off the list before it releases.
    _entry: Listed,
    permit: Permit<'a>,
}

impl fmt::Debug for LockPermit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.permit.fmt(f)
    }
}

/// If it is used as a lock, it may be held.
impl Drop for CheckedSemaphore {
    #[track_caller]
    fn drop(&mut self) {
        if self.made_with == 1 {
            dropped(&self.identity, core::ptr::from_ref(self).addr());
        }
    }
}

/// The methods that do not wait.
impl Deref for CheckedSemaphore {
    type Target = Semaphore;

    #[inline]
    fn deref(&self) -> &Semaphore {
        &self.inner
    }
}

impl Default for CheckedSemaphore {
    /// A semaphore without permits.
    #[track_caller]
    #[inline(never)]
    fn default() -> Self {
        Self::with_origin(0, Origin::called::<()>(called(Location::caller())))
    }
}

impl fmt::Debug for CheckedSemaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
