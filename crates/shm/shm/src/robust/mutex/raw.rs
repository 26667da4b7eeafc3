//! The protocol of a [`Mutex`](super::Mutex): one word that names its holder, and the
//! tokens of the threads that take part.
//!
//! # Properties
//! - Exclusion; what a holder did, also one that died, happens before the next acquisition returns.
//! - If a thread dies at any step, no other thread waits for it for ever. If several die, a waiter
//!   may sleep for [`RECHECK`](crate::slots::RECHECK) before it looks again.
//! - If a holder died in its critical section, the next acquisition says so.
//! - A thread whose deadline passes leaves no trace that delays another.
//! - The releasing exchange is the last access, but for a release that found no sleeper to wake: it
//!   takes the free mutex once more. So the mutex must stay mapped while threads use it.
//!
//! # State
//! The word:
//!
//! | part | meaning |
//! |---|---|
//! | the holder (`Owner`) | its slot and generation; all zero if the mutex is free |
//! | `CLEAN` | the holder is outside of its critical section |
//! | `FRESH` | a thread has set out to sleep since the holder acquired |
//! | `WAITERS` | threads may sleep, or a woken waiter may not have acquired yet |
//!
//! | transition | by | label |
//! |---|---|---|
//! | free to the holder, `WAITERS` kept | a thread that acquires | (acquire) |
//! | a dead holder to the holder with `WAITERS` | a thread that acquires | (take over) |
//! | `WAITERS` and `FRESH` set | a waiter that is about to sleep | (mark sleepers) |
//! | the holder without flags to free | the holder | (free) |
//! | the holder to free with `WAITERS`; then one sleeper is woken | the holder | (unlock) |
//! | free with `WAITERS` to the holder with `CLEAN` and `WAITERS` | a releasing thread whose wake-up found no sleeper | (hold again) |
//! | the holder with `CLEAN` and `WAITERS`, not `FRESH`, to free | the same thread, after a second vain wake-up | (settle) |
//!
//! # Why `WAITERS` stays
//! After (unlock) the mutex is free, and a woken waiter W is on its way. A third thread takes the
//! mutex. If W dies now, the kernel does not pass the wake-up on, because the word names a holder
//! (Linux 6.18). So the third thread must know that others may sleep: (acquire) keeps `WAITERS`,
//! and its release wakes one of them.
//!
//! So `WAITERS` is cleared only by (settle), when no thread sleeps. (hold again) has cleared
//! `FRESH`. Each sleeper that fell asleep before the wake-up after (hold again) would have been
//! found by it. Each that came later has set `FRESH`, and (settle) fails.
//!
//! # Invariants
//! 1. Only the thread that the word names acts as its holder; (acquire) and (take over) name the
//!    thread that makes them. (take over) replaces a holder that is gone, by the table (`slots.rs`,
//!    invariant 1).
//! 2. While a thread sleeps, `WAITERS` is set.
//! 3. While a thread sleeps, another thread is awake in this protocol and will look at the word, or
//!    a sleeper watches the holder that the word names. (unlock) wakes a waiter. If that finds
//!    another holder, it watches that one. If it finds the mutex free, it wakes another waiter
//!    before (acquire), which then watches it. If it leaves without the mutex, it wakes another
//!    waiter.
//! 4. A waiter between a wake-up and (acquire) has named the word as pending. If it dies, the
//!    kernel wakes the next sleeper if the mutex is free; otherwise its holder has `WAITERS`, and
//!    wakes at its release. A thread that dies between (unlock) and its wake-up is still watched
//!    (invariant 3).
//! 5. A thread that sleeps watches the token of the holder that the word named at (mark sleepers).
//!    The kernel compares both words. If the token wakes a thread, that thread wakes all others
//!    that sleep on the token.
//!
//! # What two deaths do
//! If the holder dies, and then the waiter that the kernel woke, before it has woken the others,
//! then these sleep on until [`RECHECK`](crate::slots::RECHECK) has passed. The same holds if a
//! woken waiter dies while a passing thread has the mutex, and then that thread. Each sleep ends
//! after [`RECHECK`](crate::slots::RECHECK) for this reason.
//!
//! # Ordering
//! (acquire) acquires; (free) and (unlock) release. A dead holder made no release: a thread that
//! finds its token marked has acquired what the kernel's full barrier released, and then makes
//! (take over). (hold again) and (settle) are Relaxed: all changes of the word are
//! read-modify-writes, so they continue the release of (unlock).
//!
//! (acquire) and (take over) also release, and a waiter reads the word with Acquire. So it sees the
//! generation of the holder that the word names. With an older generation it would take a living
//! holder for one that is gone. (mark sleepers) is Relaxed: it continues the release, and the
//! kernel compares the word.
//!
//! # Sources
//! The robust list of the kernel; the tokens of `ulocks_core::robust`. U. Drepper, "Futexes Are
//! Tricky" (2003), mutex 2.

use crate::robust::RawRobust;
use crate::slots::{Life, Member, Owner};
use core::fmt;
use ulocks_core::futex::{Futex, Global as SharedFutex, Waiter, WaitvError, WaitvOutcome, waitv};
use ulocks_core::spin::{self, Look};
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Shared, futex};

const FREE: u32 = 0;
pub(crate) const WAITERS: u32 = 1 << 31;
const FRESH: u32 = 1 << 30;
pub(crate) const CLEAN: u32 = 1 << 28;

/// The raw mutex: one word; all zero is unlocked.
#[derive(Debug)]
#[repr(transparent)]
pub struct RawMutex<P: Policy<Scope = futex::Global> = Shared> {
    word: Futex<P::Scope>,
}

/// How an acquisition found the mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// Its last holder released it.
    Clean,
    /// Its last holder died in its critical section.
    OwnerDied,
}

/// Why an acquisition failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// It is held, or the deadline has passed.
    TimedOut,
    /// The caller holds it already.
    Deadlock,
    /// The lock has room for fewer participants than the region, and the caller's slot is none of
    /// them.
    NoRoom {
        /// The slot of the caller.
        slot: usize,
        /// The lock's number of slots.
        room: usize,
    },
    /// A word of the lock names no participant: another process has overwritten it.
    Corrupt(u32),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("the lock is held by another thread"),
            Self::Deadlock => {
                f.write_str("the calling thread holds the lock already: it would wait for itself")
            }
            Self::NoRoom { slot, room } => write!(
                f,
                "the thread has slot {slot} of the region, but the lock has room for {room}: give the lock \
                 more slots, or the region fewer participants"
            ),
            Self::Corrupt(word) => write!(
                f,
                "a word of the lock is {word:#x}, which names no participant: memory was overwritten; make the \
                 region anew"
            ),
        }
    }
}

impl core::error::Error for Refused {}

fn is_free(word: u32) -> bool {
    word & !WAITERS == FREE
}

impl<P: Policy<Scope = futex::Global>> RawMutex<P> {
    ulocks_core::const_fn! {
        /// An unlocked mutex; its bytes are all zero.
        #[allow(clippy::new_without_default)]
        pub fn new() -> Self {
            Self { word: Futex::new(FREE) }
        }
    }

    ulocks_core::const_fn! {
        /// An unlocked mutex with `WAITERS`, as if a woken waiter had died: for models.
        #[doc(hidden)]
        pub fn contended() -> Self {
            Self { word: Futex::new(WAITERS) }
        }
    }

    #[inline]
    fn acquire(&self, me: &Member<'_>, deadline: Option<Deadline>) -> Result<Acquired, Refused> {
        me.check_process();
        if self.take_free(me) {
            me.count(1);
            return Ok(Acquired::Clean);
        }
        self.pending(me, || self.lock_contended(me, deadline))
    }

    /// (acquire) of a mutex without waiters.
    #[inline]
    fn take_free(&self, me: &Member<'_>) -> bool {
        self.word.compare_exchange(FREE, me.owner().bits(), AcqRel, Relaxed).is_ok()
    }

    /// Runs `acquire` with the word pending, and counts the acquisition.
    #[cold]
    #[inline(never)]
    fn pending(
        &self,
        me: &Member<'_>,
        acquire: impl FnOnce() -> Result<Acquired, Refused>,
    ) -> Result<Acquired, Refused> {
        me.set_pending(Some(&self.word));
        let result = acquire();
        me.set_pending(None);
        if result.is_ok() {
            me.count(1);
        }
        result
    }

    fn lock_contended(&self, me: &Member<'_>, deadline: Option<Deadline>) -> Result<Acquired, Refused> {
        if spin::backing_off::<P>(|| self.look(me)) {
            return Ok(Acquired::Clean);
        }
        let mut has_slept = false;
        loop {
            let held = match self.attempt(me, has_slept) {
                Ok(Attempt::Acquired(how)) => return Ok(how),
                Ok(Attempt::Held(held)) => held,
                Err(error) => {
                    self.leave(has_slept);
                    return Err(error);
                }
            };
            if deadline.is_some_and(|deadline| deadline.has_passed()) {
                self.leave(has_slept);
                return Err(Refused::TimedOut);
            }
            if self.sleep(me, held, deadline) {
                has_slept = true;
                if spin::closely::<P>(|| self.look_woken(me)) {
                    return Ok(Acquired::Clean);
                }
            }
        }
    }

    /// A spinning thread's look; (acquire) if the mutex is free.
    #[inline]
    fn look(&self, me: &Member<'_>) -> Look {
        let seen = self.word.load(Relaxed);
        if !is_free(seen) {
            return if seen & WAITERS == 0 { Look::Taken } else { Look::Saturated };
        }
        let mine = me.owner().bits() | seen;
        match self.word.compare_exchange(seen, mine, AcqRel, Relaxed) {
            Ok(_) => Look::Acquired,
            Err(_) => Look::Taken,
        }
    }

    /// The same of a waiter that has slept. It wakes another one first, to watch it (invariant 3).
    fn look_woken(&self, me: &Member<'_>) -> Look {
        if is_free(self.word.load(Relaxed)) {
            self.word.key().wake(1);
        }
        self.look(me)
    }

    /// (acquire) or (take over), unless a living thread holds the mutex.
    fn attempt<'s>(&self, me: &Member<'s>, has_slept: bool) -> Result<Attempt<'s>, Refused> {
        let mine = me.owner().bits();
        let mut seen = self.word.load(Acquire);
        loop {
            let Some(owner) = Owner::of(seen) else {
                if !is_free(seen) {
                    return Err(Refused::Corrupt(seen));
                }
                if has_slept {
                    self.word.key().wake(1); // invariant 3
                }
                match self.word.compare_exchange(seen, mine | seen, AcqRel, Acquire) {
                    Ok(_) => return Ok(Attempt::Acquired(Acquired::Clean)),
                    Err(now) => seen = now,
                }
                continue;
            };
            if owner == me.owner() {
                return Err(Refused::Deadlock);
            }
            match me.watch(owner) {
                Life::Unknown => return Err(Refused::Corrupt(seen)),
                Life::Watched(token, alive) => return Ok(Attempt::Held(Held { seen, owner, token, alive })),
                Life::Gone => match self.word.compare_exchange(seen, mine | WAITERS, Release, Acquire) {
                    Ok(_) if seen & CLEAN == 0 => return Ok(Attempt::Acquired(Acquired::OwnerDied)),
                    Ok(_) => return Ok(Attempt::Acquired(Acquired::Clean)),
                    Err(now) => seen = now,
                },
            }
        }
    }

    /// (mark sleepers), then sleeps until the mutex may be free, its holder may have died, or the
    /// deadline may have passed. Whether the thread may have slept.
    fn sleep(&self, me: &Member<'_>, held: Held<'_>, deadline: Option<Deadline>) -> bool {
        let marked = held.seen | WAITERS | FRESH;
        if held.seen != marked && self.word.compare_exchange(held.seen, marked, Relaxed, Relaxed).is_err() {
            return false;
        }
        let recheck = Deadline::after(me.recheck());
        let until = deadline.filter(|deadline| deadline.passes_before(recheck)).unwrap_or(recheck);
        let words = [Waiter::new(&self.word, marked), Waiter::new(held.token, held.alive)];
        match waitv(&words, Some(until)) {
            Ok(WaitvOutcome::Woken(1)) => me.wake_watchers(held.owner), // invariant 5
            Ok(WaitvOutcome::Mismatch) => return false,
            Ok(_) => {}
            Err(WaitvError::Unsupported) => {
                self.word.wait(marked, Some(until));
            }
            Err(error) => panic!("{error}"),
        }
        true
    }

    /// A waiter leaves without the mutex. If it has slept, it may have used up a wake-up, or have
    /// been the one that watched the holder (invariant 3).
    fn leave(&self, has_slept: bool) {
        if has_slept {
            self.word.key().wake(1);
        }
    }

    #[cold]
    #[inline(never)]
    fn unlock_contended(&self, me: &Member<'_>) {
        self.word.swap(WAITERS, Release); // (unlock)
        if self.word.key().wake(1) == 0 {
            self.quiesce(me);
        }
    }

    /// Clears `WAITERS` if no thread sleeps.
    fn quiesce(&self, me: &Member<'_>) {
        let mine = me.owner().bits() | CLEAN | WAITERS;
        // (hold again)
        if self.word.compare_exchange(WAITERS, mine, Relaxed, Relaxed).is_err() {
            return; // Another thread has it, and wakes at its release.
        }
        let woken = self.word.key().wake(1);
        // (settle)
        if woken == 0 && self.word.compare_exchange(mine, FREE, Relaxed, Relaxed).is_ok() {
            return;
        }
        let was = self.word.swap(WAITERS, Relaxed);
        if woken == 0 || was & FRESH != 0 {
            self.word.key().wake(1);
        }
    }
}

ulocks_core::initial!([P: Policy<Scope = futex::Global>] RawMutex<P> = Self::new());

// SAFETY: exclusion is the word's: invariant 1. It is an atomic; all zero is unlocked.
unsafe impl<P: Policy<Scope = futex::Global>> RawRobust for RawMutex<P> {
    const NAME: &'static str = "shm::Mutex";

    #[inline]
    unsafe fn lock(&self, me: &Member<'_>) -> Result<Acquired, Refused> {
        self.acquire(me, None)
    }

    #[inline]
    unsafe fn lock_until(&self, me: &Member<'_>, deadline: Deadline) -> Result<Acquired, Refused> {
        self.acquire(me, Some(deadline))
    }

    #[inline]
    unsafe fn try_lock(&self, me: &Member<'_>) -> Result<Acquired, Refused> {
        me.check_process();
        if self.take_free(me) {
            me.count(1);
            return Ok(Acquired::Clean);
        }
        self.pending(me, || match self.attempt(me, false)? {
            Attempt::Acquired(how) => Ok(how),
            Attempt::Held(_) => Err(Refused::TimedOut),
        })
    }

    #[inline]
    unsafe fn unlock(&self, me: &Member<'_>) {
        me.check_process();
        // (free)
        if self.word.compare_exchange(me.owner().bits(), FREE, Release, Relaxed).is_err() {
            self.unlock_contended(me);
        }
        me.count(-1);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        !is_free(self.word.load(Relaxed))
    }

    fn reset(&self) -> bool {
        let was = self.word.swap(FREE, Relaxed);
        !is_free(was) && was & CLEAN == 0
    }
}

/// What became of an attempt.
enum Attempt<'s> {
    Acquired(Acquired),
    /// A living thread holds the mutex.
    Held(Held<'s>),
}

/// A mutex that a living thread holds.
struct Held<'s> {
    /// The word.
    seen: u32,
    owner: Owner,
    /// The holder's token, and its word while the holder lives.
    token: &'s Futex<SharedFutex>,
    alive: u32,
}

#[cfg(all(test, regions, not(miri)))]
mod tests {
    use super::*;
    use crate::slots::Slot;

    /// How the mutex is acquired from a holder that has left, with `flags` in the word.
    fn found(flags: u32) -> Result<Acquired, Refused> {
        let (slots, mutex) = ([Slot::new(), Slot::new()], RawMutex::<Shared>::new());
        // SAFETY: the slots outlive both members.
        let gone = unsafe { Member::join(&slots, 0..0) }.unwrap().owner().bits();
        mutex.word.store(gone | flags, Relaxed);
        // SAFETY: as above.
        let me = unsafe { Member::join(&slots, 0..0) }.unwrap();
        // SAFETY: all members are of one table.
        let how = unsafe { mutex.lock(&me) };
        if how.is_ok() {
            // SAFETY: acquired above.
            unsafe { mutex.unlock(&me) };
            assert_eq!(mutex.word.load(Relaxed), FREE, "no thread sleeps");
        }
        how
    }

    #[test]
    fn only_a_death_in_a_critical_section_is_told() {
        for flags in [0, WAITERS, WAITERS | FRESH] {
            assert_eq!(found(flags), Ok(Acquired::OwnerDied));
            assert_eq!(found(flags | CLEAN), Ok(Acquired::Clean));
        }
    }

    #[test]
    fn a_word_that_names_no_slot_is_corrupt() {
        let mutex = RawMutex::<Shared>::new();
        let slots = [Slot::new()];
        // SAFETY: the slots outlive the member.
        let me = unsafe { Member::join(&slots, 0..0) }.unwrap();
        for word in [Owner::OWNED | 1, Owner::OWNED | 4_095, 1, CLEAN, FRESH | WAITERS] {
            mutex.word.store(word, Relaxed);
            // SAFETY: the only member.
            assert_eq!(unsafe { mutex.try_lock(&me) }, Err(Refused::Corrupt(word)), "{word:#x}");
        }
    }
}
