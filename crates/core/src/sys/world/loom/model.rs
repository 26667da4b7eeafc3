//! The harness: loom, run once for each combination of the choices that are not loom's. Described
//! in `crate::model`.

use super::{INTERRUPTION, Interruption, kernel};
use core::any::Any;
use core::cell::{Cell, RefCell};
use core::fmt;
use core::panic::Location;
use core::time::Duration;
use std::env;
use std::panic::{self, AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Once};
use std::time::Instant;

/// How faithful the modelled futex is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grade {
    /// A wake-up wakes all threads that sleep on the key, whatever its count and bitset; a requeue
    /// wakes the threads that it would move. Every wake-up too many is a spurious one, which any
    /// protocol must bear, so this grade checks safety against more than the kernel does. It cannot
    /// see a wake-up that goes to the wrong sleeper or to too few.
    Cheap,
    /// A queue per key, first in first out; counts, bitsets and requeues as in the kernel.
    #[default]
    Exact,
    /// As `Exact`, and a wake-up orders nothing, as the kernel promises: what the waker did before
    /// it is not thereby visible to the woken. The other grades park a sleeper, and loom's `unpark`
    /// is an ordering edge. Here a sleeper polls, which costs more, and a deadlock is reported as
    /// "exceeded maximum number of branches".
    Unordered,
}

/// What to explore and how far.
#[derive(Clone, Debug)]
pub struct Config {
    /// How often a thread may be preempted in one execution; `None` for no bound, which ends in
    /// reasonable time only for two threads of a few operations each. Two finds most bugs.
    pub preemptions: Option<usize>,
    /// How faithful the futex is.
    pub grade: Grade,
    /// How many looks at a deadline (timed waits that would sleep, and `Deadline::has_passed`) are
    /// chosen freely.
    pub timeouts: u32,
    /// What the looks after those are told. With `false` (the default) a timed wait sleeps until it
    /// is woken, so a lost wake-up is a deadlock although the wait is timed. With `true` every
    /// deadline has passed.
    pub rest_expire: bool,
    /// How many waits that would sleep may end spuriously, in all combinations.
    pub spurious: u32,
    /// Scheduling points in one execution beyond which it counts as endless.
    pub max_branches: usize,
    /// Executions of all combinations together beyond which the exploration fails; `None` for no
    /// limit.
    pub max_executions: Option<usize>,
    /// Time beyond which the exploration fails; `None` for no limit. Ten minutes by default,
    /// against models that never end.
    pub max_duration: Option<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            preemptions: Some(2),
            grade: Grade::Exact,
            timeouts: 0,
            rest_expire: false,
            spurious: 0,
            max_branches: 1_000,
            max_executions: None,
            max_duration: Some(Duration::from_secs(600)),
        }
    }
}

impl Config {
    /// At most `preemptions` preemptions, everything else as by default.
    pub fn bounded(preemptions: usize) -> Self {
        Self { preemptions: Some(preemptions), ..Self::default() }
    }

    /// No bound on preemptions, everything else as by default.
    pub fn unbounded() -> Self {
        Self { preemptions: None, ..Self::default() }
    }

    /// The configuration with what the environment overrides. Refuses what cannot be enumerated.
    fn with_environment(mut self) -> Self {
        fn number(name: &str) -> Option<usize> {
            let text = env::var(name).ok()?;
            Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number")))
        }
        let choices = self.timeouts + self.spurious;
        assert!(choices <= 16, "{choices} free choices are 2^{choices} explorations: at most 16 are allowed");
        if let Some(bound) = number("LOOM_MAX_PREEMPTIONS") {
            self.preemptions = Some(bound);
        }
        if let Some(branches) = number("LOOM_MAX_BRANCHES") {
            self.max_branches = branches;
        }
        if let Some(executions) = number("LOOM_MAX_PERMUTATIONS") {
            self.max_executions = Some(executions);
        }
        if let Some(seconds) = number("LOOM_MAX_DURATION") {
            self.max_duration = Some(Duration::from_secs(seconds as u64));
        }
        self
    }
}

/// What an exploration covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Executions of all combinations of choices together.
    pub executions: usize,
    /// Combinations of choices that were explored.
    pub masks: usize,
}

/// One combination of the choices that loom knows nothing of. Bit `n` is the `n`th choice of an
/// execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Masks {
    timeouts: u32,
    spurious: u32,
}

impl fmt::Display for Masks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "timeouts {:#b}, spurious {:#b}", self.timeouts, self.spurious)
    }
}

/// One call of loom: the choices it runs under, and how many of them its executions asked for.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) grade: Grade,
    timeouts: u32,
    spurious: u32,
    rest_expire: bool,
    failure_expected: bool,
    masks: Masks,
    timeouts_drawn: Cell<u32>,
    spurious_drawn: Cell<u32>,
}

std::thread_local! {
    /// The run of this OS thread: loom keeps all threads of a model on one.
    static RUN: RefCell<Option<Rc<Run>>> = const { RefCell::new(None) };
}

impl Run {
    /// The run in progress; under a bare `loom::model` the exact grade without choices.
    pub(super) fn current() -> Rc<Self> {
        RUN.with_borrow(|run| run.clone()).unwrap_or_default()
    }

    pub(super) fn timeout_bit(&self, nth: u32) -> bool {
        self.timeouts_drawn.set(self.timeouts_drawn.get().max(nth + 1));
        if nth < self.timeouts { self.masks.timeouts >> nth & 1 == 1 } else { self.rest_expire }
    }

    pub(super) fn spurious_bit(&self, nth: u32) -> bool {
        self.spurious_drawn.set(self.spurious_drawn.get().max(nth + 1));
        nth < self.spurious && self.masks.spurious >> nth & 1 == 1
    }

    /// Whether `other` differs from this run's masks only in choices that no execution of this run
    /// asked for: then its executions are the same ones.
    fn covers(&self, other: Masks) -> bool {
        let low = |drawn: u32| u32::MAX.checked_shr(32 - drawn.min(32)).unwrap_or(0);
        (self.masks.timeouts ^ other.timeouts) & low(self.timeouts_drawn.get()) == 0
            && (self.masks.spurious ^ other.spurious) & low(self.spurious_drawn.get()) == 0
    }
}

/// Keeps the panic that [`finds_bug`] expects off the screen: its message is printed with the
/// result.
fn silence_expected_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !RUN.with_borrow(|run| run.as_ref().is_some_and(|run| run.failure_expected)) {
                print(info);
            }
        }));
    });
}

/// Takes the run away from the OS thread when loom returns or unwinds.
struct Running;

impl Running {
    fn start(run: Rc<Run>) -> Self {
        let before = RUN.replace(Some(run));
        assert!(before.is_none(), "a model cannot be explored inside a model");
        Self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUN.set(None);
    }
}

/// The panic of an exploration that a limit cut short.
struct Cut(String);

/// How an exploration failed.
struct Failure {
    payload: Box<dyn Any + Send>,
    masks: Masks,
    executions: usize,
}

impl Failure {
    fn message(&self) -> &str {
        let payload = &*self.payload;
        payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("a panic without a message")
    }
}

/// Runs `model` in every execution within the bound and under every combination of the choices.
///
/// # Panics
/// If an execution panics, deadlocks, races or does not end, after printing the choices it ran
/// under; and if a limit of the configuration is reached before the end.
#[track_caller]
pub fn explore(config: Config, model: impl Fn() + Send + Sync + 'static) -> Report {
    let at = Location::caller();
    let config = config.with_environment();
    match run_all(&config, false, model) {
        Ok(report) => {
            println!("{at}: {} {}", report.summary(), config.summary());
            report
        }
        Err(failure) => {
            let Failure { masks, executions, .. } = failure;
            println!("{at}: failed at execution {executions} ({masks}) {}", config.summary());
            resume_unwind(failure.payload)
        }
    }
}

/// Runs `model` until an execution fails, and returns the number of executions that took.
///
/// # Panics
/// If every execution passes, or if a limit is reached before one fails.
#[track_caller]
pub fn finds_bug(config: Config, model: impl Fn() + Send + Sync + 'static) -> usize {
    finds_bug_saying("", config, model)
}

/// As [`finds_bug`], for a failure whose message contains `text`: "deadlock", "Concurrent", a text
/// of the model's own.
///
/// # Panics
/// If every execution passes, if a limit is reached before one fails, or if the failure says
/// something else.
#[track_caller]
pub fn finds_bug_saying(text: &str, config: Config, model: impl Fn() + Send + Sync + 'static) -> usize {
    let at = Location::caller();
    let config = config.with_environment();
    silence_expected_panics();
    match run_all(&config, true, model) {
        Ok(report) => panic!("the model found no bug: {} {}", report.summary(), config.summary()),
        Err(failure) => {
            let Failure { masks, executions, .. } = failure;
            let message = failure.message();
            assert!(message.contains(text), "the model found another bug than \"{text}\": {message}");
            let first_line = message.lines().next().unwrap_or_default();
            println!("{at}: bug found at execution {executions} ({masks}): {first_line}");
            executions
        }
    }
}

impl Report {
    fn summary(&self) -> String {
        format!("{} executions, {} masks", self.executions, self.masks)
    }
}

impl Config {
    fn summary(&self) -> String {
        let bound = match self.preemptions {
            Some(bound) => format!("at most {bound} preemptions"),
            None => "preemptions unbounded".to_owned(),
        };
        format!("({bound}, {:?} futex)", self.grade)
    }
}

#[track_caller]
fn run_all(
    config: &Config,
    failure_expected: bool,
    model: impl Fn() + Send + Sync + 'static,
) -> Result<Report, Failure> {
    let model = Arc::new(model);
    let executions = Arc::new(AtomicUsize::new(0));
    let start = Instant::now();
    let mut runs: Vec<Rc<Run>> = Vec::new();
    for combination in 0..1_u32 << (config.timeouts + config.spurious) {
        let masks = Masks {
            timeouts: combination & ((1 << config.timeouts) - 1),
            spurious: combination >> config.timeouts,
        };
        if runs.iter().any(|run| run.covers(masks)) {
            continue;
        }
        let run = Rc::new(Run {
            grade: config.grade,
            timeouts: config.timeouts,
            spurious: config.spurious,
            rest_expire: config.rest_expire,
            failure_expected,
            masks,
            ..Run::default()
        });
        runs.push(Rc::clone(&run));

        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = config.preemptions;
        builder.max_branches = config.max_branches;
        // Loom returns silently when its own limits cut an exploration short.
        builder.max_permutations = None;
        builder.max_duration = None;
        let limits = (config.max_executions, config.max_duration);
        let (model, counter) = (Arc::clone(&model), Arc::clone(&executions));
        let running = Running::start(run);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            builder.check(move || {
                let nth = counter.fetch_add(1, Relaxed) + 1;
                check_limits(limits, nth, start);
                kernel::boot();
                #[cfg(feature = "parking_lot")]
                crate::sys::parking_lot::boot();
                model();
            });
        }));
        drop(running);
        if let Err(payload) = outcome {
            match payload.downcast::<Cut>() {
                Ok(cut) => panic!("the exploration was cut short: {}", cut.0),
                Err(payload) => return Err(Failure { payload, masks, executions: executions.load(Relaxed) }),
            }
        }
    }
    Ok(Report { executions: executions.load(Relaxed), masks: runs.len() })
}

fn check_limits(limits: (Option<usize>, Option<Duration>), nth: usize, start: Instant) {
    let (max_executions, max_duration) = limits;
    if let Some(max) = max_executions.filter(|max| nth > *max) {
        resume_unwind(Box::new(Cut(format!("more than the {max} executions allowed"))));
    }
    if let Some(max) = max_duration.filter(|max| start.elapsed() > *max) {
        resume_unwind(Box::new(Cut(format!("{nth} executions took more than the {max:?} allowed"))));
    }
}

/// Runs `handler` on the calling model thread, after it has passed `points` of its points of
/// interruption. This is a signal that arrives there. It is a death if the handler panics with a
/// payload that the thread's own root catches.
///
/// The points of interruption are [`interruption_point`](crate::sync::interruption_point) and every
/// futex wait that would sleep. The latter ends with `Interrupted` if it has a deadline, and is
/// begun again if it has none, as after a handler installed with `SA_RESTART`. A handler already
/// set is replaced; one that is never reached does not run.
///
/// Enumerate `points` around [`explore`].
pub fn interrupt_at(points: usize, handler: impl FnOnce() + 'static) {
    INTERRUPTION.with(|slot| {
        *slot.borrow_mut() = Some(Interruption { points_to_pass: points, handler: Box::new(handler) });
    });
}
