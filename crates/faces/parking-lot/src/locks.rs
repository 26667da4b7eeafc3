//! The raw locks: newtypes that carry the traits of lock_api, of version 0.5 in `current.rs` and of
//! 0.4 in `v0_12/locks.rs`. `below` has the locks in them: this file and those two are compiled
//! once for the plain locks, and once more for the checked ones.

use crate::condvar::{ExactCondvar, OtherMutex};
use crate::rwlock::Patience;
use super::below::{Fair, FaultsAbort, Recursive, Throughput};
use core::panic::{RefUnwindSafe, UnwindSafe};
use ulocks_core::raw::Initial as _;
use ulocks_core::time::Deadline;

/// The raw lock of [`Mutex`](crate::Mutex): that of `ulocks::Mutex`, eight bytes.
///
/// It is barging with a bound of 100 us. A fair release is a release: the mutex is handed over to
/// the oldest waiter when that has been overtaken for the bound.
pub struct RawMutex(pub(crate) Throughput);

/// The raw lock of [`FairMutex`](crate::FairMutex): that of `ulocks::fair::FairMutex`, sixteen
/// bytes, first in, first out.
pub struct RawFairMutex(pub(crate) Fair);

/// The raw lock of [`RwLock`](crate::RwLock), of twenty-four bytes. With `RECURSIVE`, all readers
/// read recursively.
pub struct RawRwLock<const RECURSIVE: bool = false>(pub(crate) Recursive);

/// Tells threads apart, for [`ReentrantMutex`](crate::ReentrantMutex).
pub struct RawThreadId;

impl RawThreadId {
    /// The address of something of this thread's.
    #[inline]
    pub(crate) fn current() -> core::num::NonZeroUsize {
        std::thread_local!(static HERE: u8 = const { 0 });
        let address = HERE.with(|here| core::ptr::from_ref(here).addr());
        core::num::NonZeroUsize::new(address).expect("a variable has no address zero")
    }
}

// A lock runs no user's code, so a panic leaves it whole, with or without its holder.
impl UnwindSafe for RawMutex {}
impl RefUnwindSafe for RawMutex {}
impl UnwindSafe for RawFairMutex {}
impl RefUnwindSafe for RawFairMutex {}
impl<const RECURSIVE: bool> UnwindSafe for RawRwLock<RECURSIVE> {}
impl<const RECURSIVE: bool> RefUnwindSafe for RawRwLock<RECURSIVE> {}

impl RawMutex {
    pub(crate) const fn new() -> Self {
        Self(Throughput::INIT)
    }
}

impl RawFairMutex {
    pub(crate) const fn new() -> Self {
        Self(Fair::INIT)
    }
}

impl<const RECURSIVE: bool> RawRwLock<RECURSIVE> {
    pub(crate) const fn new() -> Self {
        Self(Recursive::new())
    }

    #[inline]
    #[track_caller]
    pub(crate) fn acquire_shared(&self, patience: Patience) -> bool {
        if RECURSIVE { self.0.read_again(patience) } else { self.0.read(patience) }
    }
}

/// The condition variable for [`RawMutex`].
pub(crate) struct Condvar(ExactCondvar<Throughput>);

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self(ExactCondvar::new())
    }

    /// Returns whether the deadline passed without a notification.
    ///
    /// # Panics
    /// If threads wait with another mutex. The mutex is held then.
    ///
    /// # Safety
    /// The caller holds `mutex`.
    pub(crate) unsafe fn wait(&self, mutex: &RawMutex, deadline: Option<Deadline>) -> bool {
        let _faults = FaultsAbort::because("ulocks: the process aborts, because no wait unwinds\n");
        // SAFETY: the caller holds the mutex; its token is nothing.
        match unsafe { self.0.wait(&mutex.0, (), deadline) } {
            Ok(((), is_notified)) => !is_notified,
            Err(OtherMutex(())) => panic!("attempted to use a condition variable with more than one mutex"),
        }
    }

    #[inline]
    pub(crate) fn notify_one(&self) -> bool {
        self.0.notify_one()
    }

    #[inline]
    pub(crate) fn notify_all(&self) -> usize {
        self.0.notify_all()
    }
}
