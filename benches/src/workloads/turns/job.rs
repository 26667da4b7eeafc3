//! The workers of the loop: what each does around its lock, and the memory in which it says what it
//! did, so that forked workers see the same locks and counters as threads do.

use crate::run::busy_work::{self, Span};
use crate::run::threads::{time, usage, wake_on_time};
use crate::run::waits::Waits;
use crate::statistics::random::Rng;
use crate::subjects::laps::Lap;
use crate::subjects::locks::{Lane, Locks, Meters, Next, Type, Worker, phase, zeroed};
use crate::workloads::watched::{Seen, Watch, Work};
use crate::workloads::{Conditions, Workers};
use anyhow::{Result, ensure};
use crossbeam_utils::CachePadded;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::thread;
use std::time::Duration;

/// What a worker does at each turn.
#[derive(Clone, Copy)]
pub struct Role {
    /// Work inside.
    pub hold: Span,
    /// Work outside.
    pub think: Span,
    /// Sleep outside.
    pub pause: Option<Duration>,
    /// Whether the work inside is always as long as its mean, instead of drawn.
    pub steady: bool,
    /// Percentage of acquisitions that are shared.
    pub read_share: u8,
}

/// What a worker reports when it has finished. What one side writes and another reads lies on lines
/// of its own, 128 bytes because of adjacent-line prefetch.
#[repr(C, align(128))]
pub struct Slot {
    /// Exclusive operations from first to last.
    exclusive: AtomicU64,
    /// Shared operations that saw the protected counter change.
    torn: AtomicU64,
    /// Operations that completed in the window.
    pub counted: AtomicU64,
    /// System CPU time in the window.
    pub system_ns: AtomicU64,
    /// Context switches in the window.
    pub switches: AtomicU64,
}

/// The work of a trial.
pub struct Job {
    /// How many have the first role, and how many all the others.
    workers: [u32; 2],
    roles: [Role; 2],
    seed: u64,
    /// Whether there are more workers than CPUs.
    crowded: bool,
    /// One a worker.
    pub slots: &'static [Slot],
    /// One a worker, or none.
    pub waits: &'static [Waits],
    /// Workers that have had a lock once before the warm-up.
    started: &'static [CachePadded<AtomicU32>],
    /// The counter that each lock protects.
    protected: &'static [CachePadded<AtomicU64>],
    locks: Locks,
}

impl Job {
    /// So many workers of each role; each acquisition is timed or none.
    pub fn new(
        workers: [u32; 2],
        roles: [Role; 2],
        timed: bool,
        seed: u64,
        crowded: bool,
        locks: Locks,
    ) -> Result<Self> {
        let count = (workers[0] + workers[1]) as usize;
        // SAFETY: all of these consist of atomics, which may be zero.
        unsafe {
            Ok(Self {
                workers,
                roles,
                seed,
                crowded,
                slots: zeroed(count)?,
                waits: zeroed(if timed { count } else { 0 })?,
                started: zeroed(1)?,
                protected: zeroed(locks.count())?,
                locks,
            })
        }
    }

    /// The type of the locks.
    pub fn kind(&self) -> Type {
        self.locks.kind()
    }

    /// Runs it on a lock of this name; the workers are dealt to `cpus` in turn.
    pub fn run(
        self,
        name: &str,
        workers: Workers,
        cpus: Vec<usize>,
        conditions: &Conditions,
        grace: Duration,
    ) -> Result<(Arc<Self>, Seen)> {
        let (who, last_is_free, job) = (format!("lock '{name}'"), false, Arc::new(self));
        let seen = Watch { who, workers, cpus, last_is_free, conditions, grace }.run(job.clone())?;
        job.check(name)?;
        Ok((job, seen))
    }

    /// Whether each protected counter shows every operation.
    fn check(&self, name: &str) -> Result<()> {
        for (index, counter) in self.protected.iter().enumerate() {
            let sum = |of: fn(&Slot) -> &AtomicU64| {
                let users = self.slots.iter().skip(index).step_by(self.protected.len());
                users.map(|slot| of(slot).load(Relaxed)).sum::<u64>()
            };
            self.kind().check(name, sum(|slot| &slot.exclusive), counter.load(Relaxed))?;
            let torn = sum(|slot| &slot.torn);
            ensure!(
                torn == 0 || !self.kind().excludes,
                "torn reads: {torn} readers of lock '{name}' saw the counter that it protects change"
            );
        }
        Ok(())
    }
}

impl Work for Job {
    fn go_round(&self, index: usize, lap: &mut Lap<'_>) {
        let role = self.roles[usize::from(index >= self.workers[0] as usize)];
        let (at, timed) = (index % self.locks.count(), !self.waits.is_empty());
        let works = !role.hold.is_zero() || !role.think.is_zero() || role.pause.is_some();
        let bare = !works && role.read_share == 0 && !timed;
        let lane = Lane { phase: lap.phase(), protected: &self.protected[at], bare, timed };
        if role.pause.is_some() {
            wake_on_time();
        }
        let rng = Rng::new(self.seed.wrapping_add(index as u64));
        let mut worker = Turner { job: self, role, index, phase: lane.phase, rng, before_window: 0 };
        let turned = self.locks.get(at).turns(lane, &mut worker);
        self.slots[index].exclusive.store(turned.exclusive, Relaxed);
        self.slots[index].torn.store(turned.torn, Relaxed);
    }

    fn is_warm(&self) -> bool {
        self.started[0].load(Relaxed) >= self.workers[0] + self.workers[1]
    }

    fn enough(&self) -> u64 {
        0
    }

    fn meters(&self) -> Option<Meters> {
        let meters = self.locks.iter().filter_map(|lock| lock.meters());
        meters.reduce(|a, b| std::array::from_fn(|at| a[at].wrapping_add(b[at])))
    }

    fn stuck(&self) -> [&'static str; 2] {
        ["are left", "they hang"]
    }
}

/// A worker beside its lock.
struct Turner<'a> {
    job: &'a Job,
    role: Role,
    index: usize,
    phase: &'a AtomicU32,
    rng: Rng,
    before_window: u64,
}

impl Worker for Turner<'_> {
    fn outside(&mut self) -> Option<Next> {
        let Role { hold, think, pause, steady, read_share } = self.role;
        let inside = match hold.is_zero() {
            true => 0,
            false if steady => hold.mean(),
            false => hold.draw(&mut self.rng),
        };
        if !think.is_zero() {
            busy_work::burn(think.draw(&mut self.rng));
        }
        if let Some(pause) = pause {
            thread::sleep(pause);
            // What is asked for now is after the window.
            if self.phase.load(Relaxed) == phase::STOP {
                return None;
            }
        }
        Some(Next { inside, reads: read_share > 0 && self.rng.below(100) < u64::from(read_share) })
    }

    #[cold]
    fn changed(&mut self, seen: u32, now: u32, operations: u64) -> u32 {
        if now == phase::RAMP_UP {
            if operations == 1 {
                self.job.started[0].fetch_add(1, Relaxed);
            }
            // For workers that have not run at all yet: a time slice for each of a thousand would
            // take seconds.
            if self.job.crowded && !self.job.is_warm() {
                thread::yield_now();
            }
            return seen;
        }
        let (slot, used) = (&self.job.slots[self.index], usage(libc::RUSAGE_THREAD));
        let used = [
            (&slot.system_ns, time(used.ru_stime).as_nanos() as u64),
            (&slot.switches, (used.ru_nvcsw + used.ru_nivcsw) as u64),
        ];
        // A window that was opened and closed while this worker waited is one change for it, and
        // holds none of its operations.
        if seen < phase::MEASURE && now >= phase::MEASURE {
            used.iter().for_each(|(place, value)| place.store(*value, Relaxed));
            self.before_window = operations - 1;
        }
        if now == phase::STOP {
            used.iter().for_each(|(place, value)| place.store(value - place.load(Relaxed), Relaxed));
            slot.counted.store(operations - 1 - self.before_window, Relaxed);
        }
        now
    }

    fn waited(&mut self, ns: u64) {
        if let Some(waits) = self.job.waits.get(self.index) {
            waits.record(ns);
        }
    }
}
