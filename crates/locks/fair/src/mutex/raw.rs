//! The raw mutex: one type, and a protocol for each scope.
//!
//! In one process it is a queue of nodes on the waiters' stacks ([`private`](super::private)),
//! between processes a ticket and a futex ([`shared`](super::shared)), because nothing in shared
//! memory may be a pointer.

use super::{private, shared};
use core::fmt;
use ulocks_core::futex::{self, Scope};
use ulocks_core::raw::{Metered, RawMutex, RawMutexFair};
use ulocks_core::spin;
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Private};

/// The scopes of a [`RawFairMutex`], each with a protocol of its own: both that there are.
///
/// Code that is generic over the policy of a fair mutex says `P: Policy<Scope: FairScope>`.
#[diagnostic::on_unimplemented(
    message = "a fair mutex takes no policy of which only `Policy` is known",
    label = "write `P: Policy<Scope: FairScope>`"
)]
pub trait FairScope: Scope {
    /// The mutex of this scope.
    #[doc(hidden)]
    type Mutex<P: Policy<Scope = Self>>: RawMutexFair<Scope = Self, Token = ()>
        + Metered<Meter = P::Meter>
        + fmt::Debug
        + Send
        + Sync;
}

impl FairScope for futex::Local {
    type Mutex<P: Policy<Scope = Self>> = private::Protocol<P>;
}

impl FairScope for futex::Global {
    type Mutex<P: Policy<Scope = Self>> = shared::Protocol<P>;
}

type Mutex<P> = <<P as Policy>::Scope as FairScope>::Mutex<P>;

/// The raw mutex, without data: eight bytes, and the counters if the policy has any.
#[repr(transparent)]
pub struct RawFairMutex<P: Policy<Scope: FairScope> = Private>(Mutex<P>);

impl<P: Policy<Scope: FairScope>> RawFairMutex<P> {
    ulocks_core::const_fn! {
        /// An unlocked mutex; its bytes are all zero.
        pub fn new() -> Self {
            Self(ulocks_core::initial!(Mutex<P>))
        }
    }

    /// The counters.
    pub fn meter(&self) -> &P::Meter {
        self.0.meter()
    }
}

impl<P: Policy<Scope: FairScope>> Default for RawFairMutex<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Policy<Scope: FairScope>> fmt::Debug for RawFairMutex<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RawFairMutex").field(&self.0).finish()
    }
}

impl<P: Policy<Scope: FairScope>> Metered for RawFairMutex<P> {
    type Meter = P::Meter;

    fn meter(&self) -> &P::Meter {
        self.0.meter()
    }
}

ulocks_core::initial!([P: Policy<Scope: FairScope>] RawFairMutex<P> = Self::new());

// SAFETY: every call is passed on to a mutex that keeps this contract.
unsafe impl<P: Policy<Scope: FairScope>> RawMutex for RawFairMutex<P> {
    type Scope = P::Scope;
    type Token = ();
    const CONDVAR_NS: u32 = <P::Spin as spin::Spin>::CONDVAR_NS;

    #[inline]
    fn lock(&self) {
        self.0.lock();
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        self.0.try_lock()
    }

    #[inline]
    fn lock_until(&self, deadline: Deadline) -> Option<()> {
        self.0.lock_until(deadline)
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        // SAFETY: the caller's contract is the callee's.
        unsafe { self.0.unlock(()) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

// SAFETY: as above.
unsafe impl<P: Policy<Scope: FairScope>> RawMutexFair for RawFairMutex<P> {
    #[inline]
    unsafe fn unlock_fair(&self, (): ()) {
        // SAFETY: the caller's contract is the callee's.
        unsafe { self.0.unlock_fair(()) };
    }
}
