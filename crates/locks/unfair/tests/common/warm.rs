//! A mutex as it is in the middle of a program, with its gate open: all gates begin shut, and a
//! model has no time to get over that. And a client that uses two mutexes behind one gate.

use ulocks_core::raw::RawMutex;
use ulocks_testkit::new_lock;
use ulocks_testkit::prepared::{Preparation, Prepared};
use ulocks_testkit::thread::{Arc, together};

/// The mutex `L`, used so many times by the thread that makes it.
pub type Warm<L, const USES: usize> = Prepared<L, Used<USES>>;

pub struct Used<const USES: usize>;

impl<const USES: usize> Preparation for Used<USES> {
    fn lock<L: RawMutex>() -> L {
        let mutex = new_lock::<L>();
        for _ in 0..USES {
            let token = mutex.lock();
            // SAFETY: locked the line before.
            unsafe { mutex.unlock(token) };
        }
        mutex
    }
}

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
