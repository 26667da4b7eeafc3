//! A one-time initialisation that threads can wait for, on one futex.
//!
//! # Properties
//! - One closure at a time runs; of those that return, one only. What it did happens before the
//!   return of every later call and wait.
//! - A closure that panics poisons: later calls and waits panic, unless they are forced.
//! - After the completion a call is one load.
//! - All-zero is new. The release is the last touch; its wake-up goes by address.
//!
//! # State
//! One word of four bits. Each transition is one read-modify-write.
//!
//! | label | from | to | by |
//! |---|---|---|---|
//! | (start) | not `RUNNING`, not `DONE` | with `RUNNING`, without `POISONED` | a call, which then runs its closure |
//! | (sleep) | not `DONE` | with `SLEEPERS` | a thread that is about to sleep |
//! | (end) | `RUNNING` | `DONE`, or `POISONED` after a panic; no other bit | the thread of (start), which wakes all if `SLEEPERS` was set |
//!
//! # Invariants
//! 1. One thread runs a closure: only (start) sets `RUNNING`, and only its thread clears it.
//! 2. No sleeper is forgotten: a thread sleeps only while the word has the value with `SLEEPERS`
//!    that it has seen. (start) keeps that bit, and (end) wakes all if it was set. After (start)
//!    the word differs from what a sleeper of [`Once::wait`] has seen; it sleeps on, and (end)
//!    wakes it.
//!
//! # Memory ordering
//! (start) is Acquire, and so is every look that returns or panics. They pair with (end), Release.
//! (sleep) is Relaxed.
//!
//! # Sources
//! The promises are those of `parking_lot::Once`.

use core::fmt;
use ulocks_core::futex::{Futex, Local};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};

const RUNNING: u32 = 1;
const POISONED: u32 = 2;
const DONE: u32 = 4;
const SLEEPERS: u32 = 8;

/// What has become of a [`Once`].
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum OnceState {
    /// No closure has run.
    New,
    /// A closure has panicked.
    Poisoned,
    /// A thread runs a closure.
    InProgress,
    /// A closure has returned.
    Done,
}

impl OnceState {
    /// Whether a closure has panicked, and none has run since.
    #[inline]
    pub const fn is_poisoned(self) -> bool {
        matches!(self, Self::Poisoned)
    }

    /// As [`is_poisoned`](Self::is_poisoned).
    #[inline]
    pub const fn poisoned(self) -> bool {
        self.is_poisoned()
    }

    /// Whether a closure has returned.
    #[inline]
    pub const fn is_completed(self) -> bool {
        matches!(self, Self::Done)
    }

    /// As [`is_completed`](Self::is_completed).
    #[inline]
    pub const fn done(self) -> bool {
        self.is_completed()
    }
}

/// Runs an initialisation once.
///
/// # Blocking
/// A thread that comes while another one runs the closure sleeps in the kernel until that ends.
///
/// # Panics
/// If a closure has panicked, [`call_once`](Self::call_once) and [`wait`](Self::wait) panic. If the
/// closure calls the same `Once` again, that deadlocks.
///
/// # Signals and forks
/// Signals are handled while a thread waits. The child of a fork that came while a closure ran
/// waits for ever.
///
/// # Examples
/// ```
/// use ulocks_parking_lot::Once;
///
/// static START: Once = Once::new();
///
/// let mut runs = 0;
/// START.call_once(|| runs += 1);
/// START.call_once(|| runs += 1);
/// assert_eq!(runs, 1);
/// ```
pub struct Once(Futex<Local>);

impl Once {
    ulocks_core::const_fn! {
        /// A `Once` whose closure has not run.
        #[inline]
        pub fn new() -> Self {
            Self(Futex::new(0))
        }
    }

    ulocks_core::const_fn! {
        /// A `Once` that is done.
        #[inline]
        pub fn new_completed() -> Self {
            Self(Futex::new(DONE))
        }
    }

    /// What has become of it. If it is done, what the closure did is visible.
    #[inline]
    pub fn state(&self) -> OnceState {
        match self.0.load(Acquire) {
            word if word & DONE != 0 => OnceState::Done,
            word if word & RUNNING != 0 => OnceState::InProgress,
            word if word & POISONED != 0 => OnceState::Poisoned,
            _ => OnceState::New,
        }
    }

    /// Whether a closure has returned.
    #[inline]
    pub fn is_completed(&self) -> bool {
        self.0.load(Acquire) == DONE
    }

    /// Waits until a closure has returned. It runs none.
    ///
    /// # Panics
    /// If a closure has panicked.
    #[inline]
    pub fn wait(&self) {
        if !self.is_completed() {
            self.wait_asleep(false);
        }
    }

    /// Waits until a closure has returned, also if others panic before.
    #[inline]
    pub fn wait_force(&self) {
        if !self.is_completed() {
            self.wait_asleep(true);
        }
    }

    /// Runs `f`, unless a closure has returned. While another thread runs one, it waits.
    ///
    /// # Panics
    /// If a closure has panicked, or if `f` does.
    #[inline]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        self.call(false, |_| f());
    }

    /// Runs `f`, unless a closure has returned, also if one has panicked. The argument tells which.
    ///
    /// # Panics
    /// If `f` does.
    #[inline]
    pub fn call_once_force<F: FnOnce(OnceState)>(&self, f: F) {
        self.call(true, f);
    }

    #[inline]
    fn call(&self, is_forced: bool, f: impl FnOnce(OnceState)) {
        if self.is_completed() {
            return;
        }
        let Some(before) = self.start(is_forced) else { return };
        let mut end = End(self, POISONED);
        f(before);
        end.1 = DONE;
    }

    /// (start), or waits until it is done.
    #[cold]
    fn start(&self, is_forced: bool) -> Option<OnceState> {
        let mut word = self.0.load(Acquire);
        loop {
            if !go_on(word, is_forced) {
                return None;
            }
            if word & RUNNING != 0 {
                word = self.sleep(word);
                continue;
            }
            // Mutant: Acquire -> Relaxed: it orders this after a second panic, and a panic ends a model.
            match self.0.compare_exchange(word, (word | RUNNING) & !POISONED, Acquire, Acquire) {
                Ok(_) if word & POISONED != 0 => return Some(OnceState::Poisoned),
                Ok(_) => return Some(OnceState::New),
                Err(now) => word = now,
            }
        }
    }

    #[cold]
    fn wait_asleep(&self, is_forced: bool) {
        let mut word = self.0.load(Acquire);
        while go_on(word, is_forced) {
            word = self.sleep(word);
        }
    }

    /// (sleep), if the word is `word`, and sleeps. Returns the word after that.
    fn sleep(&self, word: u32) -> u32 {
        let marked = word | SLEEPERS;
        if word == marked || self.0.compare_exchange(word, marked, Relaxed, Relaxed).is_ok() {
            self.0.wait(marked, None);
        }
        self.0.load(Acquire)
    }
}

/// Whether it is not done yet.
///
/// # Panics
/// If it is poisoned, and the caller does not force.
fn go_on(word: u32, is_forced: bool) -> bool {
    assert!(word & POISONED == 0 || is_forced, "Once instance has previously been poisoned");
    word & DONE == 0
}

/// (end), with this word, when it is dropped: by a panic, or at the end.
struct End<'a>(&'a Once, u32);

impl Drop for End<'_> {
    fn drop(&mut self) {
        let key = self.0.0.key();
        if self.0.0.swap(self.1, Release) & SLEEPERS != 0 {
            key.wake(u32::MAX);
        }
    }
}

impl Default for Once {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("state", &self.state()).finish()
    }
}
