//! When a release wakes: what the lock knows about who uses it.
//!
//! Everything here belongs to the holder: it is read and written between an acquisition and its
//! release, and only if somebody is parked; but for [`left`](Plan::left), which every release
//! reads. It is advice. Exclusion, and that nobody sleeps for ever, do not depend on it (see
//! `raw.rs`).
//!
//! # Who circulates
//! A thread circulates if it acquires, releases, works outside and comes again, without being
//! parked. How many do, the lock cannot count, for it does not know who will come again. But it can
//! see on which CPUs it was acquired. In rounds of [`ROUND_US`] to [`LONGEST_US`] microseconds it
//! collects the CPUs on which it was released past somebody parked, by one release in four, or
//! while it is hot in 64. If these are all on which those who came may run, every CPU has a thread
//! that circulates: to wake one more would only take a CPU from another. Such a round is *full*,
//! and until a round is not, releases wake nobody to contend.
//!
//! The estimate errs
//! - to too many, and so too few are awake: a thread that moved in a round counts twice; of more
//!   than 64 CPUs, those whose numbers differ by a multiple of 64 count as one, so that some may
//!   idle; a CPU whose thread has just left counts until the next round ends, at most an interval,
//!   for the promoted comes then and finds the lock idle;
//! - to too few, and so too many are awake: two threads on one CPU count as one; a CPU that is busy
//!   with something else, or with a thread that comes less often than once in a round, counts as
//!   free; so does one on which somebody might have run who does not come any more.
//!
//! # One alone
//! If critical sections are so short that the lock's line takes longer to another CPU and back than
//! its owner to come again, the second thread that circulates makes the first one slower, and burns
//! a CPU for it. The lock is then *hot*: one thread circulates, whoever finds the lock taken parks
//! at once, and releases wake nobody to contend. When that is so is not guessed but tried. The
//! releases in a round and its length give the time from one to the next. While it is less than
//! [`SLOW_NS`] and several circulate, which their CPUs show, it is remembered, and one round is
//! hot; it stays so unless they come less often now, in two rounds in a row, in the first one at
//! once. The answer is valid for [`VALID`] rounds, 1/40 s and up to four times that, and then is
//! asked for again, but below [`ALONE_NS`], where it never changes. So a wrong one costs little,
//! and so does asking: a sleep and a wake-up for each CPU.
//!
//! If who circulates alone begins to come less often, that shows in two rounds, of [`TURN`]
//! releases at least, or when others are promoted: the first who is may raise a doubt only. If it
//! does not come at all any more, the sentinel finds that, which for this reason naps for a
//! millisecond at most, but for the nap it lay down for before. A round in which somebody was
//! promoted is not judged, since both were there, but counts. Two threads of which none was ever
//! parked are not counted, and pass a hot lock to and fro until one is. When the last one that was
//! parked has come, what is known stays as it is; the next who parks may sleep for a nap for that.
//!
//! # Who was woken in vain
//! On a lock that is always taken a waiter that is woken comes too late, whatever the CPUs do.
//! After that no release wakes another for a while: for [`REST_US`] microseconds, and twice as long
//! each time in a row, up to [`LONGEST_REST_US`]. So it is if somebody was woken and does not come:
//! it may have to wait for a CPU while another is idle.
//!
//! # One for each free CPU a round
//! If the lock was released after a wake-up by somebody who was not parked, then it is not only
//! used by those who are woken, and what the wake-ups do for the CPUs shows in the next round:
//! until that is over no more are woken than CPUs were free in the last one. Otherwise each release
//! wakes the next: many who come once find a lock that is quick.

use core::time::Duration;
use ulocks_core::cpu;
use ulocks_core::time::Deadline;

/// How long a round lasts at least, in microseconds.
const ROUND_US: u32 = 400;
/// How long a round may last to say that the CPUs are busy, in microseconds.
const LONGEST_US: u32 = 1_600;
/// How long nobody else is woken after somebody was in vain, or was and does not come, in
/// microseconds.
const REST_US: u16 = 50;
/// The same at most, in multiples of that.
const LONGEST_REST: u8 = 32;
/// And in microseconds.
const LONGEST_REST_US: u16 = LONGEST_REST as u16 * REST_US;
/// How many releases past somebody parked are a turn. A hot lock looks at the clock once in each.
pub(crate) const TURN: u32 = 64;
/// At so many nanoseconds from one release to the next nobody asks whether one thread is faster
/// alone. A line goes to another CPU and back in 200 to 400 ns where that was measured, and the
/// answer changed at 100 ns outside, and at 150 both inside and outside.
const SLOW_NS: u32 = 400;
/// At no more than so many it is.
const ALONE_NS: u32 = 64;
/// For how many rounds the answer is valid.
const VALID: u8 = 64;

/// What the holder knows. All-zero at first; any value is sound, as it may be in memory that others
/// can write.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Plan {
    /// The CPUs on which those who came may run.
    usable: Cpus,
    /// The CPUs on which somebody released in this round.
    seen: Cpus,
    /// When this round began, in microseconds.
    began: u32,
    /// When the present rest is over, in microseconds modulo 2^16: one that is long over may last
    /// for another.
    rests_until: u16,
    /// How long it is, in multiples of `REST_US`: zero if it ends as soon as the one who was woken
    /// has come.
    rest: u8,
    /// How many turns ended in this round, as far as a byte can count.
    turns: u8,
    /// `RESTED`, `PASSED`, `PARKED`, `FULL`, `SPENT`, `HOT`, `DOUBTED`.
    flags: u8,
    /// How many may be woken in this round beside the next one.
    spare: u8,
    /// The time from release to release when several circulated, in units of two nanoseconds.
    before: u8,
    /// For how many more rounds it is known whether one thread is faster alone.
    valid: u8,
    /// The word that the last release left if it found more than `LOCKED`, or zero: most likely
    /// nobody has parked since.
    pub(crate) left: u32,
}

/// The present rest is over.
const RESTED: u8 = 1;
/// As many were woken in this round as may be, and then the lock was released by somebody who was
/// not parked.
const PASSED: u8 = 2;
/// The holder was parked.
const PARKED: u8 = 4;
/// The last round was full.
const FULL: u8 = 8;
/// As many were woken in this round as may be.
const SPENT: u8 = 16;
/// The last round was hot.
const HOT: u8 = 32;
/// The next round that is slower ends that.
const DOUBTED: u8 = 64;

/// A set of CPUs: the numbers modulo 64, in words that do not align what they are in to 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cpus([u32; 2]);

impl Cpus {
    const fn of(bits: u64) -> Self {
        Self([bits as u32, (bits >> 32) as u32])
    }

    fn bits(self) -> u64 {
        u64::from(self.0[0]) | u64::from(self.0[1]) << 32
    }

    fn with(self, bits: u64) -> Self {
        Self::of(self.bits() | bits)
    }
}

impl Plan {
    /// Knows nothing.
    pub(crate) const NOTHING: Self = Self {
        usable: Cpus::of(0),
        seen: Cpus::of(0),
        began: 0,
        rests_until: 0,
        rest: 0,
        turns: 0,
        flags: 0,
        spare: 0,
        before: 0,
        valid: 0,
        left: 0,
    };

    /// Every CPU has a thread that circulates.
    #[cfg(test)]
    pub(crate) const BUSY: Self = Self { flags: FULL, ..Self::NOTHING };

    /// The caller is about to release on `cpu`; called now and then.
    #[inline]
    pub(crate) fn saw(&mut self, cpu: u32) {
        self.seen = self.seen.with(1 << (cpu % u64::BITS));
    }

    /// The time for which the plan is made goes on; called more rarely, by a holder, and once a
    /// `turn`.
    pub(crate) fn go_on(&mut self, turn: bool) {
        self.usable = self.usable.with(cpu::usable());
        self.turns = self.turns.saturating_add(turn.into());
        self.look_at_the_clock(now_us());
    }

    fn look_at_the_clock(&mut self, now: u32) {
        if self.rests_until.wrapping_sub(now as u16).wrapping_sub(1) >= LONGEST_REST_US {
            self.flags |= RESTED;
        }
        let lasted = now.wrapping_sub(self.began);
        if lasted >= ROUND_US {
            let free = (self.usable.bits() & !self.seen.bits()).count_ones() as u8;
            let full = lasted <= LONGEST_US && free == 0;
            let hot = self.shall_be_hot(lasted);
            self.flags &= !(FULL | SPENT | PASSED | HOT);
            self.flags |= if full { FULL } else { 0 } | if hot { HOT } else { 0 };
            self.spare = free.saturating_sub(1);
            self.begin_round(now);
        }
    }

    fn begin_round(&mut self, now: u32) {
        (self.seen, self.turns, self.began) = (Cpus::of(0), 0, now);
    }

    /// Whether one thread is to circulate after a round that lasted so many microseconds.
    fn shall_be_hot(&mut self, lasted: u32) -> bool {
        let doubted = self.flags & DOUBTED != 0;
        self.flags &= !DOUBTED;
        if lasted > LONGEST_US {
            self.valid = 0;
            return false;
        }
        self.valid = self.valid.saturating_sub(1);
        let ns = (lasted * 1_000 / (u32::from(self.turns).max(1) * TURN)).min(SLOW_NS);
        let before = u32::from(self.before) * 2;
        let slower = ns > before.max(ALONE_NS) || ns == SLOW_NS;
        if self.is_hot() {
            if slower && doubted {
                self.valid = VALID;
                return false;
            }
            self.flags |= if slower { DOUBTED } else { 0 };
            if ns <= ALONE_NS {
                self.valid = VALID;
            }
            return self.valid > 0;
        }
        let one = self.seen.bits().count_ones() <= 1;
        let mean = if before == 0 { ns } else { (3 * before + ns) / 4 };
        if !one {
            self.before = mean.div_ceil(2) as u8;
        }
        let hot = self.valid == 0 && ns < SLOW_NS && if one { !slower } else { mean < SLOW_NS };
        if hot {
            self.flags |= DOUBTED;
            self.valid = VALID;
        }
        hot
    }

    /// Somebody who was parked has acquired; `woken` by a release, or by a timer.
    pub(crate) fn has_come(&mut self, woken: bool) {
        self.flags |= PARKED;
        if woken {
            self.rest = 0;
        }
        if self.is_hot() {
            let now = now_us();
            if now.wrapping_sub(self.began) < ROUND_US {
                // The round is not judged, and counts all the same.
                self.valid = self.valid.saturating_sub(1);
                self.flags &= if self.valid == 0 { !HOT } else { !0 };
            }
            self.look_at_the_clock(now);
            self.begin_round(now);
        }
    }

    /// The holder is about to release.
    #[inline]
    pub(crate) fn leaves(&mut self) {
        if self.flags & (SPENT | PARKED) == SPENT {
            self.flags |= PASSED;
        }
        self.flags &= !PARKED;
    }

    /// A waiter that was woken has found the lock taken.
    pub(crate) fn woke_in_vain(&mut self) {
        self.rests_longer();
        self.begin_rest();
    }

    fn rests_longer(&mut self) {
        self.rest = self.rest.saturating_mul(2).clamp(1, LONGEST_REST);
    }

    /// The release that is under way wakes somebody to contend; `again`, if the last one has not
    /// come yet.
    pub(crate) fn wakes(&mut self, again: bool) {
        if again {
            self.rests_longer();
        }
        self.begin_rest();
        match self.spare.checked_sub(1) {
            Some(spare) => self.spare = spare,
            None => self.flags = self.flags & !PASSED | SPENT,
        }
    }

    fn begin_rest(&mut self) {
        self.rests_until = (now_us() as u16).wrapping_add(u16::from(self.rest.max(1)) * REST_US);
        self.flags &= !RESTED;
    }

    /// A waiter found the lock idle at the end of an interval: what was known is out of date.
    pub(crate) fn was_idle(&mut self) {
        *self = Self { usable: self.usable, ..Self::NOTHING };
    }

    /// Whether the release that is under way should wake somebody to contend; `again`, if one that
    /// was woken has not come yet.
    pub(crate) fn wants_wake(&self, again: bool) -> bool {
        let rested = self.flags & RESTED != 0;
        let due = if again { rested } else { (rested || self.rest == 0) && self.flags & PASSED == 0 };
        due && self.flags & (FULL | HOT) == 0
    }

    /// Whether one thread is to circulate, and all others to park.
    #[inline]
    pub(crate) fn is_hot(&self) -> bool {
        self.flags & HOT != 0
    }
}

/// The monotonic clock in microseconds, modulo 2^32.
fn now_us() -> u32 {
    Deadline::after(Duration::ZERO).since_zero().as_micros() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_a_round(seen: u64, lasted: u32) -> Plan {
        let mut plan =
            Plan { usable: Cpus::of(0b11), seen: Cpus::of(seen), began: u32::MAX - 9, ..Plan::NOTHING };
        plan.look_at_the_clock(lasted - 10);
        plan
    }

    #[test]
    fn nobody_is_woken_after_a_full_round() {
        assert!(!after_a_round(0b11, ROUND_US).wants_wake(false));
        assert!(after_a_round(0b01, ROUND_US).wants_wake(false), "a CPU is free");
        assert!(
            after_a_round(0b11, LONGEST_US + 1).wants_wake(false),
            "they come too rarely to use a CPU each"
        );
        let mut plan = after_a_round(0b11, ROUND_US);
        plan.was_idle();
        assert!(plan.wants_wake(false) && plan.usable == Cpus::of(0b11));
    }

    #[test]
    fn a_round_goes_on_until_its_time_is_over() {
        let plan = after_a_round(0b11, ROUND_US - 1);
        assert_eq!((plan.flags & FULL, plan.seen), (0, Cpus::of(0b11)));
        assert_eq!(after_a_round(0b11, ROUND_US).seen, Cpus::of(0));
    }

    #[test]
    fn wake_ups_in_vain_become_rare() {
        let mut plan = Plan { usable: Cpus::of(1), ..Plan::NOTHING };
        assert!(plan.wants_wake(false));
        let mut rests = Vec::new();
        for _ in 0..7 {
            plan.woke_in_vain();
            plan.look_at_the_clock(plan.rests_until.wrapping_sub(1).into());
            assert!(!plan.wants_wake(false));
            plan.look_at_the_clock(plan.rests_until.into());
            assert!(plan.wants_wake(false));
            rests.push(plan.rest);
        }
        assert_eq!(rests, [1, 2, 4, 8, 16, 32, 32]);
        plan.has_come(true);
        plan.woke_in_vain();
        assert_eq!(plan.rest, 1);
    }

    #[test]
    fn who_does_not_come_is_replaced() {
        let mut plan = Plan { usable: Cpus::of(1), ..Plan::NOTHING };
        plan.wakes(false);
        assert!(!plan.wants_wake(true) && plan.wants_wake(false));
        plan.look_at_the_clock(plan.rests_until.into());
        assert!(plan.wants_wake(true));
        plan.wakes(true);
        assert!(!plan.wants_wake(true));
    }

    #[test]
    fn one_is_woken_in_a_round_if_others_use_the_lock() {
        let mut plan = Plan { usable: Cpus::of(1), ..Plan::NOTHING };
        plan.wakes(false);
        plan.has_come(true);
        plan.leaves();
        assert!(plan.wants_wake(false), "nobody else uses it");
        plan.leaves();
        assert!(!plan.wants_wake(false));
        plan.look_at_the_clock(plan.began.wrapping_add(ROUND_US));
        assert!(plan.wants_wake(false));
    }

    /// Ends a round in which the lock was released on `seen` every so many nanoseconds.
    fn round(plan: &mut Plan, seen: u64, ns: u32) -> bool {
        plan.seen = Cpus::of(seen);
        plan.turns = (ROUND_US * 1_000 / (ns * TURN)).min(255) as u8;
        plan.look_at_the_clock(plan.began.wrapping_add(ROUND_US));
        plan.is_hot()
    }

    fn contended() -> Plan {
        Plan { usable: Cpus::of(0b11), ..Plan::NOTHING }
    }

    #[test]
    fn one_circulates_if_it_is_faster_alone() {
        let mut plan = contended();
        assert!(round(&mut plan, 0b11, 120) && !plan.wants_wake(false), "a trial");
        for _ in 1..VALID {
            assert!(round(&mut plan, 0b01, 90));
        }
        assert!(!round(&mut plan, 0b01, 90), "the answer is not valid any more");
        assert!(plan.wants_wake(false) && round(&mut plan, 0b11, 120), "and is asked for again");
    }

    #[test]
    fn several_circulate_if_one_is_slower_alone() {
        let mut plan = contended();
        assert!(round(&mut plan, 0b11, 120));
        assert!(!round(&mut plan, 0b01, 160) && plan.wants_wake(false));
        for _ in 1..VALID {
            assert!(!round(&mut plan, 0b11, 120));
        }
        assert!(round(&mut plan, 0b11, 120), "the next trial");
        (0..1_000).for_each(|_| {
            assert!(!round(&mut plan, 0b11, 5_000), "it was fast once, and nobody asks any more")
        });
        assert!(!round(&mut contended(), 0b11, 500), "nobody asks");
        assert!(!round(&mut contended(), 0b01, 1_000), "nor if one is there, and it is slow");
    }

    #[test]
    fn an_empty_lock_stays_hot() {
        let mut plan = contended();
        assert!(round(&mut plan, 0b11, 20));
        for _ in 0..1_000 {
            assert!(round(&mut plan, 0b01, 30));
        }
        assert!(round(&mut plan, 0b01, 500), "it may have been disturbed");
        assert!(round(&mut plan, 0b01, 30));
        assert!(round(&mut plan, 0b01, 500) && !round(&mut plan, 0b01, 500), "it has changed");
    }

    #[test]
    fn who_was_promoted_sees_that_a_hot_lock_is_not_any_more() {
        let mut plan = contended();
        assert!(round(&mut plan, 0b11, 20));
        plan.began = now_us().wrapping_sub(LONGEST_US + 1);
        plan.has_come(false);
        assert!(!plan.is_hot());
    }

    #[test]
    fn promotions_do_not_keep_a_lock_hot() {
        let mut plan = contended();
        assert!(round(&mut plan, 0b11, 120));
        let mut promotions = 0;
        while plan.is_hot() {
            plan.began = now_us();
            plan.has_come(false);
            promotions += 1;
        }
        assert!(promotions <= u32::from(VALID), "{promotions}");
    }

    #[test]
    fn any_bytes_are_a_plan() {
        let mut plan = Plan { rest: u8::MAX, rests_until: u16::MAX, ..Plan::NOTHING };
        plan.woke_in_vain();
        assert_eq!(plan.rest, LONGEST_REST);
    }
}
