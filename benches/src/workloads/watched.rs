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
use crate::subjects::locks::phase::{GATHER, MEASURE, RAMP_UP, STOP, WARM_UP};
use crate::subjects::locks::{Meters, zeroed};
use anyhow::{Result, bail, ensure};
use crossbeam_utils::CachePadded;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::{Duration, Instant};

/// How long workers may take for what they should do at once.
pub(super) const GRACE: Duration = Duration::from_secs(10);
/// How long the others get once one has failed, perhaps with the lock in its hands.
const GRACE_AFTER_FAILURE: Duration = Duration::from_secs(1);
/// How long the first turns of all workers may take, and each of them.
const FIRST_TURNS: Duration = Duration::from_millis(10);
const FIRST_TURN: Duration = Duration::from_micros(500);

/// What workers do.
pub(super) trait Work: Send + Sync + 'static {
    /// What worker `index` does until `lap` says that it is over, or the run was closed.
    fn go_round(&self, index: usize, lap: &mut Lap<'_>);

    /// Whether every worker has had its first turn, for which there is a phase if this says no.
    fn is_warm(&self) -> bool {
        true
    }

    /// How many turns of all workers show that none of them waits in vain.
    fn enough(&self) -> u64;

    /// Wakes those that wait, once. The workers have been told to stop.
    fn close(&self) {}

    /// What has been counted in the locks themselves.
    fn meters(&self) -> Option<Meters> {
        None
    }

    /// What is said of workers that do not end.
    fn stuck(&self) -> [&'static str; 2] {
        ["sleep on", "a wake-up was lost"]
    }
}

/// Who works, and where.
pub(super) struct Watch<'a> {
    /// What errors begin with.
    pub who: String,
    /// Workers.
    pub workers: Workers,
    /// The CPUs that they are dealt to in turn; none if they are not bound.
    pub cpus: Vec<usize>,
    /// Whether the last worker runs where it likes. Beside processes that is a thread more.
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
    /// System time of all workers in it, where it is known.
    pub system: Duration,
    /// Context switches. Neither they nor futex calls are known of other processes.
    pub switches: Option<u64>,
    /// Turns of each worker in the window.
    pub counts: Vec<u64>,
    /// And from first to last.
    pub turns: Vec<u64>,
    /// Futex calls of each thread in the window.
    pub calls: Vec<Calls>,
    /// What the locks themselves have counted in the window.
    pub meters: Option<Meters>,
}

/// What all workers share.
struct Shared {
    work: Arc<dyn Work>,
    cells: &'static [CachePadded<Cell>],
    /// The phase, and how many workers have begun and have ended.
    all: &'static Cell,
    /// How many have ended by a panic, whose message is on its way to the user.
    failed: &'static AtomicU32,
    counters: &'static [CachePadded<Counters>],
}

/// Says that a worker has ended, also by a panic.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.failed.fetch_add(u32::from(thread::panicking()), Relaxed);
        self.0.all.turns.fetch_add(1, Release);
    }
}

impl Shared {
    fn go_round(&self, index: usize) {
        let _ending = Ending(self);
        let (cell, phase) = (&self.cells[index], &self.all.word);
        self.all.ready.fetch_add(1, Release);
        while phase.load(Acquire) == GATHER {
            let timeout = libc::timespec { tv_sec: 1, tv_nsec: 0 };
            // SAFETY: the word and the timeout live until the call returns; all outcomes are
            // treated alike.
            unsafe { libc::syscall(libc::SYS_futex, phase.as_ptr(), libc::FUTEX_WAIT, GATHER, &timeout) };
        }
        let mut lap = Lap::new(cell, phase);
        syscalls::count(&self.counters[index], || self.work.go_round(index, &mut lap));
    }

    fn set(&self, phase: u32) {
        self.all.word.store(phase, Release);
        // SAFETY: waking needs only the address.
        unsafe { libc::syscall(libc::SYS_futex, self.all.word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
    }

    fn turns(&self) -> Vec<u64> {
        self.cells.iter().map(|cell| cell.turns.load(Relaxed)).collect()
    }

    fn ended(&self) -> u64 {
        self.all.turns.load(Acquire)
    }

    /// What the workers have used and done so far, those included that have been waiting all the
    /// while.
    fn read(&self, children: &Children) -> Seen {
        let usage = usage(libc::RUSAGE_SELF);
        Seen {
            elapsed: clock_time(libc::CLOCK_MONOTONIC),
            cpu: cpu_of_others() + children.cpu_time(),
            switches: Some((usage.ru_nvcsw + usage.ru_nivcsw) as u64),
            counts: self.turns(),
            calls: self.counters.iter().map(|counters| counters.read()).collect(),
            meters: self.work.meters(),
            ..Seen::default()
        }
    }
}

/// CPU time of this process but for that of this thread. The clock of the thread is read first:
/// if there is no other thread, it would have gone on past that of the process.
fn cpu_of_others() -> Duration {
    let mine = clock_time(libc::CLOCK_THREAD_CPUTIME_ID);
    clock_time(libc::CLOCK_PROCESS_CPUTIME_ID).saturating_sub(mine)
}

impl Seen {
    fn since(mut self, from: &Self) -> Self {
        self.elapsed -= from.elapsed;
        self.cpu = self.cpu.saturating_sub(from.cpu);
        self.switches = self.switches.zip(from.switches).map(|(to, from)| to.saturating_sub(from));
        self.counts.iter_mut().zip(&from.counts).for_each(|(to, from)| *to -= from);
        self.calls.iter_mut().zip(&from.calls).for_each(|(to, from)| *to = to.since(*from));
        let less = |(to, from): (Meters, Meters)| std::array::from_fn(|at| to[at].wrapping_sub(from[at]));
        self.meters = self.meters.zip(from.meters).map(less);
        self
    }

    /// Figures of these workers' turns; `counted` says whether their futex calls are known.
    pub fn figures(&self, of: Range<usize>, counted: bool) -> Outcome {
        let mut counts = self.counts[of].to_vec();
        // None at all count as one, of one worker: less cannot be seen.
        let is_idle = counts.iter().all(|&count| count == 0);
        if let Some(first) = counts.first_mut().filter(|_| is_idle) {
            *first = 1;
        }
        let (least, most) = statistics::shares(&counts);
        let ops = counts.iter().sum::<u64>().max(1) as f64;
        let few = counts.iter().filter(|&&count| 10.0 * (count as f64) < ops / counts.len() as f64);
        let mut figures = vec![
            ("rate", ops / self.elapsed.as_secs_f64()),
            ("cov", statistics::cov(&counts)),
            ("least", least),
            ("most", most),
            ("starved", few.count() as f64 / counts.len() as f64),
        ];
        figures.extend(self.switches.map(|switches| ("switches", switches as f64 / ops)));
        if counted && self.switches.is_some() && syscalls::countable() {
            figures.push(("futexes", self.calls.iter().map(Calls::all).sum::<u64>() as f64 / ops));
        }
        let mut outcome = figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        cpu_figures(&mut outcome, self.cpu, self.system, ops);
        outcome
    }
}

impl Watch<'_> {
    /// Lets the workers work, and sees to it that they end.
    pub fn run(&self, work: Arc<dyn Work>) -> Result<Seen> {
        let (threads, processes) = match self.workers {
            Workers::Threads(threads) => (threads as usize, 0),
            Workers::Processes(processes) => (usize::from(self.last_is_free), processes as usize),
        };
        let count = threads + processes;
        let cells = cells(count + 2)?;
        let (all, failed) = (&cells[count], &cells[count + 1].word);
        // SAFETY: counters are atomics, which may be zero.
        let counters = unsafe { zeroed(count)? };
        let shared = Arc::new(Shared { work, cells: &cells[..count], all, failed, counters });
        let cpus = &self.cpus;
        let cpu = |index: usize| {
            let free = cpus.is_empty() || self.last_is_free && index + 1 == count;
            (!free).then(|| cpus[index % cpus.len()])
        };
        // Processes first: from here on there may be threads. Dropped at the end on each path: no
        // process outlives the trial.
        let mut children = Children::fork(processes, &mut |index| {
            cpu(index).map_or(Ok(()), pinning::bind).unwrap_or_else(|error| panic!("{error}"));
            shared.go_round(index);
        })?;
        keep_a_thread_asleep();
        let here = shared.clone();
        let work = move |index| here.go_round(processes + index);
        let crew = Crew::detached(threads, &|index| cpu(processes + index), work)?;
        let (who, grace, grace_s) = (&self.who, self.grace, self.grace.as_secs_f64());
        let mut within = |grace, is_so: &dyn Fn() -> bool| self.within(grace, &shared, &mut children, is_so);
        let begun = within(grace, &|| all.ready.load(Acquire) as usize == count)?;
        ensure!(begun, "{who}: some of {count} workers did not begin for {grace_s:.1} s");
        let urgent = Urgent::new();
        if !shared.work.is_warm() {
            // There is an end to it: some locks keep waiters for long, and those contend as they
            // should.
            shared.set(RAMP_UP);
            within(FIRST_TURNS + FIRST_TURN * count as u32, &|| shared.work.is_warm())?;
        }
        shared.set(WARM_UP);
        thread::sleep(Duration::from_millis(self.conditions.warmup_ms));
        // To look takes a while where there are many workers: a look before each edge makes the two
        // equally early.
        let from = shared.read(&children);
        shared.set(MEASURE);
        thread::sleep(Duration::from_millis(self.conditions.window_ms));
        let to = shared.read(&children);
        let mut within = |grace, is_so: &dyn Fn() -> bool| self.within(grace, &shared, &mut children, is_so);
        let enough = shared.work.enough();
        if enough > 0 {
            let enough = shared.turns().iter().sum::<u64>() + enough;
            let got_on = || shared.turns().iter().sum::<u64>() >= enough || shared.ended() > 0;
            let lost = "a wake-up was lost";
            ensure!(within(grace, &got_on)?, "{who}: the workers did not get on for {grace_s:.1} s: {lost}");
        }
        shared.set(STOP);
        drop(urgent);
        shared.work.close();
        let ended = within(grace, &|| shared.ended() == count as u64)?;
        ensure!(failed.load(Relaxed) == 0, "{who}: a worker panicked");
        let (left, [do_what, why]) = (count as u64 - shared.ended(), shared.work.stuck());
        ensure!(ended, "{who}: {left} of {count} workers {do_what} {grace_s:.1} s after the end: {why}");
        crew.join();
        let seen = to.since(&from);
        let switches = seen.switches.filter(|_| processes == 0);
        Ok(Seen { turns: shared.turns(), switches, ..seen })
    }

    /// Whether something becomes true in time.
    ///
    /// # Errors
    /// If a worker dies, or panics and leaves the others waiting.
    fn within(
        &self,
        grace: Duration,
        shared: &Shared,
        children: &mut Children,
        is_so: &dyn Fn() -> bool,
    ) -> Result<bool> {
        let (who, mut end, mut failed) = (&self.who, Instant::now() + grace, false);
        while !is_so() {
            if let Some(death) = children.reap() {
                bail!("{who}: {death}");
            }
            let now = Instant::now();
            if !failed && shared.failed.load(Relaxed) > 0 {
                (failed, end) = (true, end.min(now + GRACE_AFTER_FAILURE));
            }
            if now >= end {
                if failed {
                    shared.set(STOP);
                    bail!("{who}: a worker panicked");
                }
                return Ok(false);
            }
            thread::sleep(Duration::from_micros(200));
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_in_which_nothing_was_done_is_the_worst_and_not_fair() {
        let seen = Seen { elapsed: Duration::from_secs(2), counts: vec![0; 4], ..Seen::default() };
        let figures = seen.figures(0..4, false);
        assert_eq!(["rate", "least", "most", "starved"].map(|name| figures[name]), [0.5, 0.0, 4.0, 0.75]);
    }

    #[test]
    fn a_process_of_one_thread_has_no_cpu_time_of_others() {
        // The process of this test has other threads; a child has none.
        let mut child = Children::fork(1, &mut |_| {
            for _ in 0..100_000 {
                assert!(cpu_of_others() < Duration::from_millis(100));
            }
        })
        .unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        while !child.is_empty() {
            assert_eq!(child.reap(), None);
            assert!(Instant::now() < end, "the child did not end for 60 s");
            thread::sleep(Duration::from_millis(1));
        }
    }
}
