//! What to run, how long, how often, worked out from the time there is.
//!
//! The time is shared out in this order: every lock runs in every cell at least [`MIN_ROUNDS`]
//! times; then windows grow until [`Effort::rounds`] rounds fill the time; what is left over buys
//! more rounds.
//!
//! # What is left out
//! If even the shortest windows and fewest rounds do not fit, the plan leaves out one thing after
//! the other until they do:
//!
//! 1. thread counts between 2 and the number of CPUs: each time the one whose neighbours are
//!    closest in ratio, of several the smallest, so that what stays is spread evenly;
//! 2. thread counts above twice the CPUs, the greatest first;
//! 3. peers but std and parking_lot, the last of the list first;
//! 4. thread counts above the CPUs, the greatest first.
//!
//! The plan names what it leaves out, and so does the record. Thread counts and locks that the
//! command line gives stay. If it gives a window, a number of rounds, or `--full`, everything
//! stays. What still does not fit is done all the same, and the plan says how long it will take. If
//! the machine is far slower than the plan reckons, the run ends with a part of a round
//! ([`Plan::limit`]).

use super::NAME;
use crate::programs::harness::plan::{Effort, limit};
use crate::programs::shares;
use crate::report::{self, Cell, Kind, Lock, Mode, Trial};
use crate::statistics::random::Rng;
use crate::workloads::Workload;
use std::fmt;
use std::time::Duration;

/// Rounds below which there is no interval worth its name.
pub const MIN_ROUNDS: u32 = 3;

/// The workloads of the project's grid, without the bare one in front: (1,9), (3,7), (10,0) us.
const WORKLOADS_US: [(u64, u64); 4] = [(0, 0), (1, 9), (3, 7), (10, 0)];

/// How much is spent on a run, and the relative half-width of the 95 % interval at which a cell is
/// settled.
fn effort(mode: Mode) -> (Effort, f64) {
    match mode {
        Mode::Full => (Effort::new(shares::full(NAME), (6, 15), (60, 500), None), 0.05),
        Mode::Quick => (Effort::new(shares::quick(NAME), (4, 6), (50, 200), None), 0.10),
        Mode::Smoke => (Effort::new(4, (2, 2), (5, 10), None), 0.10),
    }
}

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Wish {
    /// What the figures can support.
    pub mode: Mode,
    /// Locks in the order of the tables.
    pub locks: Vec<Lock>,
    /// Workloads in the order of the tables.
    pub workloads: Vec<Workload>,
    /// Thread counts, ascending.
    pub threads: Vec<u32>,
    /// What must stay as it is.
    pub given: Given,
}

/// What the command line says, so that no plan changes it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given {
    /// The thread counts.
    pub threads: bool,
    /// The locks.
    pub locks: bool,
    /// The window of a trial.
    pub window_ms: Option<u64>,
    /// The number of rounds.
    pub rounds: Option<u32>,
    /// Full windows and all rounds, however long that takes.
    pub full: bool,
}

/// What a run will do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Locks in the order of the tables.
    pub locks: Vec<Lock>,
    /// Workloads in the order of the tables.
    pub workloads: Vec<Workload>,
    /// Thread counts, ascending.
    pub threads: Vec<u32>,
    /// Cells in the order of the tables.
    pub cells: Vec<Cell>,
    /// What does not fit into the time, in words.
    pub left_out: Vec<String>,
    /// Measured window of a trial.
    pub window_ms: u64,
    /// Not measured, before it.
    pub warmup_ms: u64,
    /// Rounds that are always run.
    pub min_rounds: u32,
    /// Rounds that are never exceeded.
    pub max_rounds: u32,
    /// Relative half-width of the 95 % interval at which a cell is settled.
    pub precision: f64,
    /// Whether it may end with a part of a round.
    may_end_early: bool,
    /// For all trials together; none if they may take as long as they need.
    pub budget: Option<Duration>,
}

/// Thread counts when none are given: doubled up to twice the CPUs, then eight times the CPUs.
pub fn default_threads(cpus: u32, mode: Mode) -> Vec<u32> {
    if mode == Mode::Smoke {
        return vec![1, 2];
    }
    let mut threads: Vec<u32> =
        std::iter::successors(Some(1_u32), |n| n.checked_mul(2)).take_while(|&n| n <= 2 * cpus).collect();
    threads.extend([2 * cpus, 8 * cpus]);
    threads.sort_unstable();
    threads.dedup();
    threads
}

/// Workloads when none is given.
pub fn default_workloads(mode: Mode) -> Vec<Workload> {
    let all = WORKLOADS_US.map(|(hold, non)| Workload { hold_ns: hold * 1000, non_hold_ns: non * 1000 });
    match mode {
        Mode::Smoke => vec![all[0], all[2]],
        Mode::Full | Mode::Quick => all.to_vec(),
    }
}

/// What a trial costs beside warm-up and window: a process, its threads, their start and their end.
fn overhead_s(cell: &Cell) -> f64 {
    0.020 + 0.000_3 * f64::from(cell.threads)
}

/// A quarter of the window, within reason.
fn warmup_of(window_ms: u64) -> u64 {
    (window_ms / 4).clamp(2, 100)
}

impl Wish {
    /// What can be left out next on a machine with so many CPUs; it is taken out of the wish.
    fn leave_out(&mut self, cpus: u32) -> Option<String> {
        let above = |threads: &[u32], cpus: u32| (threads.last() > Some(&cpus)).then(|| threads.len() - 1);
        let count = || between(&self.threads, cpus).or_else(|| above(&self.threads, 2 * cpus));
        let lock = || {
            let spared = |lock: &Lock| [report::STD, report::PARKING_LOT].contains(&lock.name.as_str());
            self.locks.iter().rposition(|lock| lock.kind == Kind::Peer && !spared(lock))
        };
        let (counts, locks) = (!self.given.threads, !self.given.locks);
        if let Some(index) = counts.then(count).flatten() {
            return Some(format!("{} threads", self.threads.remove(index)));
        }
        if let Some(index) = locks.then(lock).flatten() {
            return Some(self.locks.remove(index).name);
        }
        let last = counts.then(|| above(&self.threads, cpus)).flatten()?;
        Some(format!("{} threads", self.threads.remove(last)))
    }
}

/// Where, between 2 and the number of CPUs, is the count whose neighbours are closest in ratio.
fn between(threads: &[u32], cpus: u32) -> Option<usize> {
    let inner = 1..threads.len().saturating_sub(1);
    let ratio = |index: usize| f64::from(threads[index + 1]) / f64::from(threads[index - 1]);
    inner.filter(|&i| threads[i] > 2 && threads[i] < cpus).min_by(|&a, &b| ratio(a).total_cmp(&ratio(b)))
}

impl Plan {
    /// Shares out the time on a machine with so many CPUs.
    pub fn new(mut wish: Wish, cpus: u32) -> Self {
        let Given { window_ms, rounds, full, .. } = wish.given;
        let everything = full || window_ms.is_some() || rounds.is_some();
        let mut left_out = Vec::new();
        loop {
            let plan = Self::of_all(&wish);
            if everything || !plan.exceeds_budget() {
                return Self { left_out, ..plan };
            }
            match wish.leave_out(cpus) {
                Some(what) => left_out.push(what),
                None => return Self { left_out, ..plan },
            }
        }
    }

    /// A plan that leaves out nothing. A window that is given is kept, and only the number of
    /// rounds follows from the time.
    fn of_all(wish: &Wish) -> Self {
        let (effort, precision) = effort(wish.mode);
        let effort = if wish.given.full { effort.in_full() } else { effort };
        let cells = Cell::all(&wish.workloads, &wish.threads);
        let trials = (wish.locks.len() * cells.len()).max(1) as f64;
        let overhead = cells.iter().map(overhead_s).sum::<f64>() / cells.len().max(1) as f64;
        let trial_s = effort.budget.as_secs_f64() / trials / f64::from(effort.rounds) - overhead;
        let fitting = (trial_s / 1.25 * 1e3).max(0.0) as u64;
        let fitting = fitting.clamp(effort.min_window_ms, effort.max_window_ms);
        let window_ms = wish.given.window_ms.unwrap_or(fitting);
        let (least, most) = (MIN_ROUNDS.min(effort.max_rounds), effort.max_rounds);
        Self {
            locks: wish.locks.clone(),
            workloads: wish.workloads.clone(),
            threads: wish.threads.clone(),
            cells,
            left_out: Vec::new(),
            window_ms,
            warmup_ms: warmup_of(window_ms),
            min_rounds: wish.given.rounds.unwrap_or(least),
            max_rounds: wish.given.rounds.unwrap_or(most),
            precision,
            may_end_early: wish.mode != Mode::Smoke && wish.given.rounds.is_none(),
            budget: (!wish.given.full).then_some(effort.budget),
        }
    }

    /// Trials of a round.
    pub fn trials(&self) -> usize {
        self.locks.len() * self.cells.len()
    }

    /// How long a round will take.
    pub fn round_s(&self) -> f64 {
        let trial = (self.window_ms + self.warmup_ms) as f64 / 1e3;
        self.locks.len() as f64 * self.cells.iter().map(|c| trial + overhead_s(c)).sum::<f64>()
    }

    /// Rounds that fit into the time, at least the least and at most the most.
    pub fn rounds(&self) -> u32 {
        let Some(budget) = self.budget else { return self.max_rounds };
        let fit = (budget.as_secs_f64() / self.round_s().max(1e-9)).min(1e6) as u32;
        fit.clamp(self.min_rounds, self.max_rounds)
    }

    /// How long the run will take if no cell settles early.
    pub fn estimate_s(&self) -> f64 {
        f64::from(self.rounds()) * self.round_s()
    }

    /// Whether the least that makes sense takes longer than the time there is.
    pub fn exceeds_budget(&self) -> bool {
        self.budget.is_some_and(|budget| self.estimate_s() > budget.as_secs_f64())
    }

    /// After how long it ends in any case; none if it may take as long as it needs.
    pub fn limit(&self) -> Option<Duration> {
        self.budget.filter(|_| self.may_end_early).map(|budget| limit(budget, self.estimate_s()))
    }

    /// Every (lock, cell) once, in an order drawn from the seed.
    pub fn round(&self, seed: u64) -> Vec<(usize, usize)> {
        let mut order: Vec<_> = (0..self.locks.len())
            .flat_map(|lock| (0..self.cells.len()).map(move |cell| (lock, cell)))
            .collect();
        let mut rng = Rng::new(seed);
        for last in (1..order.len()).rev() {
            order.swap(last, rng.below(last as u64 + 1) as usize);
        }
        order
    }

    /// Whether these trials are the first of this plan, in its order.
    pub fn begins_with(&self, seed: u64, trials: &[Trial]) -> bool {
        trials.chunks(self.trials().max(1)).zip(0..).all(|(trials, round)| {
            let order = self.round(seed + u64::from(round));
            trials.iter().zip(order).all(|(trial, (lock, cell))| {
                (trial.round, trial.lock.as_str(), trial.cell)
                    == (round, self.locks[lock].name.as_str(), cell)
            })
        })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clock = report::clock;
        let names: Vec<&str> = self.locks.iter().map(|l| l.name.as_str()).collect();
        writeln!(f, "locks: {}", names.join(", "))?;
        writeln!(
            f,
            "a round: {} locks x {} cells = {} trials of {} ms after {} ms of warm-up, in random order, about {} min",
            self.locks.len(),
            self.cells.len(),
            self.trials(),
            self.window_ms,
            self.warmup_ms,
            clock(self.round_s())
        )?;
        let meant = self.budget.map_or(0.0, |budget| budget.as_secs_f64());
        if !self.left_out.is_empty() {
            let what = self.left_out.join(", ");
            writeln!(
                f,
                "left out, to take no longer than {} min: {what}; --full measures all",
                clock(meant)
            )?;
        }
        write!(
            f,
            "rounds: {} to {}, until every cell is known to +-{:.0} %; about {}, in {} min",
            self.min_rounds,
            self.max_rounds,
            self.precision * 100.0,
            self.rounds(),
            clock(self.estimate_s()),
        )?;
        if self.exceeds_budget() {
            write!(
                f,
                "\nThat is more than the {} min meant for it. Fewer --threads or --locks take less.",
                clock(meant)
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
