//! Which trials the promises need, how long each, and how often.

use super::list::{Claim, Promise, Subject};
use super::task::{Cell, Lengths, Probe};
use crate::report::{Mode, clock};
use crate::work::Rng;
use std::fmt;
use std::time::Duration;

/// How much is spent on a run of a mode.
struct Effort {
    budget: Duration,
    /// Rounds aimed at when the window is chosen, and never fewer.
    rounds: u32,
    max_rounds: u32,
    min_window_ms: u64,
    max_window_ms: u64,
}

impl Effort {
    /// The share of this harness in `cargo bench`, in `cargo bench -- --quick`, or in `cargo test`.
    fn of(mode: Mode) -> Self {
        let seconds = Duration::from_secs;
        match mode {
            Mode::Full => {
                Self { budget: seconds(85), rounds: 3, max_rounds: 9, min_window_ms: 60, max_window_ms: 300 }
            }
            Mode::Quick => {
                Self { budget: seconds(13), rounds: 3, max_rounds: 5, min_window_ms: 30, max_window_ms: 100 }
            }
            Mode::Smoke => {
                Self { budget: seconds(2), rounds: 1, max_rounds: 1, min_window_ms: 5, max_window_ms: 5 }
            }
        }
    }
}

/// The window of a loop where the rounds are given and the window is not.
const USUAL_WINDOW_MS: u64 = 200;

/// What a run will do.
#[derive(Debug)]
pub struct Plan {
    /// The trials of a round, in no order.
    pub probes: Vec<Probe>,
    /// How long they are.
    pub lengths: Lengths,
    /// How often.
    pub rounds: u32,
    budget: Option<Duration>,
}

impl Plan {
    /// What `promises` need, each trial once. A window or a number of rounds that is given is kept.
    pub fn new(
        mode: Mode,
        promises: &[Promise],
        window_ms: Option<u64>,
        rounds: Option<u32>,
        iterations_per_us: f64,
    ) -> Self {
        let effort = Effort::of(mode);
        let probes = probes(promises);
        let lengths = |window_ms| Lengths { window_ms, iterations_per_us };
        let takes = |window_ms| probes.iter().map(|probe| probe.takes_s(lengths(window_ms))).sum::<f64>();
        let round_s = effort.budget.as_secs_f64() / f64::from(effort.rounds);
        let fitting = || {
            let windows = effort.min_window_ms..=effort.max_window_ms;
            windows.rev().find(|&window| takes(window) <= round_s).unwrap_or(effort.min_window_ms)
        };
        let window_ms = match (window_ms, rounds) {
            (Some(window_ms), _) => window_ms,
            (None, Some(_)) if mode == Mode::Full => USUAL_WINDOW_MS,
            (None, _) => fitting(),
        };
        let many = || (effort.budget.as_secs_f64() / takes(window_ms).max(1e-9)).min(1e6) as u32;
        let budget = rounds.is_none().then_some(effort.budget);
        let rounds = rounds.unwrap_or_else(|| many().clamp(effort.rounds, effort.max_rounds));
        Self { lengths: lengths(window_ms), probes, rounds, budget }
    }

    /// How long a round will take.
    pub fn round_s(&self) -> f64 {
        self.probes.iter().map(|probe| probe.takes_s(self.lengths)).sum()
    }

    /// Every trial once, in an order drawn from the seed.
    pub fn round(&self, seed: u64) -> Vec<&Probe> {
        let mut order: Vec<&Probe> = self.probes.iter().collect();
        let mut rng = Rng::new(seed);
        for last in (1..order.len()).rev() {
            order.swap(last, rng.below(last as u64 + 1) as usize);
        }
        order
    }
}

/// Each lock in each cell once; uncontended pairs of all locks together.
fn probes(promises: &[Promise]) -> Vec<Probe> {
    let mut probes: Vec<Probe> = Vec::new();
    let mut add = |subject: &Subject| {
        let lock = subject.lock.to_owned();
        let has = |probe: &Probe| probe.cell == subject.cell && probe.locks.contains(&lock);
        if probes.iter().any(has) {
            return;
        }
        match probes.iter_mut().find(|probe| probe.cell == Cell::Pairs && subject.cell == Cell::Pairs) {
            Some(pairs) => pairs.locks.push(lock),
            None => probes.push(Probe { cell: subject.cell, locks: vec![lock] }),
        }
    };
    for promise in promises {
        match &promise.claim {
            Claim::Value(subject) => add(subject),
            Claim::Ratio { mine, others } => {
                add(mine);
                others.iter().for_each(&mut add);
            }
        }
    }
    probes
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all_s = f64::from(self.rounds) * self.round_s();
        write!(
            f,
            "{} rounds of {} trials in random order, windows of {} ms and their multiples: {} min",
            self.rounds,
            self.probes.len(),
            self.lengths.window_ms,
            clock(all_s)
        )?;
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
