//! Explores the executions of a model: schedules, stale reads, time-outs, spurious wake-ups,
//! signals, deaths. The last two need the feature `linux`.
//!
//! [`explore`] runs a closure again and again, each time as another execution, and panics with the
//! story of the first that goes wrong; [`run`] returns it. [`finds_bug`] demands that one goes
//! wrong: the test of a seeded bug.
//!
//! ```
//! use std::sync::Arc;
//! use ulocks_vm::explore::{Config, explore};
//! use ulocks_vm::sync::{AtomicU32, Ordering::{Acquire, Relaxed, Release}};
//! use ulocks_vm::thread;
//!
//! explore(Config::exhaustive(), || {
//!     let (data, ready) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
//!     let writer = {
//!         let (data, ready) = (Arc::clone(&data), Arc::clone(&ready));
//!         thread::spawn(move || {
//!             data.store(1, Relaxed);
//!             ready.store(1, Release);
//!         })
//!     };
//!     if ready.load(Acquire) == 1 {
//!         assert_eq!(data.load(Relaxed), 1);
//!     }
//!     writer.join().unwrap();
//! });
//! ```
//!
//! # What goes wrong
//! A panic; a data race on an [`UnsafeCell`](crate::sync::UnsafeCell) or
//! [`Watch`](crate::sync::Watch); an atomic used before its initialisation was published or after
//! its end; a deadlock; a lost wake-up, which is a deadlock in which a sleeper sleeps on a word
//! that has changed since, or was woken before it slept; a livelock, which is an execution that
//! reaches [`Config::max_steps`]. See [`Verdict`].
//!
//! While a panic unwinds, operations are no steps. They read and write what is newest, and wait for
//! nothing. A model that catches the panic fails at the next one, or at the end of the thread. A
//! panic that unwinds through no operation may be caught.
//!
//! # Busy-waits
//! A thread that has done a round of a busy-wait in vain waits. Where all executions are tried,
//! this execution repeats one in which the thread looks later, and counts as redundant. Else the
//! thread goes on when a word that it looked at can show another value. Rounds are those of
//! [`spin_until`](crate::sync::spin_until), and of any loop in which a thread comes back to the
//! same stack and registers, and has changed nothing. A loop that counts in a local is followed to
//! its end. A count on the heap or in a static is not seen.
//!
//! # Replays
//! An execution is a string of choices. A failure is shrunk before it is shown: as few choices as
//! possible that are not the tame one, and the same verdict. [`Failure::replay`] is that string;
//! `ULOCKS_VM_REPLAY`, or [`Config::replaying`], runs it again.
//!
//! # Environment
//! | variable | |
//! |---|---|
//! | `ULOCKS_VM_EXECUTIONS` | the number of executions of every exploration that is not exhaustive; a seeded bug may take as many as its test says |
//! | `ULOCKS_VM_SEED` | the seed |
//! | `ULOCKS_VM_SECONDS` | how long an exploration goes on looking: [`Config::budget`] |
//! | `ULOCKS_VM_REPLAY` | runs this one execution |
//! | `ULOCKS_VM_HTML` | the directory to which a failed exploration writes its story as a page |
//! | `ULOCKS_VM_COVERAGE` | `1`: an exploration without a failure prints its [`Coverage`] |
//! | `ULOCKS_VM_LEAKS` | `1`: memory that is never given back is an error: [`Config::leaks`] |
//! | `ULOCKS_VM_CPUS` | on how many CPUs [`check`] explores a large model, all without it |
//! | `ULOCKS_VM_PATIENCE` | for how many seconds code of a model may run without an operation of the facade, 5 without it, 0 for ever: then it is named, and the process aborts |

mod bounds;
mod coverage;
mod deepen;
mod engine;
mod environment;
mod explorer;
mod faults;
mod freed;
mod html;
mod kernel;
#[cfg(feature = "linux")]
mod linux;
#[cfg(not(feature = "linux"))]
#[path = "without_linux.rs"]
mod linux;
mod loops;
mod machine;
mod missing;
mod mixed;
mod names;
mod narrow;
mod parallel;
mod quiet;
#[cfg(test)]
mod reduction;
mod rounds;
mod run;
mod steering;
mod story;
mod stuck;
mod verdict;
mod watchdog;
mod words;
mod yields;

pub use bounds::{Bounds, Hit};
pub use coverage::{Coverage, Event, Operation, Site};
pub use deepen::{check, run_deepening};
#[cfg(feature = "linux")]
pub use linux::{Deaths, Kernel, Survivors};
pub use parallel::{run_on, run_parallel};
pub(crate) use run::run_from;
pub use run::{cover, run};
pub use steering::{resume, skip, stop};
pub use verdict::{Stuck, Verdict};

use core::fmt;
use core::panic::Location;
use core::time::Duration;
use std::rc::Rc;

/// How executions are chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// By chance, every second execution by `Pct` of depth 3.
    Mixed,
    /// By chance.
    Random,
    /// By priorities with `depth - 1` changes (Burckhardt et al. 2010): a bug that takes `depth`
    /// ordered steps is found with probability 1 / (threads * steps^(depth - 1)) an execution, or
    /// more.
    Pct {
        /// How many steps have to come in a certain order.
        depth: usize,
    },
    /// All, less those that repeat another, which is most: another order of steps is tried only
    /// where two of them race. And within bounds, without which no loop would end: a thread reads
    /// one old message at most [`Config::stale`] times, a weak exchange fails for no reason once
    /// before it is tried again, and a fruitless round of a busy-wait is not repeated before there
    /// is something new to see. [`Report::bounds`] says which of them left something out.
    Exhaustive,
    /// The one that a fuzzer's input says.
    Bytes(Vec<u8>),
    /// The one of a [`Failure::replay`].
    Replay(String),
}

/// Who may have memory again that a thread of the model has given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Nobody, in this execution: each allocation has another address.
    Never,
    /// The thread that gave it back, if it asks for as much: what it gave back last first.
    LastFreed,
}

/// What to explore, and how far.
#[derive(Clone, Debug)]
pub struct Config {
    /// How executions are chosen.
    pub strategy: Strategy,
    /// How many executions there are at most. An exhaustive exploration that is cut by it has
    /// failed.
    pub executions: u64,
    /// How long it goes on looking. It ends after the execution in which the time is up, and its
    /// report says so: [`Report::out_of_time`]. By default, until the executions are done.
    pub budget: Option<Duration>,
    /// How often in an execution a thread may lose its turn although it could go on, and has not
    /// yielded. An old value that is read counts as one, and so does a weak exchange that fails
    /// for no reason, and a store behind a newer one: [`Bounds::preemptions`].
    pub preemptions: Option<u32>,
    /// Where chance begins.
    pub seed: u64,
    /// Steps of one execution beyond which it counts as endless.
    pub max_steps: u64,
    /// How often in a row a thread may read the same old value of a word before it has to read the
    /// newest: on a real machine every store becomes visible at some time. With 0, loads read the
    /// newest value and stores go last: memory is sequentially consistent, and what is ordered by
    /// nothing is still a data race.
    pub stale: u32,
    /// Whether the end of an atomic has to be ordered after its uses. That is not known of a
    /// program that shares it by a [`std::sync::Arc`], whose counts order nothing here. A use after
    /// the end is an error either way.
    pub ordered_drops: bool,
    /// Whether deadlines pass. Without, timed waits sleep until they are woken, so that no time-out
    /// hides a lost wake-up.
    pub timeouts: bool,
    /// How many waits of an execution may end spuriously.
    pub spurious: u32,
    /// Who may have memory again that a thread has given back. Counts where the program's allocator
    /// is [`Allocator`](crate::alloc::Allocator).
    pub reuse: Reuse,
    /// Whether memory that an execution takes and never gives back is an error, a *leak*. Counts
    /// where the program's allocator is [`Allocator`](crate::alloc::Allocator), which says what is
    /// looked at. Not by default.
    pub leaks: bool,
    /// The bytes of each thread's stack, 64 KiB at least. What is not touched takes no memory.
    pub stack: usize,
    /// Which threads may die.
    #[cfg(feature = "linux")]
    pub deaths: Deaths,
    /// What is demanded of the survivors.
    #[cfg(feature = "linux")]
    pub survivors: Survivors,
    /// Which kernel cleans up after a death. By default 6.18, which wakes less.
    #[cfg(feature = "linux")]
    pub kernel: Kernel,
    /// How many executions may be spent on making a failure small; long ones count for several.
    pub shrink: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            strategy: Strategy::Mixed,
            executions: 10_000,
            budget: None,
            preemptions: None,
            seed: 1,
            max_steps: 20_000,
            stale: 8,
            ordered_drops: true,
            timeouts: true,
            spurious: 1,
            reuse: Reuse::LastFreed,
            leaks: false,
            // As a thread of std.
            stack: 2 * 1024 * 1024,
            #[cfg(feature = "linux")]
            deaths: Deaths::None,
            #[cfg(feature = "linux")]
            survivors: Survivors::MustFinish,
            #[cfg(feature = "linux")]
            kernel: Kernel::V6_18,
            shrink: 2_000,
        }
    }
}

impl Config {
    /// `executions` by chance and by priorities in turn; everything else as by default.
    #[must_use]
    pub fn sampled(executions: u64) -> Self {
        Self { executions, ..Self::default() }
    }

    /// All executions, up to a million, with the same old value read at most three times in a row;
    /// no spurious wake-ups, everything else as by default.
    #[must_use]
    pub fn exhaustive() -> Self {
        let (executions, stale) = (1_000_000, 3);
        Self { strategy: Strategy::Exhaustive, executions, stale, spurious: 0, ..Self::default() }
    }

    /// The one execution of `replay`, everything else as in `self`.
    #[must_use]
    pub fn replaying(self, replay: &str) -> Self {
        Self { strategy: Strategy::Replay(replay.to_owned()), ..self }
    }

    fn is_sampled(&self) -> bool {
        matches!(self.strategy, Strategy::Mixed | Strategy::Random | Strategy::Pct { .. })
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.strategy {
            Strategy::Mixed => write!(f, "random and PCT of depth 3, seed {}", self.seed)?,
            Strategy::Random => write!(f, "random, seed {}", self.seed)?,
            Strategy::Pct { depth } => write!(f, "PCT of depth {depth}, seed {}", self.seed)?,
            Strategy::Exhaustive => write!(f, "exhaustive")?,
            Strategy::Bytes(bytes) => write!(f, "{} bytes", bytes.len())?,
            Strategy::Replay(_) => write!(f, "replay")?,
        }
        if self.stale == 0 {
            write!(f, ", newest values only")?;
        }
        if let Some(most) = self.preemptions {
            write!(f, ", up to {most} preemptions")?;
        }
        if !self.timeouts {
            write!(f, ", no time-outs")?;
        }
        if self.spurious > 0 {
            write!(f, ", up to {} spurious", self.spurious)?;
        }
        self.tell_deaths(f)
    }
}

/// What an exploration without a failure covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Executions, those that repeat another left out.
    pub executions: u64,
    /// Executions that turned out to repeat another only after they had begun.
    pub redundant: u64,
    /// Steps of all executions together.
    pub steps: u64,
    /// The most threads of an execution, the first one included.
    pub threads: usize,
    /// Whether these are all executions there are, within the bounds of [`Strategy::Exhaustive`].
    pub finished: bool,
    /// Whether [`Config::budget`] was spent before all executions that were asked for were done.
    pub out_of_time: bool,
    /// Whether these are all executions there are: it finished, and hit no bound. What [`Config`]
    /// does not let happen is no bound: spurious wake-ups, time-outs, deaths.
    pub complete: bool,
    /// Within which limit of preemptions all executions were tried, if the exploration is one by
    /// rising limits: [`run_deepening`].
    pub within: Option<u32>,
    /// Which part of the executions was tried, in hundredths, if it was cut: an estimate, from the
    /// place in the tree of answers. It takes each answer to have as many executions behind it.
    pub share: Option<u8>,
    /// The bounds that left executions out, and where.
    pub bounds: Bounds,
    /// Executions in which a thread died.
    #[cfg(feature = "linux")]
    pub deaths: u64,
    /// Executions in which survivors waited for the dead for ever.
    #[cfg(feature = "linux")]
    pub blocked: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = match self {
            Self { finished: true, .. } => "all ",
            Self { out_of_time: true, .. } => "cut by the clock: ",
            _ => "",
        };
        match (self.finished, self.within, self.share) {
            (true, ..) | (_, None, _) => {}
            (_, Some(most), share) => {
                write!(f, "all with {most} preemptions, ")?;
                let (share, next) = (share.unwrap_or(0), most + 1);
                write!(f, "an estimated {share} % of those with {next}; ")?;
            }
        }
        write!(f, "{all}{} executions", self.executions)?;
        if self.redundant > 0 {
            write!(f, " and {} redundant", self.redundant)?;
        }
        if let (false, None, Some(share)) = (self.finished, self.within, self.share) {
            write!(f, " (an estimated {share} % of all)")?;
        }
        write!(f, " of up to {} threads, {} steps", self.threads, self.steps)?;
        self.tell_deaths(f)?;
        if self.bounds.is_hit() {
            write!(f, "; left out: {}", self.bounds)?;
        }
        Ok(())
    }
}

/// An execution that went wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What went wrong.
    pub verdict: Verdict,
    /// In which execution, counted from 1.
    pub execution: u64,
    /// The execution as a string of choices, shrunk.
    pub replay: String,
    /// What happened, step by step.
    pub story: String,
    config: String,
    picture: html::Picture,
}

/// Characters of a replay beyond which it is not shown.
const MAX_SHOWN: usize = 2_000;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.verdict)?;
        writeln!(f, "at execution {} ({})", self.execution, self.config)?;
        if self.replay.is_empty() && self.story.is_empty() {
            return write!(f, "there is no replay of it");
        }
        writeln!(f, "{}", self.story)?;
        match self.replay.len() {
            0..=MAX_SHOWN => write!(f, "to repeat it: ULOCKS_VM_REPLAY={}", self.replay),
            more => {
                write!(f, "to repeat it: the string `Failure::replay`, too long to show ({more} characters)")
            }
        }
    }
}

impl std::error::Error for Failure {}

/// A choice of the model's own, among `count`: every answer from 0 to `count - 1` is an execution.
/// In a cost model it is 0.
#[track_caller]
#[must_use]
pub fn choose(count: usize) -> usize {
    let at = Location::caller();
    crate::engine::with(|engine| engine.choose(count, at))
}

/// A line for the story of a failure; `text` is called only when one is told. Operations in it read
/// what is newest, and change nothing.
#[track_caller]
pub fn note(text: impl Fn() -> String) {
    let at = Location::caller();
    crate::engine::with(|engine| engine.note(&text, at));
}

/// Explores `model`, and prints how far.
///
/// # Panics
/// With the story of an execution that went wrong; or if an exhaustive exploration does not end
/// within [`Config::executions`]. One that [`Config::budget`] cuts does not panic: its report is
/// not [`finished`](Report::finished).
#[track_caller]
pub fn explore(config: Config, model: impl Fn() + 'static) -> Report {
    let at = Location::caller();
    let config = config.with_environment();
    let mut coverage = environment::asked_for();
    let result = run_from(&config, &(Rc::new(model) as Rc<dyn Fn()>), &mut |_| (), &mut coverage);
    let report = reported(result, coverage);
    println!("{}: {report} ({config})", story::place_of(at));
    assert!(
        report.finished || report.out_of_time || config.strategy != Strategy::Exhaustive,
        "the exploration is not exhaustive: more than the {} executions allowed",
        config.executions
    );
    report
}

/// The report, or a panic with the story of the failure, whose page is written.
#[track_caller]
fn reported(result: Result<Report, Box<Failure>>, coverage: Option<Coverage>) -> Report {
    let at = Location::caller();
    match result {
        Ok(report) => {
            if let Some(coverage) = coverage {
                println!("{}: coverage: {coverage}", story::place_of(at));
            }
            report
        }
        Err(failure) => match failure.publish(at) {
            Some(page) => panic!("{failure}\n{page}"),
            None => panic!("{failure}"),
        },
    }
}

/// Explores `model` until an execution goes wrong, and returns it: the test of a seeded bug.
///
/// # Panics
/// If every execution is right.
#[track_caller]
pub fn finds_bug(config: Config, model: impl Fn() + 'static) -> Failure {
    let at = Location::caller();
    let enough = config.executions;
    let mut config = config.with_environment();
    config.executions = config.executions.max(enough);
    match run(&config, model) {
        Ok(report) => panic!("no bug was found: {report} ({config})"),
        Err(failure) => {
            let (n, verdict) = (failure.execution, failure.verdict.to_string());
            let first = verdict.lines().next().unwrap_or_default();
            println!("{}: bug found at execution {n} ({config}): {first}", story::place_of(at));
            *failure
        }
    }
}

/// As [`finds_bug`], for a verdict that contains `text`.
///
/// # Panics
/// If every execution is right, or if the first that is not goes wrong in another way.
#[track_caller]
pub fn finds_bug_saying(text: &str, config: Config, model: impl Fn() + 'static) -> Failure {
    let failure = finds_bug(config, model);
    let said = failure.verdict.to_string();
    assert!(said.contains(text), "another bug than \"{text}\" was found: {failure}");
    failure
}
