//! Waiters that are killed, between processes: how the others find out, and what they do then.
//!
//! A killed waiter leaves its count in the word, and perhaps its flags. At any time at most one
//! waiter must act for the lock to go on. That waiter is *due*:
//!
//! | due | in the word | if it lives |
//! |---|---|---|
//! | the promoted waiter | `GRANTED` | it takes the lock at once, and `promotions` changes |
//! | the standby | `STANDBY`, not `PROMOTED` | it is promoted within an interval or leaves, and `promotions` changes |
//! | none | neither | the holder may hold for long; without a standby the next waiter that parks becomes it |
//!
//! A waiter that parks notes in the word `due` which waiter is due, and since when, unless that is
//! noted already. If the same waiter has been due for a *watch*, it is taken for dead. A watch is
//! [`WATCH`](super::parked::WATCH), or two intervals if that is longer. A waiter that parks later,
//! or whose sleep ends, finds it out.
//!
//! # Who watches
//! The sleep of a waiter ends when it has a turn to watch. While few waiters are parked, each has a
//! turn after each watch, or when the waiter that is due must be dead. The standby and the promoted
//! waiter always do. Of many waiters, each in so many has a turn in the same watch. If all of them
//! are dead, the next few look a watch later. The turn follows from the id of the thread, which is
//! hashed: those of threads that began together are spread, and so are those of every eighth. A
//! lock of which every waiter watched would wake each of a thousand sleepers once a second. If a
//! watch is longer than a minute, every waiter watches.
//!
//! The hash is no promise: threads of several PID namespaces may have one id, and the living of a
//! crowd one turn. Nor is the number of turns that a waiter counted with: most of the crowd may
//! have left since. So no waiter sleeps for more than [`TURNS`] watches, whatever its turn. Of ten
//! thousand sleepers 300 wake in a watch then.
//!
//! # What is done
//! (depose) is then made by one of the waiters that find out: a CAS that adds one to `promotions`,
//! for the dead, chooses it. If the lock was granted to the dead, the chosen waiter frees the lock.
//! It clears `LOCKED`, `GRANTED`, `PROMOTED`, `AWAKE` and `TO_STAND_BY`. Otherwise it becomes the
//! standby, and the flag that is set is its own. If it dies too, another waiter is due, since
//! `promotions` has changed.
//!
//! Releases prove nothing about the waiter that is due, nor does the sequence, which changes for
//! other waiters too. So a dead standby is found on a lock that is never free, too. The other
//! traces of the dead need no watch:
//! - `AWAKE` and `TO_STAND_BY` keep a release from waking a waiter as standby. The next waiter
//!   whose sleep ends becomes the standby all the same.
//! - A dead waiter that is `PROMOTED` is granted the lock, and is then due.
//!
//! A waiter that has had a turn to watch sleeps behind all others again, like a waiter whose
//! wake-up was wasted. So it also checks whether it is overdue, and then promotes itself.
//!
//! # How long it takes
//! Call a watch `s`. A waiter notes which waiter is due when it parks or when its sleep ends, so
//! after `s` at the latest, and takes it for dead after another `s`. So promotions go on `2s` after
//! a death. They go on after `4s` if the dead waiter had both `PROMOTED` and `STANDBY`, which are
//! found one after the other; the lock may be idle for the first `2s`. The dead count among the
//! waiters of "How long a waiter waits".
//!
//! Of many waiters each sleeps for `32s` at most. So one that lives looks within `32s` of the
//! death, and notes which waiter is due. The same one looks again a watch later or more, and within
//! another `32s`. Then it takes that waiter for dead: `64s` in place of `2s`, and `128s` in place
//! of `4s`. This holds for one living waiter, of whatever turn, so for each crowd. If some live of
//! each turn, two look at most `2s` apart. Then a waiter is noted after `2s` and taken for dead
//! after another `3s`: `5s` and `10s`.
//!
//! If the waiter that was due had only been stopped, it has lost its promotion, or there are two
//! standbys until two leave before the next release. A promoted waiter that lost its promotion may
//! still take another's, which then sleeps on until a release or the end of its sleep.
//!
//! The time is that of the monotonic clock. Between processes in time namespaces with different
//! offsets, living waiters may be taken for dead, which costs their positions, and dead ones for
//! living. With an interval of more than half an hour the dead are never found: the noted time
//! wraps around.

use crate::interval::Interval;
use crate::parked::{WATCH, Waiter};
use crate::raw::RawCalock;
use crate::word::{Mine, State};
use core::time::Duration;
use ulocks_core::Policy;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::tid;
use ulocks_core::time::Deadline;

/// Of twice as many waiters or more, not each watches.
const WATCHERS: u32 = 4;

/// For how many watches a waiter sleeps at most. A power of two.
const TURNS: u32 = 32;

/// How many watches the waiter of the thread `id`, one of so many that are parked, sleeps for in
/// the watch of number `now`: from one to [`TURNS`].
const fn until_its_turn(id: u32, parked: u32, now: u32) -> u32 {
    // A power of two: the turns of a waiter are among those that it had when fewer were parked.
    let few = (parked / WATCHERS).next_power_of_two();
    let turns = if few < TURNS { few } else { TURNS };
    // Multiples of the golden ratio: the upper bits of equidistant ids are spread evenly.
    let turn = id.wrapping_mul(0x9e37_79b9).reverse_bits();
    match turn.wrapping_sub(now) % turns {
        0 => turns,
        later => later,
    }
}

/// Which waiter is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DueWaiter {
    /// None: the lock is held, perhaps for long, or the next waiter that parks becomes the standby.
    None,
    /// The standby. If it lives, it is promoted after an interval, or leaves.
    Standby,
    /// The promoted waiter, to which the lock is granted. If it lives, it takes the lock at once.
    Promoted,
}

/// Which waiter is due, and its number.
///
/// It is noted in the word `due` of the lock:
///
/// | bits | meaning |
/// |---|---|
/// | 0 and 1 | which waiter |
/// | 2 to 9 | `promotions`, modulo 256: the next waiter that is due has another number |
/// | 10 to 31 | when this was noted, in milliseconds of the monotonic clock, modulo 2^22 |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) waiter: DueWaiter,
    promotions: u32,
}

const PROMOTIONS: u32 = 0xff;
const PROMOTIONS_SHIFT: u32 = 2;
const TIME_SHIFT: u32 = 10;
/// A noted time may lie in the future, because the waiter that noted it read the clock later. By at
/// most this many milliseconds.
const AHEAD: u32 = 10_000;
const TIMES: u32 = 1 << (u32::BITS - TIME_SHIFT);

impl Due {
    /// The waiter that is due in `was`.
    pub(crate) fn of(was: State, promotions: u32) -> Self {
        let waiter = if was.has(State::GRANTED) {
            DueWaiter::Promoted
        } else if was.has(State::STANDBY) && !was.has(State::PROMOTED) {
            DueWaiter::Standby
        } else {
            DueWaiter::None
        };
        Self { waiter, promotions }
    }

    /// Whether another waiter is due than the one that has `mine` in the word.
    pub(crate) fn is_other_than(self, mine: Mine) -> bool {
        match self.waiter {
            DueWaiter::None => false,
            DueWaiter::Standby => !mine.is_standby(),
            DueWaiter::Promoted => !mine.is_promoted(),
        }
    }

    /// The present time, in the form in which it is noted.
    pub(crate) fn now() -> u32 {
        Deadline::after(Duration::ZERO).since_zero().as_millis() as u32 % TIMES
    }

    const fn bits(self) -> u32 {
        (self.promotions & PROMOTIONS) << PROMOTIONS_SHIFT | self.waiter as u32
    }

    /// The word to note, if this waiter is seen to be due at `now` first.
    pub(crate) const fn noted(self, now: u32) -> u32 {
        now << TIME_SHIFT | self.bits()
    }

    /// Whether `noted` names this waiter.
    pub(crate) const fn is(self, noted: u32) -> bool {
        noted % (1 << TIME_SHIFT) == self.bits()
    }

    /// How long ago `noted` was written; zero if that lies in the future.
    pub(crate) fn lasted(noted: u32, now: u32) -> Duration {
        let lasted = now.wrapping_sub(noted >> TIME_SHIFT) % TIMES;
        Duration::from_millis(if lasted < TIMES - AHEAD { lasted.into() } else { 0 })
    }
}

impl<P: Policy, I: Interval> RawCalock<P, I> {
    /// How long the same waiter is due if it is dead; a living one is due for less.
    pub(crate) const DEAD_AFTER: Duration =
        if I::NS * 2 > WATCH.as_nanos() as u64 { Duration::from_nanos(I::NS * 2) } else { WATCH };

    /// The flags of a lock that was granted to a dead waiter.
    const OF_THE_DEAD: u32 =
        State::LOCKED | State::GRANTED | State::PROMOTED | State::AWAKE | State::TO_STAND_BY;

    /// How long a waiter that leaves `was` in the word sleeps: until the waiter that is due must be
    /// dead, or of many waiters until it has a turn to watch. Notes a waiter that is newly due.
    pub(crate) fn watch(&self, mine: Mine, was: State) -> Duration {
        let due = Due::of(was, self.promotions.load(Relaxed));
        let (noted, now) = (self.due.load(Relaxed), Due::now());
        let lasts = if !due.is(noted) {
            // If this CAS fails, another waiter has made a note at this moment.
            _ = self.due.compare_exchange(noted, due.noted(now), Relaxed, Relaxed);
            Self::DEAD_AFTER
        } else if due.is_other_than(mine) {
            Self::DEAD_AFTER.saturating_sub(Due::lasted(noted, now))
        } else {
            Self::DEAD_AFTER
        };
        // The times that are noted go round in `TURNS` watches that are longer than two minutes.
        let is_seldom = Self::DEAD_AFTER > Duration::from_secs(60);
        let watches_always = mine.flags != 0 || was.parked() < 2 * WATCHERS || is_seldom;
        if watches_always || lasts.is_zero() {
            return lasts;
        }
        Self::DEAD_AFTER.saturating_mul(until_its_turn(tid::current(), was.parked(), Self::watches()))
    }

    /// How many watches have passed since the zero of the clock.
    fn watches() -> u32 {
        let now = Deadline::after(Duration::ZERO).since_zero();
        (now.as_nanos() / Self::DEAD_AFTER.as_nanos()) as u32
    }

    /// (depose), if the waiter that was due must be dead; true if so. The CAS on `promotions`
    /// chooses one of the waiters that find this out.
    #[cold]
    pub(crate) fn act_for_the_dead(&self, waiter: &mut Waiter) -> bool {
        let (was, promotions) = (self.state(), self.promotions.load(Relaxed));
        let due = Due::of(was, promotions);
        let noted = self.due.load(Relaxed);
        let is_over = due.is(noted) && Due::lasted(noted, Due::now()) >= Self::DEAD_AFTER;
        if !is_over || !due.is_other_than(waiter.mine) {
            return false;
        }
        let left = promotions.wrapping_add(1);
        if self.promotions.compare_exchange(promotions, left, Relaxed, Relaxed).is_err() {
            return false;
        }
        if due.waiter == DueWaiter::Standby {
            waiter.mine.flags |= State::STANDBY;
            waiter.promote_at = Deadline::after(Self::INTERVAL);
        } else {
            self.take_back(was);
        }
        true
    }

    /// Frees a lock that was granted to a dead waiter.
    fn take_back(&self, mut was: State) {
        while was.has(State::GRANTED) {
            match self.change(was, was.without(Self::OF_THE_DEAD)) {
                Ok(()) => return,
                Err(now) => was = now,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDBY: State = State(State::LOCKED | State::STANDBY);

    #[test]
    fn a_waiter_that_is_due_is_known_by_its_number() {
        let due = Due::of(STANDBY, 300);
        let noted = due.noted(7);
        assert!(due.is(noted) && Due::of(STANDBY.with(State::SOLO), 300).is(noted));
        assert!(!Due::of(STANDBY, 301).is(noted));
        assert!(!Due::of(STANDBY.with(State::PROMOTED), 300).is(noted));
        assert!(!Due::of(STANDBY.with(State::PROMOTED | State::GRANTED), 300).is(noted));
    }

    #[test]
    fn a_waiter_does_not_take_itself_for_dead() {
        let standby = Mine { parked: true, flags: State::STANDBY };
        let promoted = Mine { parked: true, flags: State::PROMOTED };
        let due = Due::of(STANDBY, 0);
        assert!(
            !due.is_other_than(standby) && due.is_other_than(promoted) && due.is_other_than(Mine::default())
        );
        let due = Due::of(STANDBY.with(State::PROMOTED | State::GRANTED), 0);
        assert!(due.is_other_than(standby) && !due.is_other_than(promoted));
        assert!(!Due::of(State(State::LOCKED), 0).is_other_than(Mine::default()));
    }

    /// And in each watch some do of threads that began together.
    #[test]
    fn of_many_waiters_a_few_watch_at_a_time() {
        for parked in (2 * WATCHERS..300).chain([1_000, 4_000, 10_000]) {
            let distant = [1, 2, 3, 4, 7, 8, 16, 64, 1_000].map(|apart| (1, apart));
            let clustered = [(2, 10), (4, 100), (8, 1_000), (100, 1_024)];
            for (together, apart) in distant.into_iter().chain(clustered) {
                let mut watchers = vec![0; (parked / WATCHERS).next_power_of_two().min(32) as usize];
                for nth in 0..parked {
                    let id = 30_000 + nth % together + nth / together * apart;
                    watchers[until_its_turn(id, parked, 7) as usize - 1] += 1;
                }
                let what = format!("{parked}, {together} in {apart}: {watchers:?}");
                assert!(watchers.iter().all(|&some| some <= parked.div_ceil(16).max(12)), "{what}");
                assert!(apart > 4 || watchers.iter().all(|&some| some > 0), "{what}");
            }
        }
    }

    /// Whatever its id is, and however many are parked when it looks: so it does if all are of one
    /// turn, and if the crowd shrinks or grows meanwhile.
    #[test]
    fn each_waiter_watches_soon_and_again() {
        for id in (0..2_000).chain((0..32).map(|bit| 1 << bit)).chain([u32::MAX]) {
            let mut now = u32::MAX - 100;
            for parked in [2 * WATCHERS, 64, 1_000, 100_000, u32::MAX >> 6, 9, 5_000] {
                let turn = until_its_turn(id, parked, now);
                assert!((1..=32).contains(&turn), "thread {id} of {parked} sleeps for {turn} watches");
                now = now.wrapping_add(turn);
                let fewer = until_its_turn(id, parked / 2, now);
                assert!(fewer <= until_its_turn(id, parked, now), "{id}, {parked}: no turn of fewer");
            }
        }
    }

    #[test]
    fn time_goes_round() {
        let due = Due::of(STANDBY, 5);
        let lasted = |noted, now| Due::lasted(due.noted(noted), now).as_millis();
        assert_eq!((lasted(3, 10), lasted(TIMES - 2, 5), lasted(10, 9)), (7, 7, 0));
    }
}
