//! What the threads of a run do.
//!
//! A delay counts if it ended in the window, however long before it began; and so does one that was
//! still to end when the window closed, with the length it comes to, or the longest would be
//! missing.

use super::Duty;
use super::timer::Timer;
use crate::run::busy_work::{self, Span};
use crate::run::clock::{self, Calibration};
use crate::run::threads::wake_on_time;
use crate::run::waits::Waits;
use crate::statistics::random::Rng;
use crate::subjects::rwlocks::{Ask, Subject, mask};
use crate::workloads::window::{MEASURE, STOP, WARM_UP};
use anyhow::Result;
use crossbeam_utils::CachePadded;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::thread;
use std::time::Duration;

/// What the lock protects: variables that are all equal whenever no thread writes, as many as the
/// seed's NR_VARS.
///
/// A reader checks that they are, a writer checks and then sets all of them to the low bits of the
/// cycle counter, as in the seed. So every run is a test of the lock as well. They are relaxed
/// atomics: under a lock that works no test can tell them from plain ones, and under one that does
/// not, a torn state is counted rather than undefined.
pub(super) struct Data(CachePadded<[AtomicU32; 100]>);

impl Data {
    pub(super) fn new() -> Self {
        Self(CachePadded::new([const { AtomicU32::new(0) }; 100]))
    }

    /// Whether all are equal.
    #[inline]
    pub(super) fn are_equal(&self) -> bool {
        let first = self.0[0].load(Relaxed);
        self.0.iter().fold(true, |equal, var| equal & (var.load(Relaxed) == first))
    }

    /// Checks, and gives all of them another value; says whether they were equal.
    #[inline]
    fn change(&self) -> bool {
        let equal = self.are_equal();
        let value = clock::now() as u32;
        self.0.iter().for_each(|var| var.store(value, Relaxed));
        equal
    }
}

/// What all threads share.
pub(super) struct Shared {
    pub(super) lock: &'static dyn Subject,
    pub(super) data: Data,
    pub(super) phase: CachePadded<AtomicU32>,
    pub(super) clock: Calibration,
    pub(super) timed_mask: bool,
    pub(super) iterations_per_us: f64,
}

/// What a thread has done, or its handlers.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) role: &'static str,
    /// In the window.
    pub(super) counted: u64,
    /// How often it saw a state that no writer leaves.
    pub(super) torn: u64,
    pub(super) lock: Box<Waits>,
    pub(super) unlock: Box<Waits>,
    /// From first to last, the warm-up included, where the lock says.
    pub(super) masked: Option<Box<mask::Log>>,
}

impl Tally {
    /// The delays of an acquisition, without the clock's own part.
    pub(super) fn note(&self, [lock, unlock]: [u64; 2], overhead: u64) {
        self.lock.record(lock.saturating_sub(overhead));
        self.unlock.record(unlock.saturating_sub(overhead));
    }

    /// All delays by the beginning of their figures' names.
    pub(super) fn delays(&self) -> impl Iterator<Item = (&'static str, &Waits)> {
        let masked = self.masked.iter();
        let masked = masked.flat_map(|log| [("masked", &*log.masked), ("held-off", &*log.held_off)]);
        [("wait", &*self.lock), ("unlock", &*self.unlock)].into_iter().chain(masked)
    }
}

impl Shared {
    /// A thread from first to last: what it has done, and its handlers.
    pub(super) fn serve(&'static self, duty: &Duty, seed: u64) -> Result<Vec<Tally>> {
        let [hold, work] = [("a hold time", duty.hold_ns), ("a time between", duty.work_ns)]
            .map(|(what, ns)| Span::new(what, ns, self.iterations_per_us));
        let (hold, work, sleep) = (hold?.mean(), work?, Duration::from_nanos(duty.sleep_ns));
        if !sleep.is_zero() {
            wake_on_time();
        }
        let (mut tally, mut rng) = (Tally { role: duty.role, ..Tally::default() }, Rng::new(seed));
        if self.timed_mask {
            mask::start(self.clock.per_ns);
        }
        let timer = duty.timer_ns.map(|period_ns| Timer::start(self, period_ns)).transpose()?;
        while self.phase.load(Relaxed) != STOP {
            if let Some(ask) = duty.ask {
                self.turn(ask, duty.attempts, hold, &mut tally);
            }
            // A probe with a fixed rhythm sees what else has that rhythm.
            busy_work::burn(if duty.apart { work.draw(&mut rng) } else { work.mean() });
            if !sleep.is_zero() {
                thread::sleep(sleep);
            }
        }
        let handled = timer.map(Timer::stop);
        tally.masked = mask::take();
        Ok(handled.into_iter().chain(duty.ask.map(|_| tally)).collect())
    }

    /// So many attempts at most, until one succeeds. The calls by pointer are outside of what the
    /// lock's own code times.
    fn turn(&self, ask: Ask, attempts: u32, hold: u64, tally: &mut Tally) {
        let writes = matches!(ask, Ask::Write | Ask::TryWrite);
        let mut section = || {
            let equal = if writes { self.data.change() } else { self.data.are_equal() };
            tally.torn += u64::from(!equal);
            busy_work::burn(hold);
        };
        let (mut tried, mut phase, mut took) = (0, WARM_UP, None);
        while tried < attempts && took.is_none() && phase != STOP {
            took = self.lock.once(ask, &mut section);
            phase = self.phase.load(Acquire);
            tried += 1;
        }
        let Some(took) = took else { return };
        tally.counted += u64::from(phase == MEASURE);
        if phase != WARM_UP {
            tally.note(took, self.clock.overhead());
        }
    }
}
