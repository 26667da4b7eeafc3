//! A lock between processes that survives the death of its holder.
//!
//! # State
//! | word | meaning |
//! |---|---|
//! | 0 | free |
//! | thread id | held |
//! | thread id, `WAITERS` | held, and threads may sleep |
//! | `OWNER_DIED`, maybe `WAITERS` | its holder has died |
//!
//! | transition | by | label |
//! |---|---|---|
//! | free or died to the thread id, `WAITERS` kept | a thread that acquires | (acquire) |
//! | `WAITERS` set | a thread that is about to sleep | (mark waiting) |
//! | anything to free; then one sleeper is woken | the holder | (release) |
//! | a thread id to `OWNER_DIED` | the kernel, or a waiter that finds that thread gone | (mark dead) |
//!
//! # Invariants
//! 1. From before (acquire) until after the wake-up of (release), the word is the *pending* word of
//!    the thread's robust list. So the kernel makes (mark dead) if the holder dies. If the thread
//!    dies after (release) and before its wake-up, the kernel wakes a sleeper.
//! 2. A thread that has slept sets `WAITERS` at (acquire): others may sleep.
//! 3. Handlers wait from (acquire) to (release) (`signal/mod.rs`). So a handler does not find its
//!    own thread inside, and cannot leave it by a jump. One that the program has installed behind
//!    our back gets EDEADLK.
//! 4. A thread holds one lock of this kind at a time, for there is one pending word. Another word
//!    that was pending before (acquire) may be that of a lock of another kind which the thread
//!    holds. One of its sleepers is woken then, and watches the thread (`ulocks_core::robust`). Or
//!    it is the number of a sleeper that looks (`queue.rs`), for which nobody waits. The word is
//!    pending again after (release).
//!
//! A sleep lasts at most [`RECHECK`]: a woken thread may die while another thread takes the lock
//! without `WAITERS`, and then no thread wakes the sleepers. A thread without a robust list is
//! found gone by its number, also if the number is the caller's by now.
//!
//! # Ordering
//! (release) is Release and (acquire) is Acquire. The kernel's (mark dead) is a full barrier.
//!
//! # Sources
//! Documentation/locking/robust-futex-ABI.rst in the kernel. U. Drepper, "Futexes Are Tricky".

use crate::robust::List;
use crate::signal::HeldBack;
use crate::sys::{self, Answer};
use core::cell::Cell;
use core::ptr::null;
#[cfg(not(files))]
use ulocks_core::model::thread_local;
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};

const WAITERS: u32 = 1 << 31;
/// The kernel's mark in a word with the number of a thread that has died.
pub const OWNER_DIED: u32 = 1 << 30;
const THREAD: u32 = OWNER_DIED - 1;

/// The longest sleep, in nanoseconds.
pub const RECHECK: u64 = 100_000_000;
/// How often a thread polls before it sleeps. A section takes less than a microsecond, which is
/// about this many polls.
const POLLS: u32 = 100;

thread_local! {
    /// The lock that the thread acquires or holds.
    static HELD: Cell<*const Lock> = const { Cell::new(null()) };
}

/// The calling thread, whose handlers wait.
#[derive(Debug)]
pub struct Thread {
    number: u32,
    list: List,
    /// Dropped last.
    _held_back: HeldBack,
}

impl Default for Thread {
    fn default() -> Self {
        Self::new()
    }
}

impl Thread {
    /// The calling thread's handlers wait from now on.
    #[inline]
    pub fn new() -> Self {
        let held_back = HeldBack::new();
        Self { number: ulocks_core::tid::current(), list: List::current(), _held_back: held_back }
    }

    /// The kernel's number of the thread.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Names the pending word. Returns the former one. If there is one, it may be that of a lock
    /// which the thread holds, and whose waiters do not watch it (`ulocks_core::robust`): one of
    /// them is woken before.
    #[inline]
    pub fn replace_pending(&self, word: &AtomicU32) -> usize {
        let before = self.list.pending();
        if before != 0 {
            sys::wake_at(before, 1);
        }
        self.list.set_pending(core::ptr::from_ref(word) as usize);
        before
    }
}

/// The lock: all zero is free.
#[derive(Debug)]
#[repr(transparent)]
pub struct Lock {
    word: AtomicU32,
}

/// A lock that is held.
#[derive(Debug)]
pub struct Held<'a> {
    lock: &'a Lock,
    /// The thread that holds it.
    pub thread: Thread,
    before: usize,
    outer: *const Lock,
    /// Whether the former holder died with it.
    pub died: bool,
}

impl Lock {
    /// Acquires it, for `thread`.
    ///
    /// # Errors
    /// EDEADLK if the thread holds it: see invariant 3.
    #[inline]
    pub fn lock(&self, thread: Thread) -> Answer<Held<'_>> {
        let before = thread.replace_pending(&self.word); // invariant 1
        // From before (acquire) until after (release), for a handler that runs in spite of all.
        let outer = HELD.replace(self);
        let died = match self.word.compare_exchange(0, thread.number, Acquire, Relaxed) {
            Ok(_) => false,
            Err(_) => match self.contended(&thread, core::ptr::eq(outer, self)) {
                Ok(died) => died,
                Err(error) => {
                    HELD.set(outer);
                    thread.list.set_pending(before);
                    return Err(error);
                }
            },
        };
        Ok(Held { lock: self, thread, before, outer, died })
    }

    /// Whether its holder has died, for `thread`, which does not have it.
    pub fn has_died(&self, thread: u32) -> bool {
        let seen = self.word.load(Relaxed);
        let holder = seen & THREAD;
        seen & OWNER_DIED != 0 || holder == thread || (holder != 0 && !sys::thread_exists(holder))
    }

    #[cold]
    fn contended(&self, thread: &Thread, is_nested: bool) -> Answer<bool> {
        let (mut polls, mut mine) = (0, thread.number);
        loop {
            let seen = self.word.load(Relaxed);
            if seen & THREAD == 0 {
                // (acquire)
                let taken = self.word.compare_exchange(seen, mine | seen & WAITERS, Acquire, Relaxed);
                if taken.is_ok() {
                    return Ok(seen & OWNER_DIED != 0);
                }
                continue;
            }
            if seen & THREAD == thread.number {
                if is_nested {
                    return Err(libc::EDEADLK);
                }
                // (mark dead). It was a thread of that number.
                let _ = self.word.compare_exchange(seen, OWNER_DIED | WAITERS, Relaxed, Relaxed);
                continue;
            }
            if polls < POLLS {
                polls += 1;
                core::hint::spin_loop();
                continue;
            }
            let marked = seen | WAITERS;
            // (mark waiting)
            if seen != marked && self.word.compare_exchange(seen, marked, Relaxed, Relaxed).is_err() {
                continue;
            }
            mine |= WAITERS; // invariant 2
            let slept = sys::wait(&self.word, marked, sys::monotonic() + RECHECK);
            if slept == Err(libc::ETIMEDOUT) && !sys::thread_exists(marked & THREAD) {
                // (mark dead). The exchange fails if the word has another holder by now.
                let _ = self.word.compare_exchange(marked, OWNER_DIED | WAITERS, Relaxed, Relaxed);
            }
        }
    }
}

impl Held<'_> {
    /// Releases it. Handlers still wait.
    #[inline]
    pub fn unlock(self) -> Thread {
        if self.lock.word.swap(0, Release) & WAITERS != 0 {
            sys::wake(&self.lock.word, 1); // (release)
        }
        HELD.set(self.outer);
        self.thread.list.set_pending(self.before);
        self.thread
    }
}
