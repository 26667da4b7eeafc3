//! A mutex of a process that may use so many CPUs: how many waiters are awake depends on it.

use ulocks_core::model::pretend_cpus;
use ulocks_core::raw::{RawInterruptible, RawMutex};
use ulocks_core::time::Deadline;
use ulocks_testkit::new_lock;

/// The mutex `L` on so many CPUs.
pub struct OnCpus<L, const CPUS: u32>(L);

ulocks_core::initial!([L: RawMutex, const CPUS: u32] OnCpus<L, CPUS> = {
    pretend_cpus(CPUS);
    Self(new_lock())
});

// SAFETY: every call is passed on.
unsafe impl<L: RawMutex, const CPUS: u32> RawMutex for OnCpus<L, CPUS> {
    type Scope = L::Scope;
    type Token = L::Token;
    type Condvar = ulocks_core::condvar::Sequence<Self>;

    fn lock(&self) -> Self::Token {
        self.0.lock()
    }

    fn try_lock(&self) -> Option<Self::Token> {
        self.0.try_lock()
    }

    fn lock_until(&self, deadline: Deadline) -> Option<Self::Token> {
        self.0.lock_until(deadline)
    }

    unsafe fn unlock(&self, token: Self::Token) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock(token) };
    }

    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

impl<L: RawInterruptible, const CPUS: u32> RawInterruptible for OnCpus<L, CPUS> {}
