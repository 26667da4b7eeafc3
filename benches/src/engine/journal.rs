//! A record in the making, and its journal, which `--resume` goes on from.
//!
//! The journal is the record so far. It lies beside the record, is written when a round or the run
//! ends, and goes when the records of all rows are written. A run that was killed loses the round
//! that it was in.
//!
//! A run goes on only if command, machine and program are those of the journal, and hence the plan.
//! It draws an order of its own for the trials that are left.

use super::cell::Subject;
use super::files;
use super::plan::{Order, Turn};
use super::record::{Ended, Line, Outcome, Record, SCHEMA};
use crate::run::busy_work;
use crate::run::machine::{self, Machine};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;
use std::time::{Duration, Instant};

/// A record in the making.
#[derive(Serialize, Deserialize)]
pub struct Journal {
    record: Record,
    /// A hash of the program's file.
    program: u64,
    /// Calibration of the busy work: one for all rounds.
    iterations_per_us: Option<f64>,
    /// When the run would have begun if nothing had interrupted it.
    #[serde(skip, default = "Instant::now")]
    start: Instant,
}

impl Journal {
    /// Of a run that begins now, or of the one that `order` goes on with.
    ///
    /// # Errors
    /// In one line, why that cannot be.
    pub fn begin(order: &Order) -> Result<Self> {
        let new = Self::new(order)?;
        let Some(path) = order.journal.as_ref().filter(|path| order.resume && path.exists()) else {
            return Ok(new);
        };
        let anew = "without --resume a run begins anew";
        let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let damaged = || format!("--resume: {} is damaged; {anew}", path.display());
        let mut old: Self = serde_json::from_slice(&text).with_context(damaged)?;
        files::check(&old.record).with_context(damaged)?;
        // Two runs differ in load and date in any case.
        let lasting =
            |of: &Self| Machine { load_average: [0.0; 3], date: String::new(), ..of.record.machine.clone() };
        let differences: Vec<&str> = [
            ("options", new.record.command != old.record.command),
            ("program", new.program != old.program),
            ("machine", lasting(&new) != lasting(&old)),
            (
                "cells",
                new.record.cells != old.record.cells || new.record.lines.len() != old.record.lines.len(),
            ),
        ]
        .into_iter()
        .filter_map(|(what, differs)| differs.then_some(what))
        .collect();
        ensure!(
            differences.is_empty(),
            "--resume: the interrupted run had other {}; it was begun with '{}'; {anew}",
            differences.join(", other "),
            old.record.command
        );
        let before = Duration::try_from_secs_f64(old.record.took_s).unwrap_or_default();
        old.start = new.start.checked_sub(before).unwrap_or(new.start);
        Ok(old)
    }

    fn new(order: &Order) -> Result<Self> {
        let mut hasher = DefaultHasher::new();
        // The file may have been replaced by a build, but the program that runs is the old one.
        hasher.write(&std::fs::read("/proc/self/exe").context("cannot read this program")?);
        let mut subjects: Vec<Subject> = Vec::new();
        let mut lines = Vec::new();
        for (cell, job) in order.jobs.iter().enumerate() {
            for name in &job.subjects {
                if !subjects.iter().any(|subject| subject.name == *name) {
                    subjects.push(Subject::of(&job.cell.scenario, name)?);
                }
                lines.push(Line { cell, subject: name.clone(), rounds: BTreeMap::new() });
            }
        }
        subjects.sort_by_key(|subject| subject.kind);
        let record = Record {
            schema: SCHEMA.into(),
            row: order.row.clone(),
            command: order.command.clone(),
            mode: order.mode,
            ended: Ended::Interrupted,
            machine: machine::describe(),
            took_s: 0.0,
            window_ms: order.window_ms,
            rounds: order.rounds,
            pin: order.pin.name().into(),
            left_out: order.left_out.clone(),
            subjects,
            cells: order.jobs.iter().map(|job| job.cell.clone()).collect(),
            lines,
        };
        let (program, iterations_per_us) = (hasher.finish(), order.iterations_per_us);
        Ok(Self { record, program, iterations_per_us, start: Instant::now() })
    }

    /// The calibration of the busy work, made when it is first asked for.
    pub fn iterations_per_us(&mut self) -> f64 {
        *self.iterations_per_us.get_or_insert_with(busy_work::calibrate)
    }

    /// How long the run has taken, the time before an interruption included.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The lines of a trial.
    fn lines(&self, (job, subject): Turn) -> Range<usize> {
        let first = |cell| self.record.lines.partition_point(|line| line.cell < cell);
        subject.map_or(first(job)..first(job + 1), |subject| first(job) + subject..first(job) + subject + 1)
    }

    /// Whether this trial of a round has ended.
    pub fn has(&self, round: u32, turn: Turn) -> bool {
        let known = |values: &Vec<Option<f64>>| matches!(values.get(round as usize), Some(Some(_)));
        self.record.lines[self.lines(turn)].iter().all(|line| line.rounds.values().any(known))
    }

    /// Adds what a trial gave, for each of its subjects.
    pub fn add(&mut self, round: u32, turn: Turn, outcomes: &[Outcome]) -> Result<()> {
        let lines = self.lines(turn);
        let (given, wanted) = (outcomes.len(), lines.len());
        ensure!(given == wanted, "a trial gave {given} outcomes for {wanted} subjects");
        for (line, outcome) in self.record.lines[lines].iter_mut().zip(outcomes) {
            for (name, &value) in outcome {
                let values = line.rounds.entry(name.clone()).or_default();
                values.resize(round as usize, None);
                values.push(Some(value).filter(|value| value.is_finite()).map(six_digits));
            }
        }
        Ok(())
    }

    /// Writes it where `order` says, if it does.
    pub fn keep(&mut self, order: &Order) -> Result<()> {
        self.record.took_s = self.elapsed().as_secs_f64();
        let Some(path) = &order.journal else { return Ok(()) };
        files::write(path, &serde_json::to_string(self)?)
    }

    /// The record, of what has ended.
    pub fn end(mut self, ended: Ended) -> Record {
        let rounds = self.record.rounds_done();
        self.record.lines.retain(|line| !line.rounds.is_empty());
        for values in self.record.lines.iter_mut().flat_map(|line| line.rounds.values_mut()) {
            values.resize(rounds, None);
        }
        self.record.ended = ended;
        self.record
    }
}

/// What a measurement has at most. All digits would double the size of a record.
fn six_digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}
