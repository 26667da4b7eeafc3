//! Workers that do the same thing over and over, the window in which they are counted, and their
//! end.
//!
//! # Lost wake-ups
//! What loses a wake-up or a permit leaves a worker asleep for ever, and perhaps all of them. That
//! must be an error and not a hang, so there are two looks at it, each with a time of grace:
//!
//! 1. After the window the workers must still get on.
//! 2. Then they are told to stop, and those that wait are woken, once. All must end.
//!
//! Threads that sleep cannot be ended. They keep what they use alive, and end with the process of
//! the trial.

use super::children::Children;
use super::window::cpu_figures;
use super::{Conditions, Workers};
use crate::engine::record::Outcome;
use crate::run::crew::Crew;
use crate::run::pinning;
use crate::run::syscalls::{self, Calls, Counters};
use crate::run::threads::{Urgent, clock_time, keep_a_thread_asleep, usage};
use crate::statistics;
use crate::subjects::laps::{Cell, Lap, cells};
use anyhow::{Result, bail, ensure};
use crossbeam_utils::CachePadded;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::{Duration, Instant};

/// How long workers may take for what they should do at once.
pub(super) const GRACE: Duration = Duration::from_secs(10);

/// What workers do.
pub(super) trait Work: Send + Sync + 'static {
    /// What worker `index` does until `lap` says that it is over, or the run was closed.
    fn go_round(&self, index: usize, lap: &mut Lap<'_>);

    /// How many turns of all workers show that none of them waits in vain.
    fn enough(&self) -> u64;

    /// Wakes those that wait, once. The workers have been told to stop.
    fn close(&self) {}
}

/// Who works, and where.
pub(super) struct Watch<'a> {
    /// What errors begin with.
    pub who: String,
    /// Workers. Processes have a thread beside them, which is the last worker.
    pub workers: Workers,
    /// The CPUs that they are dealt to in turn; none if they are not bound.
    pub cpus: Vec<usize>,
    /// Whether the last worker runs where it likes.
    pub last_is_free: bool,
    /// Lengths of the windows.
    pub conditions: &'a Conditions,
    /// How long workers may take for what they should do at once.
    pub grace: Duration,
}

/// What came of it: what the clocks and counters show at the end of the window, less what they
/// showed at its beginning.
#[derive(Default)]
pub(super) struct Seen {
    /// How long the window really was.
    pub elapsed: Duration,
    /// CPU time of all workers in it.
    pub cpu: Duration,
    /// Context switches. Neither they nor futex calls are known of other processes.
    pub switches: Option<u64>,
    /// Turns of each worker in the window.
    pub counts: Vec<u64>,
    /// And from first to last.
    pub turns: Vec<u64>,
    /// Futex calls of each thread in the window.
    pub calls: Vec<Calls>,
}

/// What all workers share.
struct Shared {
    work: Arc<dyn Work>,
    cells: &'static [CachePadded<Cell>],
    /// Whether the workers are to stop, and how many have ended.
    all: &'static Cell,
    counters: Vec<Counters>,
}

/// Says that a worker has ended, also by a panic.
struct Ending<'a>(&'a Cell);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.turns.fetch_add(1, Release);
    }
}

impl Shared {
    fn go_round(&self, index: usize) {
        let _ending = Ending(self.all);
        let mut lap = Lap::new(&self.cells[index], &self.all.word);
        syscalls::count(&self.counters[index], || self.work.go_round(index, &mut lap));
    }

    fn turns(&self) -> Vec<u64> {
        self.cells.iter().map(|cell| cell.turns.load(Relaxed)).collect()
    }

    fn ended(&self) -> u64 {
        self.all.turns.load(Acquire)
    }

    fn read(&self, children: &Children) -> Seen {
        let usage = usage(libc::RUSAGE_SELF);
        Seen {
            elapsed: clock_time(libc::CLOCK_MONOTONIC),
            cpu: clock_time(libc::CLOCK_PROCESS_CPUTIME_ID) + children.cpu_time(),
            switches: Some((usage.ru_nvcsw + usage.ru_nivcsw) as u64),
            counts: self.turns(),
            turns: Vec::new(),
            calls: self.counters.iter().map(Counters::read).collect(),
        }
    }
}

impl Seen {
    fn since(&self, from: &Self) -> Self {
        let counts = self.counts.iter().zip(&from.counts).map(|(to, from)| to - from);
        let calls = self.calls.iter().zip(&from.calls).map(|(to, from)| to.since(*from));
        Self {
            elapsed: self.elapsed - from.elapsed,
            cpu: self.cpu.saturating_sub(from.cpu),
            switches: self.switches.zip(from.switches).map(|(to, from)| to.saturating_sub(from)),
            counts: counts.collect(),
            turns: Vec::new(),
            calls: calls.collect(),
        }
    }

    /// Figures of these workers' turns; `counted` says whether their futex calls are known.
    pub fn figures(&self, of: Range<usize>, counted: bool) -> Outcome {
        let counts = &self.counts[of];
        let (least, most) = statistics::shares(counts);
        // None at all count as one: less cannot be seen.
        let ops = counts.iter().sum::<u64>().max(1) as f64;
        let few = counts.iter().filter(|&&count| 10.0 * (count as f64) < ops / counts.len() as f64);
        let mut figures = vec![
            ("rate", ops / self.elapsed.as_secs_f64()),
            ("cov", statistics::cov(counts)),
            ("least", least),
            ("most", most),
            ("starved", few.count() as f64 / counts.len() as f64),
        ];
        figures.extend(self.switches.map(|switches| ("switches", switches as f64 / ops)));
        if counted && self.switches.is_some() && syscalls::countable() {
            figures.push(("futexes", self.calls.iter().map(Calls::all).sum::<u64>() as f64 / ops));
        }
        let mut outcome = figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        cpu_figures(&mut outcome, self.cpu, Duration::ZERO, ops);
        outcome
    }
}

impl Watch<'_> {
    /// Lets the workers work, and sees to it that they end.
    pub fn run(&self, work: Arc<dyn Work>) -> Result<Seen> {
        let (threads, processes) = match self.workers {
            Workers::Threads(threads) => (threads as usize, 0),
            Workers::Processes(processes) => (1, processes as usize),
        };
        let count = threads + processes;
        let cells = cells(count + 1)?;
        let counters = (0..count).map(|_| Counters::default()).collect();
        let shared = Arc::new(Shared { work, cells: &cells[..count], all: &cells[count], counters });
        let cpus = &self.cpus;
        let cpu = |index: usize| {
            let free = cpus.is_empty() || self.last_is_free && index + 1 == count;
            (!free).then(|| cpus[index % cpus.len()])
        };
        // Processes first: from here on there may be threads.
        let mut children = Children::fork(processes, &mut |index| {
            // One that cannot be bound works all the same.
            let _ = cpu(index).map_or(Ok(()), pinning::bind);
            shared.go_round(index);
        })?;
        keep_a_thread_asleep();
        let here = shared.clone();
        let work = move |index| here.go_round(processes + index);
        let crew = Crew::detached(threads, &|index| cpu(processes + index), work)?;
        let [from, to] = self.window(&shared, &children);
        let enough = shared.turns().iter().sum::<u64>() + shared.work.enough();
        let got_on = self.within(|| shared.turns().iter().sum::<u64>() >= enough || shared.ended() > 0);
        let (who, grace) = (&self.who, self.grace.as_secs_f64());
        ensure!(got_on, "{who}: the workers did not get on for {grace:.1} s: a wake-up was lost");
        shared.all.word.store(1, Relaxed);
        shared.work.close();
        let mut death = None;
        let ended = self.within(|| {
            death = death.take().or_else(|| children.reap());
            shared.ended() == count as u64 || death.is_some()
        });
        if let Some(death) = death {
            bail!("{who}: {death}");
        }
        let asleep = count as u64 - shared.ended();
        ensure!(
            ended,
            "{who}: {asleep} of {count} workers sleep on {grace:.1} s after the end: a wake-up was lost"
        );
        crew.join();
        let seen = to.since(&from);
        let switches = seen.switches.filter(|_| processes == 0);
        Ok(Seen { turns: shared.turns(), switches, ..seen })
    }

    fn window(&self, shared: &Shared, children: &Children) -> [Seen; 2] {
        let _urgent = Urgent::new();
        thread::sleep(Duration::from_millis(self.conditions.warmup_ms));
        let from = shared.read(children);
        thread::sleep(Duration::from_millis(self.conditions.window_ms));
        [from, shared.read(children)]
    }

    /// Whether something becomes true in time.
    fn within(&self, mut is_so: impl FnMut() -> bool) -> bool {
        let end = Instant::now() + self.grace;
        while !is_so() {
            if Instant::now() >= end {
                return false;
            }
            thread::sleep(Duration::from_micros(200));
        }
        true
    }
}
