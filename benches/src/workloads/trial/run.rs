//! The coordinator: starts the workers, opens and closes the window, ends them, and checks what
//! they did.

use super::arena::{Arena, announce, phase, wait_while};
use super::children::Children;
use super::worker::{self, Plan};
use super::{TrialResult, TrialSpec, Waits, Workers};
use crate::run::busy_work;
use crate::run::syscalls::{self, Calls};
use crate::run::threads::{Urgent, clock_time, keep_a_thread_asleep};
use crate::statistics::delays::empty_histogram;
use crate::subjects::locks::{self, Entry, Lock, Meters, Scope, Visitor};
use anyhow::{Context, Result, bail, ensure};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a worker may take beyond what its work explains before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the first turns of all workers may take, and each of them.
const RAMP_UP: Duration = Duration::from_millis(10);
const RAMP_UP_EACH: Duration = Duration::from_micros(500);
/// How long the others get once one has failed, perhaps with the lock in its hands.
const PATIENCE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// Runs a trial of the lock that `spec` names.
pub fn run(spec: &TrialSpec) -> Result<TrialResult> {
    struct Trial<'a>(&'a TrialSpec);
    impl Visitor for Trial<'_> {
        type Output = Result<TrialResult>;
        fn visit<L: Lock>(self, _: &'static Entry) -> Self::Output {
            run_lock::<L>(self.0, PATIENCE)
        }
    }
    let entry = locks::Entry::find(&spec.lock)?;
    locks::visit(entry, scope(spec), Trial(spec))?
}

/// Runs a trial of lock type `L`, which need not be registered; gives up on workers that hang for
/// `patience`.
pub fn run_lock<L: Lock>(spec: &TrialSpec, patience: Duration) -> Result<TrialResult> {
    let plan = Plan::new::<L>(spec)?;
    keep_a_thread_asleep();
    let speed = busy_work::sample() / spec.iterations_per_us;
    let buckets = plan.histogram().map_or(0, |histogram| histogram.distinct_values());
    let workers = spec.workers.count() as usize;
    let arena = Arc::new(Arena::<L>::new(scope(spec), workers, buckets, spec.lock_count as usize)?);
    // Dropped before the arena on each path: no process outlives the trial.
    let crew = Crew::start(spec, &arena, Arc::new(plan))?;
    let window = Conductor { spec, arena: &arena, crew, patience }.conduct()?;
    failures(spec, &arena)?;
    check(spec, &arena)?;
    Ok(collect(spec, &arena, window, speed))
}

fn scope(spec: &TrialSpec) -> Scope {
    match spec.workers {
        Workers::Threads(_) => Scope::Threads,
        Workers::Processes(_) => Scope::Processes,
    }
}

/// The workers.
enum Crew {
    Threads(Vec<JoinHandle<()>>),
    Processes(Children),
}

impl Crew {
    fn start<L: Lock>(spec: &TrialSpec, arena: &Arc<Arena<L>>, plan: Arc<Plan>) -> Result<Self> {
        let n = match spec.workers {
            Workers::Threads(n) => n as usize,
            Workers::Processes(n) => return Ok(Self::Processes(Children::start(n as usize, arena, &plan)?)),
        };
        let mut threads = Vec::with_capacity(n);
        for index in 0..n {
            let (shared, plan) = (arena.clone(), plan.clone());
            let body = move || worker::work(&shared, &plan, index, plan.histogram());
            match thread::Builder::new().name(format!("worker {index}")).spawn(body) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    // Those at the barrier do one operation and leave.
                    announce(&arena.control().phase, |phase| phase.store(phase::STOP, Release));
                    return Err(error).with_context(|| format!("cannot start thread {index} of {n}"));
                }
            }
        }
        Ok(Self::Threads(threads))
    }
}

/// What the coordinator saw of the window.
struct Window {
    elapsed: Duration,
    cpu: Duration,
    futexes: Calls,
    meters: Option<Meters>,
}

/// What can be seen of the workers from outside.
struct Look {
    cpu: Duration,
    futexes: Calls,
    meters: Option<Meters>,
}

/// Leads one trial.
struct Conductor<'a, L: Lock> {
    spec: &'a TrialSpec,
    arena: &'a Arena<L>,
    crew: Crew,
    patience: Duration,
}

impl<L: Lock> Conductor<'_, L> {
    /// Opens and closes the window and waits for the end of the workers.
    fn conduct(mut self) -> Result<Window> {
        let (spec, control) = (self.spec, self.arena.control());
        self.wait_for("start", &control.ready, self.patience)?;
        let _urgent = Urgent::new();
        self.ramp_up();
        self.set(phase::WARM_UP);
        pause(Duration::from_millis(spec.warmup_ms), &control.failed);
        // To look takes a while where there are many workers: a look before each edge makes the two
        // equally early.
        let before = self.look();
        let start = Instant::now();
        self.set(phase::MEASURE);
        pause(Duration::from_millis(spec.window_ms), &control.failed);
        let after = self.look();
        let elapsed = start.elapsed();
        self.set(phase::STOP);
        // Each worker may still hold its lock once, behind all the others.
        let drain = Duration::from_nanos(2 * (spec.hold_ns + spec.non_hold_ns)) * spec.workers.count();
        self.wait_for("end", &control.finished, self.patience + drain)?;
        if let Crew::Threads(threads) = &mut self.crew {
            for thread in threads.drain(..) {
                // A worker catches its panics and reports them in its slot.
                let _ = thread.join();
            }
        }
        let meters =
            after.meters.zip(before.meters).map(|(after, before)| after.zip(before, u64::wrapping_sub));
        Ok(Window {
            elapsed,
            cpu: after.cpu.saturating_sub(before.cpu),
            futexes: after.futexes.since(before.futexes),
            meters,
        })
    }

    /// Waits until every worker has had a lock once. There is an end to it: some locks keep waiters
    /// for long, and those contend as they should.
    fn ramp_up(&self) {
        let (control, everybody) = (self.arena.control(), self.spec.workers.count());
        self.set(phase::RAMP_UP);
        let end = Instant::now() + RAMP_UP + everybody * RAMP_UP_EACH;
        while control.started.load(Relaxed) < everybody
            && control.failed.load(Relaxed) == 0
            && Instant::now() < end
        {
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// What the workers have used and done so far, those included that have been waiting all the
    /// while.
    fn look(&self) -> Look {
        Look {
            cpu: match &self.crew {
                Crew::Threads(_) => clock_time(libc::CLOCK_PROCESS_CPUTIME_ID)
                    .saturating_sub(clock_time(libc::CLOCK_THREAD_CPUTIME_ID)),
                Crew::Processes(children) => children.cpu_time(),
            },
            futexes: self
                .arena
                .slots()
                .iter()
                .map(|slot| slot.futexes.read())
                .fold(Calls::default(), Calls::plus),
            meters: meters(self.arena),
        }
    }

    fn set(&self, to: u32) {
        announce(&self.arena.control().phase, |phase| phase.store(to, Release));
    }

    /// Waits until `word` counts all workers, or says why it will not.
    fn wait_for(&mut self, what: &str, word: &AtomicU32, patience: Duration) -> Result<()> {
        let everybody = self.spec.workers.count();
        let failed = &self.arena.control().failed;
        let start = Instant::now();
        loop {
            let there = word.load(Acquire);
            if there >= everybody {
                return Ok(());
            }
            let death = match &mut self.crew {
                Crew::Processes(children) => children.reap(),
                Crew::Threads(_) => None,
            };
            let patience = match failed.load(Acquire) {
                0 => patience,
                _ => patience.min(PATIENCE_AFTER_FAILURE),
            };
            if death.is_none() && start.elapsed() < patience {
                wait_while(word, there, Duration::from_millis(50));
                continue;
            }
            // Read before the others fail because the lock is taken from them.
            let failure = failures(self.spec, self.arena);
            // Threads cannot be killed: they keep the arena and its locks alive for as long as they
            // hang.
            for cell in self.arena.cells() {
                cell.lock.abandon();
            }
            self.set(phase::STOP);
            failure?;
            match death {
                Some(death) => bail!("lock '{}': {death}", self.spec.lock),
                None => bail!(
                    "lock '{}': {} of {everybody} workers did not {what} within {:.1} s: they hang",
                    self.spec.lock,
                    everybody - there,
                    start.elapsed().as_secs_f64()
                ),
            }
        }
    }
}

/// Sleeps for `time`, less if a worker fails.
fn pause(time: Duration, failed: &AtomicU32) {
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || failed.load(Relaxed) != 0 {
            return;
        }
        wait_while(failed, 0, left);
    }
}

/// The first worker that failed, as an error.
fn failures<L: Lock>(spec: &TrialSpec, arena: &Arena<L>) -> Result<()> {
    for (index, slot) in arena.slots().iter().enumerate() {
        if let Some(message) = slot.failure() {
            bail!("lock '{}': worker {index}: {message}", spec.lock);
        }
    }
    Ok(())
}

/// Whether each protected counter shows every operation.
fn check<L: Lock>(spec: &TrialSpec, arena: &Arena<L>) -> Result<()> {
    if !L::EXCLUDES {
        return Ok(());
    }
    let (slots, cells) = (arena.slots(), arena.cells());
    for (index, cell) in cells.iter().enumerate() {
        let users = slots.iter().skip(index).step_by(cells.len());
        let done: u64 = users.clone().map(|slot| slot.exclusive.load(Relaxed)).sum();
        let kept = cell.protected.load(Relaxed);
        ensure!(
            done == kept,
            "lost updates: lock '{}' (instance {index}) was held {done} times, but the counter it protects says {kept}",
            spec.lock
        );
        let torn: u64 = users.map(|slot| slot.torn.load(Relaxed)).sum();
        ensure!(
            torn == 0,
            "torn reads: {torn} readers of lock '{}' (instance {index}) saw the counter it protects change",
            spec.lock
        );
    }
    Ok(())
}

fn collect<L: Lock>(spec: &TrialSpec, arena: &Arena<L>, window: Window, speed: f64) -> TrialResult {
    let slots = arena.slots();
    let sum = |field: fn(&super::arena::Slot) -> &std::sync::atomic::AtomicU64| -> u64 {
        slots.iter().map(|slot| field(slot).load(Relaxed)).sum()
    };
    TrialResult {
        counts: slots.iter().map(|slot| slot.counted.load(Relaxed)).collect(),
        elapsed_s: window.elapsed.as_secs_f64(),
        user_s: sum(|slot| &slot.user_ns) as f64 / 1e9,
        system_s: sum(|slot| &slot.system_ns) as f64 / 1e9,
        sleeps: sum(|slot| &slot.voluntary),
        preemptions: sum(|slot| &slot.involuntary),
        cpu_s: Some(window.cpu.as_secs_f64()),
        futexes: (L::COUNTABLE && syscalls::countable()).then_some(window.futexes),
        waits: spec.waits.then(|| waits(arena)),
        meters: window.meters,
        speed,
    }
}

fn waits<L: Lock>(arena: &Arena<L>) -> Waits {
    let mut histogram = empty_histogram();
    let (mut sum, mut max) = (0, 0);
    for (index, slot) in arena.slots().iter().enumerate() {
        sum += slot.wait_sum.load(Relaxed);
        max = max.max(slot.wait_max.load(Relaxed));
        for bucket in &arena.buckets(index)[..slot.buckets.load(Relaxed) as usize] {
            histogram.saturating_record_n(bucket.value.load(Relaxed), bucket.count.load(Relaxed));
        }
    }
    Waits::of(&histogram, sum, max)
}

/// The counters of all locks together as they stand, if the locks count.
fn meters<L: Lock>(arena: &Arena<L>) -> Option<Meters> {
    let each = arena.cells().iter().filter_map(|cell| cell.lock.meters());
    each.reduce(|a, b| a.zip(b, u64::wrapping_add))
}
