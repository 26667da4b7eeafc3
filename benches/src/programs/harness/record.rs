//! What a run leaves behind, and how its trials are run.

use super::plan::{OVERRUN, Plan};
use crate::programs::progress::Progress;
use crate::report::{self, Ended, Mode};
use crate::run::child::{Outcome, Runner};
use crate::run::line;
use crate::run::machine::Machine;
use crate::workloads::cell::{Cell, Probe, Trial};
use crate::workloads::hogs::Hogs;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What a run leaves behind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record<R> {
    /// Which bench wrote it, and the version of what it writes.
    pub schema: String,
    /// Version of the package that wrote it.
    pub version: String,
    /// How much the run can support.
    pub mode: Mode,
    /// Why it ended.
    pub ended: Ended,
    /// Length of the run.
    pub took_s: f64,
    /// The machine it ran on, at the start of the run.
    pub machine: Machine,
    /// Window of a loop; other trials take multiples of it.
    pub window_ms: u64,
    /// Rounds that were meant to run.
    pub rounds: u32,
    /// Iterations of the busy work in a microsecond, one constant for all trials.
    pub iterations_per_us: f64,
    /// Of the order of trials and of the workers' random numbers.
    pub seed: u32,
    /// How long a cache line takes to another CPU and back, before each round, in nanoseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub round_trips_ns: Vec<f64>,
    /// What was computed.
    pub rows: Vec<R>,
    /// Every trial in the order they ran.
    pub trials: Vec<Trial>,
}

#[cfg(test)]
impl<R> Record<R> {
    /// What a run of one round of 100 ms would have left behind.
    pub(crate) fn of(rows: Vec<R>, trials: Vec<Trial>) -> Self {
        Self {
            schema: String::new(),
            version: String::new(),
            mode: Mode::Full,
            ended: Ended::Rounds,
            took_s: 1.0,
            machine: crate::run::machine::describe(),
            window_ms: 100,
            rounds: 1,
            iterations_per_us: 1000.0,
            seed: 0,
            round_trips_ns: Vec::new(),
            rows,
            trials,
        }
    }
}

impl<R: Serialize> Record<R> {
    /// Runs the plan of the bench called `name`, or as much of it as there is before a signal,
    /// which is returned. There are no rows yet.
    pub fn measure(
        (name, schema): (&'static str, &str),
        mode: Mode,
        machine: Machine,
        plan: &Plan,
    ) -> anyhow::Result<(Self, Option<i32>)> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut record = Self {
            schema: schema.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            mode,
            ended: Ended::Rounds,
            took_s: 0.0,
            machine,
            window_ms: plan.lengths.window_ms,
            rounds: plan.rounds,
            iterations_per_us: plan.lengths.iterations_per_us,
            seed: now.subsec_nanos(),
            round_trips_ns: Vec::new(),
            rows: Vec::new(),
            trials: Vec::new(),
        };
        eprintln!("{name}: {plan}");
        let start = Instant::now();
        // A smoke run shows that everything runs.
        let limit = plan.limit().filter(|_| mode != Mode::Smoke);
        let signal = record.rounds(name, plan, limit.map(|limit| start + limit))?;
        record.took_s = start.elapsed().as_secs_f64();
        Ok((record, signal))
    }

    /// Runs the rounds, or what there is of them before `end` or a signal, which it returns.
    fn rounds(
        &mut self,
        name: &'static str,
        plan: &Plan,
        end: Option<Instant>,
    ) -> anyhow::Result<Option<i32>> {
        let runner = Runner::new()?;
        let progress = Progress::new(name, (0.0, Duration::ZERO));
        for round in 0..plan.rounds {
            self.round_trips_ns.extend(line::round_trip_ns());
            let seed = u64::from(self.seed) + u64::from(round);
            for probe in plan.round(round, seed) {
                if end.is_some_and(|end| Instant::now() >= end) {
                    progress.end();
                    self.ended = Ended::Budget;
                    return Ok(None);
                }
                progress.trial(self.trials.len(), plan.trials(), &describe(probe));
                let job = probe.job(plan.lengths, seed + self.trials.len() as u64);
                let outcome = runner.run(&job).with_context(|| {
                    progress.end();
                    describe(probe)
                })?;
                match outcome {
                    Outcome::Done(answer) => {
                        let Probe { cell, locks } = probe.clone();
                        self.trials.push(Trial { round, locks, cell, answer });
                    }
                    Outcome::Interrupted(signal) => {
                        progress.end();
                        self.ended = Ended::Interrupted;
                        return Ok(Some(signal));
                    }
                }
            }
        }
        progress.end();
        Ok(None)
    }

    /// Writes the record of the bench called `name` and says where.
    pub fn write(&self, name: &str) -> anyhow::Result<()> {
        let stem = match self.mode {
            Mode::Full => name.into(),
            Mode::Quick => format!("{name}-quick"),
            Mode::Smoke => format!("{name}-smoke"),
        };
        let path = report::folder()?.join(report::stem_of(&stem, self.ended) + ".json");
        let json = report::one_trial_a_line(serde_json::to_value(self)?);
        std::fs::write(&path, json).with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("{name}: {}", path.display());
        Ok(())
    }

    /// What the columns of its tables mean, and what a reader must know before believing anything.
    pub fn notes(&self, columns: &str) -> String {
        [columns.to_owned()].into_iter().chain(self.caveats()).map(|line| line + "\n").collect()
    }

    /// What a reader must know before believing anything.
    pub fn caveats(&self) -> Vec<String> {
        let mut caveats = Vec::new();
        match self.mode {
            Mode::Full => {}
            Mode::Quick => caveats.push("A quick look: few of the rows, short windows.".into()),
            Mode::Smoke => caveats.push("A smoke run: it measures nothing.".into()),
        }
        caveats.extend(self.machine.translated());
        if self.ended == Ended::Interrupted {
            caveats.push("The run was interrupted: what follows rests on the trials that had ended.".into());
        }
        if self.ended == Ended::Budget {
            caveats.push(format!(
                "The run took {OVERRUN} times as long as its plan reckons and was ended: what follows rests on \
                 the {} trials that had ended.",
                self.trials.len()
            ));
        }
        if self.machine.load_average[0] > 0.5 {
            let load = self.machine.load_average[0];
            caveats.push(format!("The machine was not idle: load {load:.1} in the minute before the run."));
        }
        caveats.extend(line::describe(&self.round_trips_ns));
        caveats
    }
}

/// A trial in words, for progress and errors.
fn describe(probe: &Probe) -> String {
    let locks = probe.locks.join(", ");
    match probe.cell {
        Cell::Loop { workload, workers, .. } => {
            format!("{locks}, {} workers, {}", workers.count(), report::describe(workload))
        }
        Cell::Hogs(Hogs { hogs, victims, .. }) => format!("{locks}, {hogs} hogs, {victims} victims"),
        Cell::Handoff => format!("{locks}, hand-overs"),
        Cell::Pairs => format!("{locks}, uncontended"),
        Cell::ReadPairs => format!("{locks}, uncontended readers"),
        Cell::ProcessPairs => format!("{locks}, uncontended, between processes"),
        Cell::Recovery(run) => format!("{locks}, holders killed, {} sleepers", run.sleepers),
        Cell::Shared { workload, workers, reads } => {
            format!("{locks}, {} workers, {reads} % reads, {}", workers.count(), report::describe(workload))
        }
        Cell::Rw(run) => format!("{locks}, {}", run.name()),
        Cell::Sem(run) => format!("{locks}, {run}"),
        Cell::Condvar(run) => format!("{locks}, {run}"),
        Cell::Sets(ops) => format!("{locks}, uncontended sets of {ops}"),
        Cell::Singles(semaphores) => format!("{locks}, uncontended operations on {semaphores}"),
    }
}
