//! Models: closures whose executions are explored.

use core::time::Duration;
use std::env;
use std::panic::Location;
use std::path::PathBuf;
use std::time::Instant;
use ulocks_vm::explore::{Config, Report, check};
use ulocks_vm::sync::DroppedPerRun;

/// Steps for each branch that loom counts: a branch is a switch, and a step is an operation.
const STEPS_PER_BRANCH: u64 = 20;

/// How far to explore. The fields and the environment variables are loom's.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Builder {
    /// No effect: there is no limit of threads.
    pub max_threads: usize,
    /// An execution of more than 20 times as many steps is an error: it is endless.
    /// `LOOM_MAX_BRANCHES`; 1,000 without it.
    pub max_branches: usize,
    /// How many executions there are at most. A model that is cut by it passes, with a note.
    /// `LOOM_MAX_PERMUTATIONS`.
    pub max_permutations: Option<usize>,
    /// How long the exploration takes at most. A model that is cut by it passes, with a note.
    /// `LOOM_MAX_DURATION`, in seconds.
    pub max_duration: Option<Duration>,
    /// How often a thread may lose its turn although it could go on. `LOOM_MAX_PREEMPTIONS`.
    pub preemption_bound: Option<usize>,
    /// There are no checkpoints: to set it is an error. A failure has a replay string instead.
    pub checkpoint_file: Option<PathBuf>,
    /// No effect.
    pub checkpoint_interval: usize,
    /// Whether the exploration begins with a call of [`explore`](crate::explore).
    pub expect_explicit_explore: bool,
    /// No effect: places are always captured.
    pub location: bool,
    /// No effect: the story of a failure tells its steps.
    pub log: bool,
}

fn number(name: &str) -> Option<usize> {
    let text = env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number")))
}

impl Builder {
    /// What the environment says, and loom's defaults.
    #[must_use]
    pub fn new() -> Self {
        Self {
            max_threads: crate::MAX_THREADS,
            max_branches: number("LOOM_MAX_BRANCHES").unwrap_or(1_000),
            max_permutations: number("LOOM_MAX_PERMUTATIONS"),
            max_duration: number("LOOM_MAX_DURATION").map(|s| Duration::from_secs(s as u64)),
            preemption_bound: number("LOOM_MAX_PREEMPTIONS"),
            checkpoint_file: env::var_os("LOOM_CHECKPOINT_FILE").map(Into::into),
            checkpoint_interval: number("LOOM_CHECKPOINT_INTERVAL").unwrap_or(20_000),
            expect_explicit_explore: false,
            location: env::var_os("LOOM_LOCATION").is_some(),
            log: env::var_os("LOOM_LOG").is_some(),
        }
    }

    /// Sets the file for checkpoints: an error in [`check`](Self::check).
    pub fn checkpoint_file(&mut self, file: &str) -> &mut Self {
        self.checkpoint_file = Some(file.into());
        self
    }

    fn config(&self) -> Config {
        let mut config = Config::exhaustive();
        config.executions = self.max_permutations.map_or(u64::MAX, |most| most as u64);
        config.max_steps = (self.max_branches as u64).saturating_mul(STEPS_PER_BRANCH);
        config.budget = self.max_duration;
        config.preemptions = self.preemption_bound.map(|most| u32::try_from(most).unwrap_or(u32::MAX));
        config.timeouts = false;
        // Programs share atomics by std's `Arc`, too.
        config.ordered_drops = false;
        config
    }

    /// Explores the executions of `model`, and prints how many there were and what was left out.
    ///
    /// # Panics
    /// With the story of the first execution that goes wrong.
    #[track_caller]
    pub fn check<F>(&self, model: F)
    where
        F: Fn() + Sync + Send + 'static,
    {
        assert!(
            self.checkpoint_file.is_none(),
            "there are no checkpoints: a failure is repeated by the string of its report, ULOCKS_VM_REPLAY"
        );
        let at = Location::caller();
        let begun = Instant::now();
        let later = self.expect_explicit_explore;
        let config = self.config().with_environment();
        let report = check(&config, move || {
            crate::alloc::begin();
            crate::thread::begin();
            if later {
                crate::stop_exploring();
            }
            model();
            crate::thread::wait_for_all();
            // SAFETY: all other threads have ended, and the model's closure has returned.
            unsafe { DroppedPerRun::drop_all() };
        });
        println!("{}", summary(at, &report, begun.elapsed()));
    }
}

/// What an exploration covered, in a line.
fn summary(at: &Location<'_>, report: &Report, time: Duration) -> String {
    let cut = if report.finished { "" } else { "; CUT: executions are left that were not tried" };
    format!("loom model at {}:{}: {report}{cut} ({time:.2?})", at.file(), at.line())
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

/// Explores all executions of `model`, within the bounds that the environment sets: see
/// [`Builder`].
///
/// # Panics
/// With the story of the first execution that goes wrong.
#[track_caller]
pub fn model<F>(model: F)
where
    F: Fn() + Sync + Send + 'static,
{
    Builder::new().check(model);
}
