//! What the trials of a lock in a run come to.
//!
//! Percentiles and means are medians over rounds, the shortest and the longest are those of all
//! rounds.

use crate::run::clock::Calibration;
use crate::statistics;
use crate::statistics::delays::Delay;
use crate::subjects::rwlocks::Entry;
use crate::workloads::cell::{Answer, Cell, Trial};
use crate::workloads::readers::batch::Batch;
use crate::workloads::readers::{HandlerOutcome, Outcome, Probe, RoleOutcome, Run};
use serde::{Deserialize, Serialize};

/// Delays over rounds, in ticks of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// How many, in all rounds.
    pub count: u64,
    /// Shortest.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Longest.
    pub max: f64,
}

impl Times {
    fn of(delays: impl Iterator<Item = Option<Delay>>) -> Option<Self> {
        let delays: Vec<Delay> = delays.flatten().collect();
        let over = |of: fn(&Delay) -> f64| delays.iter().map(of).collect::<Vec<f64>>();
        let median = |of| statistics::median(&over(of));
        (!delays.is_empty()).then(|| Self {
            count: delays.iter().map(|delay| delay.count).sum(),
            min: over(|delay| delay.min as f64).into_iter().fold(f64::INFINITY, f64::min),
            mean: median(|delay| delay.mean),
            p50: median(|delay| delay.p50 as f64),
            p99: median(|delay| delay.p99 as f64),
            p999: median(|delay| delay.p999 as f64),
            max: over(|delay| delay.max as f64).into_iter().fold(0.0, f64::max),
        })
    }
}

/// Threads of one name, over rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Role {
    /// Their name.
    pub name: String,
    /// Acquisitions a second, of all of them.
    pub per_s: f64,
    /// The most by one of them by the fewest by another; the median over rounds.
    pub shares: f64,
    /// Attempts in all rounds.
    pub attempts: u64,
    /// Acquisitions in all rounds.
    pub counted: u64,
    /// How often they gave up, in all rounds.
    pub failures: u64,
    /// How long it took to get the lock.
    pub lock: Option<Times>,
    /// And to let it go.
    pub unlock: Option<Times>,
    /// How long signals were kept off.
    pub masked: Option<Times>,
    /// The same without the time for which they were ready and had no CPU.
    pub held_off: Option<Times>,
    /// From the expiry of the timer to the entry of the handler.
    pub delivery: Option<Times>,
    /// How long it took the handler to get the lock.
    pub handler_lock: Option<Times>,
    /// And to let it go.
    pub handler_unlock: Option<Times>,
    /// How often it was not to be had there, in all rounds.
    pub refused: u64,
    /// The fewest acquisitions in any slot of any round.
    pub fewest: u64,
    /// Involuntary context switches a second.
    pub preemptions_per_s: f64,
}

/// A lock in a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The lock.
    pub lock: String,
    /// Whether it belongs to the family.
    pub family: bool,
    /// The run.
    pub run: Run,
    /// Rounds that it ran in.
    pub rounds: usize,
    /// The clock, in the first of them.
    pub clock: Calibration,
    /// Share of all CPUs' time that the hypervisor gave to others, in the worst round.
    pub steal: Option<f64>,
    /// The threads, those of one name together.
    pub roles: Vec<Role>,
    /// Lock and unlock by themselves: the best batch of all rounds, and the median over rounds.
    pub batch: Option<Batch>,
}

impl Row {
    /// What the trials say; nothing if there are none.
    pub(super) fn new(lock: &Entry, run: Run, trials: &[Trial]) -> Option<Self> {
        let mine = |trial: &&Trial| trial.cell == Cell::Rw(run) && trial.locks == [lock.name];
        let outcomes: Vec<&Outcome> = trials
            .iter()
            .filter(mine)
            .filter_map(|trial| match &trial.answer {
                Answer::Rw(outcome) => Some(outcome),
                _ => None,
            })
            .collect();
        let first = outcomes.first()?;
        // SAFETY: no pointers are involved.
        let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as f64;
        let steal = outcomes.iter().filter_map(|o| Some(o.steal_s? / (o.elapsed_s * cpus)));
        let roles = first.roles.iter().map(|role| Role::new(&role.name, &outcomes)).collect();
        Some(Self {
            lock: lock.name.to_owned(),
            family: lock.family,
            run,
            rounds: outcomes.len(),
            clock: first.clock,
            steal: steal.reduce(f64::max),
            roles,
            batch: batch(&outcomes),
        })
    }

    /// What the readers waited that are looked at.
    pub(super) fn top(&self) -> Option<Times> {
        let role = |name: &str| self.roles.iter().find(|role| role.name == name);
        match self.run {
            Run::Invariance { probe: Probe::Handler, .. } | Run::Queue { probe: Probe::Handler, .. } => {
                role("idle")?.handler_lock
            }
            _ => role("urgent")?.lock,
        }
    }
}

impl Role {
    fn new(name: &str, outcomes: &[&Outcome]) -> Self {
        let roles: Vec<(&RoleOutcome, f64)> =
            outcomes.iter().filter_map(|o| Some((o.role(name)?, o.elapsed_s.max(1e-9)))).collect();
        let each = || roles.iter().map(|(role, _)| *role);
        let sum = |of: fn(&RoleOutcome) -> u64| each().map(of).sum::<u64>();
        let seconds: f64 = roles.iter().map(|(_, elapsed_s)| elapsed_s).sum();
        let handler = |of: fn(&HandlerOutcome) -> Option<Delay>| {
            Times::of(each().map(|role| role.handler.as_ref().and_then(of)))
        };
        let shares = each().map(|role| {
            let most = role.counts.iter().max().copied().unwrap_or(0).max(1);
            most as f64 / role.counts.iter().min().copied().unwrap_or(0).max(1) as f64
        });
        let counted = sum(|role| role.counts.iter().sum());
        Self {
            name: name.to_owned(),
            per_s: counted as f64 / seconds,
            shares: statistics::median(&shares.collect::<Vec<_>>()),
            attempts: sum(|role| role.attempts),
            counted,
            failures: sum(|role| role.failures),
            lock: Times::of(each().map(|role| role.lock)),
            unlock: Times::of(each().map(|role| role.unlock)),
            masked: Times::of(each().map(|role| role.masked)),
            held_off: Times::of(each().map(|role| role.held_off)),
            delivery: handler(|handler| handler.delivery),
            handler_lock: handler(|handler| handler.lock),
            handler_unlock: handler(|handler| handler.unlock),
            refused: each().filter_map(|role| Some(role.handler?.refused)).sum(),
            fewest: each().map(|role| role.fewest).min().unwrap_or(0),
            preemptions_per_s: sum(|role| role.preemptions) as f64 / seconds,
        }
    }
}

fn batch(outcomes: &[&Outcome]) -> Option<Batch> {
    let all: Vec<Batch> = outcomes.iter().filter_map(|outcome| outcome.batch).collect();
    let both = |of: fn(&Batch) -> Option<(f64, f64)>| {
        let (best, medians): (Vec<f64>, Vec<f64>) = all.iter().filter_map(of).unzip();
        let best = best.into_iter().reduce(f64::min)?;
        Some((best, statistics::median(&medians)))
    };
    let pair = both(|batch| Some(batch.pair))?;
    Some(Batch { lock: both(|batch| batch.lock), unlock: both(|batch| batch.unlock), pair })
}
