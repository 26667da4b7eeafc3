//! What to run, how long, how often, worked out from the time there is.
//!
//! The time is shared out in this order: every lock runs in every cell at least [`MIN_ROUNDS`]
//! times; then windows grow until [`Effort::rounds`] rounds fill the time; what is left over buys
//! more rounds. Where even the shortest windows and fewest rounds do not fit, the plan says how
//! long it will take instead of measuring too little.

use crate::programs::harness::plan::Effort;
use crate::report::{Cell, Lock, Mode};
use crate::statistics::random::Rng;
use crate::workloads::Workload;
use std::fmt;
use std::time::Duration;

/// Rounds below which there is no interval worth its name.
pub const MIN_ROUNDS: u32 = 3;

/// The workloads of the project's grid, without the bare one in front: (1,9), (3,7), (10,0) us.
const WORKLOADS_US: [(u64, u64); 4] = [(0, 0), (1, 9), (3, 7), (10, 0)];

/// How much is spent on a run, and the relative half-width of the 95 % interval at which a cell is
/// settled: 14 minutes of `cargo bench` on two CPUs, 3 minutes of `cargo bench -- --quick`.
fn effort(mode: Mode) -> (Effort, f64) {
    match mode {
        Mode::Full => (Effort::new(330, (7, 15), (80, 500), None), 0.05),
        Mode::Quick => (Effort::new(75, (4, 6), (50, 200), None), 0.10),
        Mode::Smoke => (Effort::new(4, (2, 2), (5, 10), None), 0.10),
    }
}

/// What a run will do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the figures can support.
    pub mode: Mode,
    /// Locks in the order of the tables.
    pub locks: Vec<Lock>,
    /// Cells in the order of the tables.
    pub cells: Vec<Cell>,
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
    /// For all trials together.
    pub budget: Duration,
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

impl Plan {
    /// Shares out the time. A window that is given is kept, and only the number of rounds follows
    /// from the time.
    pub fn new(mode: Mode, locks: Vec<Lock>, cells: Vec<Cell>, window_ms: Option<u64>) -> Self {
        let (effort, precision) = effort(mode);
        let trials = (locks.len() * cells.len()).max(1) as f64;
        let overhead = cells.iter().map(overhead_s).sum::<f64>() / cells.len().max(1) as f64;
        let trial_s = effort.budget.as_secs_f64() / trials / f64::from(effort.rounds) - overhead;
        let fitting = (trial_s / 1.25 * 1e3).max(0.0) as u64;
        let window_ms = window_ms.unwrap_or(fitting.clamp(effort.min_window_ms, effort.max_window_ms));
        Self {
            mode,
            locks,
            cells,
            window_ms,
            warmup_ms: warmup_of(window_ms),
            min_rounds: MIN_ROUNDS.min(effort.max_rounds),
            max_rounds: effort.max_rounds,
            precision,
            budget: effort.budget,
        }
    }

    /// Trials of a round.
    pub fn trials(&self) -> usize {
        self.locks.len() * self.cells.len()
    }

    /// Trials of a round that measure throughput: the ones that have to settle.
    pub fn trials_of_throughput(&self) -> usize {
        self.locks.len() * self.cells.iter().filter(|c| c.is_main()).count()
    }

    /// How long a round will take.
    pub fn round_s(&self) -> f64 {
        let trial = (self.window_ms + self.warmup_ms) as f64 / 1e3;
        self.locks.len() as f64 * self.cells.iter().map(|c| trial + overhead_s(c)).sum::<f64>()
    }

    /// Rounds that fit into the time, at least the least and at most the most.
    pub fn rounds(&self) -> u32 {
        let fit = (self.budget.as_secs_f64() / self.round_s().max(1e-9)).min(1e6) as u32;
        fit.clamp(self.min_rounds, self.max_rounds)
    }

    /// How long the run will take if no cell settles early.
    pub fn estimate_s(&self) -> f64 {
        f64::from(self.rounds()) * self.round_s()
    }

    /// Whether the least that makes sense takes longer than the time there is.
    pub fn exceeds_budget(&self) -> bool {
        self.estimate_s() > 1.02 * self.budget.as_secs_f64()
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
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clock = crate::report::clock;
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
                "\nThat is more than the {} min meant for it: fewer rounds or shorter windows than these say nothing. \
                 Fewer --threads or --locks take less.",
                clock(self.budget.as_secs_f64())
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Kind;
    use std::collections::HashSet;

    fn plan(mode: Mode, locks: usize, cpus: u32, window_ms: Option<u64>) -> Plan {
        let lock = |i| Lock { name: format!("lock{i}"), kind: Kind::Peer, about: String::new() };
        let cells = Cell::all(&default_workloads(mode), &default_threads(cpus, mode));
        Plan::new(mode, (0..locks).map(lock).collect(), cells, window_ms)
    }

    #[test]
    fn thread_counts_double_and_end_oversubscribed() {
        assert_eq!(default_threads(1, Mode::Full), [1, 2, 8]);
        assert_eq!(default_threads(2, Mode::Full), [1, 2, 4, 16]);
        assert_eq!(default_threads(6, Mode::Full), [1, 2, 4, 8, 12, 48]);
        assert_eq!(default_threads(64, Mode::Full), [1, 2, 4, 8, 16, 32, 64, 128, 512]);
    }

    #[test]
    fn the_bare_workload_has_a_cell_without_clock_reads() {
        let cells = Cell::all(&default_workloads(Mode::Full), &[1, 2]);
        assert_eq!(cells.len(), 10);
        assert_eq!(cells.iter().filter(|c| !c.timed).count(), 2);
        assert!(cells.iter().all(|c| c.timed || c.workload.is_bare()));
        assert_eq!(cells.iter().filter(|c| c.is_main()).count(), 8);
    }

    #[test]
    fn a_round_has_every_lock_in_every_cell_once() {
        let plan = plan(Mode::Full, 5, 2, None);
        for seed in 0..20 {
            let round = plan.round(seed);
            assert_eq!(round.len(), plan.trials());
            assert_eq!(round.iter().collect::<HashSet<_>>().len(), plan.trials());
            assert_eq!(round, plan.round(seed));
            assert_ne!(round, plan.round(seed + 1));
        }
    }

    #[test]
    fn two_cpus_fit_into_the_time() {
        for (mode, locks, limit_s) in
            [(Mode::Full, 20, 340.0), (Mode::Quick, 10, 80.0), (Mode::Smoke, 10, 4.0)]
        {
            let plan = plan(mode, locks, 2, None);
            assert!(!plan.exceeds_budget(), "{plan}");
            assert!(plan.estimate_s() <= limit_s, "{plan}");
            assert!(plan.rounds() >= plan.min_rounds);
        }
        assert!(plan(Mode::Full, 20, 2, None).rounds() >= 6);
    }

    #[test]
    fn many_cpus_shrink_windows_then_rounds() {
        let effort = effort(Mode::Full).0;
        let big = plan(Mode::Full, 14, 64, None);
        assert!(big.window_ms < plan(Mode::Full, 14, 2, None).window_ms);
        assert!(big.window_ms >= effort.min_window_ms && big.rounds() >= MIN_ROUNDS);
        assert!(!big.exceeds_budget(), "{big}");
    }

    #[test]
    fn what_cannot_fit_says_how_long_it_takes() {
        let huge = plan(Mode::Full, 40, 256, None);
        assert_eq!((huge.window_ms, huge.rounds()), (effort(Mode::Full).0.min_window_ms, MIN_ROUNDS));
        assert!(huge.exceeds_budget());
        assert!(huge.to_string().contains("more than the 5:30 min meant for it"), "{huge}");
        assert!(!plan(Mode::Full, 4, 2, None).to_string().contains("more than"));
    }

    #[test]
    fn a_given_window_is_kept() {
        let plan = plan(Mode::Full, 4, 2, Some(1000));
        assert_eq!((plan.window_ms, plan.warmup_ms), (1000, 100));
        assert!(plan.rounds() < 7);
    }

    #[test]
    fn few_cells_get_long_windows_and_many_rounds() {
        let lock = Lock { name: "std".into(), kind: Kind::Peer, about: String::new() };
        let plan =
            Plan::new(Mode::Full, vec![lock], Cell::all(&default_workloads(Mode::Full)[1..2], &[2]), None);
        assert_eq!((plan.window_ms, plan.rounds()), (500, 15));
    }
}
