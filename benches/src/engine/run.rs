//! Runs the trials of a row and makes the record of them.
//!
//! One round is each (cell, subject) once, in an order drawn from a seed, each in a process of its
//! own ([`child`]): what is compared runs minutes apart at most, under whatever the machine does to
//! that round. All subjects of a [shared](crate::workloads::Scenario::is_shared) scenario run in
//! one trial.

use super::cell::Subject;
use super::journal::{Done, Head, Journal};
use super::plan::Order;
use super::progress::{Progress, say};
use super::record::{Ended, Line, Outcome, Record, SCHEMA};
use crate::report::units;
use crate::run::busy_work;
use crate::run::child::{self, Runner};
use crate::subjects::semaphores::kernel_set;
use crate::workloads::Trial;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// The main function of a program: one trial if it was started for that, or else `program`, which
/// returns its exit code.
pub fn serve_or(program: impl FnOnce() -> Result<ExitCode>) -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == child::TRIAL) {
        return child::serve(|order| {
            let trial: Trial = serde_json::from_str(order).context("not the description of a trial")?;
            let outcomes = trial.carry_out();
            // What a worker that hangs keeps alive would outlive this process.
            kernel_set::remove_all();
            Ok(serde_json::to_string(&outcomes?)?)
        });
    }
    program().unwrap_or_else(|error| {
        say(&format!("error: {error:#}"));
        ExitCode::FAILURE
    })
}

/// The exit code of a program that this signal ended early, if one did.
pub fn exit_code(signal: Option<i32>) -> ExitCode {
    signal.map_or(ExitCode::SUCCESS, |signal| ExitCode::from(128 + signal as u8))
}

/// Runs what is ordered. Returns the record, of what had ended if a signal came, and that signal.
///
/// # Errors
/// If a trial fails or hangs, in one line. The trials before it stay in the journal, if there is
/// one.
pub fn run(order: &Order) -> Result<(Record, Option<i32>)> {
    ensure!(!order.jobs.is_empty(), "there is nothing to run");
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| u64::from(now.subsec_nanos()));
    let iterations_per_us = order.iterations_per_us.unwrap_or_else(busy_work::calibrate);
    let mut head = Head::new(order, iterations_per_us, seed)?;
    let (mut journal, done) = Journal::open(order, &mut head)?;
    let runner = Runner::new()?;
    let mut maker = Maker::new(order, &head)?;
    let mut old = done.into_iter();
    let mut progress = Progress::new(&order.row, order.after_s);
    if !old.as_slice().is_empty() {
        let (trials, all) = (old.len(), order.trials());
        let took = units::clock(journal.elapsed().as_secs_f64());
        say(&format!("{}: {trials} of {all} trials, {took} min of them, are reused", order.row));
    }
    let (all_s, mut done_s, mut last) = (order.takes_s(), 0.0, String::new());
    for round in 0..order.rounds {
        for turn in order.round(head.seed + u64::from(round)) {
            let trial = order.trial(turn, head.iterations_per_us, head.seed + maker.trials);
            let takes_s = trial.takes_s();
            if let Some(done) = old.next() {
                ensure!(
                    done.turn == turn,
                    "--resume: the trials of the interrupted run are not in the order of this plan; \
                     without --resume a run begins anew"
                );
                maker.add(round, &done)?;
                done_s += takes_s;
                continue;
            }
            if order.limit.is_some_and(|limit| journal.elapsed() >= limit) {
                progress.clear();
                return Ok((maker.end(Ended::Budget, &journal), None));
            }
            progress.show(done_s / all_s, journal.elapsed(), &last);
            let outcome = runner.run(&serde_json::to_string(&trial)?, trial.limit()).with_context(|| {
                progress.clear();
                order.describe(turn)
            })?;
            match outcome {
                child::Outcome::Done(answer) => {
                    let outcomes = serde_json::from_str(&answer).context("the trial's answer is garbled")?;
                    let at_s = journal.elapsed().as_secs_f64();
                    let done = Done { at_s, turn, outcomes };
                    maker.add(round, &done)?;
                    journal.add(&done)?;
                    last = format!("{}: {}", order.describe(turn), in_short(&done.outcomes));
                    done_s += takes_s;
                }
                child::Outcome::Interrupted(signal) => {
                    progress.clear();
                    return Ok((maker.end(Ended::Interrupted, &journal), Some(signal)));
                }
            }
        }
    }
    progress.clear();
    Ok((maker.end(Ended::Rounds, &journal), None))
}

/// The first thing that one wants to know of a trial.
fn in_short(outcomes: &[Outcome]) -> String {
    let figure = |name: &str, text: fn(f64) -> String| Some(text(*outcomes.first()?.get(name)?));
    let per_s = figure("rate", units::rate).map(|rate| rate + "/s");
    per_s.or_else(|| figure("pair", units::time)).unwrap_or_else(|| "done".into())
}

/// What a measurement has at most. All digits would double the size of a record.
fn six_digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// A record in the making.
struct Maker {
    record: Record,
    /// For each job the index of its first line.
    first: Vec<usize>,
    /// Trials that have ended.
    trials: u64,
}

impl Maker {
    fn new(order: &Order, head: &Head) -> Result<Self> {
        let mut subjects: Vec<Subject> = Vec::new();
        let (mut lines, mut first) = (Vec::new(), Vec::new());
        for (cell, job) in order.jobs.iter().enumerate() {
            first.push(lines.len());
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
            command: head.command.clone(),
            mode: order.mode,
            ended: Ended::Interrupted,
            machine: head.machine.clone(),
            took_s: 0.0,
            window_ms: order.window_ms,
            rounds: order.rounds,
            pin: order.pin.name().into(),
            left_out: order.left_out.clone(),
            subjects,
            cells: order.jobs.iter().map(|job| job.cell.clone()).collect(),
            lines,
        };
        Ok(Self { record, first, trials: 0 })
    }

    fn add(&mut self, round: u32, done: &Done) -> Result<()> {
        let (job, subject) = done.turn;
        let start = self.first[job] + subject.unwrap_or(0);
        let end = match subject {
            Some(_) => start + 1,
            None => self.first.get(job + 1).copied().unwrap_or(self.record.lines.len()),
        };
        let (given, wanted) = (done.outcomes.len(), end - start);
        ensure!(given == wanted, "a trial gave {given} outcomes for {wanted} subjects");
        for (line, outcome) in self.record.lines[start..end].iter_mut().zip(&done.outcomes) {
            for (name, &value) in outcome {
                let values = line.rounds.entry(name.clone()).or_default();
                values.resize(round as usize, None);
                values.push(Some(value).filter(|value| value.is_finite()).map(six_digits));
            }
        }
        self.trials += 1;
        Ok(())
    }

    fn end(mut self, ended: Ended, journal: &Journal) -> Record {
        let rounds = self.record.rounds_done();
        self.record.lines.retain(|line| !line.rounds.is_empty());
        for values in self.record.lines.iter_mut().flat_map(|line| line.rounds.values_mut()) {
            values.resize(rounds, None);
        }
        self.record.ended = ended;
        self.record.took_s = journal.elapsed().as_secs_f64();
        self.record
    }
}
