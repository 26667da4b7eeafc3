//! [`RwLock`]: readers and writers between processes, of which any may be killed.

#[doc(hidden)]
pub mod raw;

use crate::robust::health;
use crate::robust::mutex::{LockError, Refused};
use crate::robust::queue::Patience;
use crate::slots::Member;
use core::fmt;
use core::ops::{Deref, DerefMut};
use core::time::Duration;
use raw::{RawRwLock, Want};
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::sync::UnsafeCell;
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Shared, futex};

/// Many readers or one writer around a `T` between processes: a holder that dies holds up no
/// waiter. 32 bytes beside the data, and 4 for each of the `SLOTS` participants. A region that has
/// more participants is refused when it is made.
///
/// A reader that dies leaves no trace. If a writer dies, the next holder gets the lock and is told.
/// Each thread that uses it takes part in the region in which it lies (`Region::with_member`), and
/// passes its [`Member`].
///
/// # Fairness
/// Readers have a class. An *urgent* reader ([`read_urgent`](Self::read_urgent)) passes all waiting
/// writers. Other readers and the writers are granted in the order of their arrival, readers that
/// follow one another together. Urgent readers that always overlap shut out a writer for ever.
///
/// # Blocking
/// Each acquisition and release takes a lock of the queue, for a short time. So readers do not
/// scale with the number of processors: each changes the same cache line. A thread that must wait
/// spins for some microseconds if it is the first. Then it sleeps in the kernel (`futex_waitv`)
/// until it is granted the lock or a thread dies that it watches. The first waiter watches all
/// holders. It looks again each 200 ms.
///
/// # Errors
/// [`LockError::OwnerDied`] has the guard: a writer died or panicked, and its changes may be half
/// done. A writer repairs the data and calls [`RwLockWriteGuard::mark_consistent`]. A reader may
/// look, and leaves the lock as it is. A dirty guard of a writer that is dropped makes the lock not
/// recoverable, until [`reset`](Self::reset). [`Refused::NoRoom`]: the thread has a slot from
/// `SLOTS` on. [`Refused::Deadlock`]: the thread has the lock already, for reading or writing.
///
/// # Panics
/// If the member is not of this lock's region, or is that of the process's parent.
///
/// # Process-shared
/// That is what it is for; see [`Mutex`](crate::robust::mutex::Mutex).
///
/// # Signals and forks
/// A signal handler must not use it. A child of fork does not hold what its parent holds, and joins
/// by itself.
///
/// # Sources
/// The classes are those of M. Desnoyers, "Priority-sifting reader-writer lock" (2008). The queue
/// is this project's.
///
/// # Examples
/// ```
/// use ulocks_shm::{Region, RwLock};
///
/// let region = Region::<RwLock<[u64; 4]>>::options().anonymous()?;
/// region.with_member(|me| {
///     let mut numbers = region.write(me).expect("no writer has died");
///     numbers[2] = 7;
///     assert_eq!(format!("{numbers:?}"), "[0, 0, 7, 0]");
///     assert_eq!(format!("{:?}", numbers.downgrade()), "[0, 0, 7, 0]");
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[repr(C)]
pub struct RwLock<T: ?Sized, const SLOTS: usize = 64, P: Policy<Scope = futex::Global> = Shared> {
    raw: RawRwLock<P, SLOTS>,
    data: UnsafeCell<T>,
}

// SAFETY: readers share the data, which is `Sync`, and a writer has it alone. The guards move no
// `T` between threads unless `T` is `Send`.
unsafe impl<T: ?Sized + Send + Sync, const N: usize, P: Policy<Scope = futex::Global>> Sync
    for RwLock<T, N, P>
{
}
// SAFETY: as the data's.
unsafe impl<T: ?Sized + Send, const N: usize, P: Policy<Scope = futex::Global>> Send for RwLock<T, N, P> {}

/// What a read acquisition gives.
pub type ReadResult<'a, T, const N: usize, P> =
    Result<RwLockReadGuard<'a, T, N, P>, LockError<RwLockReadGuard<'a, T, N, P>>>;

/// What a write acquisition gives.
pub type WriteResult<'a, T, const N: usize, P> =
    Result<RwLockWriteGuard<'a, T, N, P>, LockError<RwLockWriteGuard<'a, T, N, P>>>;

impl<T, const N: usize, P: Policy<Scope = futex::Global>> RwLock<T, N, P> {
    /// An unlocked lock around `data`. If the bytes of `data` are all zero, so are the lock's.
    pub fn new(data: T) -> Self {
        Self { raw: RawRwLock::new(), data: UnsafeCell::new(data) }
    }
}

impl<T: ?Sized, const N: usize, P: Policy<Scope = futex::Global>> RwLock<T, N, P> {
    ways! { 'a:
        /// Acquires the lock for reading, behind the writers that wait.
        read() -> ReadResult<'a, T, N, P>, reading(Want::Bulk, Patience::Forever);

        /// Acquires the lock for reading, before all writers that wait.
        read_urgent() -> ReadResult<'a, T, N, P>, reading(Want::Urgent, Patience::Forever);

        /// Acquires the lock for reading, if no writer has it or waits for it.
        try_read() -> ReadResult<'a, T, N, P>, reading(Want::Bulk, Patience::Never);

        /// Acquires the lock for reading, if no writer has it; writers that wait do not count.
        try_read_urgent() -> ReadResult<'a, T, N, P>, reading(Want::Urgent, Patience::Never);

        /// Acquires the lock for reading within `timeout`.
        try_read_for(timeout: Duration) -> ReadResult<'a, T, N, P>,
            reading(Want::Bulk, Patience::within(timeout));

        /// Acquires the lock for reading until `deadline`.
        read_until(deadline: Deadline) -> ReadResult<'a, T, N, P>,
            reading(Want::Bulk, Patience::Until(deadline));

        /// Acquires the lock for reading until `deadline`, before all writers that wait.
        read_urgent_until(deadline: Deadline) -> ReadResult<'a, T, N, P>,
            reading(Want::Urgent, Patience::Until(deadline));

        /// Acquires the lock for writing.
        write() -> WriteResult<'a, T, N, P>, writing(Patience::Forever);

        /// Acquires the lock for writing, if no thread has it or waits for it.
        try_write() -> WriteResult<'a, T, N, P>, writing(Patience::Never);

        /// Acquires the lock for writing within `timeout`.
        try_write_for(timeout: Duration) -> WriteResult<'a, T, N, P>, writing(Patience::within(timeout));

        /// Acquires the lock for writing until `deadline`.
        write_until(deadline: Deadline) -> WriteResult<'a, T, N, P>, writing(Patience::Until(deadline));
    }

    /// Acquires the lock for writing, also if it is not recoverable: the guard is dirty until
    /// [`mark_consistent`](RwLockWriteGuard::mark_consistent).
    ///
    /// # Errors
    /// As [`write`](Self::write), but for those of the data.
    ///
    /// # Panics
    /// As [`write`](Self::write).
    pub fn reset<'a>(&'a self, me: &'a Member<'_>) -> Result<RwLockWriteGuard<'a, T, N, P>, Refused> {
        me.check_region(self);
        // SAFETY: the lock lies in the member's region, and all members of that have one table.
        unsafe { self.raw.acquire(me, Want::Write, Patience::Forever) }?;
        self.raw.health.store(health::DIRTY, Relaxed);
        Ok(self.write_guard(me))
    }

    /// Whether a thread has the lock, living or dead, at the moment of the look.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    /// The guard of a thread that reads, and has forgotten its guard; `None` if it does not read.
    ///
    /// # Panics
    /// As [`read`](Self::read).
    ///
    /// # Safety
    /// There is no other guard of the thread.
    #[doc(hidden)]
    pub unsafe fn read_guard_unchecked<'a>(
        &'a self,
        me: &'a Member<'_>,
    ) -> Option<RwLockReadGuard<'a, T, N, P>> {
        me.check_region(self);
        self.raw.is_reader(me).then(|| RwLockReadGuard { lock: self, me })
    }

    /// The guard of a thread that writes, and has forgotten its guard; `None` if it does not write.
    ///
    /// # Panics
    /// As [`read`](Self::read).
    ///
    /// # Safety
    /// There is no other guard of the thread.
    #[doc(hidden)]
    pub unsafe fn write_guard_unchecked<'a>(
        &'a self,
        me: &'a Member<'_>,
    ) -> Option<RwLockWriteGuard<'a, T, N, P>> {
        me.check_region(self);
        self.raw.is_writer(me).then(|| self.write_guard(me))
    }

    /// The raw lock, for models.
    #[doc(hidden)]
    pub fn raw(&self) -> &RawRwLock<P, N> {
        &self.raw
    }

    fn reading<'a>(&'a self, me: &'a Member<'_>, want: Want, patience: Patience) -> ReadResult<'a, T, N, P> {
        me.check_region(self);
        // SAFETY: the lock lies in the member's region, and all members of that have one table.
        unsafe { self.raw.acquire(me, want, patience) }.map_err(LockError::Refused)?;
        let guard = RwLockReadGuard { lock: self, me };
        match self.raw.health.load(Relaxed) {
            health::CONSISTENT => Ok(guard),
            health::DIRTY => Err(LockError::OwnerDied(guard)),
            _ => Err(LockError::NotRecoverable),
        }
    }

    fn writing<'a>(&'a self, me: &'a Member<'_>, patience: Patience) -> WriteResult<'a, T, N, P> {
        me.check_region(self);
        // SAFETY: the lock lies in the member's region, and all members of that have one table.
        unsafe { self.raw.acquire(me, Want::Write, patience) }.map_err(LockError::Refused)?;
        match self.raw.health.load(Relaxed) {
            health::CONSISTENT => Ok(self.write_guard(me)),
            health::DIRTY => Err(LockError::OwnerDied(self.write_guard(me))),
            _ => {
                // SAFETY: acquired above.
                unsafe { self.raw.unlock_write(me) };
                Err(LockError::NotRecoverable)
            }
        }
    }

    fn write_guard<'a>(&'a self, me: &'a Member<'_>) -> RwLockWriteGuard<'a, T, N, P> {
        RwLockWriteGuard { lock: self, me, panicking: std::thread::panicking() }
    }

    /// The place of the data.
    #[cfg(regions)]
    pub(crate) fn data_of(this: *mut Self) -> *mut T
    where
        T: Sized,
    {
        this.wrapping_byte_add(core::mem::offset_of!(Self, data)).cast()
    }

    /// Unlocks a lock that no thread uses. If a thread was writing, the data is dirty.
    ///
    /// # Safety
    /// `this` is valid for reads and writes, and no thread of any process uses it.
    #[cfg(regions)]
    pub(crate) unsafe fn reset_lock(this: *mut Self)
    where
        T: Sized,
    {
        // SAFETY: the caller's promise.
        unsafe { &*this }.raw.reset();
    }
}

impl<T: ?Sized, const N: usize, P: Policy<Scope = futex::Global>> fmt::Debug for RwLock<T, N, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RwLock");
        shown.field("locked", &self.is_locked()).field("health", &self.raw.health.load(Relaxed));
        shown.finish_non_exhaustive()
    }
}

/// Shared access to the data of a [`RwLock`], until it is dropped.
#[must_use = "dropped at once, it releases the lock"]
pub struct RwLockReadGuard<'a, T: ?Sized, const N: usize = 64, P: Policy<Scope = futex::Global> = Shared> {
    lock: &'a RwLock<T, N, P>,
    me: &'a Member<'a>,
}

impl<T: ?Sized, const N: usize, P: Policy<Scope = futex::Global>> Deref for RwLockReadGuard<'_, T, N, P> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the member reads until its guard is dropped, so no thread writes. Only if it dies
        // or leaves do others take its place. It cannot leave while the guard borrows it, and what
        // it has lent is not used after its thread's end: the contract of `Member::join`.
        self.lock.data.with(|data| unsafe { &*data })
    }
}

impl<T: ?Sized + fmt::Debug, const N: usize, P: Policy<Scope = futex::Global>> fmt::Debug
    for RwLockReadGuard<'_, T, N, P>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: ?Sized, const N: usize, P: Policy<Scope = futex::Global>> Drop for RwLockReadGuard<'_, T, N, P> {
    fn drop(&mut self) {
        if !ulocks_core::sync::is_abandoned() {
            // SAFETY: the guard's member reads, and is of this thread: neither can be sent.
            unsafe { self.lock.raw.unlock_read(self.me) };
        }
    }
}

/// Exclusive access to the data of a [`RwLock`], until it is dropped.
#[must_use = "dropped at once, it releases the lock"]
pub struct RwLockWriteGuard<'a, T: ?Sized, const N: usize = 64, P: Policy<Scope = futex::Global> = Shared> {
    lock: &'a RwLock<T, N, P>,
    me: &'a Member<'a>,
    /// Whether the thread panicked already when it acquired.
    panicking: bool,
}

impl<'a, T: ?Sized, const N: usize, P: Policy<Scope = futex::Global>> RwLockWriteGuard<'a, T, N, P> {
    /// Whether a writer died or panicked, and the data was not repaired since.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        self.lock.raw.health.load(Relaxed) != health::CONSISTENT
    }

    /// Says that the data is whole again.
    ///
    /// # Panics
    /// If the guard is that of the process's parent.
    pub fn mark_consistent(&mut self) {
        self.say(health::CONSISTENT);
    }

    /// Releases, and makes the lock not recoverable: the data cannot be repaired.
    ///
    /// # Panics
    /// As [`mark_consistent`](Self::mark_consistent).
    pub fn abandon(self) {
        self.say(health::DIRTY);
    }

    /// Says what is known of the data. Only the thread that has the lock knows.
    #[cold]
    #[inline(never)]
    fn say(&self, health: u32) {
        self.me.check_process();
        self.lock.raw.health.store(health, Relaxed);
    }

    /// Whether the thread has begun to panic since it acquired.
    fn panics(&self) -> bool {
        !self.panicking && std::thread::panicking()
    }

    /// Lets the thread read from now on, and other readers with it. A dirty lock stays dirty. In a
    /// thread that has panicked since it acquired, it becomes so, as by the drop of the guard.
    pub fn downgrade(self) -> RwLockReadGuard<'a, T, N, P> {
        let (lock, me) = (self.lock, self.me);
        if self.panics() && !self.is_dirty() {
            self.say(health::DIRTY);
        }
        core::mem::forget(self);
        // SAFETY: the guard's member writes, and is of this thread: neither can be sent.
        unsafe { lock.raw.downgrade(me) };
        RwLockReadGuard { lock, me }
    }
}

impl<T: ?Sized, const N: usize, P: Policy<Scope = futex::Global>> super::Mends
    for RwLockWriteGuard<'_, T, N, P>
{
    fn mended(&mut self) {
        self.mark_consistent();
    }
}

impl<T: ?Sized, const N: usize, P: Policy<Scope = futex::Global>> Deref for RwLockWriteGuard<'_, T, N, P> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the member has the lock alone until its guard is dropped. Only if it dies or
        // leaves do others take its place. It cannot leave while the guard borrows it, and what it
        // has lent is not used after its thread's end: the contract of `Member::join`.
        self.lock.data.with(|data| unsafe { &*data })
    }
}

impl<T: ?Sized, const N: usize, P: Policy<Scope = futex::Global>> DerefMut for RwLockWriteGuard<'_, T, N, P> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and the guard is borrowed alone.
        self.lock.data.with_mut(|data| unsafe { &mut *data })
    }
}

impl<T: ?Sized + fmt::Debug, const N: usize, P: Policy<Scope = futex::Global>> fmt::Debug
    for RwLockWriteGuard<'_, T, N, P>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: ?Sized, const N: usize, P: Policy<Scope = futex::Global>> Drop for RwLockWriteGuard<'_, T, N, P> {
    fn drop(&mut self) {
        if ulocks_core::sync::is_abandoned() {
            return;
        }
        if self.is_dirty() {
            self.say(health::NOT_RECOVERABLE);
        } else if self.panics() {
            self.say(health::DIRTY);
        }
        // SAFETY: as in `downgrade`.
        unsafe { self.lock.raw.unlock_write(self.me) };
    }
}
