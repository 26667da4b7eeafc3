//! An exploration of all executions on several CPUs.
//!
//! The tree of answers is cut into *parts*: what follows one way through its first
//! steps (`SPLIT` of `choice/share.rs`). Each worker walks the whole tree, claims the parts
//! that nobody has claimed, and passes by the others. It tells of each part what a report tells of
//! an exploration.
//!
//! # Invariants
//! 1. Each part has the same number for every worker, and one worker runs it, in the order in which
//!    one worker alone would.
//! 2. A part depends on the way to it only: where it begins, all orders are tried of the steps
//!    before, so that no race in one part asks for another part.
//! 3. A worker claims its parts in rising order. When one has failed, no higher one is claimed; the
//!    lower ones are run to their end.
//!
//! So neither the sums nor the failure depend on the number of workers, or on which was faster.

use super::run::{Driver, Found, Kept, begin, execute, hundredths, relation, told};
use super::{Config, Failure, Report, Strategy, run};
use crate::choice::share::Claims;
use crate::choice::{Exhaustive, Recorder, Strategy as _};
use core::num::NonZero;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// Explores `model` as [`run`] does, on all CPUs if `config` asks for all executions. Whatever the
/// number of CPUs, the report and the failure are the same.
///
/// Their counts may differ somewhat from those of `run`: all orders of the first steps are tried,
/// so that other executions may stand for the same outcomes.
///
/// # Errors
/// As [`run`]; the failing execution is the first one in the order of the answers.
///
/// # Panics
/// As [`run`].
pub fn run_parallel(
    config: &Config,
    model: impl Fn() + Send + Sync + 'static,
) -> Result<Report, Box<Failure>> {
    run_on(thread::available_parallelism().map_or(1, NonZero::get), config, model)
}

/// As [`run_parallel`], on `workers` threads of the system.
///
/// # Errors
/// As [`run_parallel`].
///
/// # Panics
/// As [`run`].
pub fn run_on(
    workers: usize,
    config: &Config,
    model: impl Fn() + Send + Sync + 'static,
) -> Result<Report, Box<Failure>> {
    if config.strategy != Strategy::Exhaustive {
        return run(config, model);
    }
    let model = Arc::new(model);
    let claims = Arc::new(Claims::new(config.executions));
    let end = config.budget.and_then(|budget| Instant::now().checked_add(budget));
    let mut parts = BTreeMap::new();
    thread::scope(|scope| {
        let begun: Vec<_> = (0..workers.max(1))
            .map(|_| {
                let (claims, model) = (Arc::clone(&claims), Arc::clone(&model));
                scope.spawn(move || work(config, &claims, end, &(Rc::new(move || model()) as Rc<dyn Fn()>)))
            })
            .collect();
        for worker in begun {
            match worker.join() {
                Ok(of_one) => parts.extend(of_one),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    let mut report = Report::default();
    let shares: Vec<f64> = parts.values().filter_map(|part| part.share).collect();
    if !shares.is_empty() {
        report.share = Some(hundredths(shares.iter().sum::<f64>() / shares.len() as f64));
    }
    for Part { report: part, found, .. } in parts.into_values() {
        report.add(&part);
        if let Some(found) = found {
            let execution = report.executions + report.redundant;
            let model = Rc::new(move || model()) as Rc<dyn Fn()>;
            return Err(Box::new(told(config, true, &model, execution, found)));
        }
    }
    report.finished = !claims.is_cut() && !report.out_of_time;
    report.demand_executions();
    report.complete = report.finished && !report.bounds.is_hit();
    Ok(report)
}

/// What one part has shown.
#[derive(Default)]
struct Part {
    report: Report,
    found: Option<Found>,
    /// How far the worker had come in the whole tree, if the time was up then.
    share: Option<f64>,
}

/// Runs the parts that no other worker claims.
fn work(
    config: &Config,
    claims: &Arc<Claims>,
    end: Option<Instant>,
    model: &Rc<dyn Fn()>,
) -> BTreeMap<usize, Part> {
    let mut parts: BTreeMap<usize, Part> = BTreeMap::new();
    let all = Exhaustive::sharing(relation(config), Arc::clone(claims));
    let mut choices = Recorder::new(Driver::Exhaustive(all));
    loop {
        match begin(&mut choices) {
            Ok(true) => {}
            Ok(false) => break,
            Err(verdict) => {
                // Of the part that was run last; the answers of no execution show it.
                let part = parts.keys().next_back().copied().unwrap_or(0);
                parts.entry(part).or_default().found = Some(Found { verdict, bytes: Vec::new() });
                claims.fails(part);
                break;
            }
        }
        let outcome = execute(config, &mut choices, true, Kept::Nothing, model);
        let Driver::Exhaustive(all) = choices.strategy_mut() else { unreachable!("made so above") };
        let Some(number) = all.part() else { continue };
        let part = parts.entry(number).or_default();
        part.report.count(&outcome, choices.is_redundant());
        let found = outcome.verdict.map(|verdict| Found { verdict, bytes: choices.bytes().to_vec() });
        if let Some(found) = found.filter(|found| !found.is_of_first_uses(config, true, model)) {
            part.found = Some(found);
            claims.fails(number);
        }
        part.report.out_of_time = end.is_some_and(|end| Instant::now() >= end);
        if let Driver::Exhaustive(all) = choices.strategy()
            && part.report.out_of_time
        {
            part.share = Some(all.share());
        }
        if part.report.out_of_time || !claims.goes_on(number) {
            break;
        }
    }
    parts
}
