//! An exploration by rising limits of preemptions: all executions with none, then with one, and so
//! on, until the time is used up or a limit has left nothing out.
//!
//! Most bugs take few preemptions, and each more takes a multiple of the executions. So a model
//! that is too large to be explored whole is explored as far as that.
//!
//! Source: M. Musuvathi, S. Qadeer, *Iterative Context Bounding for Systematic Testing of
//! Multithreaded Programs*, PLDI 2007.

use super::environment::{asked_for, number};
use super::run::run_from;
use super::{Config, Failure, Report, Strategy, reported, run_on};
use std::num::NonZero;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// Explores `model` with at most 0 preemptions, then 1, and so on, on `workers` threads of the
/// system, until [`Config::budget`] is spent. The limit of `config` is the last, if it has one. The
/// report says within which limit all executions were tried: [`Report::within`].
///
/// Its counts are of all limits together, and its bounds those of the last one.
///
/// # Errors
/// The first execution that goes wrong, within the lowest limit that has one.
///
/// # Panics
/// As [`run`](super::run). And if `config` is not [exhaustive](Strategy::Exhaustive).
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use ulocks_vm::explore::{Config, run_deepening};
/// use ulocks_vm::sync::{Arc, AtomicU32, Ordering::Relaxed};
/// use ulocks_vm::thread;
///
/// let config = Config { budget: Some(Duration::from_secs(10)), ..Config::exhaustive() };
/// let report = run_deepening(2, &config, || {
///     let word = Arc::new(AtomicU32::new(0));
///     let other = thread::spawn({
///         let word = Arc::clone(&word);
///         move || word.fetch_add(1, Relaxed)
///     });
///     word.fetch_add(1, Relaxed);
///     other.join().unwrap();
///     assert_eq!(word.load(Relaxed), 2);
/// });
/// println!("{}", report.unwrap());
/// ```
pub fn run_deepening(
    workers: usize,
    config: &Config,
    model: impl Fn() + Send + Sync + 'static,
) -> Result<Report, Box<Failure>> {
    assert!(config.strategy == Strategy::Exhaustive, "limits rise in an exploration of all executions only");
    let end = config.budget.and_then(|budget| Instant::now().checked_add(budget));
    let model = Arc::new(model);
    let mut sum = Report::default();
    for most in 0..=config.preemptions.unwrap_or(u32::MAX) {
        let budget = end.map(|end| end.saturating_duration_since(Instant::now()));
        let executions = config.executions.saturating_sub(sum.executions + sum.redundant);
        let within = Config { preemptions: Some(most), budget, executions, ..config.clone() };
        let model = Arc::clone(&model);
        let report = run_on(workers, &within, move || model()).map_err(|mut failure| {
            failure.execution += sum.executions + sum.redundant;
            failure
        })?;
        sum.bounds = super::Bounds::default();
        sum.add(&report);
        sum.share = report.share;
        if !report.finished {
            return Ok(sum);
        }
        sum.within = Some(most);
        if report.bounds.preemptions.is_none() {
            break;
        }
    }
    sum.finished = true;
    sum.complete = !sum.bounds.is_hit();
    Ok(sum)
}

/// Executions after which [`check`] takes all CPUs. Of 138 models of published crates (`cargo lab
/// suites`) 15 have more; so many take 0.2 to 3 s in those.
const ALONE: u64 = 20_000;

/// As [`run`](super::run), for a facade with a report of its own: a failure is a panic, and the
/// page and the coverage that the environment asks for are written.
///
/// A large model is explored on all CPUs, or on as many as `ULOCKS_VM_CPUS` says, unless coverage
/// is asked for. If it has a [budget](Config::budget) and no limit of preemptions, limits rise:
/// [`run_deepening`].
///
/// # Panics
/// With the story of the first execution that goes wrong. If a variable does not hold a number.
#[track_caller]
pub fn check(config: &Config, model: impl Fn() + Send + Sync + 'static) -> Report {
    let mut coverage = asked_for();
    let covers = coverage.is_some();
    let model = Arc::new(model);
    let mut alone = |config: &Config| {
        let model = Arc::clone(&model);
        run_from(config, &(Rc::new(move || model()) as Rc<dyn Fn()>), &mut |_| (), &mut coverage)
    };
    let all = || thread::available_parallelism().map_or(1, NonZero::get);
    let workers = number("ULOCKS_VM_CPUS").map_or_else(all, |count| count.max(1) as usize);
    let takes_all = config.strategy == Strategy::Exhaustive && !covers && workers > 1;
    let begun = Instant::now();
    let executions = if takes_all { config.executions.min(ALONE) } else { config.executions };
    let mut result = alone(&Config { executions, ..config.clone() });
    let is_large = |report: &Report| !report.finished && !report.out_of_time;
    if executions < config.executions && result.as_ref().is_ok_and(is_large) {
        let budget = config.budget.map(|budget| budget.saturating_sub(begun.elapsed()));
        let (config, of_all) = (Config { budget, ..config.clone() }, Arc::clone(&model));
        let rises = budget.is_some() && config.preemptions.is_none();
        let explore = if rises { run_deepening } else { run_on };
        result = explore(workers, &config, move || of_all());
        // Executions that run at the same time may share a static of the program. What only that
        // makes fail has no replay.
        if result.as_ref().is_err_and(|failure| failure.replay.is_empty()) {
            result = alone(&config);
        }
    }
    reported(result, coverage)
}
