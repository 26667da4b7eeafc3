//! The part of the protocol ([`raw`](super::raw)) that parked waiters follow: they sleep, are
//! woken, stand by, are promoted, or give up.

use crate::interval::Interval;
use crate::plan::Plan;
use crate::raw::RawCalock;
use crate::word::flags::*;
use crate::word::{Mine, State, sleepers};
use core::time::Duration;
use ulocks_core::futex::Waited;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::policy::InOneProcess;
use ulocks_core::spin::{self, Look, Spin as _};
use ulocks_core::sync::Ordering::{Acquire, Relaxed};
use ulocks_core::time::Deadline;

/// The first sleep of the standby of a lock that was idle, in microseconds: several wake-ups long,
/// so that it is no poll. Two virtual CPUs of a Xeon; other values were not measured.
const FIRST_SLEEP_US: u32 = 200;
/// The longest sleep of the standby in solo mode, in microseconds: an idle lock is found within it.
/// Other values were not measured.
const SOLO_SLEEP_US: u32 = 1_000;

/// A waiter that is, was or will be parked.
pub(crate) struct Waiter {
    /// Its count and flags in the word.
    pub(crate) mine: Mine,
    /// The sequence number that it read last.
    seq: u32,
    /// Whether it has been woken since, or may have been.
    woken: bool,
    /// Whether it has slept. A mismatch of the sequence is no sleep.
    slept: bool,
    /// Whether it was requeued here, perhaps with others, and has not set `REQUEUED` for them yet.
    owes_requeued: bool,
    /// The value of `promotions` after which it is overdue; set when it first parks.
    overdue: Option<u32>,
    /// When it tries again to be promoted, after a refusal.
    again: Option<Deadline>,
    /// As the standby: when it is promoted.
    pub(crate) promote_at: Deadline,
    /// As the standby: `releases` when it fell asleep.
    releases: u32,
}

impl Waiter {
    /// A waiter that a condition variable has requeued here, perhaps with others.
    pub(crate) fn requeued() -> Self {
        Self { owes_requeued: true, ..Self::new() }
    }

    pub(crate) fn new() -> Self {
        Self {
            mine: Mine::default(),
            seq: 0,
            woken: false,
            slept: false,
            owes_requeued: false,
            overdue: None,
            again: None,
            promote_at: Deadline::NEVER,
            releases: 0,
        }
    }
}

/// How a sleep ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// By a wake-up, or because the sequence had advanced.
    Woken,
    /// By the standby's timer, or because it is time to be promoted.
    Timer,
    /// The waiter's own deadline has passed.
    Expired,
}

impl<P: InOneProcess, I: Interval> RawCalock<P, I> {
    pub(crate) const INTERVAL: Duration = Duration::from_nanos(I::NS);

    /// Parks until the waiter acquires. False if `deadline` passed first.
    pub(crate) fn lock_parked(&self, mut waiter: Waiter, deadline: Option<Deadline>) -> bool {
        loop {
            let Some(parked) = self.park(&mut waiter) else { return true };
            let promotions = || self.promotions.load(Relaxed);
            let overdue = *waiter.overdue.get_or_insert_with(|| promotions().wrapping_add(parked.parked()));
            let ended = self.sleep(&mut waiter, deadline);
            waiter.woken = ended == Ended::Woken;
            let is_overdue = || promotions().wrapping_sub(overdue).wrapping_sub(1) < 1 << 31;
            match ended {
                Ended::Timer | Ended::Woken if waiter.mine.is_promoted() => {}
                Ended::Woken if !is_overdue() => {}
                Ended::Timer | Ended::Woken if self.promote(&mut waiter) => return true,
                Ended::Timer | Ended::Woken => {}
                Ended::Expired => return self.give_up(&waiter),
            }
            let ns = if waiter.mine.is_promoted() { spin::WAITED_FOR_NS } else { P::Spin::WOKEN_NS };
            let spins = (waiter.woken || waiter.mine.is_promoted()) && P::Spin::WOKEN_NS > 0;
            if spins && spin::closely_for::<P>(ns, || self.look_parked(&waiter)) {
                return true;
            }
        }
    }

    /// Reads the sequence, and then (park). Returns the word after (park), or `None` after (take
    /// parked).
    fn park(&self, waiter: &mut Waiter) -> Option<State> {
        let advanced = self.seq.load(Relaxed);
        waiter.woken |= waiter.mine.parked && advanced != waiter.seq;
        waiter.seq = advanced;
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
            if !was.has(STANDBY) && Self::may_stand_by(waiter, was) {
                mine.flags |= STANDBY;
            }
            let mut parked = was.without_waiter(waiter.mine).with_waiter(mine);
            if waiter.woken || mine.is_promoted() {
                parked = parked.without(AWAKE | TO_STAND_BY);
            }
            if waiter.woken && waiter.slept && was.has(AWAKE) && !was.has(TO_STAND_BY) && !mine.is_promoted()
            {
                parked = parked.with(WASTED);
            }
            if waiter.owes_requeued {
                parked = parked.with(REQUEUED);
            }
            match self.change(was, parked) {
                Ok(()) => {
                    if mine.is_standby() && !waiter.mine.is_standby() {
                        waiter.promote_at = Deadline::after(Self::INTERVAL);
                    }
                    waiter.mine = mine;
                    self.count_requeued_wake(was, waiter);
                    waiter.owes_requeued = false;
                    return Some(parked);
                }
                Err(now) => was = now,
            }
        }
    }

    /// Whether a waiter takes a lock in `was`. A waiter that was woken to stand by does not.
    fn shall_take(&self, waiter: &Waiter, was: State) -> bool {
        let stands_by = waiter.woken && waiter.slept && was.has(TO_STAND_BY) && !waiter.mine.is_promoted();
        waiter.mine.may_take(was) && !stands_by
    }

    /// Whether a waiter may be the standby of a lock that has none. A waiter that has not slept yet
    /// may not, while others are parked: a release wakes the oldest of these to stand by.
    fn may_stand_by(waiter: &Waiter, was: State) -> bool {
        waiter.slept || was.parked() == 0
    }

    /// Sleeps, unless the sequence has advanced since it was read.
    fn sleep(&self, waiter: &mut Waiter, deadline: Option<Deadline>) -> Ended {
        loop {
            let is_timed = waiter.mine.is_standby() && !waiter.mine.is_promoted();
            let ended = self.sleep_once(waiter, is_timed, deadline);
            if ended != Ended::Timer || !is_timed || self.standby_acts(waiter) {
                return ended;
            }
        }
    }

    fn sleep_once(&self, waiter: &mut Waiter, is_timed: bool, deadline: Option<Deadline>) -> Ended {
        let timer = match waiter.again {
            _ if is_timed => self.standby_sleep(waiter),
            Some(again) if !waiter.mine.is_promoted() => again.remaining(),
            _ => Duration::MAX,
        };
        let after = (timer < Duration::MAX).then(|| Deadline::after(timer));
        let (until, ended) = match Deadline::earlier(deadline, after) {
            (Some(until), false) => (Some(until), Ended::Expired),
            (until, _) => (until, Ended::Timer),
        };
        let bits = if waiter.mine.is_promoted() { sleepers::PROMOTED } else { sleepers::PARKED };
        self.meter.count(Event::Slept);
        let waited = self.seq.wait_bits(waiter.seq, bits, until);
        waiter.slept |= waited != Waited::Mismatch;
        match waited {
            Waited::TimedOut => ended,
            waited if waited.interrupts(deadline) => Ended::Expired,
            _ => Ended::Woken,
        }
    }

    /// How long the standby sleeps now.
    fn standby_sleep(&self, waiter: &mut Waiter) -> Duration {
        waiter.releases = self.releases.load(Relaxed);
        let longest = if self.state().has(SOLO) { SOLO_SLEEP_US } else { u32::MAX };
        let sleep_us =
            Duration::from_micros(self.sleep_us.load(Relaxed).clamp(FIRST_SLEEP_US, longest).into());
        sleep_us.min(waiter.promote_at.remaining())
    }

    /// Whether the standby stops sleeping: its interval is over, or the lock is free and was not
    /// used meanwhile. In the second case its next sleeps are short, otherwise longer.
    fn standby_acts(&self, waiter: &Waiter) -> bool {
        let idle = self.releases.load(Relaxed) == waiter.releases && !self.state().is_locked();
        let longest = u32::try_from(Self::INTERVAL.as_micros()).unwrap_or(u32::MAX);
        let sleep_us =
            if idle { 0 } else { self.sleep_us.load(Relaxed).max(FIRST_SLEEP_US).saturating_mul(2) };
        self.sleep_us.store(sleep_us.min(longest), Relaxed);
        idle || waiter.promote_at.remaining().is_zero()
    }

    /// A poll by a parked waiter that is awake; it takes the lock if it may.
    fn look_parked(&self, waiter: &Waiter) -> Look {
        let was = self.state();
        if self.shall_take(waiter, was) {
            if self.take_parked(was, waiter).is_ok() { Look::Acquired } else { Look::Taken }
        } else if was.has(PROMOTED | TO_STAND_BY | SOLO) && !waiter.mine.is_promoted() {
            Look::Hopeless
        } else {
            Look::Taken
        }
    }

    /// (take parked), by a parked waiter, or by one that slept here for a condition variable.
    fn take_parked(&self, was: State, waiter: &Waiter) -> Result<(), State> {
        let mut held = was.without_waiter(waiter.mine).without(GRANTED).with(LOCKED);
        if waiter.mine.parked {
            held = held.without(AWAKE | TO_STAND_BY);
        }
        if waiter.owes_requeued {
            held = held.with(REQUEUED);
        }
        self.word.compare_exchange(was.0, held.0, Acquire, Relaxed).map_err(State)?;
        if waiter.mine.is_promoted() {
            self.meter.count(Event::Reserved);
        } else {
            self.meter.count(if waiter.mine.parked { Event::Woken } else { Event::Spun });
        }
        self.count_requeued_wake(was, waiter);
        if waiter.mine.parked {
            self.plan(|plan| plan.has_come(waiter.woken && !waiter.mine.is_promoted()));
        }
        self.count_promotion(waiter);
        Ok(())
    }

    /// Counts a standby or promoted waiter that leaves: by this count others know they are overdue.
    fn count_promotion(&self, waiter: &Waiter) {
        if waiter.mine.flags != 0 {
            self.promotions.fetch_add(1, Relaxed);
        }
    }

    /// Counts the wake-up that a release owes the requeued waiters, if this waiter has set
    /// `REQUEUED`. The release cannot count it: the lock may be gone.
    fn count_requeued_wake(&self, was: State, waiter: &Waiter) {
        if waiter.owes_requeued && !was.has(REQUEUED) {
            self.meter.count(Event::Woke);
        }
    }

    /// (promote), unless another waiter is promoted; or (take parked), if the lock is free. True
    /// after (take parked).
    #[cold]
    fn promote(&self, waiter: &mut Waiter) -> bool {
        let is_timed = waiter.mine.is_standby() && !waiter.woken && !waiter.promote_at.remaining().is_zero();
        let mut was = self.state();
        loop {
            let changed = if waiter.mine.may_take(was) {
                self.take_parked(was, waiter)
            } else if is_timed {
                return false;
            } else if was.has(PROMOTED) {
                waiter.promote_at = Deadline::after(Self::INTERVAL);
                waiter.again = Some(waiter.promote_at);
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
                    if is_timed {
                        self.plan(Plan::was_idle);
                    }
                    return true;
                }
                Err(now) => was = now,
            }
        }
    }

    /// (give up), or (take parked) if the waiter may take the lock after all. True after (take
    /// parked).
    #[cold]
    fn give_up(&self, waiter: &Waiter) -> bool {
        let mut was = self.state();
        loop {
            let may_take = waiter.mine.may_take(was);
            let changed = if may_take {
                self.take_parked(was, waiter)
            } else {
                self.change(was, was.without_waiter(waiter.mine).without(AWAKE | TO_STAND_BY))
            };
            match changed {
                Ok(()) if may_take => return true,
                Ok(()) => {
                    self.count_promotion(waiter);
                    return false;
                }
                Err(now) => was = now,
            }
        }
    }
}
