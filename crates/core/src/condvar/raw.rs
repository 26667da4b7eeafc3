//! The protocol of [`RawCondvar`](super::RawCondvar).
//!
//! - 16 bytes, all-zero when nobody waits, no allocation, nothing to initialise.
//! - Timed by absolute deadlines. A notification without waiters makes no system call.
//! - A notification of a waiter that still spins makes no system call either.
//! - No lost wake-ups, with or without the mutex held by the notifier, for any number of mutexes.
//! - `notify_all` wakes one sleeper and moves the others to the mutex. Each release of the mutex
//!   then wakes the next, instead of a herd of which all but one go to sleep again. This needs a
//!   mutex of one process that offers its futex ([`RawMutex::requeue_key`]).
//!
//! # State
//! | word | what | changed by |
//! |---|---|---|
//! | `moves: u32` | the futex the waiters sleep on; only "has it changed" matters | every loud notification, once; a waiter that brings a second mutex |
//! | `aim: u32` | where a notification may move sleepers: `FRESH`, the distance to the one mutex in use, `PLAIN`, `MIXED` | waiters, before they register |
//! | `ledger: u64` | the waiters, the spinners among them, and the notifications; see [`Ledger`] | everyone, by CAS |
//!
//! # Protocol
//! A **wait**, holding the mutex:
//! 1. checks the aim;
//! 2. reads `moves`;
//! 3. registers, `waiting + 1`, and `spinning + 1` if it is going to spin; it remembers the epoch;
//! 4. releases the mutex;
//! 5. spins, if it registered for that: it polls the ledger. Once the epoch has changed, it leaves.
//!    When its budget is spent, it clears its share of `spinning` by a CAS that also shows that the
//!    epoch has not changed;
//! 6. sleeps on `moves` while that has the value read;
//! 7. leaves;
//! 8. locks the mutex.
//!
//! A waiter is *covered* if the epoch is not what it was when the waiter registered. A **leave** is
//! one CAS: `waiting - 1`, and `granted - 1` if the waiter is covered and `granted` is not zero. A
//! spinner that leaves clears its share of `spinning` in the same CAS.
//!
//! A waiter that finds `moves` changed but is not covered does not leave. The change was for older
//! waiters, so it sleeps again on the newer value. A waiter that the kernel woke but that is not
//! covered may have got a wake-up meant for another: an older waiter behind it in the kernel's
//! queue, or one of lower priority. While a grant is left, it passes the wake-up on, and leaves. If
//! no grant is left, it just leaves: passing on would let two waiters wake one another for ever.
//!
//! A **notification**:
//! 1. grants, `granted + 1` (`granted = waiting` for all) and `epoch + 1`, or returns if nobody
//!    waits;
//! 2. returns if it is *silent*: if after the grant `granted` is at most `spinning`;
//! 3. changes `moves`;
//! 4. wakes one, or wakes one and requeues the others, or wakes all.
//!
//! A notification that is not silent is *loud*.
//!
//! # Invariants
//! 1. A waiter that a loud grant covers finds `moves` different from what it read in step 2, at the
//!    latest when its notifier is past step 3. The waiter read before it registered, and the
//!    notifier changed `moves` after it saw the registration. So the waiter either does not fall
//!    asleep, or it is asleep before the notifier's step 4.
//! 2. A covered waiter never goes back to sleep, and a covered spinner never falls asleep. If it
//!    did, the wake-up it got might be the last one for it, or there might be none.
//! 3. `granted` is at most the number of covered waiters. A grant covers everyone and does not
//!    exceed `waiting`. A covered waiter takes a grant when it leaves, if there is any. A waiter
//!    that is not covered takes none.
//! 4. `granted` is at most the number of covered spinners, plus the wake-ups to come, plus the
//!    covered waiters that are awake and about to leave.
//!    - A loud grant adds as many wake-ups as grants.
//!    - A silent grant covers all spinners, and leaves `granted` at most their number.
//!    - A spinner that gives up is not covered, so it did not count here.
//!    - A wake-up that meets an uncovered waiter is passed on while `granted` is not zero.
//!
//!    Hence, if `granted == waiting`, every waiter is covered and leaves or will be woken, and a
//!    notification may return at once. In shared memory it does not, because a notifier may have
//!    been killed between its steps.
//! 5. A thread sleeps on the mutex only if it waits with that mutex, `REQUEUED` is set, and one of
//!    the threads that slept with it was woken. All of them lock by `lock_requeued`, so each
//!    release wakes the next until none sleeps there. The threads that are moved need not be those
//!    that were notified: all of these may have left, and others be asleep, when the requeue comes.
//!    This is why `REQUEUED` stays while `REQUEUING` is set.
//! 6. `aim` goes `FRESH -> PLAIN` or `FRESH -> distance -> MIXED`, never back. A waiter whose mutex
//!    is not the one aimed at sets `MIXED` *and then* changes `moves`. A notifier reads `aim` after
//!    it changed `moves`, and requeues only if `moves` still has that value. So every thread that
//!    the requeue finds asleep waits with the mutex aimed at.
//! 7. Spinners of another process are none: a fork copies the ledger but not the spinners.
//!    `spinning` counts only if the `process` beside it is the caller's. A registration for a spin
//!    that finds another one starts `spinning` anew.
//!
//! # The spin
//! A sleep and a wake-up cost microseconds on both sides, and a thread that sleeps makes its
//! partner sleep too. So a waiter spins first, for as long as its mutex says
//! ([`RawMutex::CONDVAR_NS`]). The ledger remembers how many spins in a row were in vain (`vain`).
//! After [`Ledger::TRIES`] of them waiters sleep at once, and one wait in [`Ledger::PROBE`] -
//! [`Ledger::TRIES`] spins again. At most [`Ledger::SPINNERS`] waiters spin at a time.
//! `BENCHMARKS.md` ("Condition variables") has the table.
//!
//! # Memory ordering
//! What a waiter sees of the notifier's work is the mutex's business. The orderings here keep the
//! words in step:
//! - (R) a registration releases, (G) a grant acquires: what the waiter read of `moves` is older
//!   than the notifier's move;
//! - (M) a move releases, (W) the look at `moves` after a sleep acquires: a waiter that sees the
//!   move sees the grant;
//! - (A) `MIXED` is released, read acquiring, and each move is acquire and release: a later
//!   notifier sees it.
//!
//! A spinner needs none of these. It leaves, or gives up, by a CAS of the ledger, and that is the
//! word that the grant has changed.
//!
//! # Wrap-around
//! `moves` has 32 bits. A waiter sleeps through its notification if between its step 2 and the
//! kernel's comparison in step 6 a multiple of exactly 2^32 moves happen. At a million
//! notifications a second the thread must stay preempted there for 71 minutes and be resumed on the
//! microsecond. `epoch` has 21 bits: a waiter takes itself for not covered if exactly a multiple of
//! 2^21 grants happen while it waits, two seconds at the same rate. The kernel wakes the oldest
//! sleeper first, so the waiter must be preempted on its way to sleep all this time and be resumed
//! on the microsecond. `process` has two bits: it fails in the third generation of children that
//! never used the condition variable.
//!
//! # Sources
//! Birrell, "Implementing Condition Variables with Semaphores" (2003), for what goes wrong with
//! counts alone; Drepper, "Futexes Are Tricky" (2004), for requeueing; glibc bug 13165 for the
//! waiter that steals an older waiter's wake-up. From the sequence futex of the Rust standard
//! library it departs by the ledger, and by the spin.

use super::Wakeup;
use super::word::Ledger;
use crate::const_fn;
use crate::futex::{Bits, Futex, FutexKey, Scope, Waited};
use crate::raw::RawMutex;
use crate::spin;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::{AtomicU32, AtomicU64, without_unwinding};
use crate::time::Deadline;
use core::fmt;
use core::marker::PhantomData;

/// The bugs that the models must find, one at a time. The condition variable proper has none of
/// them: the comparisons with `BUG` are decided at compile time.
#[doc(hidden)]
pub mod seeded {
    /// No bug.
    pub const NOTHING: u8 = 0;
    /// A notification wakes without moving `moves`.
    pub const NO_MOVE: u8 = 1;
    /// A waiter reads `moves` after the mutex is released.
    pub const READS_LATE: u8 = 2;
    /// A waiter registers after the mutex is released.
    pub const REGISTERS_LATE: u8 = 3;
    /// A waiter reads `moves` after it registered.
    pub const READS_AFTER_REGISTERING: u8 = 4;
    /// A covered waiter leaves without taking a grant when its deadline passes.
    pub const TIMEOUT_LEAVES_GRANT: u8 = 5;
    /// A covered waiter takes the grant and says that it timed out.
    pub const TIMEOUT_SWALLOWS_GRANT: u8 = 6;
    /// A waiter that may have slept on the mutex locks as if it had not.
    pub const PLAIN_LOCK: u8 = 7;
    /// A requeue wakes nobody.
    pub const REQUEUES_ALL: u8 = 8;
    /// A requeue that finds `moves` changed does nothing instead.
    pub const IGNORES_MISMATCH: u8 = 9;
    /// Sleepers are requeued to the first mutex ever used.
    pub const TRUSTS_AIM: u8 = 10;
    /// `MIXED` is set, but `moves` is not moved.
    pub const MIXES_QUIETLY: u8 = 11;
    /// `REQUEUED` is cleared with the last waiter, whether or not somebody is about to requeue.
    pub const CLEARS_REQUEUED: u8 = 12;
    /// (M) publishes nothing.
    pub const RELAXED_MOVE: u8 = 13;
    /// (W) learns nothing.
    pub const RELAXED_LOOK: u8 = 14;
}

/// [`RawCondvar`] with the seeded bug `BUG`.
#[doc(hidden)]
#[repr(C)]
pub struct Protocol<L: RawMutex, const BUG: u8> {
    moves: Futex<L::Scope>,
    aim: AtomicU32,
    ledger: AtomicU64,
    mutex: PhantomData<fn(&L)>,
}

#[cfg(not(all(ulocks_loom, feature = "loom")))]
const _: () = assert!(size_of::<AtomicU32>() * 2 + size_of::<AtomicU64>() == 16);

/// `aim`: no waiter yet.
const FRESH: u32 = 0;
/// `aim`: the first waiter's mutex cannot be aimed at, so nobody ever is: it has no key, or is out
/// of range.
const PLAIN: u32 = 1;
/// `aim`: several mutexes are in use.
const MIXED: u32 = 2;
// Any other value is the distance from `moves` to the mutex in units of four bytes, in two's
// complement. The distances that the names above take are those of the condition variable's own
// words.

/// What waiters sleep with, here and on the mutex they are moved to; see [`RawMutex::requeue_key`].
const MOVABLE: Bits = Bits::one(0);

/// The most that one futex operation can wake or move.
const EVERYBODY: u32 = i32::MAX as u32;

impl<L: RawMutex, const BUG: u8> Protocol<L, BUG> {
    const PRIVATE: bool = <L::Scope as Scope>::PRIVATE;

    const_fn! {
        #[allow(clippy::new_without_default)]
        pub fn new() -> Self {
            Self { moves: Futex::new(0), aim: AtomicU32::new(FRESH), ledger: AtomicU64::new(0), mutex: PhantomData }
        }
    }

    /// # Safety
    /// As [`RawCondvar::wait`].
    pub unsafe fn wait(&self, mutex: &L, token: L::Token, deadline: Option<Deadline>) -> (L::Token, Wakeup) {
        self.check_aim(mutex);
        let mut read = self.moves.load(Relaxed);
        if BUG == seeded::REGISTERS_LATE {
            // SAFETY: as below.
            unsafe { mutex.unlock(token) };
            let Some(entry) = self.register(0) else { return (mutex.lock(), Wakeup::Notified) };
            let left = self.sleep(read, entry.epoch, deadline);
            return (mutex.lock_requeued(), left.wakeup);
        }
        let budget = if Self::PRIVATE { spin::budget::<L::Scope>(L::CONDVAR_NS) } else { 0 };
        let registered = self.register(budget);
        if BUG == seeded::READS_AFTER_REGISTERING {
            read = self.moves.load(Relaxed);
        }
        // SAFETY: the caller's promise.
        unsafe { mutex.unlock_to_wait(token) };
        if BUG == seeded::READS_LATE {
            read = self.moves.load(Relaxed);
        }
        let Some(entry) = registered else { return (mutex.lock(), Wakeup::Notified) };
        // A waiter that unwound would leave its count behind, and the wake-up that was meant for
        // it.
        let left = without_unwinding(|| {
            let spun = if entry.spins { self.spin(entry.epoch, budget) } else { None };
            spun.unwrap_or_else(|| self.sleep(read, entry.epoch, deadline))
        });
        let may_follow_others = left.requeued && BUG != seeded::PLAIN_LOCK;
        let token = if may_follow_others { mutex.lock_requeued() } else { mutex.lock() };
        (token, left.wakeup)
    }

    /// Makes sure that no notification moves this waiter to another mutex than its own (Invariant
    /// 6).
    fn check_aim(&self, mutex: &L) {
        if !Self::PRIVATE {
            return;
        }
        let mine = mutex.requeue_key().and_then(|key| self.distance_to(key)).unwrap_or(PLAIN);
        let mut aim = self.aim.load(Acquire); // (A)
        if aim == FRESH {
            aim = match self.aim.compare_exchange(FRESH, mine, Relaxed, Acquire) {
                Ok(_) => mine,
                Err(other) => other, // (A)
            };
        }
        if aim == mine || aim == PLAIN || BUG == seeded::TRUSTS_AIM {
            return;
        }
        // `MIXED` is not enough of a reason to skip this: the waiter that set it may not have moved
        // `moves` yet.
        self.aim.swap(MIXED, AcqRel); // (A)
        if BUG != seeded::MIXES_QUIETLY {
            self.moves.fetch_add(1, AcqRel); // (A)
        }
    }

    fn distance_to(&self, key: FutexKey<L::Scope>) -> Option<u32> {
        let bytes = key.address().wrapping_sub(self.moves.key().address()).cast_signed();
        // Futexes are aligned to four bytes.
        i32::try_from(bytes / 4).ok().map(i32::cast_unsigned).filter(|&distance| distance > MIXED)
    }

    /// The mutex's futex, if sleepers may be moved there.
    fn target(&self) -> Option<FutexKey<L::Scope>> {
        let aim = self.aim.load(Relaxed);
        (Self::PRIVATE && aim > MIXED).then(|| {
            let bytes = (aim.cast_signed() as isize) * 4;
            FutexKey::of(core::ptr::without_provenance(self.moves.key().address().wrapping_add_signed(bytes)))
        })
    }

    /// Step 3. The caller would spin for `budget` pauses. `None` if the ledger has no room for it.
    fn register(&self, budget: u32) -> Option<Entry> {
        let process = if budget > 0 { spin::process() } else { None };
        let mut ledger = Ledger(self.ledger.load(Relaxed));
        while ledger.waiting() < Ledger::MAX {
            let (next, spins) = match process {
                Some(process) => ledger.with_spinner(process),
                None => (ledger.with_waiter(), false),
            };
            // Release (R): pairs with (G) in `grant`.
            match self.ledger.compare_exchange(ledger.0, next.0, Release, Relaxed) {
                Ok(_) => return Some(Entry { epoch: ledger.epoch(), spins }),
                Err(now) => ledger = Ledger(now),
            }
        }
        None
    }

    /// Step 5. `None` if the caller has to sleep.
    #[cfg_attr(ulocks_vm, track_caller)]
    fn spin(&self, epoch: u32, budget: u32) -> Option<Left> {
        let mut ledger = Ledger(self.ledger.load(Relaxed));
        spin::until(budget, || {
            ledger = Ledger(self.ledger.load(Relaxed));
            ledger.epoch() != epoch
        });
        loop {
            let covered = ledger.epoch() != epoch;
            let next = ledger.without_spinner(covered);
            let next = if covered { next.without_waiter(ledger.granted() > 0) } else { next };
            match self.ledger.compare_exchange(ledger.0, next.0, Relaxed, Relaxed) {
                Err(now) => ledger = Ledger(now),
                Ok(_) if !covered => return None,
                Ok(_) => {
                    let requeued = ledger.is_requeued();
                    return Some(Left { wakeup: Wakeup::Notified, passes_on: false, requeued });
                }
            }
        }
    }

    /// Sleeps and counts the caller out.
    fn sleep(&self, mut read: u32, epoch: u32, deadline: Option<Deadline>) -> Left {
        loop {
            let waited = self.moves.wait_bits(read, MOVABLE, deadline);
            if waited == Waited::Interrupted {
                continue;
            }
            // Acquire (W): pairs with (M) in `advance`. A read-modify-write, because the waiter may
            // sleep again on what it finds here, and only that is sure to find what the kernel has
            // just seen.
            read = self.moves.fetch_add(0, if BUG == seeded::RELAXED_LOOK { Relaxed } else { Acquire });
            let key = self.moves.key();
            let Some(left) = self.leave(epoch, waited) else { continue };
            if left.passes_on {
                key.wake(1);
            }
            return left;
        }
    }

    /// Counts the caller out, unless `moves` moved for others only and it has to sleep again.
    fn leave(&self, epoch: u32, waited: Waited) -> Option<Left> {
        let mut ledger = Ledger(self.ledger.load(Relaxed));
        loop {
            let covered = ledger.epoch() != epoch;
            let takes_grant = covered
                && ledger.granted() > 0
                && !(BUG == seeded::TIMEOUT_LEAVES_GRANT && waited == Waited::TimedOut);
            if waited == Waited::Mismatch && !covered {
                return None;
            }
            let mut next = ledger.without_waiter(takes_grant);
            if BUG == seeded::CLEARS_REQUEUED && next.waiting() == 0 {
                next = Ledger(next.0 & !Ledger::REQUEUED);
            }
            match self.ledger.compare_exchange(ledger.0, next.0, Relaxed, Relaxed) {
                Err(now) => ledger = Ledger(now),
                Ok(_) => {
                    let kept = takes_grant && BUG != seeded::TIMEOUT_SWALLOWS_GRANT;
                    let timed_out = waited == Waited::TimedOut && !kept;
                    return Some(Left {
                        wakeup: if timed_out { Wakeup::TimedOut } else { Wakeup::Notified },
                        passes_on: waited == Waited::Woken && !covered && ledger.granted() > 0,
                        requeued: ledger.is_requeued(),
                    });
                }
            }
        }
    }

    pub fn notify_one(&self) -> bool {
        let Some(grant) = self.grant(1, false) else { return false };
        if grant.is_loud {
            let key = self.moves.key();
            self.advance();
            key.wake(1);
        }
        grant.count > 0
    }

    pub fn notify_all(&self) -> usize {
        let Some(grant) = self.grant(Ledger::MAX, self.target().is_some()) else { return 0 };
        if grant.is_loud {
            let key = self.moves.key();
            let moves = self.advance();
            // The aim is read anew: after the move, as Invariant 6 demands.
            match self.target() {
                Some(mutex) if grant.requeues => self.wake_one_requeue_others(moves, mutex),
                _ => _ = key.wake(EVERYBODY),
            }
            if grant.requeues {
                self.end_requeuing();
            }
        }
        grant.count as usize
    }

    fn end_requeuing(&self) {
        let mut ledger = Ledger(self.ledger.load(Relaxed));
        while let Err(now) =
            self.ledger.compare_exchange(ledger.0, ledger.without_requeuing().0, Relaxed, Relaxed)
        {
            ledger = Ledger(now);
        }
    }

    /// On a mismatch another notification or another mutex came between. It is rare enough that
    /// waking everybody, which is right whatever came, is better than a second attempt with an
    /// argument of its own.
    fn wake_one_requeue_others(&self, moves: u32, mutex: FutexKey<L::Scope>) {
        let first = if BUG == seeded::REQUEUES_ALL { 0 } else { 1 };
        let requeued = self.moves.cmp_requeue(moves, first, EVERYBODY, mutex);
        if requeued.is_err() && BUG != seeded::IGNORES_MISMATCH {
            self.moves.key().wake(EVERYBODY);
        }
    }

    /// Grants up to `most` notifications and covers everybody. `None` if there is nobody to notify.
    ///
    /// It requeues if `requeue` asks for it, no other notification is about to, and several are to
    /// be woken. A single waiter is simply woken, and needs no `lock_requeued`.
    fn grant(&self, most: u32, requeue: bool) -> Option<Grant> {
        let mut ledger = Ledger(self.ledger.load(Relaxed));
        loop {
            let open = ledger.waiting().saturating_sub(ledger.granted());
            // Invariant 4, and why it does not help in shared memory.
            if ledger.waiting() == 0 || (open == 0 && Self::PRIVATE) {
                return None;
            }
            let count = open.min(most);
            let is_loud = ledger.granted() + count > self.spinners(ledger) || !Self::PRIVATE;
            let requeues = requeue && is_loud && count > 1 && !ledger.is_requeuing();
            let next = ledger.with_grants(count, requeues);
            // Acquire (G): pairs with (R) in `register`.
            match self.ledger.compare_exchange(ledger.0, next.0, Acquire, Relaxed) {
                Ok(_) => return Some(Grant { count, is_loud, requeues }),
                Err(now) => ledger = Ledger(now),
            }
        }
    }

    /// How many waiters spin (Invariant 7).
    fn spinners(&self, ledger: Ledger) -> u32 {
        if ledger.spinning() == 0 { 0 } else { spin::process().map_or(0, |process| ledger.spinners(process)) }
    }

    /// Moves `moves` and returns its new value.
    fn advance(&self) -> u32 {
        if BUG == seeded::NO_MOVE {
            return self.moves.load(Relaxed);
        }
        // Release (M): pairs with (W) in `sleep`. Acquire (A): `check_aim`.
        let order = if BUG == seeded::RELAXED_MOVE { Acquire } else { AcqRel };
        self.moves.fetch_add(1, order).wrapping_add(1)
    }
}

/// How a waiter registered.
struct Entry {
    epoch: u32,
    /// Whether it counts in `spinning`.
    spins: bool,
}

/// What a notification has granted.
struct Grant {
    count: u32,
    /// Whether waiters that do not spin are to be woken.
    is_loud: bool,
    /// Whether it has set `REQUEUING`.
    requeues: bool,
}

/// How a waiter left.
struct Left {
    wakeup: Wakeup,
    /// Whether the wake-up may be another's.
    passes_on: bool,
    requeued: bool,
}

impl<L: RawMutex, const BUG: u8> fmt::Debug for Protocol<L, BUG> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ledger(self.ledger.load(Relaxed)).fmt(f)
    }
}
