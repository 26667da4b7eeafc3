//! A small lock to try the typed face with: three states, timed, and a release that counts as fair.

use ulocks_core::futex::{Futex, Local, Waited};
use ulocks_core::raw::{RawMutex, RawMutexFair};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;

#[derive(Debug)]
pub struct Plain(Futex<Local>);

impl Plain {
    ulocks_core::const_fn! {
        pub fn new() -> Self {
            Self(Futex::new(0))
        }
    }

    fn lock_contended(&self, deadline: Option<Deadline>) -> bool {
        while self.0.swap(2, Acquire) != 0 {
            if self.0.wait(2, deadline) == Waited::TimedOut {
                return false;
            }
        }
        true
    }
}

ulocks_core::initial!([] Plain = Self::new());

// SAFETY: only the exchange of 0 for something else acquires, with acquire ordering, and only the
// holder writes 0, with release ordering. The word is all there is: tokens may be forgotten, the
// mutex moved or dropped.
unsafe impl RawMutex for Plain {
    type Scope = Local;
    type Token = ();

    fn lock(&self) {
        if self.try_lock().is_none() {
            self.lock_contended(None);
        }
    }

    fn try_lock(&self) -> Option<()> {
        self.0.compare_exchange(0, 1, Acquire, Relaxed).ok().map(drop)
    }

    fn lock_until(&self, deadline: Deadline) -> Option<()> {
        (self.try_lock().is_some() || self.lock_contended(Some(deadline))).then_some(())
    }

    unsafe fn unlock(&self, (): ()) {
        let key = self.0.key();
        if self.0.swap(0, Release) == 2 {
            key.wake(1);
        }
    }

    fn is_locked(&self) -> bool {
        self.0.load(Relaxed) != 0
    }
}

// SAFETY: a release is a release. It is not fair at all, which none of the tests needs.
unsafe impl RawMutexFair for Plain {
    unsafe fn unlock_fair(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock(()) };
    }
}
