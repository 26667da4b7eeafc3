//! A mutex as it is in the middle of a program, with its gate open: all gates begin shut, and a
//! model has no time to get over that. And a client that uses two mutexes behind one gate.

use ulocks_core::raw::{RawInterruptible, RawMutex};
use ulocks_core::time::Deadline;
use ulocks_testkit::new_lock;
use ulocks_testkit::thread::{Arc, together};

/// The mutex `L`, used so many times by the thread that makes it.
pub struct Warm<L, const USES: usize>(L);

ulocks_core::initial!([L: RawMutex, const USES: usize] Warm<L, USES> = {
    let mutex = new_lock::<L>();
    for _ in 0..USES {
        let token = mutex.lock();
        // SAFETY: locked the line before.
        unsafe { mutex.unlock(token) };
    }
    Self(mutex)
});

// SAFETY: every call is passed on.
unsafe impl<L: RawMutex, const USES: usize> RawMutex for Warm<L, USES> {
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

impl<L: RawInterruptible, const USES: usize> RawInterruptible for Warm<L, USES> {}

/// Two mutexes behind one gate, one used by `threads` and one by `others`: a thread that releases
/// one may open the gate on a waiter of the other, and the mark it has set.
pub fn neighbours<L: RawMutex + Send + Sync + 'static>(threads: usize, others: usize, rounds: usize) {
    let locks = Arc::new([new_lock::<L>(), new_lock::<L>()]);
    let shared = Arc::clone(&locks);
    together(threads + others, move |me| {
        let lock = &shared[usize::from(me < others)];
        for _ in 0..rounds {
            let token = lock.lock();
            // SAFETY: locked the line before.
            unsafe { lock.unlock(token) };
        }
    });
    assert!(!locks[0].is_locked() && !locks[1].is_locked(), "a mutex is locked although all have left");
}
