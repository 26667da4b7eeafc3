//! The coordinator: opens and closes the window, ends the workers, and checks what they did.

use super::Turns;
use super::arena::{Arena, Tally, announce, wait_while};
use super::worker::{self, Plan};
use crate::run::crew::Crew;
use crate::run::syscalls::Calls;
use crate::run::threads::{Urgent, clock_time};
use crate::subjects::locks::{Meters, phase};
use crate::workloads::children::Children;
use crate::workloads::{Conditions, Workers};
use anyhow::{Result, bail, ensure};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

/// How long the first turns of all workers may take, and each of them.
const RAMP_UP: Duration = Duration::from_millis(10);
const RAMP_UP_EACH: Duration = Duration::from_micros(500);
/// How long the others get once one has failed, perhaps with the lock in its hands.
const PATIENCE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The workers.
enum Workforce {
    Threads(Crew<()>),
    Processes(Children),
}

impl Workforce {
    fn start(workers: Workers, arena: &Arc<Arena>, plan: Plan) -> Result<Self> {
        let n = match workers {
            Workers::Threads(n) => n as usize,
            Workers::Processes(n) => {
                let mut body = |index| worker::work(arena, &plan, index);
                return Ok(Self::Processes(Children::fork(n as usize, &mut body)?));
            }
        };
        let (arena, plan) = (arena.clone(), Arc::new(plan));
        let named = |index| Builder::new().name(format!("worker {index}"));
        let body = move |index, ()| worker::work(&arena, &plan, index);
        Ok(Self::Threads(Crew::detached(n, named, |_| (), body)?))
    }
}

/// What the coordinator saw of the window.
pub struct Window {
    pub elapsed: Duration,
    pub cpu: Duration,
    pub futexes: Calls,
    pub meters: Option<Meters>,
    /// Of each worker.
    pub tallies: Vec<Tally>,
}

/// What can be seen of the workers from outside.
struct Look {
    cpu: Duration,
    futexes: Calls,
    meters: Option<Meters>,
}

/// Leads one trial.
pub struct Conductor<'a> {
    pub name: &'a str,
    pub turns: Turns,
    pub conditions: &'a Conditions,
    /// Who may hang: threads keep it for as long as they do.
    pub arena: &'a Arc<Arena>,
    /// How long a worker may take beyond what its work explains before it counts as hanging.
    pub patience: Duration,
}

impl Conductor<'_> {
    /// Starts the workers, opens and closes the window and waits for the end of the workers.
    pub fn conduct(&self, plan: Plan) -> Result<Window> {
        let control = self.arena.control();
        // Dropped at the end on each path: no process outlives the trial.
        let mut crew = Workforce::start(self.turns.workers, self.arena, plan)?;
        self.wait_for(&mut crew, "start", &control.ready, self.patience)?;
        let _urgent = Urgent::new();
        self.ramp_up();
        self.set(phase::WARM_UP);
        pause(Duration::from_millis(self.conditions.warmup_ms), &control.failed);
        // To look takes a while where there are many workers: a look before each edge makes the two
        // equally early.
        let before = self.look(&crew);
        let start = Instant::now();
        self.set(phase::MEASURE);
        pause(Duration::from_millis(self.conditions.window_ms), &control.failed);
        let after = self.look(&crew);
        let elapsed = start.elapsed();
        self.set(phase::STOP);
        // Each worker may still hold its lock once, behind all the others.
        let times = self.turns.times;
        let drain = Duration::from_nanos(2 * (times.hold_ns + times.think_ns)) * self.turns.workers();
        self.wait_for(&mut crew, "end", &control.finished, self.patience + drain)?;
        if let Workforce::Threads(threads) = crew {
            threads.join();
        }
        self.failures()?;
        // SAFETY: all have finished, and none has failed.
        let tallies = unsafe { self.arena.tallies() };
        self.check(&tallies)?;
        let meters =
            after.meters.zip(before.meters).map(|(after, before)| after.zip(before, u64::wrapping_sub));
        Ok(Window {
            elapsed,
            cpu: after.cpu.saturating_sub(before.cpu),
            futexes: after.futexes.since(before.futexes),
            meters,
            tallies,
        })
    }

    /// Waits until every worker has had a lock once. There is an end to it: some locks keep waiters
    /// for long, and those contend as they should.
    fn ramp_up(&self) {
        let (control, everybody) = (self.arena.control(), self.turns.workers());
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
    fn look(&self, crew: &Workforce) -> Look {
        let (arena, plus) = (self.arena, u64::wrapping_add);
        Look {
            cpu: match crew {
                Workforce::Threads(_) => clock_time(libc::CLOCK_PROCESS_CPUTIME_ID)
                    .saturating_sub(clock_time(libc::CLOCK_THREAD_CPUTIME_ID)),
                Workforce::Processes(children) => children.cpu_time(),
            },
            futexes: arena.slots().iter().map(|slot| slot.futexes.read()).fold(Calls::default(), Calls::plus),
            meters: arena.locks.iter().filter_map(|lock| lock.meters()).reduce(|a, b| a.zip(b, plus)),
        }
    }

    fn set(&self, to: u32) {
        announce(&self.arena.control().phase, |phase| phase.store(to, Release));
    }

    /// Waits until `word` counts all workers, or says why it will not.
    fn wait_for(&self, crew: &mut Workforce, what: &str, word: &AtomicU32, patience: Duration) -> Result<()> {
        let (everybody, start) = (self.turns.workers(), Instant::now());
        loop {
            let there = word.load(Acquire);
            if there >= everybody {
                return Ok(());
            }
            let death = match crew {
                Workforce::Processes(children) => children.reap(),
                Workforce::Threads(_) => None,
            };
            let patience = match self.arena.control().failed.load(Acquire) {
                0 => patience,
                _ => patience.min(PATIENCE_AFTER_FAILURE),
            };
            if death.is_none() && start.elapsed() < patience {
                wait_while(word, there, Duration::from_millis(50));
                continue;
            }
            // Read before the others fail because the lock is taken from them.
            let failure = self.failures();
            // Threads cannot be killed: they keep the arena and its locks alive for as long as they
            // hang.
            self.arena.locks.iter().for_each(|lock| lock.abandon());
            self.set(phase::STOP);
            failure?;
            match death {
                Some(death) => bail!("lock '{}': {death}", self.name),
                None => bail!(
                    "lock '{}': {} of {everybody} workers did not {what} within {:.1} s: they hang",
                    self.name,
                    everybody - there,
                    start.elapsed().as_secs_f64()
                ),
            }
        }
    }

    /// The first worker that failed, as an error.
    fn failures(&self) -> Result<()> {
        let failed = |(index, slot): (usize, &super::arena::Slot)| Some((index, slot.failure()?));
        match self.arena.slots().iter().enumerate().find_map(failed) {
            Some((index, message)) => bail!("lock '{}': worker {index}: {message}", self.name),
            None => Ok(()),
        }
    }

    /// Whether each protected counter shows every operation.
    fn check(&self, tallies: &[Tally]) -> Result<()> {
        if !self.arena.locks.kind().excludes {
            return Ok(());
        }
        let (name, counters) = (self.name, self.arena.protected());
        for (index, counter) in counters.iter().enumerate() {
            let users = tallies.iter().skip(index).step_by(counters.len());
            let done: u64 = users.clone().map(|tally| tally.turned.exclusive).sum();
            let kept = counter.load(Relaxed);
            ensure!(
                done == kept,
                "lost updates: lock '{name}' (instance {index}) was held {done} times, but the counter it protects says {kept}"
            );
            let torn: u64 = users.map(|tally| tally.turned.torn).sum();
            ensure!(
                torn == 0,
                "torn reads: {torn} readers of lock '{name}' (instance {index}) saw the counter it protects change"
            );
        }
        Ok(())
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
