//! The protocol of [`Calock`](crate::Calock). `PROTOCOL.md` beside this folder has a picture and a
//! trace.
//!
//! | file | what of the protocol |
//! |---|---|
//! | `raw.rs` | properties, states, invariants, orderings; how an arriving thread acquires |
//! | `parked.rs` | waiters that are parked: they sleep, are woken, promoted, or give up |
//! | `release.rs` | releases: which waiter they wake, and how |
//! | `plan/` | advice to the holder: when to wake a waiter. No invariant rests on it |
//!
//! # Properties
//! - Exclusion; what a holder did happens before the next acquisition returns.
//! - Convoy avoidance: a release leaves the lock free for the next thread that takes it, even if it
//!   wakes a waiter. That waiter contends again. One release an interval hands the lock over to a
//!   promoted waiter, beside the releases for overdue waiters.
//! - Restriction: while enough threads are active to use the CPUs, the passive threads, which are
//!   parked, stay asleep ([`plan`](super::plan)). While one thread is faster alone, `SOLO` is set,
//!   and an arriving thread that finds the lock taken parks at once.
//! - Promotion: in each interval one parked waiter, the oldest first; see "How long a waiter
//!   waits".
//! - The CAS that releases is the last touch of the lock; a wake-up goes by address (law 2 of
//!   ARCHITECTURE.md). If the lock is gone, it meets no sleeper, or a stranger, which has to expect
//!   spurious wake-ups.
//! - All-zero is an unlocked lock. Nothing is allocated and no address is stored.
//!
//! # State
//! [`State`] describes the word. Beside it there are
//! - `seq`, the *sequence*: the futex on which all waiters sleep. Only a holder advances it, before
//!   a release that wakes a waiter;
//! - the *plan*, which only a holder reads and writes;
//! - three numbers: `releases`, `promotions`, and the length of the standby's sleeps.
//!
//! "Its own" are the count and the flags that a waiter has in the word.
//!
//! | step | from | to | by |
//! |---|---|---|---|
//! | (take) | not `LOCKED` | `LOCKED` | an arriving thread, spinning or not |
//! | (take parked) | not `LOCKED`; or `GRANTED`, for the promoted waiter | `LOCKED`; not its own, `AWAKE`, `TO_STAND_BY`, `GRANTED` | a parked waiter; or one about to park, which leaves `AWAKE` and `TO_STAND_BY` |
//! | (park) | `LOCKED`; or free, for a waiter that is to stand by | one more parked, and what follows the table | a waiter that has spun, or was woken |
//! | (promote) | `LOCKED`, not `PROMOTED` | `PROMOTED`, `AWAKE` | a standby whose interval is over; an overdue waiter |
//! | (give up) | `LOCKED` | not its own, `AWAKE`, `TO_STAND_BY` | a waiter whose deadline has passed |
//! | (requeue) | `LOCKED` | `REQUEUED` | a notification that requeues a sleeper to this lock |
//! | (announce) | held | `AWAKE`; `TO_STAND_BY` if the waiter is to stand by, else not | the holder, before it advances the sequence |
//! | (unlock) | held | `GRANTED` if `PROMOTED`, else not `LOCKED`; not `WASTED`, `REQUEUED`; `SOLO` if a waiter is parked and the plan says so | the holder |
//!
//! (park) sets `STANDBY` if no waiter has it and this one may; see `may_stand_by`. A waiter that
//! was woken, or is promoted, clears `AWAKE` and `TO_STAND_BY`. A waiter that was woken to contend
//! sets `WASTED`. (park) and (take parked) set `REQUEUED` if a condition variable requeued the
//! waiter and it has not set the bit yet.
//!
//! # Which waiter a release wakes
//! 1. If `PROMOTED`: the lock is handed over, and the promoted waiter woken unless `AWAKE` is set.
//! 2. Else, if a waiter is parked and the plan says so: a waiter that contends, even if a thread
//!    woken earlier has not arrived yet. A holder that goes to wait on a condition variable does
//!    not ask the plan; it wakes a waiter if `AWAKE` is clear.
//! 3. Else, if a waiter is parked, and neither `AWAKE` nor `STANDBY` is set: a waiter that is to
//!    stand by.
//!
//! The exception in rule 2: the plan leaves waiters asleep because the active threads return by
//! themselves. A thread that waits for a notification does not. Two threads that notify each other
//! would take turns at the pace of the standby's sleeps.
//!
//! In addition, if `REQUEUED` is set, a release wakes a waiter that a condition variable requeued.
//!
//! The steps of a release are: (announce), then the sequence, then (unlock), then the wake-up. A
//! waiter that is about to sleep on the old number does not fall asleep: the kernel compares and
//! enqueues under one lock, which the wake-up takes after the sequence has advanced.
//!
//! # The standby
//! One parked waiter sleeps with a timer, so that the others need none, and so that not every
//! release has to wake a waiter. When its timer ends and the lock is free and has not been used, it
//! takes the lock, and its next sleeps are short. Otherwise its sleeps double, up to an interval;
//! or up to a millisecond, if `SOLO` was set when the sleep began. So an idle lock is found after
//! about as long as it was busy before, at most an interval. The standby is promoted when it has
//! been standby for an interval. When it leaves, the next release wakes the oldest waiter to stand
//! by.
//!
//! # Invariants
//! 1. At most one thread holds the lock. (take) and (take parked) need a word without `LOCKED`.
//!    (take parked) of the promoted waiter may also find `GRANTED`, and clears it. Only the holder
//!    clears `LOCKED` or sets `GRANTED`, and a lock that is `GRANTED` has no holder.
//! 2. If `AWAKE` is set, one of three holds. The holder has set it in (announce) and is about to
//!    wake a waiter. Or a parked waiter is awake or about to be, and clears it in (take parked),
//!    (park) or (give up): it was woken, or saw the sequence advanced. Or the promoted waiter is
//!    awake; then (park) or (give up) of another waiter may clear the bit, while the lock is held
//!    or granted.
//! 3. *A wake-up meets its waiter.* If `AWAKE` stays set from (announce) to (unlock), no waiter
//!    that was parked at (announce) has parked again with the new sequence number: it would have
//!    cleared `AWAKE`. A thread that parks for the first time does not clear it; the wake-up may
//!    meet it instead. If `AWAKE` was cleared and set again meanwhile, (promote) set it, and the
//!    promoted waiter is awake. Otherwise each waiter that was parked at (announce) read the
//!    sequence before it advanced. So it sleeps and can be woken, or it does not fall asleep. If
//!    `AWAKE` has gone before (unlock), the holder chooses anew.
//! 4. *No waiter is forgotten.* If a waiter is parked, one of four holds: the lock is held, so that
//!    a release will come; or it is granted; or `AWAKE` is set; or the standby sleeps with a timer,
//!    or is awake and will. For a standby leaves in (take parked), after which the lock is held, or
//!    in (give up), when it is held or granted. A release that finds neither a standby nor an awake
//!    waiter wakes one to stand by. (park) on a free lock leaves `STANDBY` set. A standby without a
//!    timer is promoted, so the lock is held or granted.
//! 5. If the lock is granted, the promoted waiter is awake, or its wake-up is on its way: it parks
//!    only before the grant, and clears `AWAKE`. The release that grants finds that, and wakes it.
//!    `PROMOTED` implies `LOCKED`: (promote) needs `LOCKED`, and (unlock) then keeps it.
//! 6. While a thread that a condition variable requeued sleeps here, one of three holds. `REQUEUED`
//!    is set. Or such a thread is awake that will set it. Or the notifying thread, which requeues
//!    first, is about to make (requeue); if (requeue) finds the lock free, that thread wakes one of
//!    those it has moved. (requeue) may also set the flag on a lock that has become free. That
//!    costs one wake-up that meets no sleeper.
//! 7. A parked waiter does not unwind: its count and its flags would stay in the word. If the
//!    kernel refuses the wait, the process aborts.
//!
//! `SOLO` and the plan decide three things only: how long a waiter polls before (park), how long
//! the standby sleeps, and which waiters a release wakes beside those that the invariants require.
//!
//! # How long a waiter waits
//! Within an interval the standby takes the lock, or is promoted. Then it waits for the present
//! holder only. The kernel wakes the oldest waiter to stand by. An arriving thread does not become
//! the standby past others. So a waiter that parks behind `k` others is the standby after `k`
//! others have been.
//!
//! The exception is a waiter that is woken and sleeps again, which puts it behind all others: the
//! lock was taken, or another waiter stands by. So a waiter that is woken after more than `k + 1`
//! standbys and promoted waiters have left is *overdue*, and promotes itself at once. If another is
//! promoted at that moment, it tries again an interval later. It is woken at the latest when all
//! those before it have left, and as many are before it as were parked when it went to the end.
//!
//! So at most `2 (n + 1)` standbys or promoted waiters leave before it is promoted, where `n` is
//! the largest number of other waiters parked meanwhile; and one interval more for each refusal.
//!
//! # Ordering
//! - (take) and (take parked) are Acquire and pair with (unlock), Release. All transitions of the
//!   word are read-modify-writes and continue its release sequence. The plan is plain data of the
//!   holder.
//! - (park) is Release and pairs with (announce), Acquire. A waiter reads the sequence before
//!   (park), and the holder advances it after (announce). So a waiter that (announce) finds parked
//!   has read the sequence before it advanced (`xtask/litmus/calock-sequence.litmus`). Loads and
//!   stores of the sequence itself are Relaxed.
//! - A transition that fails is Relaxed: the thread tries again from the word that it has found,
//!   and the attempt that succeeds acquires.
//!
//! # Wrap-around
//! The sequence has 32 bits. A waiter misses a wake-up if the sequence advances by a multiple of
//! exactly 2^32 between its read and the kernel's comparison, with a system call each.
//!
//! # Sources
//! H. Franke, ulocks (LKML, February 2002): the calock, patience, and what is counted. R. Johnson
//! et al., "Decoupling contention management from scheduling" (2010), and D. Dice, "Malthusian
//! Locks" (2017), for the active and the passive set, which they tell apart by the length of a
//! queue of waiters; R. Guerraoui et al., "Unlocking Energy" (2016), for wake-ups that are left
//! out. Here: the CPUs that are seen, the standby in place of a promise that each release wakes,
//! and promotion.

use crate::interval::{Every, Interval};
use crate::parked::Waiter;
use crate::plan::Plan;
use crate::word::State;
use crate::word::flags::*;
use core::fmt;
use core::marker::PhantomData;
use ulocks_core::futex::{Futex, FutexKey};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::policy::InOneProcess;
use ulocks_core::spin::{self, Look};
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicU32, UnsafeCell, without_unwinding};
use ulocks_core::time::Deadline;
use ulocks_core::{Private, raw};

/// The raw lock, without data: the word, the sequence, three numbers, the plan, and the counters if
/// the policy has any.
#[repr(C)]
pub struct RawCalock<P: InOneProcess = Private, I: Interval = Every> {
    pub(crate) word: AtomicU32,
    pub(crate) seq: Futex<P::Scope>,
    /// How many releases found a parked waiter. Written by the holder.
    pub(crate) releases: AtomicU32,
    /// How long the standby sleeps at a time, in microseconds. Written by the standby.
    pub(crate) sleep_us: AtomicU32,
    /// How many standbys and promoted waiters have left.
    pub(crate) promotions: AtomicU32,
    plan: UnsafeCell<Plan>,
    pub(crate) meter: P::Meter,
    interval: PhantomData<fn() -> I>,
}

// SAFETY: only the holder reads and writes the plan, and (unlock) happens before the next (take) or
// (take parked) returns.
unsafe impl<P: InOneProcess, I: Interval> Sync for RawCalock<P, I> {}

impl<P: InOneProcess, I: Interval> RawCalock<P, I> {
    ulocks_core::const_fn! {
        /// An unlocked lock; its bytes are all zero.
        pub fn new() -> Self {
            Self {
                word: AtomicU32::new(State::UNLOCKED.0),
                seq: Futex::new(0),
                releases: AtomicU32::new(0),
                sleep_us: AtomicU32::new(0),
                promotions: AtomicU32::new(0),
                plan: UnsafeCell::new(Plan::NOTHING),
                meter: P::Meter::INIT,
                interval: PhantomData,
            }
        }
    }

    /// The counters.
    pub fn meter(&self) -> &P::Meter {
        &self.meter
    }

    /// The word at this moment.
    #[doc(hidden)]
    pub fn state(&self) -> State {
        State(self.word.load(Relaxed))
    }

    /// The holder's plan.
    pub(crate) fn plan<R>(&self, with: impl FnOnce(&mut Plan) -> R) -> R {
        // SAFETY: called by the holder only, between (take) or (take parked) and (unlock), and no
        // caller keeps the reference.
        self.plan.with_mut(|plan| with(unsafe { &mut *plan }))
    }

    /// (take): sets `LOCKED`, and has acquired if that was clear.
    #[inline(always)]
    fn take(&self) -> bool {
        self.word.fetch_or(LOCKED, Acquire) & LOCKED == 0
    }

    /// (unlock). If it succeeds, the lock may be gone.
    #[inline(always)]
    pub(crate) fn release(&self, was: u32, free: u32) -> Result<(), State> {
        self.word.compare_exchange(was, free, Release, Relaxed).map(drop).map_err(State)
    }

    /// Any other transition of the word.
    pub(crate) fn change(&self, was: State, now: State) -> Result<(), State> {
        // Mutant: AcqRel -> Acquire, Release, Relaxed: load buffering, by
        // litmus/calock-sequence.litmus.
        self.word.compare_exchange(was.0, now.0, AcqRel, Relaxed).map(drop).map_err(State)
    }

    /// For an arriving thread that found the lock taken. False if `deadline` passed first.
    #[cold]
    #[inline(never)]
    fn lock_contended(&self, deadline: Option<Deadline>) -> bool {
        self.meter.count(Event::Contended);
        if spin::backing_off::<P>(|| self.look()) {
            self.meter.count(Event::Spun);
            return true;
        }
        self.meter.count(Event::Culled);
        without_unwinding(|| self.lock_parked(Waiter::new(), deadline)) // invariant 7
    }

    /// A poll by an arriving thread; it takes the lock if that is free.
    fn look(&self) -> Look {
        let was = self.state();
        if !was.is_locked() && self.take() {
            Look::Acquired
        } else if was.has(PROMOTED | SOLO) {
            Look::Hopeless
        } else {
            Look::Taken
        }
    }
}

impl<P: InOneProcess, I: Interval> raw::Metered for RawCalock<P, I> {
    type Meter = P::Meter;

    fn meter(&self) -> &P::Meter {
        &self.meter
    }
}

impl<P: InOneProcess, I: Interval> Default for RawCalock<P, I> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: InOneProcess<Meter: fmt::Debug>, I: Interval> fmt::Debug for RawCalock<P, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawCalock").field("state", &self.state()).field("meter", &self.meter).finish()
    }
}

ulocks_core::initial!([P: InOneProcess, I: Interval] RawCalock<P, I> = Self::new());

// SAFETY:
// * One token at a time: invariant 1.
// * A release happens before the next acquisition returns: section "Ordering".
// * The token is nothing and no address is kept, so it may be forgotten and the lock moved or
//   dropped.
unsafe impl<P: InOneProcess, I: Interval> raw::RawMutex for RawCalock<P, I> {
    type Scope = P::Scope;
    type Token = ();
    type Condvar = ulocks_core::condvar::Sequence<Self>;
    const CONDVAR_NS: u32 = <P::Spin as spin::Spin>::CONDVAR_NS;

    #[inline]
    fn lock(&self) {
        if !self.take() {
            self.lock_contended(None);
        }
        self.meter.count(Event::Acquired);
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        let taken = self.take();
        if taken {
            self.meter.count(Event::Acquired);
        }
        taken.then_some(())
    }

    #[inline]
    fn lock_until(&self, deadline: Deadline) -> Option<()> {
        let taken = self.take() || (!deadline.has_passed() && self.lock_contended(Some(deadline)));
        self.meter.ended(taken);
        taken.then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        self.meter.released();
        // Past a parked waiter. A CAS that fails costs as much as one that succeeds.
        let was = State(self.plan(|plan| plan.left)).with(LOCKED);
        if was.0 != LOCKED {
            return self.unlock_past(was);
        }
        if let Err(was) = self.release(LOCKED, State::UNLOCKED.0) {
            self.unlock_past(was);
        }
    }

    #[inline]
    unsafe fn unlock_to_wait(&self, (): ()) {
        self.meter.released();
        if let Err(was) = self.release(LOCKED, State::UNLOCKED.0) {
            self.unlock_contended(was, true);
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.state().is_locked()
    }

    #[inline]
    fn requeue_key(&self) -> Option<FutexKey<P::Scope>> {
        Some(self.seq.key())
    }

    fn mark_for_requeued(&self) -> bool {
        // (requeue)
        self.state().is_locked() && State(self.word.fetch_or(REQUEUED, Relaxed)).is_locked()
    }

    fn lock_requeued(&self) {
        self.meter.count(Event::Contended);
        let waiter = Waiter::requeued();
        without_unwinding(|| self.lock_parked(waiter, None)); // invariant 7
        self.meter.count(Event::Acquired);
    }
}
