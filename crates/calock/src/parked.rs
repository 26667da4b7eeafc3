//! The part of the protocol (`raw.rs`) that waiters follow who are parked: they sleep, nap, are
//! woken, promoted, or give up.

use crate::interval::Interval;
use crate::plan::Plan;
use crate::raw::RawCalock;
use crate::turn::{Turn, Whose};
use crate::word::{self, Mine, State};
use core::time::Duration;
use ulocks_core::Policy;
use ulocks_core::futex::{Scope, Waited};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::spin::{self, Look, Spin as _};
use ulocks_core::sync::Ordering::{Acquire, Relaxed};
use ulocks_core::time::Deadline;

const LOCKED: u32 = State::LOCKED;
const AWAKE: u32 = State::AWAKE;
const SENTINEL: u32 = State::SENTINEL;
const PROMOTED: u32 = State::PROMOTED;
const IN_VAIN: u32 = State::IN_VAIN;
const MOVED: u32 = State::MOVED;
const GRANTED: u32 = State::GRANTED;
const HEIR: u32 = State::HEIR;
const HOT: u32 = State::HOT;

/// How long a waiter sleeps at a time in memory where others may be dead.
pub(crate) const WATCH: Duration = Duration::from_secs(1);
/// How long the sentinel of a lock that was idle sleeps first, in microseconds.
const FIRST_NAP_US: u32 = 200;
/// How long the promoted looks at the lock before it sleeps, in nanoseconds.
const PROMOTED_NS: u32 = 40_000;
/// For how long the sentinel of a hot lock naps at most, in microseconds.
const HOT_NAP_US: u32 = 1_000;

/// A waiter that was or will be parked.
pub(crate) struct Waiter {
    /// What it has in the word.
    mine: Mine,
    /// The bell, when it was read last.
    bell: u32,
    /// Whether it was woken since, or may have been.
    woken: bool,
    /// Whether it has slept, and did not only try to.
    slept: bool,
    /// Whether it owes those who were moved here with it that the next release wakes one.
    owes_moved: bool,
    /// After which promotion it is overdue; set when it first parks.
    overdue: Option<u32>,
    /// When it tries again to be promoted, having been refused.
    again: Option<Deadline>,
    /// As the sentinel: when it is to be promoted.
    rises: Deadline,
    /// As the sentinel: `uses` when it fell asleep.
    uses: u32,
    /// Between processes: when its sleep ends at the latest, because another may be dead.
    suspects: Deadline,
}

impl Waiter {
    /// One that a condition variable has moved here, perhaps among others.
    pub(crate) fn moved_here() -> Self {
        Self { owes_moved: true, ..Self::new() }
    }

    pub(crate) fn new() -> Self {
        Self {
            mine: Mine::default(),
            bell: 0,
            woken: false,
            slept: false,
            owes_moved: false,
            overdue: None,
            again: None,
            rises: Deadline::NEVER,
            uses: 0,
            suspects: Deadline::NEVER,
        }
    }
}

/// How a sleep ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// By a wake-up, or because the bell had been rung.
    Woken,
    /// It is time to be promoted, or the lock may be idle.
    Due,
    /// The waiter has slept for as long as one does where others may be dead.
    Silence,
    /// The waiter's own deadline has passed.
    Expired,
}

impl<P: Policy, I: Interval> RawCalock<P, I> {
    const INTERVAL: Duration = Duration::from_nanos(I::NS);
    /// How long it is the turn of the same waiter if that is dead: longer than if it lives.
    const SILENCE: Duration =
        if I::NS * 2 > WATCH.as_nanos() as u64 { Duration::from_nanos(I::NS * 2) } else { WATCH };

    /// A waiter that parks. False if `deadline` passed first.
    pub(crate) fn lock_parked(&self, mut waiter: Waiter, deadline: Option<Deadline>) -> bool {
        loop {
            let Some(parked) = self.park(&mut waiter) else { return true };
            let promotions = || self.promotions.load(Relaxed);
            let overdue = *waiter.overdue.get_or_insert_with(|| promotions().wrapping_add(parked.parked()));
            let ended = self.sleep(&mut waiter, deadline);
            waiter.woken = ended == Ended::Woken;
            let is_overdue = || promotions().wrapping_sub(overdue).wrapping_sub(1) < 1 << 31;
            match ended {
                Ended::Silence if self.act_for_the_dead(&mut waiter) => {}
                Ended::Due | Ended::Woken | Ended::Silence if waiter.mine.is_promoted() => {}
                // Its sleep is over, and it will sleep behind all others again, as if it had been
                // woken in vain.
                Ended::Woken | Ended::Silence if !is_overdue() => {}
                Ended::Due | Ended::Woken | Ended::Silence if self.promote(&mut waiter) => return true,
                Ended::Due | Ended::Woken | Ended::Silence => {}
                Ended::Expired => return self.give_up(&waiter),
            }
            let ns = if waiter.mine.is_promoted() { PROMOTED_NS } else { P::Spin::WOKEN_NS };
            let spins = (waiter.woken || waiter.mine.is_promoted()) && P::Spin::WOKEN_NS > 0;
            if spins && spin::closely_for::<P>(ns, || self.look_parked(&waiter)) {
                return true;
            }
        }
    }

    /// (P), having read the bell; the word then. None if it acquired instead.
    fn park(&self, waiter: &mut Waiter) -> Option<State> {
        let rung = self.bell.load(Relaxed);
        waiter.woken |= waiter.mine.parked && rung != waiter.bell;
        waiter.bell = rung;
        let mut was = self.state();
        loop {
            if self.shall_take(waiter, was) {
                match self.take_parked(was, waiter) {
                    Ok(()) => return None,
                    Err(now) => was = now,
                }
                continue;
            }
            let mut mine = Mine { parked: true, ..waiter.mine };
            if !was.has(SENTINEL) && Self::may_be_sentinel(waiter, was) {
                mine.flags |= SENTINEL;
            }
            let mut parked = was.without_waiter(waiter.mine).with_waiter(mine);
            if waiter.woken || mine.is_promoted() {
                parked = parked.without(AWAKE | HEIR);
            }
            if waiter.woken && waiter.slept && was.has(AWAKE) && !was.has(HEIR) && !mine.is_promoted() {
                parked = parked.with(IN_VAIN);
            }
            if waiter.owes_moved {
                parked = parked.with(MOVED);
            }
            match self.change(was, parked) {
                Ok(()) => {
                    if mine.is_sentinel() && !waiter.mine.is_sentinel() {
                        waiter.rises = Deadline::after(Self::INTERVAL);
                    }
                    waiter.mine = mine;
                    self.owe(was, waiter);
                    waiter.owes_moved = false;
                    if !P::Scope::PRIVATE {
                        waiter.suspects = Deadline::after(self.watch(mine, parked));
                    }
                    return Some(parked);
                }
                Err(now) => was = now,
            }
        }
    }

    /// Whether a waiter takes a lock in `was`: if it may, and was not woken for something else.
    fn shall_take(&self, waiter: &Waiter, was: State) -> bool {
        let is_heir = waiter.woken && waiter.slept && was.has(HEIR) && !waiter.mine.is_promoted();
        waiter.mine.may_take(was) && !is_heir
    }

    /// Whether a waiter may be the sentinel of a lock that has none: not if it has just come and
    /// others are parked, for then the release wakes the oldest of these, who shall be it. Between
    /// processes they may all be dead.
    fn may_be_sentinel(waiter: &Waiter, was: State) -> bool {
        waiter.slept || was.parked() == 0 || !P::Scope::PRIVATE
    }

    /// Sleeps, unless the bell was rung since it was read.
    fn sleep(&self, waiter: &mut Waiter, deadline: Option<Deadline>) -> Ended {
        loop {
            let naps = waiter.mine.is_sentinel() && !waiter.mine.is_promoted();
            let ended = self.sleep_once(waiter, naps, deadline);
            if ended != Ended::Due || !naps || self.wakes_up(waiter) {
                return ended;
            }
            if !P::Scope::PRIVATE && waiter.suspects.remaining().is_zero() {
                return Ended::Silence;
            }
        }
    }

    fn sleep_once(&self, waiter: &mut Waiter, naps: bool, deadline: Option<Deadline>) -> Ended {
        let due = match waiter.again {
            _ if naps => self.lie_down(waiter),
            Some(again) if !waiter.mine.is_promoted() => again.remaining(),
            _ => Duration::MAX,
        };
        let silence = if P::Scope::PRIVATE { Duration::MAX } else { waiter.suspects.remaining() };
        let (after, ended) = if silence <= due { (silence, Ended::Silence) } else { (due, Ended::Due) };
        let after = (after < Duration::MAX).then(|| Deadline::after(after));
        let (until, ended) = match Deadline::earlier(deadline, after) {
            (Some(until), false) => (Some(until), Ended::Expired),
            (until, _) => (until, ended),
        };
        let bits = match waiter.mine.is_promoted() {
            false => word::PARKED,
            true if P::Scope::PRIVATE => word::PROMOTED,
            true => word::PROMOTED_PERHAPS,
        };
        self.meter.count(Event::Slept);
        let waited = self.bell.wait_bits(waiter.bell, bits, until);
        waiter.slept |= waited != Waited::Mismatch;
        if waited == Waited::TimedOut { ended } else { Ended::Woken }
    }

    /// For how long the sentinel sleeps now.
    fn lie_down(&self, waiter: &mut Waiter) -> Duration {
        waiter.uses = self.uses.load(Relaxed);
        let longest = if self.state().has(HOT) { HOT_NAP_US } else { u32::MAX };
        let nap = Duration::from_micros(self.nap.load(Relaxed).clamp(FIRST_NAP_US, longest).into());
        nap.min(waiter.rises.remaining())
    }

    /// Whether the sentinel does not nap again: because its interval is over, or because nobody
    /// used the lock meanwhile, and the next naps are short. Else they become longer.
    fn wakes_up(&self, waiter: &Waiter) -> bool {
        let idle = self.uses.load(Relaxed) == waiter.uses && !self.state().is_locked();
        let longest = u32::try_from(Self::INTERVAL.as_micros()).unwrap_or(u32::MAX);
        let nap = if idle { 0 } else { self.nap.load(Relaxed).max(FIRST_NAP_US).saturating_mul(2) };
        self.nap.store(nap.min(longest), Relaxed);
        idle || waiter.rises.remaining().is_zero()
    }

    /// What a parked waiter sees that is awake; it takes the lock if it may.
    fn look_parked(&self, waiter: &Waiter) -> Look {
        let was = self.state();
        if self.shall_take(waiter, was) {
            if self.take_parked(was, waiter).is_ok() { Look::Acquired } else { Look::Taken }
        } else if was.has(PROMOTED | HEIR | HOT) && !waiter.mine.is_promoted() {
            Look::Hopeless
        } else {
            Look::Taken
        }
    }

    /// (T) by somebody who is parked, or has slept here for a condition variable.
    fn take_parked(&self, was: State, waiter: &Waiter) -> Result<(), State> {
        let mut held = was.without_waiter(waiter.mine).without(GRANTED).with(LOCKED);
        if waiter.mine.parked {
            held = held.without(AWAKE | HEIR);
        }
        if waiter.owes_moved {
            held = held.with(MOVED);
        }
        self.word.compare_exchange(was.0, held.0, Acquire, Relaxed).map_err(State)?;
        if waiter.mine.is_promoted() {
            self.meter.count(Event::Reserved);
        } else {
            self.meter.count(if waiter.mine.parked { Event::Woken } else { Event::Spun });
        }
        self.owe(was, waiter);
        if waiter.mine.parked {
            self.plan(|plan| plan.has_come(waiter.woken && !waiter.mine.is_promoted()));
        }
        self.makes_room(waiter);
        Ok(())
    }

    /// The clock of those who are overdue: a sentinel or somebody promoted has left, and it is
    /// another's turn.
    fn makes_room(&self, waiter: &Waiter) {
        if waiter.mine.flags != 0 {
            self.promotions.fetch_add(1, Relaxed);
        }
    }

    /// Counts the wake-up that a release owes those who were moved here, if this waiter has put it
    /// into the word. The release cannot: the lock may be gone.
    fn owe(&self, was: State, waiter: &Waiter) {
        if waiter.owes_moved && !was.has(MOVED) {
            self.meter.count(Event::Woke);
        }
    }

    /// (R): has the next release hand the lock over, unless that is promised to another. True if
    /// the lock was free, and acquired.
    #[cold]
    fn promote(&self, waiter: &mut Waiter) -> bool {
        let naps = waiter.mine.is_sentinel() && !waiter.woken && !waiter.rises.remaining().is_zero();
        let mut was = self.state();
        loop {
            let changed = if waiter.mine.may_take(was) {
                self.take_parked(was, waiter)
            } else if naps {
                return false;
            } else if was.has(PROMOTED) {
                waiter.rises = Deadline::after(Self::INTERVAL);
                waiter.again = Some(waiter.rises);
                return false;
            } else {
                self.change(was, was.with(PROMOTED | AWAKE))
            };
            match changed {
                Ok(()) if was.is_locked() => {
                    waiter.mine.flags |= PROMOTED;
                    self.meter.count(Event::Promoted);
                    return false;
                }
                Ok(()) => {
                    if naps {
                        self.plan(Plan::was_idle);
                    }
                    return true;
                }
                Err(now) => was = now,
            }
        }
    }

    /// For how long a waiter sleeps that leaves `was`: until the owner of the turn must be dead.
    /// Takes note of a new turn.
    fn watch(&self, mine: Mine, was: State) -> Duration {
        let turn = Turn::of(was, self.promotions.load(Relaxed));
        let (noted, now) = (self.turn.load(Relaxed), Turn::now());
        if !turn.is(noted) {
            // If this fails, another waiter has noted a turn at this moment.
            _ = self.turn.compare_exchange(noted, turn.noted(now), Relaxed, Relaxed);
        } else if turn.concerns(mine) {
            return Self::SILENCE.saturating_sub(Turn::lasted(noted, now));
        }
        Self::SILENCE
    }

    /// (D): if the waiter whose turn it was has not come for so long, it is dead. Takes back a lock
    /// that was handed to it, or becomes the sentinel in its place; true if so. The count of
    /// promotions chooses one of those that find this out.
    #[cold]
    fn act_for_the_dead(&self, waiter: &mut Waiter) -> bool {
        let (was, promotions) = (self.state(), self.promotions.load(Relaxed));
        let turn = Turn::of(was, promotions);
        let noted = self.turn.load(Relaxed);
        let is_over = turn.is(noted) && Turn::lasted(noted, Turn::now()) >= Self::SILENCE;
        if !is_over || !turn.concerns(waiter.mine) {
            return false;
        }
        let left = promotions.wrapping_add(1);
        if self.promotions.compare_exchange(promotions, left, Relaxed, Relaxed).is_err() {
            return false;
        }
        if turn.whose == Whose::Sentinel {
            waiter.mine.flags |= SENTINEL;
            waiter.rises = Deadline::after(Self::INTERVAL);
        } else {
            self.take_back(was);
        }
        true
    }

    /// Frees a lock that is handed to a dead waiter.
    fn take_back(&self, mut was: State) {
        while was.has(GRANTED) {
            match self.change(was, was.without(LOCKED | GRANTED | PROMOTED | AWAKE | HEIR)) {
                Ok(()) => return,
                Err(now) => was = now,
            }
        }
    }

    /// (G): the waiter's deadline has passed. True if it acquires after all.
    #[cold]
    fn give_up(&self, waiter: &Waiter) -> bool {
        let mut was = self.state();
        loop {
            let may_take = waiter.mine.may_take(was);
            let changed = if may_take {
                self.take_parked(was, waiter)
            } else {
                self.change(was, was.without_waiter(waiter.mine).without(AWAKE | HEIR))
            };
            match changed {
                Ok(()) if may_take => return true,
                Ok(()) => {
                    self.makes_room(waiter);
                    return false;
                }
                Err(now) => was = now,
            }
        }
    }
}
