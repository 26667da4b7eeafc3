//! The protocol of [`Calock`](crate::Calock). `PROTOCOL.md` beside this folder tells it step by
//! step.
//!
//! # Properties
//! - Exclusion; what a holder did happens before the next acquisition returns.
//! - Convoy avoidance: a release leaves the lock free for whoever comes, also if it wakes somebody,
//!   who then contends again. It is handed over to one waiter an interval, beside those that are
//!   overdue.
//! - Restriction: while enough threads circulate to use the CPUs, those that are parked are left
//!   asleep ([`plan`](super::plan)). While one is faster alone, the word is `HOT`, and whoever
//!   finds the lock taken parks at once.
//! - Promotion: in each interval one of those that are parked, the oldest first; see "How long
//!   anybody waits".
//! - The compare-exchange that releases is the last touch of the lock; a wake-up goes by address
//!   (law 2).
//! - All-zero is an unlocked lock. Nothing is allocated and no address is stored.
//!
//! # State
//! The word is described at [`State`]. Beside it are the *bell*, a futex on which everybody sleeps
//! and which only a holder changes; the *plan*, which only a holder reads and writes; and three
//! numbers, by which the sentinel and those who are overdue know the time.
//!
//! | label | from | to | by |
//! |---|---|---|---|
//! | (T) | not `LOCKED` | `LOCKED` | an arrival, a spinner: sets the bit |
//! | (T) | not `LOCKED`; `GRANTED` for the promoted | `LOCKED`; what the waiter has in the word, `AWAKE`, `HEIR` and `GRANTED` taken out | who was parked |
//! | (P) | `LOCKED`; free for an heir | one more parked; `SENTINEL` if there is none and the waiter may be it; who was woken takes `AWAKE` and `HEIR` out, and leaves `IN_VAIN` if it was to contend; the promoted takes `AWAKE` out | who has spun, or was woken |
//! | (R) | `LOCKED`, nobody `PROMOTED` | `PROMOTED` and `AWAKE` | a sentinel whose interval is over; a waiter that is overdue |
//! | (G) | `LOCKED` | what the waiter has in the word, `AWAKE` and `HEIR` taken out | a waiter whose deadline has passed |
//! | (M) | `LOCKED` | `MOVED` | a notification that moves a sleeper here |
//! | (D) | `GRANTED` | not `LOCKED`, with `GRANTED`, `PROMOTED`, `AWAKE` and `HEIR` taken out | between processes: a waiter, see "Deaths" |
//! | (A) | held | `AWAKE`, and `HEIR` | the holder, before it rings |
//! | (U) | held | not `LOCKED`, or `GRANTED` if somebody is `PROMOTED`; without `IN_VAIN` and `MOVED`; `HOT` if somebody is parked and the plan wants it, else without | the holder |
//!
//! # Whom a release wakes
//! 1. If the lock is handed over, the promoted, unless it is `AWAKE`;
//! 2. else, if somebody is parked and the plan wants it, one of them, to contend; also if one is
//!    `AWAKE` that does not come. The plan is not asked, and a waiter woken if none is `AWAKE`, by
//!    a holder that goes to wait on a condition variable;
//! 3. else, if somebody is parked, nobody `AWAKE`, and there is no `SENTINEL`, one of them, to be
//!    the sentinel: the `HEIR`.
//!
//! The exception in rule 2: the plan leaves waiters asleep because the threads that use the lock
//! come back by themselves. A thread that waits for a notification does not. Two threads that
//! notify each other would take turns at the pace of the sentinel's naps.
//!
//! And, in any case, if `MOVED`: one of those whom a condition variable moved here. First comes
//! (A), then the bell, so that whoever is about to fall asleep does not, then (U), then the
//! wake-up.
//!
//! # The sentinel
//! It sleeps with a timer, so that nobody else needs one, nor each release to wake somebody. It
//! naps. After a nap in which nobody used the lock, although it is free, it takes the lock, and the
//! next naps are short; otherwise they become longer, up to an interval, or to a millisecond if it
//! lies down while the lock is `HOT`. So an idle lock is found after about as long as it was busy
//! before, at most an interval. An interval after it became the sentinel it is promoted. When it
//! leaves, the next release wakes the oldest to be its heir.
//!
//! # Invariants
//! 1. At most one thread holds the lock: (T) needs a word that is not `LOCKED`, or `GRANTED`, which
//!    it takes out; only the holder takes out `LOCKED` or sets `GRANTED`; but a lock that is
//!    `GRANTED` has no holder, and "Deaths" takes out both.
//! 2. If `AWAKE` is set, then the holder has set it in (A) and is about to wake somebody, or one of
//!    those parked is awake or will be, and takes it out in (T), (P) or (G): it was woken, or found
//!    that the bell had been rung; or it is the promoted.
//! 3. *A wake-up meets whom it is for.* If `AWAKE` is in the word from (A) to (U), nobody has
//!    parked meanwhile who heard the bell, for that one takes it out. So each of those parked at
//!    (A) has read the bell before it was rung: it sleeps and can be woken, or does not fall
//!    asleep. If it is not in the word any more, the holder begins anew.
//! 4. *Nobody is forgotten.* If somebody is parked, then the lock is held, so that a release will
//!    come; or handed over; or somebody is `AWAKE`; or the sentinel sleeps, and wakes by itself.
//!    For: a sentinel leaves in (T), after which the lock is held, or in (G), when it is held or
//!    handed over; and a release that finds neither a sentinel nor anybody awake wakes an heir.
//! 5. If the lock is handed over, the promoted is awake, or its wake-up is on its way: it takes
//!    `AWAKE` out as it goes to sleep, in a word that is not `GRANTED`.
//! 6. While a thread sleeps that a condition variable moved here, `MOVED` is set or one of them is
//!    awake that will set it. (M) may also set it on a lock that has become free: that costs one
//!    wake-up of nobody.
//! 7. A parked waiter does not unwind: its count and its flags would stay in the word. If the
//!    kernel refuses the wait, the process aborts.
//!
//! `HOT` and the plan decide only how long a waiter looks before (P), for how long the sentinel
//! naps, and whom a release wakes beside those that the invariants ask for. None of them rests on
//! either.
//!
//! # How long anybody waits
//! A sentinel takes the lock, or is promoted and then waits for the present holder only, within an
//! interval. The kernel wakes the oldest to be its heir, and a newcomer does not become the
//! sentinel past others (but between processes, where the others may be dead). So a waiter that
//! parks behind `k` others is the sentinel after `k` others have been, unless it is woken and sent
//! to sleep again behind all others, because the lock is taken or somebody else was the heir. To
//! make up for that, who is woken after more than `k + 1` sentinels and promoted ones have left is
//! *overdue*, and promotes itself at once; if another is promoted at that moment, it tries again an
//! interval later. It is woken at the latest when all those before it have left, and as many are
//! before it as were parked when it was sent to the end. So at most `2 (n + 1)` sentinels or
//! promoted ones leave before it is promoted, where `n` are the most others that were parked
//! meanwhile, and more only for each time that it is refused.
//!
//! # Ordering
//! - (T) is Acquire and pairs with (U), Release. All transitions of the word are read-modify-writes
//!   and continue its release sequence. The plan is plain data of the holder.
//! - (P) is Release and pairs with (A), Acquire. A waiter reads the bell before (P), and the holder
//!   rings after (A). So a waiter that (A) finds parked has read the bell before it was rung
//!   (`litmus/calock-bell.litmus`). Loads and stores of the bell itself are Relaxed.
//! - A transition that fails is Relaxed: the thread tries again from the word that it has found,
//!   and the attempt that succeeds acquires.
//!
//! # Deaths
//! Between processes a waiter may be killed. Its count stays, its flags may. So a waiter that parks
//! notes whose turn it is, and since when, in a word of the lock, `turn`, unless that is noted:
//!
//! | turn | in the word | a living waiter |
//! |---|---|---|
//! | the promoted's | `GRANTED` | the promoted takes the lock at once, and `promotions` changes |
//! | the sentinel's | `SENTINEL`, not `PROMOTED` | the sentinel is promoted within an interval, or leaves, and `promotions` changes |
//! | nobody's | neither | nothing is due: the holder may hold for long, and without a sentinel the next that parks is it |
//!
//! If one of the first two turns has lasted for [`WATCH`](super::parked::WATCH), or for two
//! intervals if that is longer, its owner is dead. No waiter sleeps past that time, nor for longer,
//! and a waiter that parks later finds it at once (D). A compare-exchange that adds one to
//! `promotions`, for the dead, chooses one of the waiters that find it. If the lock was granted,
//! that one frees it: it clears `LOCKED`, `GRANTED`, `PROMOTED`, `AWAKE` and `HEIR`. Otherwise it
//! is the sentinel from then on, and owns the flag that is set. If it dies too, the next turn
//! begins, since `promotions` has changed.
//!
//! Releases, and the bells that they ring for others, are no sign of life of either: a dead
//! sentinel is found on a lock that is never free, too. What else the dead leave needs no watch:
//! `AWAKE` and `HEIR` keep a release from waking an heir, but not the next waiter whose sleep ends
//! from becoming the sentinel; and a dead waiter that is `PROMOTED` is granted the lock.
//!
//! A waiter whose sleep ends so often sleeps behind all others each time, as one that was woken in
//! vain. So it also looks whether it is overdue, and then promotes itself.
//!
//! A turn is noted when a waiter parks or its sleep ends, so after one such time at the latest, and
//! is over after another. So promotions go on two such times after a death, or four if the dead had
//! `PROMOTED` and `SENTINEL`, which are found one after the other. During the first two of these
//! the lock may be idle. The dead count among the waiters of "How long anybody waits".
//!
//! If the owner of a turn was only stopped, it has lost its promotion, or there are two sentinels
//! until two leave before the next release. A promoted waiter that lost its promotion may still
//! take another's, which then sleeps on until a release or the end of its sleep.
//!
//! # Wrap-around
//! The bell has 32 bits. A waiter misses a wake-up if between its look at the bell and the kernel's
//! comparison it is rung a multiple of exactly 2^32 times, with a system call each.
//!
//! # Sources
//! H. Franke, ulocks (LKML, February 2002): the calock, patience, and what is counted. R. Johnson
//! et al., "Decoupling contention management from scheduling" (2010), and D. Dice, "Malthusian
//! Locks" (2017), for restriction and culling, which they do by the length of a queue of waiters;
//! R. Guerraoui et al., "Unlocking Energy" (2016), for wake-ups that are left out. Here: the CPUs
//! that are seen, the sentinel in place of a promise that each release wakes, and promotion.

use crate::advice::Advice;
use crate::interval::{Every, Interval};
use crate::parked::Waiter;
use crate::plan::{Plan, TURN};
use crate::word::{self, State};
use core::fmt;
use core::marker::PhantomData;
use ulocks_core::futex::{Futex, FutexKey};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::spin::{self, Look};
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicU32, UnsafeCell, without_unwinding};
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Private, cpu, membarrier, raw};

const LOCKED: u32 = State::LOCKED;
const AWAKE: u32 = State::AWAKE;
const SENTINEL: u32 = State::SENTINEL;
const PROMOTED: u32 = State::PROMOTED;
const IN_VAIN: u32 = State::IN_VAIN;
const MOVED: u32 = State::MOVED;
const GRANTED: u32 = State::GRANTED;
const HEIR: u32 = State::HEIR;
const HOT: u32 = State::HOT;

/// Of how many releases past somebody parked one tells the plan where it is.
const SAMPLE: u32 = 4;
/// Of how many the plan looks at the clock: a multiple of that.
const LOOK: u32 = 16;

/// The raw lock, without data: the word, the bell, the plan, and the counters if the policy has
/// any.
#[repr(C)]
pub struct RawCalock<P: Policy = Private, I: Interval = Every> {
    pub(crate) word: AtomicU32,
    pub(crate) bell: Futex<P::Scope>,
    /// How often it was released past somebody parked. Written by the holder.
    pub(crate) uses: AtomicU32,
    /// For how long the sentinel sleeps at a time, in microseconds. Written by the sentinel.
    pub(crate) nap: AtomicU32,
    /// How often the sentinel or somebody promoted has left.
    pub(crate) promotions: AtomicU32,
    /// Between processes: whose turn it is, and since when. Written by waiters that park.
    pub(crate) turn: AtomicU32,
    plan: UnsafeCell<Plan>,
    pub(crate) meter: P::Meter,
    interval: PhantomData<fn() -> I>,
}

// SAFETY: the plan is read and written by the holder only, and (U) happens before the next (T)
// returns.
unsafe impl<P: Policy, I: Interval> Sync for RawCalock<P, I> {}

impl<P: Policy, I: Interval> RawCalock<P, I> {
    ulocks_core::const_fn! {
        /// An unlocked lock; its bytes are all zero.
        pub fn new() -> Self {
            Self {
                word: AtomicU32::new(State::UNLOCKED.0),
                bell: Futex::new(0),
                uses: AtomicU32::new(0),
                nap: AtomicU32::new(0),
                promotions: AtomicU32::new(0),
                turn: AtomicU32::new(0),
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
    pub fn state(&self) -> State {
        State(self.word.load(Relaxed))
    }

    /// The holder's plan.
    pub(crate) fn plan<R>(&self, with: impl FnOnce(&mut Plan) -> R) -> R {
        // SAFETY: called by the holder only, between (T) and (U), and no caller keeps the
        // reference.
        self.plan.with_mut(|plan| with(unsafe { &mut *plan }))
    }

    /// (T) by an arrival or a spinner: sets `LOCKED`, and has acquired if that was not set.
    #[inline(always)]
    fn take(&self) -> bool {
        self.word.fetch_or(LOCKED, Acquire) & LOCKED == 0
    }

    /// (U). If it succeeds, the lock may be gone.
    #[inline(always)]
    fn release(&self, was: u32, free: u32) -> Result<(), State> {
        self.word.compare_exchange(was, free, Release, Relaxed).map(drop).map_err(State)
    }

    /// A transition of the word.
    pub(crate) fn change(&self, was: State, now: State) -> Result<(), State> {
        // Mutant: AcqRel -> Acquire, Release, Relaxed: load buffering, litmus/calock-bell.litmus.
        self.word.compare_exchange(was.0, now.0, AcqRel, Relaxed).map(drop).map_err(State)
    }

    /// An arrival that found the lock taken. False if `deadline` passed first.
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

    /// What an arrival sees that spins; it takes the lock if it is free.
    fn look(&self) -> Look {
        let was = self.state();
        if !was.is_locked() && self.take() {
            Look::Acquired
        } else if was.has(PROMOTED | HOT) {
            Look::Hopeless
        } else {
            Look::Taken
        }
    }

    /// (U) of a word that is more than `LOCKED`: most likely `was`.
    #[cold]
    #[inline(never)]
    fn unlock_past(&self, was: State) {
        if was.parked() > 0 {
            let uses = self.uses.load(Relaxed).wrapping_add(1);
            self.uses.store(uses, Relaxed);
            // One thread circulates, and a release is as short as can be: it changes nothing but
            // `LOCKED`, and wakes nobody.
            if was.flags() == LOCKED | SENTINEL | HOT && self.is_hot() && !uses.is_multiple_of(TURN) {
                let free = was.without(LOCKED).0;
                self.plan(|plan| plan.left = free);
                if let Err(now) = self.release(was.0, free) {
                    self.unlock_contended(now, false);
                }
                return;
            }
            self.keep_count(uses);
        }
        self.unlock_contended(was, false);
    }

    /// (U), and whatever a release has to do. `departs`: the holder goes to wait on a condition
    /// variable.
    #[inline(never)]
    fn unlock_contended(&self, mut was: State, departs: bool) {
        let key = self.bell.key();
        let (mut in_vain, mut rung) = (false, None);
        loop {
            if was.has(IN_VAIN) && !in_vain {
                in_vain = true;
                self.plan(Plan::woke_in_vain);
            }
            if rung.is_none()
                && let Some(whom) = self.whom(was, departs)
            {
                match self.ring(was, whom) {
                    Ok(awake) => (was, rung) = (awake, Some(whom)),
                    Err(now) => was = now,
                }
                continue;
            }
            let hands_over = was.has(PROMOTED);
            let free = if hands_over { was.with(GRANTED) } else { was.without(LOCKED) }
                .without(IN_VAIN | MOVED | HOT);
            let free = if was.parked() > 0 && self.is_hot() { free.with(HOT) } else { free };
            self.plan(|plan| plan.left = if hands_over { 0 } else { free.0 });
            match self.release(was.0, free.0) {
                Err(now) => {
                    was = now;
                    // Whoever was to be woken is awake already, and others may have fallen asleep
                    // since.
                    rung = rung.filter(|_| was.has(AWAKE));
                }
                Ok(()) => return Self::wake(key, was.has(MOVED), rung),
            }
        }
    }

    /// Takes note of a release past somebody parked, and now and then of where it is.
    fn keep_count(&self, uses: u32) {
        self.plan(Plan::leaves);
        if self.is_hot() && !uses.is_multiple_of(TURN) && !I::Advice::NOTES_EACH {
            return;
        }
        let samples = uses.is_multiple_of(SAMPLE) || I::Advice::NOTES_EACH;
        if samples && let Some(cpu) = if I::Advice::NOTES_EACH { Some(0) } else { cpu::current() } {
            self.plan(|plan| plan.saw(cpu));
            if uses.is_multiple_of(LOOK) {
                self.plan(|plan| plan.go_on(uses.is_multiple_of(TURN)));
            }
        }
    }

    /// Whether one thread is to circulate.
    fn is_hot(&self) -> bool {
        I::Advice::HOT || self.plan(|plan| plan.is_hot())
    }

    /// (A): marks the word, and rings the bell. In this order: who is parked by then has read the
    /// bell before, and who parks after it takes the mark out.
    fn ring(&self, was: State, whom: Whom) -> Result<State, State> {
        let awake = was.without(HEIR).with(AWAKE | if whom == Whom::Heir { HEIR } else { 0 });
        self.change(was, awake)?;
        self.meter.count(Event::Woke);
        if whom == Whom::Contender {
            self.plan(|plan| plan.wakes(was.has(AWAKE)));
        }
        // A plain store. The model of the kernel compares by a read-modify-write, which this must
        // not overwrite.
        membarrier::store(&self.bell, self.bell.load(Relaxed).wrapping_add(1), Relaxed);
        Ok(awake)
    }

    /// Whom the release of `was` wakes.
    fn whom(&self, was: State, departs: bool) -> Option<Whom> {
        let awake = was.has(AWAKE);
        if was.has(PROMOTED) {
            (!awake).then_some(Whom::Promoted)
        } else if was.parked() == 0 {
            None
        } else if (departs && !awake) || self.wants_wake(awake) {
            Some(Whom::Contender)
        } else {
            (!awake && !was.has(SENTINEL)).then_some(Whom::Heir)
        }
    }

    fn wants_wake(&self, again: bool) -> bool {
        match I::Advice::wants_wake(again) {
            Some(wants) => wants,
            None => self.plan(|plan| plan.wants_wake(again)),
        }
    }

    /// What a release owes. By key: the lock may be gone.
    fn wake(key: FutexKey<P::Scope>, moved: bool, whom: Option<Whom>) {
        if moved {
            key.wake_bits(1, word::MOVED);
        }
        match whom {
            Some(Whom::Promoted) => _ = key.wake_bits(1, word::PROMOTED),
            Some(_) => _ = key.wake_bits(1, word::PARKED),
            None => {}
        }
    }
}

/// Whom a release wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whom {
    /// The one to whom it hands the lock.
    Promoted,
    /// One of those parked, to contend.
    Contender,
    /// One of those parked, to be the sentinel.
    Heir,
}

impl<P: Policy, I: Interval> raw::Metered for RawCalock<P, I> {
    type Meter = P::Meter;

    fn meter(&self) -> &P::Meter {
        &self.meter
    }
}

impl<P: Policy, I: Interval> Default for RawCalock<P, I> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Policy<Meter: fmt::Debug>, I: Interval> fmt::Debug for RawCalock<P, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawCalock").field("state", &self.state()).field("meter", &self.meter).finish()
    }
}

// SAFETY:
// * One token at a time: invariant 1.
// * A release happens before the next acquisition returns: section "Ordering".
// * The token is nothing and no address is kept, so it may be forgotten and the lock moved or
//   dropped.
unsafe impl<P: Policy, I: Interval> raw::RawMutex for RawCalock<P, I> {
    ulocks_core::raw_init!(Self::new());

    type Scope = P::Scope;
    type Token = ();
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
        if taken {
            self.meter.count(Event::Acquired);
        }
        taken.then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        // Past somebody parked: an exchange that fails costs as much as one that succeeds.
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
        Some(self.bell.key())
    }

    fn mark_for_requeued(&self) -> bool {
        // (M)
        self.state().is_locked() && State(self.word.fetch_or(MOVED, Relaxed)).is_locked()
    }

    fn lock_requeued(&self) {
        self.meter.count(Event::Contended);
        let waiter = Waiter::moved_here();
        without_unwinding(|| self.lock_parked(waiter, None)); // invariant 7
        self.meter.count(Event::Acquired);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::word::Mine;

    /// Of two threads that notify each other, one would wait for the other's nap to end.
    #[test]
    fn a_holder_that_goes_to_wait_wakes_a_waiter_whatever_the_plan_says() {
        let lock = RawCalock::<Private>::new();
        lock.plan(|plan| *plan = Plan::BUSY);
        let parked = State(LOCKED).with_waiter(Mine { parked: true, flags: SENTINEL });
        assert_eq!(lock.whom(parked, false), None, "the plan wants nobody");
        assert_eq!(lock.whom(parked, true), Some(Whom::Contender));
        assert_eq!(lock.whom(parked.with(AWAKE), true), None, "one is awake");
        assert_eq!(lock.whom(parked.with(PROMOTED), true), Some(Whom::Promoted));
        assert_eq!(lock.whom(State(LOCKED), true), None, "nobody is parked");
    }
}
