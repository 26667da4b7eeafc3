//! The memory of a trial, and its coordinator: opens and closes the window, ends the workers, and
//! checks what they did.

use super::Turns;
use super::worker::{self, Plan};
use crate::run::crew::Crew;
use crate::run::syscalls::{Calls, Counters};
use crate::run::threads::{Urgent, clock_time};
use crate::statistics::waits::Waits;
use crate::subjects::locks::{Locks, Meters, Zeroed, phase};
use crate::workloads::children::Children;
use crate::workloads::{Conditions, Workers};
use anyhow::{Result, bail, ensure};
use crossbeam_utils::CachePadded;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::thread;
use std::time::{Duration, Instant};

/// How long the first turns of all workers may take, and each of them.
const RAMP_UP: Duration = Duration::from_millis(10);
const RAMP_UP_EACH: Duration = Duration::from_micros(500);
/// How long the others get once one has failed, perhaps with the lock in its hands.
const PATIENCE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// What coordinator and workers tell each other.
#[repr(C)]
pub struct Control {
    /// One of the phases of [`phase`].
    pub phase: CachePadded<AtomicU32>,
    /// Workers that are at the barrier.
    pub ready: CachePadded<AtomicU32>,
    /// Workers that have left it and had a lock once before the warm-up.
    pub started: CachePadded<AtomicU32>,
    /// Workers that have written their results and will not touch the locks again.
    pub finished: CachePadded<AtomicU32>,
    /// Workers that failed; they count as finished too.
    pub failed: CachePadded<AtomicU32>,
}

/// What a worker reports. Read when it has finished, but for the futex calls.
#[repr(C, align(128))]
pub struct Slot {
    /// Counted as they are made.
    pub futexes: Counters,
    /// Exclusive operations from first to last.
    pub exclusive: AtomicU64,
    /// Shared operations that saw the protected counter change.
    pub torn: AtomicU64,
    /// Operations that completed in the window.
    pub counted: AtomicU64,
    /// System CPU time in the window.
    pub system_ns: AtomicU64,
    /// Context switches in the window.
    pub switches: AtomicU64,
}

/// The memory of a trial, so that forked workers see the same locks and counters as threads do.
/// What one side writes and another reads lies on lines of its own, 128 bytes because of
/// adjacent-line prefetch.
pub struct Arena {
    /// One.
    pub control: Zeroed<Control>,
    /// One a worker.
    pub slots: Zeroed<Slot>,
    /// One a worker, or none.
    pub waits: Zeroed<Waits>,
    /// The counter that each lock protects.
    pub protected: Zeroed<CachePadded<AtomicU64>>,
    /// The locks.
    pub locks: Locks,
}

impl Arena {
    pub fn new(workers: usize, timed: bool, locks: Locks) -> Result<Self> {
        // SAFETY: all of these consist of atomics, which may be zero.
        unsafe {
            Ok(Self {
                control: Zeroed::new(1)?,
                slots: Zeroed::new(workers)?,
                waits: Zeroed::new(if timed { workers } else { 0 })?,
                protected: Zeroed::new(locks.count())?,
                locks,
            })
        }
    }
}

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
        let body = move |index| worker::work(&arena, &plan, index);
        // Workers bind themselves, as processes do.
        Ok(Self::Threads(Crew::detached(n, &|_| None, body)?))
    }
}

/// What can be seen of the workers from outside: at a moment, or in the window.
pub struct Look {
    pub elapsed: Duration,
    pub cpu: Duration,
    pub futexes: Calls,
    pub meters: Option<Meters>,
}

/// Leads one trial.
pub struct Conductor<'a> {
    pub name: &'a str,
    pub turns: Turns,
    pub conditions: &'a Conditions,
    /// Threads that hang keep it for as long as they do.
    pub arena: &'a Arc<Arena>,
    /// How long a worker may take beyond what its work explains before it counts as hanging.
    pub patience: Duration,
}

impl Conductor<'_> {
    /// Starts the workers, opens and closes the window and waits for the end of the workers.
    pub fn conduct(&self, plan: Plan) -> Result<Look> {
        let start = Instant::now();
        let control = &self.arena.control[0];
        // Dropped at the end on each path: no process outlives the trial.
        let mut crew = Workforce::start(self.turns.workers, self.arena, plan)?;
        self.wait_for(&mut crew, "start", &control.ready, self.patience)?;
        let _urgent = Urgent::new();
        self.ramp_up();
        self.set(phase::WARM_UP);
        pause(Duration::from_millis(self.conditions.warmup_ms), &control.failed);
        // To look takes a while where there are many workers: a look before each edge makes the two
        // equally early.
        let before = self.look(&crew, start);
        self.set(phase::MEASURE);
        pause(Duration::from_millis(self.conditions.window_ms), &control.failed);
        let after = self.look(&crew, start);
        self.set(phase::STOP);
        // Each worker may still hold its lock once, behind all the others.
        let times = self.turns.times;
        let drain = Duration::from_nanos(2 * (times.hold_ns + times.think_ns)) * self.turns.workers();
        self.wait_for(&mut crew, "end", &control.finished, self.patience + drain)?;
        ensure!(control.failed.load(Acquire) == 0, "lock '{}': a worker panicked", self.name);
        if let Workforce::Threads(threads) = crew {
            threads.join();
        }
        self.check()?;
        let meters = after.meters.zip(before.meters);
        Ok(Look {
            elapsed: after.elapsed - before.elapsed,
            cpu: after.cpu.saturating_sub(before.cpu),
            futexes: after.futexes.since(before.futexes),
            meters: meters.map(|(a, b)| std::array::from_fn(|at| a[at].wrapping_sub(b[at]))),
        })
    }

    /// Waits until every worker has had a lock once. There is an end to it: some locks keep waiters
    /// for long, and those contend as they should.
    fn ramp_up(&self) {
        let (control, everybody) = (&self.arena.control[0], self.turns.workers());
        self.set(phase::RAMP_UP);
        let end = Instant::now() + RAMP_UP + everybody * RAMP_UP_EACH;
        let done = || control.started.load(Relaxed) >= everybody || control.failed.load(Relaxed) > 0;
        while !done() && Instant::now() < end {
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// What the workers have used and done so far, those included that have been waiting all the
    /// while.
    fn look(&self, crew: &Workforce, start: Instant) -> Look {
        let arena = self.arena;
        let cpu = match crew {
            Workforce::Threads(_) => clock_time(libc::CLOCK_PROCESS_CPUTIME_ID)
                .saturating_sub(clock_time(libc::CLOCK_THREAD_CPUTIME_ID)),
            Workforce::Processes(children) => children.cpu_time(),
        };
        let futexes = arena.slots.iter().map(|slot| slot.futexes.read()).fold(Calls::default(), Calls::plus);
        let meters = arena.locks.iter().filter_map(|lock| lock.meters());
        let meters = meters.reduce(|a, b| std::array::from_fn(|at| a[at].wrapping_add(b[at])));
        Look { cpu, futexes, meters, elapsed: start.elapsed() }
    }

    fn set(&self, to: u32) {
        announce(&self.arena.control[0].phase, |phase| phase.store(to, Release));
    }

    /// Waits until `word` counts all workers, or says why it will not.
    fn wait_for(&self, crew: &mut Workforce, what: &str, word: &AtomicU32, patience: Duration) -> Result<()> {
        let (name, everybody, start) = (self.name, self.turns.workers(), Instant::now());
        loop {
            let there = word.load(Acquire);
            if there >= everybody {
                return Ok(());
            }
            if let Workforce::Processes(children) = crew
                && let Some(death) = children.reap()
            {
                bail!("lock '{name}': {death}");
            }
            let failed = self.arena.control[0].failed.load(Acquire) > 0;
            let patience = if failed { patience.min(PATIENCE_AFTER_FAILURE) } else { patience };
            if start.elapsed() >= patience {
                self.set(phase::STOP);
                ensure!(!failed, "lock '{name}': a worker panicked");
                let (missing, time) = (everybody - there, start.elapsed().as_secs_f64());
                bail!(
                    "lock '{name}': {missing} of {everybody} workers did not {what} within {time:.1} s: they hang"
                );
            }
            wait_while(word, there, Duration::from_millis(50));
        }
    }

    /// Whether each protected counter shows every operation.
    fn check(&self) -> Result<()> {
        let (name, counters) = (self.name, &self.arena.protected);
        for (index, counter) in counters.iter().enumerate() {
            let sum = |of: fn(&Slot) -> &AtomicU64| {
                let users = self.arena.slots.iter().skip(index).step_by(counters.len());
                users.map(|slot| of(slot).load(Relaxed)).sum::<u64>()
            };
            let (done, kept) = (sum(|slot| &slot.exclusive), counter.load(Relaxed));
            self.arena.locks.kind().check(name, done, kept)?;
            let torn = sum(|slot| &slot.torn);
            ensure!(
                torn == 0 || !self.arena.locks.kind().excludes,
                "torn reads: {torn} readers of lock '{name}' saw the counter that it protects change"
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

/// Sleeps while `word` is `value`, at most for `time`; may return early. Works between processes.
pub fn wait_while(word: &AtomicU32, value: u32, time: Duration) {
    let timeout = libc::timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos().into() };
    // SAFETY: the word and the timeout live until the call returns; all outcomes are treated alike.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &timeout) };
}

/// Changes `word` and wakes every thread in [`wait_while`].
pub fn announce(word: &AtomicU32, change: impl FnOnce(&AtomicU32)) {
    change(word);
    // SAFETY: waking needs only the address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
