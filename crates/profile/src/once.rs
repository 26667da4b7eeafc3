//! What happens once in a process, also if a thread forks meanwhile.
//!
//! The child of a fork has one thread. `std::sync::Once` lets that thread wait for ever if another
//! one was inside at the fork. This one knows the process of the thread that is inside:
//!
//! | word | meaning | set by |
//! |---|---|---|
//! | 0 | nobody has begun, or the closure has panicked | the thread that was inside, by unwinding |
//! | the id of a process | a thread of that process is inside | that thread, by (begin) |
//! | `DONE` | the closure has returned | the same thread |
//!
//! The end of a closure is Release, (end): a thread that finds `DONE` sees what the closure has
//! done, and one that begins again what was left by a panic.
//!
//! A thread that finds the id of another process knows that its own was forked from that one. The
//! thread that is inside is none of its own, so it begins again. So a closure may be cut off
//! anywhere, and run again in the child.

use std::process;
use ulocks_core::futex::{Futex, Local};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};

/// No process has this id.
const DONE: u32 = u32::MAX;

/// `std::sync::Once`, but for the child of a fork. What it calls may be cut off by the fork of
/// another thread, and is then called again in the child.
pub struct Once(Futex<Local>);

impl Once {
    /// Nothing was called yet.
    #[expect(clippy::new_without_default, reason = "it is made in statics only")]
    pub const fn new() -> Self {
        Self(Futex::new(0))
    }

    /// Calls `work`, unless that was done. It is done when this returns.
    #[inline]
    pub fn call_once(&self, work: impl FnOnce()) {
        // (end)
        if self.0.load(Acquire) != DONE {
            self.call(work);
        }
    }

    #[cold]
    fn call(&self, work: impl FnOnce()) {
        let process = process::id();
        loop {
            // (end)
            match self.0.load(Acquire) {
                DONE => return,
                inside if inside == process => _ = self.0.wait(process, None),
                before => {
                    // (begin), after (end) by a panic.
                    if self.0.compare_exchange(before, process, Acquire, Relaxed).is_ok() {
                        break;
                    }
                }
            }
        }
        let mut end = End { once: self, word: 0 };
        work();
        end.word = DONE;
    }
}

/// Its drop is the end of the closure, also by unwinding.
struct End<'a> {
    once: &'a Once,
    word: u32,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.once.0.store(self.word, Release); // (end)
        self.once.0.key().wake(u32::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;
    use ulocks_core::sync::AtomicU32;

    #[test]
    fn threads_call_it_once_and_wait_for_its_end() {
        let (once, calls) = (Once::new(), AtomicU32::new(0));
        let call = || {
            once.call_once(|| {
                calls.store(calls.load(Relaxed) + 1, Relaxed);
            });
            assert_eq!(calls.load(Relaxed), 1);
        };
        thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(call)));
    }

    #[test]
    fn a_panic_leaves_it_to_the_next_call() {
        let once = Once::new();
        let panics = catch_unwind(AssertUnwindSafe(|| once.call_once(|| panic!("cut off"))));
        assert!(panics.is_err());
        let mut is_called = false;
        once.call_once(|| is_called = true);
        assert!(is_called);
    }
}
