//! When a release wakes a waiter: advice to the holder.
//!
//! The holder reads and writes the plan between its acquisition and its release, and only if a
//! waiter is parked; but every release reads [`left`](Plan::left). Exclusion does not depend on the
//! plan, nor does it that every waiter is woken in the end: see `raw.rs`.
//!
//! Three rules each answer one question. A release wakes a waiter to contend if none of them
//! objects ([`wants_wake`](Plan::wants_wake)).
//!
//! | file | question | a release wakes no waiter |
//! |---|---|---|
//! | [`cpus`] | Does every CPU have an active thread? | after a round in which all CPUs were seen |
//! | [`solo`] | Is one thread faster alone? | while it is |
//! | [`rest`] | Do woken waiters come too late? | for a while after a wasted wake-up |
//!
//! Each file names what the lock loses without its rule. All count in *rounds*: a round lasts for
//! [`ROUND_US`] or longer, until a release looks at the clock.

mod cpus;
mod rest;
mod solo;

use core::time::Duration;
use cpus::Cpus;
use ulocks_core::time::Deadline;

/// How long a round lasts at least, in microseconds: some hundred operations of a busy lock, and
/// less than a time slice. Two virtual CPUs of a Xeon; other values were not measured.
const ROUND_US: u32 = 400;
/// A round that lasted longer, in microseconds, says nothing of busy CPUs or of speed: the holder
/// has not had its CPU.
const LONGEST_US: u32 = 1_600;
/// How many releases past a parked waiter are a period. In solo mode the lock looks at the clock
/// once in each.
pub(crate) const PERIOD: u32 = 64;

/// What the holder knows. All-zero at first; any value is sound, since all of it is advice.
///
/// The fields belong to one rule each. They stand in one struct, and their flags in one byte, so
/// that the plan has 32 bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Plan {
    /// `cpus`: the CPUs on which the threads that came may run.
    usable: Cpus,
    /// `cpus`: the CPUs on which the lock was released in this round.
    seen: Cpus,
    /// When this round began, in microseconds.
    began: u32,
    /// `rest`: when the present rest is over, in microseconds modulo 2^16. A rest that is long over
    /// may last for another.
    rests_until: u16,
    /// `rest`: its length, in multiples of `REST_US`. Zero: it ends when the woken waiter acquires.
    rest: u8,
    /// `solo`: how many periods ended in this round, as far as a byte can count.
    periods: u8,
    /// `FULL` of `cpus`; `RESTED` of `rest`; `SOLO`, `DOUBTED` of `solo`.
    flags: u8,
    /// `solo`: the time from release to release when several threads were active, in units of two
    /// nanoseconds.
    before: u8,
    /// `solo`: for how many more rounds the answer is valid.
    valid: u8,
    /// The word that the last release left if it found more than `LOCKED`, else zero. Most likely
    /// no waiter has parked since.
    pub(crate) left: u32,
}

const _: () = assert!(size_of::<Plan>() == 32);

const RESTED: u8 = 1;
const FULL: u8 = 2;
const SOLO: u8 = 4;
const DOUBTED: u8 = 8;

impl Plan {
    /// Knows nothing.
    pub(crate) const NOTHING: Self = Self {
        usable: Cpus::NONE,
        seen: Cpus::NONE,
        began: 0,
        rests_until: 0,
        rest: 0,
        periods: 0,
        flags: 0,
        before: 0,
        valid: 0,
        left: 0,
    };

    /// Every CPU has an active thread.
    #[cfg(test)]
    pub(crate) const BUSY: Self = Self { flags: FULL, ..Self::NOTHING };

    /// Looks at the clock; called more rarely than [`saw`](Self::saw). `period`: a period is over.
    pub(crate) fn tick(&mut self, period: bool) {
        self.note_usable();
        self.periods = self.periods.saturating_add(period.into());
        self.end_round(now_us());
    }

    fn end_round(&mut self, now: u32) {
        self.end_rest(now);
        let lasted = now.wrapping_sub(self.began);
        if lasted >= ROUND_US {
            self.judge_solo(lasted);
            self.judge_cpus(lasted);
            self.begin_round(now);
        }
    }

    fn begin_round(&mut self, now: u32) {
        (self.seen, self.periods, self.began) = (Cpus::NONE, 0, now);
    }

    /// A parked waiter has acquired. `woken`: a release woke it, and not its timer.
    pub(crate) fn has_come(&mut self, woken: bool) {
        if woken {
            self.rest = 0;
        }
        if self.is_solo() {
            let now = now_us();
            if now.wrapping_sub(self.began) < ROUND_US {
                self.skip_solo_round();
            }
            self.end_round(now);
            self.begin_round(now);
        }
    }

    /// A waiter that was woken to contend has found the lock taken.
    pub(crate) fn wake_was_wasted(&mut self) {
        self.lengthen_rest();
        self.begin_rest();
    }

    /// The present release wakes a waiter to contend. `again`: the last one has not arrived yet.
    pub(crate) fn wakes(&mut self, again: bool) {
        if again {
            self.lengthen_rest();
        }
        self.begin_rest();
    }

    /// A waiter found the lock idle at the end of an interval: what was known is out of date.
    pub(crate) fn was_idle(&mut self) {
        *self = Self { usable: self.usable, ..Self::NOTHING };
    }

    /// Whether the present release should wake a waiter to contend. `again`: the last one that was
    /// woken has not arrived yet.
    pub(crate) fn wants_wake(&self, again: bool) -> bool {
        let due = if again { self.is_rested() } else { self.may_wake() };
        due && !self.is_full() && !self.is_solo()
    }
}

/// The monotonic clock in microseconds, modulo 2^32.
fn now_us() -> u32 {
    Deadline::after(Duration::ZERO).since_zero().as_micros() as u32
}

#[cfg(test)]
mod tests;
