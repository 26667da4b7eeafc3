//! A plain futex mutex, sound, and the same with one seeded bug.
//!
//! The sound one is the three-state mutex of Drepper's "Futexes Are Tricky" (2004): no spinning, no policy, and foreign
//! sleepers are welcome on its futex. Tests that need some mutex use it as [`Plain`].
//!
//! # State
//! | word | meaning |
//! |---|---|
//! | `UNLOCKED` | free |
//! | `LOCKED` | held, nobody sleeps |
//! | `CONTENDED` | held, somebody may sleep; its release wakes one |
//!
//! Whoever may have slept takes the lock as `CONTENDED`, because others may sleep still.

pub mod rw;

use ulocks_core::futex::{Futex, FutexKey, Scope, Waited};
use ulocks_core::raw::RawMutex;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;
use ulocks_core::{const_fn, raw_init};

const UNLOCKED: u32 = 0;
const LOCKED: u32 = 1;
const CONTENDED: u32 = 2;

/// No bug.
pub const SOUND: u8 = 0;
/// The lock is taken by a load and a store: two threads can pass between them.
pub const LOAD_THEN_STORE: u8 = 1;
/// The release publishes nothing.
pub const RELAXED_UNLOCK: u8 = 2;
/// The release wakes nobody.
pub const NO_WAKE: u8 = 3;
/// A waiter that was woken takes the lock as `LOCKED` and so forgets those who sleep still.
pub const FORGETS_SLEEPERS: u8 = 4;
/// A waiter that gives up clears `CONTENDED`, as if it had been the only one.
pub const TIMEOUT_CLEARS_CONTENDED: u8 = 5;
/// The release looks at the word once more afterwards.
pub const TOUCH_AFTER_RELEASE: u8 = 6;
/// `lock_requeued` forgets that others may sleep on the futex.
pub const REQUEUED_FORGETS: u8 = 7;

/// A futex mutex with the bug `BUG`. Waiters on its condition variables spin for `CONDVAR_NS` before they sleep.
#[derive(Debug)]
#[repr(transparent)]
pub struct ThreeState<S: Scope, const BUG: u8, const CONDVAR_NS: u32 = 0>(Futex<S>);

/// A futex mutex without a bug, for one process.
pub type Plain = ThreeState<ulocks_core::futex::Private, SOUND>;
/// A futex mutex without a bug, for every process that maps it.
pub type PlainShared = ThreeState<ulocks_core::futex::Shared, SOUND>;

impl<S: Scope, const BUG: u8, const CONDVAR_NS: u32> ThreeState<S, BUG, CONDVAR_NS> {
    const_fn! {
        /// An unlocked mutex.
        pub fn new() -> Self {
            Self(Futex::new(UNLOCKED))
        }
    }

    /// Takes the mutex as `CONTENDED`, sleeping while it is held. False if the deadline passed first.
    fn lock_contended(&self, deadline: Option<Deadline>) -> bool {
        while self.0.swap(CONTENDED, Acquire) != UNLOCKED {
            match self.0.wait(CONTENDED, deadline) {
                Waited::TimedOut => {
                    if BUG == TIMEOUT_CLEARS_CONTENDED {
                        let _ = self.0.compare_exchange(CONTENDED, LOCKED, Relaxed, Relaxed);
                    }
                    return false;
                }
                Waited::Woken if BUG == FORGETS_SLEEPERS && self.try_lock().is_some() => break,
                _ => {}
            }
        }
        true
    }
}

impl<S: Scope, const BUG: u8, const CONDVAR_NS: u32> Default for ThreeState<S, BUG, CONDVAR_NS> {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: with `SOUND`, the word leaves `UNLOCKED` by one atomic exchange of the thread that gets the token and returns
// to it by the release of that token; acquire and release order the two. The bugs are for tests that expect to fail.
unsafe impl<S: Scope, const BUG: u8, const CONDVAR_NS: u32> RawMutex for ThreeState<S, BUG, CONDVAR_NS> {
    raw_init!(Self::new());
    type Scope = S;
    type Token = ();
    const CONDVAR_NS: u32 = CONDVAR_NS;

    fn lock(&self) {
        if self.try_lock().is_none() {
            self.lock_contended(None);
        }
    }

    fn try_lock(&self) -> Option<()> {
        if BUG == LOAD_THEN_STORE {
            let free = self.0.load(Acquire) == UNLOCKED;
            return free.then(|| {
                self.0.swap(LOCKED, Acquire);
            });
        }
        self.0.compare_exchange(UNLOCKED, LOCKED, Acquire, Relaxed).is_ok().then_some(())
    }

    fn lock_until(&self, deadline: Deadline) -> Option<()> {
        self.try_lock().or_else(|| self.lock_contended(Some(deadline)).then_some(()))
    }

    unsafe fn unlock(&self, (): ()) {
        let key = self.0.key();
        let release = if BUG == RELAXED_UNLOCK { Relaxed } else { Release };
        let before = self.0.swap(UNLOCKED, release);
        if BUG == TOUCH_AFTER_RELEASE {
            late(key.address());
            // The box keeps the compiler from leaving out a read that nobody uses.
            core::hint::black_box(self.0.fetch_add(0, Relaxed));
        }
        if before == CONTENDED && BUG != NO_WAKE {
            key.wake(1);
        }
    }

    fn is_locked(&self) -> bool {
        self.0.load(Relaxed) != UNLOCKED
    }

    fn requeue_key(&self) -> Option<FutexKey<S>> {
        Some(self.0.key())
    }

    fn mark_for_requeued(&self) -> bool {
        let mut held = self.0.load(Relaxed);
        while held != UNLOCKED {
            match self.0.compare_exchange(held, CONTENDED, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => held = now,
            }
        }
        false
    }

    fn lock_requeued(&self) {
        if BUG == REQUEUED_FORGETS {
            return self.lock();
        }
        self.lock_contended(None);
    }
}

/// On the machine, holds up the first release of the process until the page of the word is unmapped, or for ten seconds.
/// A model needs no help.
fn late(address: usize) {
    #[cfg(not(any(all(ulocks_loom, feature = "loom"), all(ulocks_vm, feature = "vm"))))]
    {
        use std::sync::atomic::AtomicBool;
        static ONE_IS_LATE: AtomicBool = AtomicBool::new(false);
        let mut resident = 0;
        let page = std::ptr::without_provenance_mut(address & !0xfff);
        // SAFETY: mincore only looks at the mapping, and says so if there is none; the result of one page fits.
        let mut is_mapped = || unsafe { libc::mincore(page, 1, &raw mut resident) } == 0;
        if !ONE_IS_LATE.swap(true, Relaxed) {
            for _ in 0..10_000 {
                if !is_mapped() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
    }
    #[cfg(any(all(ulocks_loom, feature = "loom"), all(ulocks_vm, feature = "vm")))]
    let _ = address;
}
