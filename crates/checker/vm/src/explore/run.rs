//! The harness: one execution after another, until one goes wrong or none is left.

use super::bounds::Bounds;
use super::coverage::Coverage;
use super::explorer::Explorer;
use super::html::{Picture, picture};
use super::machine::Machine;
use super::mixed::Mixed;
use super::quiet::{Quiet, take_last_message};
use super::story::{Story, place};
use super::verdict::Verdict;
use super::{Config, Failure, Report, Strategy, linux};
use crate::choice::footprint::{Relation, is_covered, is_covered_if_newest};
use crate::choice::{
    self, Bytes, Candidate, Exhaustive, Footprint, Kind, NotDeterministic, Odds, Pct, Random, Recorder,
    Strategy as _, Turn, shrink, text,
};
use crate::engine::{At, install, next_run};
use core::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::time::Instant;

/// The source of answers to the questions of an execution, and what was answered.
pub(super) type Choices<'s> = Recorder<Driver<'s>>;

/// Explores `model`.
///
/// # Errors
/// The first execution that went wrong, shrunk.
///
/// # Panics
/// If [`Strategy::Replay`] does not hold the string of a failure.
pub fn run(config: &Config, model: impl Fn() + 'static) -> Result<Report, Box<Failure>> {
    run_from(config, &(Rc::new(model) as Rc<dyn Fn()>), &mut |_| (), &mut None)
}

/// As [`run`], with what the executions did at each site. Takes longer.
///
/// # Errors
/// As [`run`].
pub fn cover(config: &Config, model: impl Fn() + 'static) -> Result<(Report, Coverage), Box<Failure>> {
    let mut coverage = Some(Coverage::default());
    let report = run_from(config, &(Rc::new(model) as Rc<dyn Fn()>), &mut |_| (), &mut coverage)?;
    Ok((report, coverage.unwrap_or_default()))
}

/// As [`run`]; `died` is told where a thread died, and `coverage`, if it is kept, what the
/// executions did.
pub(crate) fn run_from(
    config: &Config,
    model: &Rc<dyn Fn()>,
    died: &mut dyn FnMut(String),
    coverage: &mut Option<Coverage>,
) -> Result<Report, Box<Failure>> {
    let (input, systematic) = input(&config.strategy);
    let mut choices = Recorder::new(Driver::new(config, &input));
    let mut report = Report::default();
    let end = config.budget.and_then(|budget| Instant::now().checked_add(budget));
    while begin(&mut choices)
        .map_err(|verdict| Box::new(untold(config, report.executions + report.redundant, verdict)))?
    {
        if end.is_some_and(|end| report.executions + report.redundant > 0 && Instant::now() >= end) {
            report.out_of_time = true;
            if let Driver::Exhaustive(exhaustive) = choices.strategy() {
                report.share = Some(hundredths(exhaustive.share()));
            }
            break;
        }
        // A replay may be one of an execution that ends the process, which is told then.
        let kept = match config.strategy {
            Strategy::Replay(_) if coverage.is_none() => Kept::Story,
            _ => Kept::Coverage(coverage.take()),
        };
        let mut outcome = execute(config, &mut choices, systematic, kept, model);
        *coverage = outcome.coverage.take();
        let is_redundant = choices.is_redundant();
        report.count(&outcome, is_redundant);
        if let Some((at, _)) = outcome.death.filter(|_| !is_redundant) {
            died(place(at));
        }
        if let Some(verdict) = outcome.verdict {
            let execution = report.executions + report.redundant;
            let found = Found { verdict, bytes: choices.bytes().to_vec() };
            if found.is_of_first_uses(config, systematic, model) {
                continue;
            }
            return Err(Box::new(told(config, systematic, model, execution, found)));
        }
    }
    report.finished = !report.out_of_time && choices.strategy().is_complete();
    report.demand_executions();
    report.complete = report.finished && !report.bounds.is_hit();
    Ok(report)
}

/// A share of an exploration that is not over.
pub(super) fn hundredths(share: f64) -> u8 {
    (share * 100.0).clamp(0.0, 99.0) as u8
}

/// Begins another execution, unless the one before was shorter than one that gave the same answers.
pub(super) fn begin(choices: &mut Choices<'_>) -> Result<bool, Verdict> {
    let quiet = Quiet::new();
    let begun = catch_unwind(AssertUnwindSafe(|| choices.begin()));
    drop(quiet);
    begun.map_err(|payload| match payload.downcast::<NotDeterministic>() {
        Ok(difference) => Verdict::of_difference(&difference),
        Err(payload) => panics(payload),
    })
}

/// The machine itself has panicked, while panics were kept.
fn panics(payload: Box<dyn Any + Send>) -> ! {
    if let Some(message) = take_last_message() {
        eprintln!("ulocks-vm: a fault of this checker: {message}");
    }
    resume_unwind(payload)
}

/// A failure of which no execution can be told.
pub(super) fn untold(config: &Config, execution: u64, verdict: Verdict) -> Failure {
    Failure {
        verdict,
        execution,
        replay: String::new(),
        story: String::new(),
        picture: Picture(String::new()),
        config: config.to_string(),
    }
}

impl Report {
    /// One of all executions repeats no other.
    pub(super) fn demand_executions(&self) {
        assert!(
            !self.finished || self.executions > 0,
            "a fault of this checker: each execution is said to repeat another: please report the model"
        );
    }

    /// Counts an execution.
    pub(super) fn count(&mut self, outcome: &Outcome, is_redundant: bool) {
        self.steps += outcome.steps;
        self.bounds.add(&outcome.bounds);
        self.threads = self.threads.max(outcome.threads);
        if is_redundant {
            self.redundant += 1;
            return;
        }
        self.executions += 1;
        self.count_death(outcome.death);
    }

    /// Counts the executions of another report.
    pub(super) fn add(&mut self, other: &Self) {
        self.executions += other.executions;
        self.redundant += other.redundant;
        self.steps += other.steps;
        self.threads = self.threads.max(other.threads);
        self.bounds.add(&other.bounds);
        self.out_of_time |= other.out_of_time;
        self.add_deaths(other);
    }
}

/// An execution that went wrong, as it was found.
pub(super) struct Found {
    pub(super) verdict: Verdict,
    pub(super) bytes: Vec<u8>,
}

impl Found {
    /// Whether it is a leak of what only a first use allocates, such as a static: the execution
    /// does not leak again.
    pub(super) fn is_of_first_uses(&self, config: &Config, systematic: bool, model: &Rc<dyn Fn()>) -> bool {
        matches!(self.verdict, Verdict::Leak(_))
            && config.leaks
            && again(config, systematic, model, &self.bytes, Kept::Nothing).verdict.is_none()
    }
}

/// How one execution ended.
pub(super) struct Outcome {
    pub(super) verdict: Option<Verdict>,
    pub(super) steps: u64,
    threads: usize,
    bounds: Bounds,
    /// Where a thread died, and whether the survivors wait for the dead for ever.
    pub(super) death: Option<(At, bool)>,
    story: Option<Story>,
    coverage: Option<Coverage>,
}

/// What an execution keeps beside its verdict.
pub(super) enum Kept {
    Nothing,
    Story,
    /// With what those before it did, if that is kept at all.
    Coverage(Option<Coverage>),
}

/// Runs `model` once. `systematic`: by the rules of an exploration of all executions
/// (`Machine::is_systematic`), under which other questions are asked than by chance.
pub(super) fn execute(
    config: &Config,
    choices: &mut Choices<'_>,
    systematic: bool,
    kept: Kept,
    model: &Rc<dyn Fn()>,
) -> Outcome {
    let (story, coverage) = match kept {
        Kept::Nothing => (None, None),
        Kept::Story => (Some(Story::default()), None),
        Kept::Coverage(coverage) => (None, coverage),
    };
    let run = next_run();
    let mut machine = Machine::new(config, choices, systematic, run, story);
    machine.coverage = coverage;
    let explorer = Explorer::new(machine);
    let body = Rc::clone(model);
    let _quiet = Quiet::new();
    let body = move || {
        body();
        crate::thread::end_of_thread();
    };
    let run_it = || install(&explorer, || explorer.run(Box::new(body)));
    // A question is also asked where a thread has ended, and no code of the model runs.
    let verdict = catch_unwind(AssertUnwindSafe(run_it)).unwrap_or_else(|payload| {
        match payload.downcast::<NotDeterministic>() {
            Ok(difference) => Some(Verdict::of_difference(&difference)),
            Err(payload) => panics(payload),
        }
    });
    let mut machine = explorer.into_machine();
    linux::end_run();
    crate::thread::forget_tokens();
    crate::thread::forget_all();
    let leak = crate::sync::leaks::end_run(run).filter(|_| verdict.is_none() && machine.has_ended());
    let leak = leak.or_else(|| {
        let is_looked_for = config.leaks && verdict.is_none() && machine.has_ended();
        is_looked_for.then(|| machine.not_given_back()).flatten()
    });
    let verdict = verdict.or_else(|| leak.map(|leak| machine.leaks(leak)));
    let verdict = verdict.or_else(|| machine.written_after_its_end());
    let (steps, threads, death) = (machine.steps(), machine.threads.len(), machine.death());
    let (bounds, coverage) = (machine.bounds, machine.coverage.take());
    Outcome { verdict, steps, threads, bounds, death, story: machine.into_story(), coverage }
}

/// Runs the execution of these answers once more.
fn again(config: &Config, systematic: bool, model: &Rc<dyn Fn()>, input: &[u8], kept: Kept) -> Outcome {
    let mut choices: Choices<'_> = Recorder::new(Driver::Bytes(Bytes::new(input)));
    choices.begin();
    execute(config, &mut choices, systematic, kept, model)
}

/// What an execution may take to count as one of those that may be spent on shrinking.
const STEPS_OF_A_SHORT_EXECUTION: u64 = 1_000;

/// A failure, as small as it gets, with its story.
pub(super) fn told(
    config: &Config,
    systematic: bool,
    model: &Rc<dyn Fn()>,
    execution: u64,
    Found { verdict, bytes }: Found,
) -> Failure {
    if matches!(verdict, Verdict::NotDeterministic(_)) {
        return untold(config, execution, verdict);
    }
    let again = |input: &[u8], kept| again(config, systematic, model, input, kept);
    let mut steps_left = config.shrink as u64 * STEPS_OF_A_SHORT_EXECUTION;
    let same = |input: &[u8]| {
        if steps_left == 0 {
            return false;
        }
        let mut is_same = true;
        // The first use of something may leak here once more: this may be another OS thread.
        for _ in 0..if matches!(verdict, Verdict::Leak(_)) { 2 } else { 1 } {
            let outcome = again(input, Kept::Nothing);
            steps_left = steps_left.saturating_sub(outcome.steps);
            is_same = is_same && outcome.verdict.is_some_and(|other| other.kind() == verdict.kind());
        }
        is_same
    };
    let small = shrink(&bytes, config.shrink, same);
    let last = again(&small, Kept::Story);
    if last.verdict.is_none() {
        return untold(config, execution, verdict);
    }
    Failure {
        verdict: last.verdict.unwrap_or(verdict),
        execution,
        replay: replay(systematic, &small),
        story: last.story.as_ref().map_or_else(String::new, Story::tale),
        picture: Picture(last.story.as_ref().map_or_else(String::new, picture)),
        config: config.to_string(),
    }
}

/// The strategy of an exploration.
pub(super) enum Driver<'s> {
    Mixed(Mixed),
    Random(Random),
    Pct(Pct),
    Exhaustive(Exhaustive),
    Bytes(Bytes<'s>),
}

impl<'s> Driver<'s> {
    fn new(config: &Config, input: &'s [u8]) -> Self {
        let Config { seed, executions, .. } = *config;
        match config.strategy {
            Strategy::Mixed => Self::Mixed(Mixed::new(seed, executions)),
            Strategy::Random => Self::Random(Random::new(seed, executions, Odds::default())),
            Strategy::Pct { depth } => Self::Pct(Pct::new(seed, executions, depth, Odds::default())),
            Strategy::Exhaustive => Self::Exhaustive(Exhaustive::new(executions, relation(config))),
            Strategy::Bytes(_) | Strategy::Replay(_) => Self::Bytes(Bytes::new(input)),
        }
    }

    fn is_complete(&self) -> bool {
        matches!(self, Self::Exhaustive(exhaustive) if exhaustive.coverage().is_complete)
    }
}

/// Calls the strategy's own method.
macro_rules! on_strategy {
    ($driver:expr, $strategy:ident => $call:expr) => {
        match $driver {
            Driver::Mixed($strategy) => $call,
            Driver::Random($strategy) => $call,
            Driver::Pct($strategy) => $call,
            Driver::Exhaustive($strategy) => $call,
            Driver::Bytes($strategy) => $call,
        }
    };
}

/// Which orders the exhaustive strategy may leave out.
pub(super) fn relation(config: &Config) -> Relation {
    match (config.stale, config.preemptions) {
        (1.., None) => is_covered,
        _ => is_covered_if_newest,
    }
}

impl choice::Strategy for Driver<'_> {
    fn begin(&mut self) -> bool {
        on_strategy!(self, strategy => strategy.begin())
    }

    #[inline]
    fn thread(&mut self, enabled: &[Candidate]) -> usize {
        on_strategy!(self, strategy => strategy.thread(enabled))
    }

    #[inline]
    fn pick(&mut self, kind: Kind, n: usize) -> usize {
        on_strategy!(self, strategy => strategy.pick(kind, n))
    }

    fn yielded(&mut self, thread: usize) {
        on_strategy!(self, strategy => strategy.yielded(thread));
    }

    fn follows(&mut self, thread: usize, other: usize) {
        on_strategy!(self, strategy => strategy.follows(thread, other));
    }

    fn kept(&mut self, thread: usize, footprint: Footprint) {
        on_strategy!(self, strategy => strategy.kept(thread, footprint));
    }

    fn all_orders(&mut self) {
        on_strategy!(self, strategy => strategy.all_orders());
    }

    fn within(&mut self, turn: Turn, enabled: &[Candidate]) {
        on_strategy!(self, strategy => strategy.within(turn, enabled));
    }

    fn fact(&mut self, found: Option<u32>) -> Option<u32> {
        on_strategy!(self, strategy => strategy.fact(found))
    }

    fn repeats(&mut self) {
        on_strategy!(self, strategy => strategy.repeats());
    }

    fn is_redundant(&self) -> bool {
        on_strategy!(self, strategy => strategy.is_redundant())
    }
}

/// The mark of replays that go by the rules of an exploration of all executions.
const SYSTEMATIC_MARK: &str = "x";

/// The string that repeats an execution of these choices.
pub(super) fn replay(systematic: bool, bytes: &[u8]) -> String {
    let mark = if systematic { SYSTEMATIC_MARK } else { "" };
    format!("{mark}{}", text::encode(bytes))
}

/// The string that drives the choices, if one does, and whether the exploration is systematic.
fn input(strategy: &Strategy) -> (Vec<u8>, bool) {
    match strategy {
        Strategy::Bytes(bytes) => (bytes.clone(), false),
        Strategy::Replay(replay) => {
            let (text, systematic) = match replay.strip_prefix(SYSTEMATIC_MARK) {
                Some(rest) => (rest, true),
                None => (replay.as_str(), false),
            };
            (text::decode(text).unwrap_or_else(|error| panic!("not a replay: {error}")), systematic)
        }
        Strategy::Exhaustive => (Vec::new(), true),
        Strategy::Mixed | Strategy::Random | Strategy::Pct { .. } => (Vec::new(), false),
    }
}
