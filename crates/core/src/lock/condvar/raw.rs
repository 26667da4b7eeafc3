//! The protocol of [`RawCondvar`](super::RawCondvar). `PROTOCOL.md` beside this file tells it step
//! by step.
//!
//! - 16 bytes, all-zero when nobody waits, no allocation, nothing to initialise.
//! - Timed by absolute deadlines. A notification without waiters makes no system call.
//! - A notification of a waiter that still spins makes no system call either.
//! - No lost wake-ups, with or without the mutex held by the notifier, for any number of mutexes.
//! - If the mutex is held, a notification moves sleepers to it instead of waking them: a woken
//!   thread would only take the CPU from the holder. Each release of the mutex wakes the next of
//!   them. If the mutex is free, `notify_all` wakes one sleeper and moves the others. This needs a
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
//! 8. locks the mutex;
//! 9. if `REQUEUING` was set as it left, waits until that is cleared.
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
//! 4. wakes as many as it may, unless it has set `REQUEUING` in step 1;
//! 5. otherwise looks whether the mutex is held;
//! 6. sets `REQUEUED`, and requeues: all if the mutex is held, else all but one, which it wakes. A
//!    single sleeper of a free mutex is simply woken;
//! 7. marks the mutex if it woke none and moved some ([`RawMutex::mark_for_requeued`]). If the
//!    mutex is free by now, wakes one of those moved;
//! 8. clears `REQUEUING`.
//!
//! A notification that is not silent is *loud*. It sets `REQUEUING` if the aim is a mutex and no
//! other notification has set it.
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
//! 5. A thread sleeps on the mutex only if it waits with that mutex, `REQUEUED` is set, and the
//!    holder's release wakes one of those that sleep there, or one of them was woken. All sleepers
//!    lock by `lock_requeued`, so each release wakes the next until none sleeps there. Between
//!    steps 6 and 7 the notifier is about to mark or to wake. The threads that are moved need not
//!    be those that were notified: all of these may have left, and others be asleep, when the
//!    requeue comes. This is why `REQUEUED` stays while `REQUEUING` is set.
//! 6. `aim` goes `FRESH -> PLAIN` or `FRESH -> distance -> MIXED`, never back. A waiter whose mutex
//!    is not the one aimed at sets `MIXED` *and then* changes `moves`. A notifier reads `aim` after
//!    it changed `moves`, and requeues only if `moves` still has that value. So every thread that
//!    the requeue finds asleep waits with the mutex aimed at.
//! 7. Spinners and requeuers of another process are none: a fork copies the ledger but not the
//!    threads. `spinning` and `REQUEUING` count only if the `process` beside them is the caller's.
//!    A registration for a spin, and a grant that sets `REQUEUING`, begin anew if it is not.
//! 8. *The mutex lives while a notification looks at it.* A grant that sets `REQUEUING` finds a
//!    waiter that is registered. If the aim, read after that, is a mutex, then every registered
//!    waiter waits with that mutex: a waiter with another one sets `MIXED` before it registers.
//!    Each of them leaves after the grant. It finds `REQUEUING` as it leaves, and does not return
//!    until that is cleared. So the mutex is not freed meanwhile.
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
//!   than the notifier's move. This is load buffering, which no model world has:
//!   `litmus/condvar-registration.litmus`;
//! - (M) a move releases, (W) the look at `moves` after a sleep acquires: a waiter that sees the
//!   move sees the grant;
//! - (A) the move of a waiter that has set `MIXED` releases, the move of a notifier acquires: if
//!   the notifier moves later, it sees `MIXED`. If its grant finds that waiter registered, it sees
//!   `MIXED` by (R) and (G), too. The accesses to `aim` are relaxed: a waiter that finds `MIXED`
//!   sets it again and moves again, so it relies on no other waiter's move;
//! - (P) clearing `REQUEUING` releases, a leave and the look for its end acquire: the notifier's
//!   accesses to the mutex are over when a waiter returns.
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
use crate::lock::spin;
use crate::lock::traits::RawMutex;
use crate::sys::futex::{Bits, Futex, Scope, Waited};
use crate::sys::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sys::sync::{AtomicU32, AtomicU64, without_unwinding};
use crate::sys::time::Deadline;
use core::fmt;
use core::marker::PhantomData;

/// What [`RawCondvar`](super::RawCondvar) consists of.
#[repr(C)]
pub(super) struct Protocol<L: RawMutex> {
    moves: Futex<L::Scope>,
    aim: AtomicU32,
    ledger: AtomicU64,
    mutex: PhantomData<fn(&L)>,
}

#[cfg(not(world = "loom"))]
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

impl<L: RawMutex> Protocol<L> {
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
        let read = self.moves.load(Relaxed);
        let budget = if Self::PRIVATE { spin::budget::<L::Scope>(L::CONDVAR_NS) } else { 0 };
        let registered = self.register(budget);
        // SAFETY: the caller's promise.
        unsafe { mutex.unlock_to_wait(token) };
        let Some(entry) = registered else { return (mutex.lock(), Wakeup::Notified) };
        // A waiter that unwound would leave its count behind, and the wake-up that was meant for
        // it.
        let left = without_unwinding(|| {
            let spun = if entry.spins { self.spin(entry.epoch, budget) } else { None };
            spun.unwrap_or_else(|| self.sleep(read, entry.epoch, deadline))
        });
        let token = if left.requeued { mutex.lock_requeued() } else { mutex.lock() };
        if left.requeuing {
            self.outlast_requeuing();
        }
        (token, left.wakeup)
    }

    /// Makes sure that no notification moves this waiter to another mutex than its own (Invariant
    /// 6).
    fn check_aim(&self, mutex: &L) {
        if !Self::PRIVATE {
            return;
        }
        let mine = mutex.requeue_key().and_then(|_| self.distance_to(mutex)).unwrap_or(PLAIN);
        let mut aim = self.aim.load(Relaxed);
        if aim == FRESH {
            aim = match self.aim.compare_exchange(FRESH, mine, Relaxed, Relaxed) {
                Ok(_) => mine,
                Err(other) => other,
            };
        }
        if aim == mine || aim == PLAIN {
            return;
        }
        // `MIXED` is not enough of a reason to skip this: the waiter that set it may not have moved
        // `moves` yet.
        self.aim.swap(MIXED, Relaxed);
        self.moves.fetch_add(1, Release); // (A)
    }

    fn distance_to(&self, mutex: &L) -> Option<u32> {
        let address = core::ptr::from_ref(mutex).expose_provenance();
        let bytes = address.wrapping_sub(self.moves.key().address()).cast_signed();
        if bytes % 4 != 0 {
            return None;
        }
        i32::try_from(bytes / 4).ok().map(i32::cast_unsigned).filter(|&distance| distance > MIXED)
    }

    /// The mutex to which sleepers may be moved.
    fn target(&self) -> Option<*const L> {
        let aim = self.aim.load(Relaxed);
        // Miri does not know the system call.
        (Self::PRIVATE && aim > MIXED && !cfg!(miri)).then(|| {
            let bytes = (aim.cast_signed() as isize) * 4;
            core::ptr::with_exposed_provenance(self.moves.key().address().wrapping_add_signed(bytes))
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
            // Mutant: Release -> Relaxed: load buffering, by litmus/condvar-registration.litmus.
            match self.ledger.compare_exchange(ledger.0, next.0, Release, Relaxed) {
                Ok(_) => return Some(Entry { epoch: ledger.epoch(), spins }),
                Err(now) => ledger = Ledger(now),
            }
        }
        None
    }

    /// Step 5. `None` if the caller has to sleep.
    #[cfg_attr(world = "vm", track_caller)]
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
            // Acquire (P): pairs with `end_requeuing`.
            // Mutant: Acquire -> Relaxed: a sleeper of the grant acquires, too, or is a fork's.
            match self.ledger.compare_exchange(ledger.0, next.0, Acquire, Relaxed) {
                Err(now) => ledger = Ledger(now),
                Ok(_) if !covered => return None,
                Ok(_) => {
                    return Some(Left {
                        wakeup: Wakeup::Notified,
                        passes_on: false,
                        // It has not slept.
                        requeued: false,
                        requeuing: ledger.is_requeuing(),
                    });
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
            read = self.moves.fetch_add(0, Acquire);
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
            let takes_grant = covered && ledger.granted() > 0;
            if waited == Waited::Mismatch && !covered {
                return None;
            }
            let next = ledger.without_waiter(takes_grant);
            // Acquire (P): pairs with `end_requeuing`.
            match self.ledger.compare_exchange(ledger.0, next.0, Acquire, Relaxed) {
                Err(now) => ledger = Ledger(now),
                Ok(_) => {
                    let timed_out = waited == Waited::TimedOut && !takes_grant;
                    return Some(Left {
                        wakeup: if timed_out { Wakeup::TimedOut } else { Wakeup::Notified },
                        passes_on: waited == Waited::Woken && !covered && ledger.granted() > 0,
                        requeued: ledger.is_requeued(),
                        requeuing: ledger.is_requeuing(),
                    });
                }
            }
        }
    }

    /// Waits until no notification looks at the mutex any more (Invariant 8).
    #[cold]
    #[cfg_attr(world = "vm", track_caller)]
    fn outlast_requeuing(&self) {
        if let Some(process) = spin::process() {
            // Acquire (P): pairs with `end_requeuing`.
            spin::outlast(|| !Ledger(self.ledger.load(Acquire)).is_requeuing_in(process));
        }
    }

    pub fn notify_one(&self) -> bool {
        self.notify(1) > 0
    }

    pub fn notify_all(&self) -> usize {
        self.notify(Ledger::MAX) as usize
    }

    /// Notifies at most so many waiters.
    fn notify(&self, most: u32) -> u32 {
        let Some(grant) = self.grant(most, self.target().is_some()) else { return 0 };
        if grant.is_loud {
            let key = self.moves.key();
            let moves = self.advance();
            if grant.requeues {
                self.requeue(moves, most);
            } else {
                key.wake(most);
            }
        }
        grant.count
    }

    /// Moves up to `most` sleepers to the mutex if that is held. Otherwise it wakes one, and moves
    /// the others.
    fn requeue(&self, moves: u32, most: u32) {
        // The aim is read anew: after the move, as Invariant 6 demands.
        // SAFETY: not null and aligned, because it is the address of a mutex that a waiter has
        // named. That mutex lives while `REQUEUING` is set (Invariant 8).
        let mutex = self.target().map(|mutex| unsafe { &*mutex });
        let Some((mutex, to)) = mutex.and_then(|mutex| Some((mutex, mutex.requeue_key()?))) else {
            self.end_requeuing();
            self.moves.key().wake(most);
            return;
        };
        let is_held = mutex.is_locked();
        let wakes = u32::from(!is_held);
        if wakes == most {
            self.end_requeuing();
            self.moves.key().wake(most);
            return;
        }
        self.ledger.fetch_or(Ledger::REQUEUED, Relaxed);
        match self.moves.cmp_requeue(moves, wakes, most - wakes, to) {
            // The holder may have released the mutex before they came there.
            Ok(moved) if is_held && moved.requeued > 0 => {
                if !mutex.mark_for_requeued() {
                    to.wake_bits(1, MOVABLE);
                }
            }
            Ok(_) => {}
            // Another notification or another mutex came between. It is rare enough that waking
            // all, which is right whatever came, is better than a second attempt with an argument
            // of its own.
            Err(_) => _ = self.moves.key().wake(most),
        }
        self.end_requeuing();
    }

    fn end_requeuing(&self) {
        let mut ledger = Ledger(self.ledger.load(Relaxed));
        // Release (P): a waiter that finds `REQUEUING` cleared may free the mutex.
        while let Err(now) =
            self.ledger.compare_exchange(ledger.0, ledger.without_requeuing().0, Release, Relaxed)
        {
            ledger = Ledger(now);
        }
    }

    /// Grants up to `most` notifications and covers everybody. `None` if there is nobody to notify.
    ///
    /// It sets `REQUEUING` if `requeue` asks for that, a sleeper is to be woken, and no other
    /// notification has set it.
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
            let granted = ledger.with_grants(count);
            let process = if requeue && is_loud { spin::process() } else { None };
            let requeuing = process
                .filter(|&process| !ledger.is_requeuing_in(process))
                .map(|process| granted.requeuing_in(process));
            let next = requeuing.unwrap_or(granted);
            // Acquire (G): pairs with (R) in `register`.
            match self.ledger.compare_exchange(ledger.0, next.0, Acquire, Relaxed) {
                Ok(_) => return Some(Grant { count, is_loud, requeues: requeuing.is_some() }),
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
        // Release (M): pairs with (W) in `sleep`. Acquire (A): `check_aim`.
        self.moves.fetch_add(1, AcqRel).wrapping_add(1)
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
    /// Whether a notification may still look at the mutex.
    requeuing: bool,
}

impl<L: RawMutex> fmt::Debug for Protocol<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ledger(self.ledger.load(Relaxed)).fmt(f)
    }
}
