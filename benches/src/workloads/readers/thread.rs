//! What the threads of a run do.
//!
//! Fence, clock, lock, clock, look at the variables, clock, unlock, clock: so in the seed, so here.
//! A delay counts if it ended in the window, however long before it began; and so does one that was
//! still to end when the window closed, with the length it comes to, or the longest would be
//! missing.

use super::handler::HandlerContext;
use super::shared_data::SharedData;
use super::timers::Timer;
use super::{Duty, Kind, Rank};
use crate::run::busy_work::{self, Span};
use crate::run::clock;
use crate::run::threads::{usage, wake_on_time};
use crate::statistics::delays::Delays;
use crate::statistics::random::Rng;
use crate::subjects::rwlocks::{Bulk, Class, Nested, RwLock, Urgent, mask};
use crate::workloads::window::{MEASURE, STOP, WARM_UP};
use anyhow::Result;
use crossbeam_utils::CachePadded;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::thread;
use std::time::Duration;

/// What all threads share.
pub(super) struct Shared<'a, L> {
    pub(super) lock: &'a L,
    pub(super) data: CachePadded<SharedData>,
    pub(super) phase: CachePadded<AtomicU64>,
    /// Clock at which the window opened.
    pub(super) opened: AtomicU64,
    /// Ticks in a slot of the window.
    pub(super) slot: u64,
    /// Whole slots.
    pub(super) slots: usize,
    pub(super) overhead: u64,
    /// Ticks in a nanosecond.
    pub(super) per_ns: f64,
}

/// What a thread has done.
#[derive(Default)]
pub(super) struct Tally {
    /// Acquisitions from first to last.
    had: u64,
    /// In the window.
    pub(super) counted: u64,
    pub(super) attempts: u64,
    pub(super) failures: u64,
    pub(super) torn: u64,
    pub(super) lock: Delays,
    pub(super) unlock: Delays,
    pub(super) slots: Vec<u64>,
    pub(super) masked: Option<mask::Log>,
    pub(super) preemptions: u64,
}

/// A duty in iterations of work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loads {
    hold: Span,
    work: Span,
    sleep: Duration,
    /// Whether the time between is drawn: a probe with a fixed rhythm sees what else has that
    /// rhythm.
    drawn: bool,
}

impl Loads {
    pub(super) fn new(duty: &Duty, iterations_per_us: f64) -> Result<Self> {
        Ok(Self {
            hold: Span::new("a hold time", duty.hold_ns, iterations_per_us)?,
            work: Span::new("a time between", duty.work_ns, iterations_per_us)?,
            sleep: Duration::from_nanos(duty.sleep_ns),
            drawn: duty.apart,
        })
    }
}

impl<L: RwLock> Shared<'_, L> {
    /// A thread from first to last.
    pub(super) fn carry_out(
        &self,
        duty: &Duty,
        loads: Loads,
        seed: u64,
        context: Option<&HandlerContext<'_, L>>,
    ) -> Result<Tally> {
        if duty.sleep_ns > 0 {
            wake_on_time();
        }
        let mut tally = Tally { slots: vec![0; self.slots], ..Tally::default() };
        let before = preemptions();
        if L::TIMED_MASK {
            mask::start(self.per_ns);
        }
        let timer = context.map(Timer::start).transpose()?;
        let between = Between { loads, rng: Rng::new(seed) };
        match duty.kind {
            Kind::Write => self.write(between, &mut tally),
            Kind::TryWrite(attempts) => self.try_write(between, attempts, &mut tally),
            Kind::Read(Rank::Bulk) => self.read::<Bulk>(between, &mut tally),
            Kind::Read(Rank::Urgent) => self.read::<Urgent>(between, &mut tally),
            Kind::Read(Rank::Nested) => self.read::<Nested>(between, &mut tally),
            Kind::TryRead => self.try_read(between, &mut tally),
            Kind::Idle => self.idle(between),
        }
        drop(timer);
        tally.masked = mask::take();
        tally.preemptions = preemptions() - before;
        Ok(tally)
    }

    #[inline(never)]
    fn write(&self, mut between: Between, tally: &mut Tally) {
        let hold = between.loads.hold.mean();
        while self.once(tally, || Some(self.lock.write()), || self.change(hold)) {
            between.pass();
        }
    }

    #[inline(never)]
    fn try_write(&self, mut between: Between, attempts: u32, tally: &mut Tally) {
        let hold = between.loads.hold.mean();
        loop {
            let had = tally.had;
            for _ in 0..attempts {
                if !self.once(tally, || self.lock.try_write(), || self.change(hold)) {
                    return;
                }
                if tally.had > had {
                    break;
                }
                std::hint::spin_loop();
            }
            if tally.had == had && self.phase.load(Relaxed) == MEASURE {
                tally.failures += 1;
            }
            between.pass();
        }
    }

    #[inline(never)]
    fn read<C: Class>(&self, mut between: Between, tally: &mut Tally) {
        let hold = between.loads.hold.mean();
        while self.once(tally, || Some(self.lock.read::<C>()), || self.look(hold)) {
            between.pass();
        }
    }

    #[inline(never)]
    fn try_read(&self, mut between: Between, tally: &mut Tally) {
        let hold = between.loads.hold.mean();
        while self.once(tally, || self.lock.try_read::<Bulk>(), || self.look(hold)) {
            between.pass();
        }
    }

    fn idle(&self, mut between: Between) {
        while self.phase.load(Relaxed) != STOP {
            between.pass();
        }
    }

    #[inline]
    fn look(&self, hold: u64) -> bool {
        let equal = self.data.are_equal();
        busy_work::burn(hold);
        equal
    }

    #[inline]
    fn change(&self, hold: u64) -> bool {
        let equal = self.data.change();
        busy_work::burn(hold);
        equal
    }

    /// One attempt, and if it succeeds one critical section; says whether to go on.
    #[inline(always)]
    fn once<G>(
        &self,
        tally: &mut Tally,
        take: impl FnOnce() -> Option<G>,
        section: impl FnOnce() -> bool,
    ) -> bool {
        let asked = clock::now();
        let held = take();
        let had = clock::now();
        let Some(held) = held else {
            let phase = self.phase.load(Relaxed);
            if phase == MEASURE {
                tally.attempts += 1;
            }
            return phase != STOP;
        };
        let equal = section();
        let done = clock::now();
        drop(held);
        let free = clock::now();
        tally.had += 1;
        if !equal {
            tally.torn += 1;
        }
        let phase = self.phase.load(Acquire);
        if phase != WARM_UP {
            tally.lock.record((had - asked).saturating_sub(self.overhead));
            tally.unlock.record((free - done).saturating_sub(self.overhead));
        }
        if phase == MEASURE {
            tally.attempts += 1;
            tally.counted += 1;
            // Another CPU's counter may be behind by a little.
            let slot = free.saturating_sub(self.opened.load(Relaxed)) / self.slot;
            if let Some(slot) = tally.slots.get_mut(slot as usize) {
                *slot += 1;
            }
        }
        phase != STOP
    }
}

/// What a thread does between two acquisitions.
struct Between {
    loads: Loads,
    rng: Rng,
}

impl Between {
    #[inline]
    fn pass(&mut self) {
        let Loads { work, sleep, drawn, .. } = self.loads;
        if !work.is_zero() {
            busy_work::burn(if drawn { work.draw(&mut self.rng) } else { work.mean() });
        }
        if !sleep.is_zero() {
            thread::sleep(sleep);
        }
    }
}

/// Involuntary context switches of the calling thread.
fn preemptions() -> u64 {
    usage(libc::RUSAGE_THREAD).ru_nivcsw as u64
}
