//! Which trials a bench needs, how long each, and how often.

use crate::report::clock;
use crate::statistics::random::Rng;
use crate::workloads::cell::{Lengths, Probe};
use std::fmt;
use std::time::Duration;

/// A run ends in any case when it has taken so many times what its plan reckons with. A plan knows
/// how long its windows are, and supposes that processes and threads cost what they do on a usual
/// machine. Where QEMU translates the machine's instructions, they cost a hundred times as much.
pub const OVERRUN: u32 = 2;

/// After how long a run ends in any case that is meant to take `budget`, and will take `takes_s`.
pub fn limit(budget: Duration, takes_s: f64) -> Duration {
    Duration::from_secs_f64(budget.as_secs_f64().max(takes_s)) * OVERRUN
}

/// How much is spent on a run.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The time meant for it.
    pub budget: Duration,
    /// Rounds aimed at when the window is chosen, and never fewer.
    pub rounds: u32,
    /// Never more rounds than these.
    pub max_rounds: u32,
    /// The shortest window that says anything.
    pub min_window_ms: u64,
    /// A window that is long enough.
    pub max_window_ms: u64,
    /// The window where the rounds are given and the window is not; none if it is to fit the time.
    pub usual_window_ms: Option<u64>,
}

impl Effort {
    /// So many seconds, rounds aimed at and at most, windows at least and at most, and the usual
    /// one.
    pub fn new(
        seconds: u64,
        (rounds, max_rounds): (u32, u32),
        (min_window_ms, max_window_ms): (u64, u64),
        usual_window_ms: Option<u64>,
    ) -> Self {
        let budget = Duration::from_secs(seconds);
        Self { budget, rounds, max_rounds, min_window_ms, max_window_ms, usual_window_ms }
    }

    /// The longest windows and all rounds, however long that takes.
    pub fn in_full(self) -> Self {
        Self { budget: Duration::MAX, min_window_ms: self.max_window_ms, usual_window_ms: None, ..self }
    }
}

/// What a run will do.
#[derive(Debug)]
pub struct Plan {
    /// The trials of a round, in no order.
    pub probes: Vec<Probe>,
    /// What runs in the first round only.
    pub once: Vec<Probe>,
    /// How long they are.
    pub lengths: Lengths,
    /// How often.
    pub rounds: u32,
    budget: Option<Duration>,
}

impl Plan {
    /// Each of `probes` once a round, and each of `once` in the first. A window or a number of
    /// rounds that is given is kept.
    pub fn new(
        effort: Effort,
        probes: Vec<Probe>,
        once: Vec<Probe>,
        window_ms: Option<u64>,
        rounds: Option<u32>,
        iterations_per_us: f64,
    ) -> Self {
        let budget_s = effort.budget.as_secs_f64();
        let lengths = |window_ms| Lengths { window_ms, iterations_per_us };
        let all = |probes: &[Probe], window_ms| -> f64 {
            probes.iter().map(|probe| probe.takes_s(lengths(window_ms))).sum()
        };
        let takes =
            |window_ms, rounds: u32| all(&probes, window_ms) * f64::from(rounds) + all(&once, window_ms);
        let fitting = || {
            let windows = effort.min_window_ms..=effort.max_window_ms;
            let fits = |&window: &u64| takes(window, effort.rounds) <= budget_s;
            windows.rev().find(fits).unwrap_or(effort.min_window_ms)
        };
        let window_ms = match (window_ms, rounds, effort.usual_window_ms) {
            (Some(window_ms), _, _) => window_ms,
            (None, Some(_), Some(usual)) => usual,
            (None, _, _) => fitting(),
        };
        let many = || {
            let left = budget_s - all(&once, window_ms);
            (left / all(&probes, window_ms).max(1e-9)).clamp(0.0, 1e6) as u32
        };
        let budget = rounds.is_none().then_some(effort.budget);
        let rounds = rounds.unwrap_or_else(|| many().clamp(effort.rounds, effort.max_rounds));
        Self { lengths: lengths(window_ms), probes, once, rounds, budget }
    }

    /// How long it will take.
    pub fn takes_s(&self) -> f64 {
        let all = |probes: &[Probe]| probes.iter().map(|probe| probe.takes_s(self.lengths)).sum::<f64>();
        f64::from(self.rounds) * all(&self.probes) + all(&self.once)
    }

    /// After how long it ends in any case; none if it may take as long as it needs.
    pub fn limit(&self) -> Option<Duration> {
        let budget = self.budget.filter(|&budget| budget < Duration::MAX)?;
        Some(limit(budget, self.takes_s()))
    }

    /// The trials of all rounds.
    pub fn trials(&self) -> usize {
        self.rounds as usize * self.probes.len() + self.once.len()
    }

    /// The trials of a round in an order drawn from the seed.
    pub fn round(&self, round: u32, seed: u64) -> Vec<&Probe> {
        let once = if round == 0 { &self.once[..] } else { &[] };
        let mut order: Vec<&Probe> = self.probes.iter().chain(once).collect();
        let mut rng = Rng::new(seed);
        for last in (1..order.len()).rev() {
            order.swap(last, rng.below(last as u64 + 1) as usize);
        }
        order
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all_s = self.takes_s();
        write!(f, "{} rounds of {} trials in random order", self.rounds, self.probes.len())?;
        if !self.once.is_empty() {
            write!(f, " and {} in the first alone", self.once.len())?;
        }
        write!(f, ", windows of {} ms and their multiples: {} min", self.lengths.window_ms, clock(all_s))?;
        match self.budget {
            Some(budget) if all_s > 1.02 * budget.as_secs_f64() => write!(
                f,
                ", more than the {} min meant for it: fewer rounds or shorter windows than these say nothing",
                clock(budget.as_secs_f64())
            ),
            _ => Ok(()),
        }
    }
}
