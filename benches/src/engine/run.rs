//! Runs the trials of a row and makes the record of them.
//!
//! One round is each (cell, subject) once, in an order drawn from a seed, each in a process of its
//! own ([`child`]): what is compared runs minutes apart at most, under whatever the machine does to
//! that round. All subjects of a [shared](crate::workloads::Scenario::is_shared) scenario run in
//! one trial.

use super::journal::Journal;
use super::plan::Order;
use super::progress::{Progress, say};
use super::record::{Ended, Outcome, Record};
use crate::report::units;
use crate::run::child::{self, Runner};
use crate::subjects::semaphores::kernel_set;
use crate::workloads::Trial;
use anyhow::{Context, Result, ensure};
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
/// If a trial fails or hangs, in one line. A journal, if there is one, has the trials before it.
pub fn run(order: &Order) -> Result<(Record, Option<i32>)> {
    ensure!(!order.jobs.is_empty(), "there is nothing to run");
    let mut journal = Journal::begin(order)?;
    // A run that begins anew forgets the one before.
    journal.keep(order)?;
    let mut progress = Progress::new(&order.row, order.after_s);
    let ended = rounds(order, &mut journal, &mut progress);
    progress.clear();
    let kept = journal.keep(order);
    let (ended, signal) = ended?;
    kept?;
    Ok((journal.end(ended), signal))
}

fn rounds(order: &Order, journal: &mut Journal, progress: &mut Progress) -> Result<(Ended, Option<i32>)> {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| u64::from(now.subsec_nanos()));
    let iterations_per_us = journal.iterations_per_us();
    let runner = Runner::new()?;
    let turns = (0..order.rounds).flat_map(|round| order.round(0).into_iter().map(move |turn| (round, turn)));
    let reused = turns.filter(|&(round, turn)| journal.has(round, turn)).count();
    if reused > 0 {
        let (all, took) = (order.trials(), units::clock(journal.elapsed().as_secs_f64()));
        say(&format!("{}: {reused} of {all} trials, {took} min of them, are reused", order.row));
    }
    let (all_s, mut done_s, mut last, mut trials) = (order.takes_s(), 0.0, String::new(), 0);
    for round in 0..order.rounds {
        for turn in order.round(seed + u64::from(round)) {
            let trial = order.trial(turn, iterations_per_us, seed + trials);
            trials += 1;
            if !journal.has(round, turn) {
                if order.limit.is_some_and(|limit| journal.elapsed() >= limit) {
                    return Ok((Ended::Budget, None));
                }
                progress.show(done_s / all_s, journal.elapsed(), &last);
                let ended = runner.run(&serde_json::to_string(&trial)?, trial.limit());
                let answer = match ended.with_context(|| order.describe(turn))? {
                    child::Outcome::Done(answer) => answer,
                    child::Outcome::Interrupted(signal) => return Ok((Ended::Interrupted, Some(signal))),
                };
                let outcomes: Vec<Outcome> =
                    serde_json::from_str(&answer).context("the trial's answer is garbled")?;
                journal.add(round, turn, &outcomes)?;
                last = format!("{}: {}", order.describe(turn), in_short(&outcomes));
            }
            done_s += trial.takes_s();
        }
        journal.keep(order)?;
    }
    Ok((Ended::Rounds, None))
}

/// The first thing that one wants to know of a trial.
fn in_short(outcomes: &[Outcome]) -> String {
    let figure = |name: &str, text: fn(f64) -> String| Some(text(*outcomes.first()?.get(name)?));
    let per_s = figure("rate", units::rate).map(|rate| rate + "/s");
    per_s.or_else(|| figure("pair", units::time)).unwrap_or_else(|| "done".into())
}
