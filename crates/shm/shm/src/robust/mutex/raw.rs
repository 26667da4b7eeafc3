//! The protocol of a [`Mutex`](super::Mutex): a word that names its holder, a baton that its
//! waiters pass on, and the tokens of the threads that take part.
//!
//! A *token* is a word of a thread that the kernel marks when the thread dies. A word is *pending*
//! if a thread has named it to the kernel: the kernel wakes one of its sleepers if the thread dies.
//! Both are of `ulocks_core::robust`.
//!
//! # Properties
//! - Exclusion; what a holder did, also one that died, happens before the next acquisition returns.
//! - If threads die at any steps, no other thread waits for them for ever. In the cases of the last
//!   list a waiter may sleep for [`RECHECK`](crate::slots::RECHECK) before it looks again.
//! - If a holder died in its critical section, the next acquisition says so.
//! - A thread whose deadline passes leaves no trace that delays another.
//! - The releasing exchange is the last access to the word. The baton stays pending until the
//!   wake-up that follows: if the thread dies before, the kernel reads the baton. So the mutex must
//!   stay mapped, and its memory must not be given to other uses, while threads use it.
//!
//! # State
//! The *word*:
//!
//! | part | meaning |
//! |---|---|
//! | the holder (`Owner`) | its slot and generation; the word is 0 if the mutex is free |
//! | `WAITERS` | the holder wakes a sleeper when it releases |
//! | `PLAIN` | threads sleep on the word alone: the kernel, or a filter of calls, refuses `futex_waitv` |
//!
//! The *baton* is a second word, always 0. A sleeper sleeps on the baton, on the word and on the
//! holder's token. Only wake-ups for this mutex are sent to the baton: by a release, by a waiter
//! that leaves without the mutex, and by the kernel for a thread that dies with the baton
//! *pending*.
//!
//! | transition of the word | by | label |
//! |---|---|---|
//! | free to the holder; with `WAITERS` from a waiter | a thread that acquires | (acquire) |
//! | a dead holder to the holder, flags kept; with `WAITERS` from a waiter | a thread that acquires | (take over) |
//! | `WAITERS` set | a thread that becomes a waiter, and again before each sleep | (mark sleepers) |
//! | `PLAIN` set | a waiter that is refused `futex_waitv` | (mark plain) |
//! | the holder without flags to free | the holder | (free) |
//! | the holder with flags to free | the holder; then it wakes one sleeper, with `PLAIN` all | (unlock) |
//!
//! A thread is a *waiter* from its first (mark sleepers) on. It names the baton as pending then. It
//! withdraws the baton when it leaves without the mutex, after it has woken a sleeper; or, if it
//! acquires, after the wake-up of its (unlock). Its word has `WAITERS` until then, so that it makes
//! no (free).
//!
//! # Invariants
//! 1. Only the thread that the word names acts as its holder; (acquire) and (take over) name the
//!    thread that makes them. (take over) replaces a holder that is gone, by the table (`slots.rs`,
//!    invariant 1).
//! 2. While threads sleep, at least one of these is true:
//!    - A waiter that a wake-up or the end of its time has woken is on its way.
//!    - A sleeper watches the holder that the word names, or a thread between its (unlock) and its
//!      wake-up. The word has, or had, `WAITERS`.
//!    - The holder was a waiter, or is about to wake a sleeper after its (unlock). The baton is
//!      pending.
//! 3. A sleeper watches the token of the holder that the word named when it looked. If it finds
//!    that the holder has died, it wakes the next sleeper of the token, which may wait for another
//!    lock.
//! 4. A sleeper is in the baton's queue before the kernel compares the word. So either that look
//!    sees the word that (unlock) has left, and the thread does not sleep; or the wake-up after
//!    (unlock) finds the thread in the queue. The kernel orders its look at the queue after the
//!    exchange. A thread that is woken before it has passed all looks is told so.
//!
//! # Why no sleeper is forgotten
//! The cases are those of invariant 2.
//! - A waiter on its way finds the mutex free, and becomes the holder. Or it finds a holder, marks
//!   the word, and watches that one. Or it leaves, and wakes another sleeper before. If it dies
//!   before, the kernel wakes another one, which is then on its way: the baton is 0, also while
//!   another thread has the mutex.
//! - A holder with `WAITERS` wakes a sleeper, which is then on its way. If the holder dies before,
//!   its watcher wakes by the token.
//! - A holder that was a waiter needs no watcher: if it dies at any step up to the wake-up of its
//!   (unlock), the kernel wakes a sleeper.
//! - A thread that passes the waiters takes the free mutex without `WAITERS`, and wakes nobody. The
//!   mutex was free, so a waiter is on its way, or the thread that freed it has yet to wake one.
//!
//! # Where a waiter may sleep until it looks again
//! - A waiter on its way is stopped, and not dead. Others pass it, and wake nobody.
//! - A holder of two locks dies, and then the waiter of one of them that its token has woken,
//!   before that has woken the waiter of the other.
//! - A holder that was a waiter loses what it has pending: to a robust mutex of the C library that
//!   it acquires or releases meanwhile. Then it dies, or its member leaves with the mutex. Other
//!   locks of this family wake a sleeper first, which watches it (`ulocks_core::robust`).
//! - A thread that is refused `futex_waitv` learns of deaths only so, and so do those for whom it
//!   would have watched a holder.
//!
//! # Ordering
//! (acquire) acquires; (free) and (unlock) release. A dead holder made no release: a thread that
//! finds its token marked has acquired what the kernel's full barrier released, and then makes
//! (take over).
//!
//! (acquire) and (take over) also release, and a waiter reads the word with Acquire. So it sees the
//! generation of the holder that the word names. With an older generation it would take a living
//! holder for one that is gone. (mark sleepers) is Relaxed: it continues the release, and the
//! kernel compares the word.
//!
//! # Sources
//! The robust list of the kernel; the tokens of `ulocks_core::robust`. U. Drepper, "Futexes Are
//! Tricky" (2003), mutex 2. The baton is this project's.

use crate::robust::RawRobust;
use crate::slots::{Life, Member, Owner};
use core::fmt;
use ulocks_core::futex::{Futex, Global as SharedFutex, Waiter, WaitvOutcome, waitv};
use ulocks_core::spin::{self, Look};
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_core::sync::without_unwinding;
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Shared, futex};

const FREE: u32 = 0;
pub(crate) const WAITERS: u32 = 1 << 31;
const PLAIN: u32 = 1 << 30;

/// The raw mutex: two words; all zero is unlocked.
#[derive(Debug)]
#[repr(C)]
pub struct RawMutex<P: Policy<Scope = futex::Global> = Shared> {
    word: Futex<P::Scope>,
    baton: Futex<P::Scope>,
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

impl<P: Policy<Scope = futex::Global>> RawMutex<P> {
    ulocks_core::const_fn! {
        /// An unlocked mutex; its bytes are all zero.
        #[allow(clippy::new_without_default)]
        pub fn new() -> Self {
            Self { word: Futex::new(FREE), baton: Futex::new(0) }
        }
    }

    #[inline]
    fn acquire(&self, me: &Member<'_>, deadline: Option<Deadline>) -> Result<Acquired, Refused> {
        me.check_process();
        let how = if self.take_free(me) { Acquired::Clean } else { self.lock_contended(me, deadline)? };
        me.count(1);
        Ok(how)
    }

    /// (acquire) of a mutex without waiters.
    #[inline]
    fn take_free(&self, me: &Member<'_>) -> bool {
        self.word.compare_exchange(FREE, me.owner().bits(), AcqRel, Relaxed).is_ok()
    }

    #[cold]
    #[inline(never)]
    fn lock_contended(&self, me: &Member<'_>, deadline: Option<Deadline>) -> Result<Acquired, Refused> {
        let mut mine = me.owner().bits();
        if self.may_poll(me) && spin::backing_off::<P>(|| self.look(mine)) {
            return Ok(Acquired::Clean);
        }
        loop {
            let attempt = match self.attempt(me, mine) {
                Ok(Attempt::Acquired(how)) => return Ok(how),
                Ok(Attempt::Held(held)) if deadline.is_none_or(|deadline| !deadline.has_passed()) => Ok(held),
                Ok(Attempt::Held(_)) => Err(Refused::TimedOut),
                Err(error) => Err(error),
            };
            let held = attempt.inspect_err(|_| self.leave(me, mine))?;
            // (mark sleepers)
            let marked = held.seen | WAITERS;
            if held.seen != marked && self.word.compare_exchange(held.seen, marked, Relaxed, Relaxed).is_err()
            {
                continue;
            }
            me.set_pending(&self.baton);
            mine |= WAITERS;
            let slept = self.sleep(me, &held, marked, deadline);
            if slept && self.may_poll(me) && spin::closely::<P>(|| self.look(mine)) {
                return Ok(Acquired::Clean);
            }
        }
    }

    /// Whether the holder goes on while the calling thread spins.
    fn may_poll(&self, me: &Member<'_>) -> bool {
        Owner::of(self.word.load(Relaxed)).is_none_or(|owner| me.may_poll_for(owner))
    }

    /// A spinning thread's look; (acquire) if the mutex is free.
    #[inline]
    fn look(&self, mine: u32) -> Look {
        match self.word.load(Relaxed) {
            FREE if self.word.compare_exchange(FREE, mine, AcqRel, Relaxed).is_ok() => Look::Acquired,
            seen if seen & WAITERS != 0 => Look::Saturated,
            _ => Look::Taken,
        }
    }

    /// (acquire) or (take over), unless a living thread holds the mutex. `mine` is the thread as
    /// the holder, with `WAITERS` if it has slept.
    fn attempt<'s>(&self, me: &Member<'s>, mine: u32) -> Result<Attempt<'s>, Refused> {
        let mut seen = self.word.load(Acquire);
        loop {
            let (next, how) = match Owner::of(seen) {
                None if seen == FREE => (mine, Acquired::Clean),
                None => return Err(Refused::Corrupt(seen)),
                Some(owner) if owner == me.owner() => return Err(Refused::Deadlock),
                Some(owner) => match me.watch(owner) {
                    Life::Unknown => return Err(Refused::Corrupt(seen)),
                    Life::Watched(token, alive) => {
                        return Ok(Attempt::Held(Held { seen, owner, token, alive }));
                    }
                    Life::Gone => (mine | seen & (WAITERS | PLAIN), Acquired::OwnerDied),
                },
            };
            match self.word.compare_exchange(seen, next, AcqRel, Acquire) {
                Ok(_) => return Ok(Attempt::Acquired(how)),
                Err(now) => seen = now,
            }
        }
    }

    /// Sleeps until the mutex may be free, its holder may have died, or the deadline may have
    /// passed. False if the thread has not slept.
    fn sleep(&self, me: &Member<'_>, held: &Held<'_>, marked: u32, deadline: Option<Deadline>) -> bool {
        let recheck = Deadline::after(me.recheck());
        let until = deadline.filter(|deadline| deadline.passes_before(recheck)).unwrap_or(recheck);
        // In this order: invariant 4.
        let words = [
            Waiter::new(&self.baton, 0),
            Waiter::new(&self.word, marked),
            Waiter::new(held.token, held.alive),
        ];
        let slept = waitv(&words, Some(until));
        me.pass_on_death(held.owner, held.alive, matches!(slept, Ok(WaitvOutcome::Woken(2))));
        match slept {
            Ok(ended) => ended != WaitvOutcome::Mismatch,
            // Whatever the reason is: the kernel may also be out of memory.
            Err(_) => self.sleep_plainly(marked, until),
        }
    }

    /// (mark plain), and the same without the baton and the token.
    #[cold]
    fn sleep_plainly(&self, marked: u32, until: Deadline) -> bool {
        let plain = marked | PLAIN;
        if marked != plain && self.word.compare_exchange(marked, plain, Relaxed, Relaxed).is_err() {
            return false;
        }
        // A thread that unwinds here may be the one that is to watch the holder (invariant 2). And
        // a queue that has this mutex for its lock may have the thread's request.
        without_unwinding(|| self.word.wait(plain, Some(until)));
        true
    }

    /// A waiter leaves without the mutex. If it may have slept, it may have used up a wake-up, or
    /// have been the one that watched the holder (invariant 2).
    fn leave(&self, me: &Member<'_>, mine: u32) {
        if mine & WAITERS != 0 {
            self.baton.key().wake(1);
            me.end_pending(&self.baton);
        }
    }

    #[cold]
    #[inline(never)]
    fn unlock_contended(&self, me: &Member<'_>) {
        // (unlock)
        if self.word.swap(FREE, Release) & PLAIN == 0 {
            self.baton.key().wake(1);
        } else {
            self.word.key().wake(u32::MAX);
        }
        me.end_pending(&self.baton);
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
        let how = match self.attempt(me, me.owner().bits())? {
            Attempt::Acquired(how) => how,
            Attempt::Held(_) => return Err(Refused::TimedOut),
        };
        me.count(1);
        Ok(how)
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
        self.word.load(Relaxed) != FREE
    }

    fn reset(&self) -> bool {
        self.word.swap(FREE, Relaxed) != FREE
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
            assert_eq!(mutex.word.load(Relaxed), FREE);
        }
        how
    }

    #[test]
    fn a_death_is_told_whatever_the_flags() {
        for flags in [0, WAITERS, WAITERS | PLAIN] {
            assert_eq!(found(flags), Ok(Acquired::OwnerDied));
        }
    }

    #[test]
    fn a_word_that_names_no_slot_is_corrupt() {
        let mutex = RawMutex::<Shared>::new();
        let slots = [Slot::new()];
        // SAFETY: the slots outlive the member.
        let me = unsafe { Member::join(&slots, 0..0) }.unwrap();
        for word in [Owner::OWNED | 1, Owner::OWNED | 4_095, 1, PLAIN, PLAIN | WAITERS] {
            mutex.word.store(word, Relaxed);
            // SAFETY: the only member.
            assert_eq!(unsafe { mutex.try_lock(&me) }, Err(Refused::Corrupt(word)), "{word:#x}");
        }
    }
}
