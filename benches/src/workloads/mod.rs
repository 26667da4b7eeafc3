//! What subjects are put through. A [`Scenario`] is carried out in a process of its own, and gives
//! figures.

use crate::engine::record::Outcome;
use crate::run::pinning::Pin;
use crate::subjects::locks::{Entry, Form, Scope, Type};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::time::Duration;

mod children;
pub mod condvars;
pub mod files;
pub mod fixed;
pub mod handoff;
pub mod hogs;
pub mod pairs;
pub mod readers;
pub mod recovery;
pub mod semaphores;
pub mod sets;
pub mod tasks;
pub mod turns;
mod watched;
mod window;

/// How long workers may take beyond what their work explains.
const PATIENCE: Duration = Duration::from_secs(30);

/// Mean times inside and outside the lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Times {
    /// Inside, in nanoseconds.
    pub hold_ns: u64,
    /// Outside, in nanoseconds.
    pub think_ns: u64,
}

impl Times {
    /// Both in microseconds.
    pub const fn us(hold: u64, think: u64) -> Self {
        Self { hold_ns: 1000 * hold, think_ns: 1000 * think }
    }

    /// Nothing inside or outside: the loop is the lock and nothing else, and clock reads would be
    /// most of it.
    pub fn is_bare(self) -> bool {
        self.hold_ns == 0 && self.think_ns == 0
    }
}

/// The contenders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workers {
    /// Threads of this process.
    Threads(u32),
    /// Forked processes over a mapped file.
    Processes(u32),
}

impl Workers {
    /// How many.
    pub fn count(self) -> u32 {
        match self {
            Self::Threads(n) | Self::Processes(n) => n,
        }
    }
}

/// What subjects are put through. Subjects are mutexes of `subjects::locks` if nothing else is
/// said.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// The loop of 2002: outside, lock, inside, unlock.
    Turns(turns::Turns),
    /// Threads that hold the lock nearly always, and threads that want it now and then.
    Hogs(hogs::Hogs),
    /// A lock passed to and fro between two threads.
    Handoff,
    /// Uncontended acquisitions and releases; all subjects in one process.
    Pairs(pairs::Pairs),
    /// A holder that is killed while processes sleep for its lock.
    Recovery(recovery::Recovery),
    /// The program of 2016: a number of operations for each thread, and when they are done.
    Fixed(fixed::Fixed),
    /// The program of 2005: tasks that create and unlink files, or add one to a number.
    Files(files::Files),
    /// Roles around one of `subjects::rwlocks`: the program of 2008.
    Readers(readers::Run),
    /// Threads around one of `subjects::semaphores`: the program of 2010.
    Semaphores(semaphores::Run),
    /// Uncontended sets of operations on `subjects::semaphores`; all subjects in one process.
    Sets(sets::Sets),
    /// Threads around one of `subjects::condvars`.
    Condvars(condvars::Run),
    /// Tasks around one of `subjects::tasks`.
    Tasks(tasks::Run),
}

impl Scenario {
    /// Whether all subjects of a cell run in one process.
    pub fn is_shared(self) -> bool {
        matches!(self, Self::Pairs(_) | Self::Sets(_))
    }

    /// Whether `--pin` says where its workers run. Others put them where they must be.
    pub fn heeds_pin(self) -> bool {
        matches!(self, Self::Turns(_) | Self::Semaphores(_))
    }

    /// Workers that it starts.
    pub fn workers(self) -> u32 {
        match self {
            Self::Turns(run) => run.workers.count(),
            Self::Hogs(run) => run.hogs + run.victims,
            Self::Handoff => 2,
            Self::Pairs(_) | Self::Sets(_) => 1,
            Self::Recovery(run) => run.sleepers + 1,
            Self::Fixed(run) => run.threads,
            Self::Files(run) => run.tasks,
            Self::Readers(run) => run.workers(),
            Self::Semaphores(run) => run.workers(),
            Self::Condvars(run) => run.workers(),
            Self::Tasks(run) => run.workers(),
        }
    }

    /// How long its window is where that of the plan is `window_ms`.
    pub fn window_ms(self, window_ms: u64) -> u64 {
        match self {
            Self::Turns(run) => window_ms.max(run.least_ms),
            Self::Handoff => 2 * window_ms,
            Self::Fixed(run) => run.takes_ms(),
            Self::Readers(run) => run.window_ms(window_ms),
            _ => window_ms,
        }
    }

    /// In which form its lock is made.
    fn form(self) -> Form {
        match self {
            Self::Turns(run) => run.form(),
            Self::Recovery(_) => Form::plain(Scope::Processes),
            _ => Form::plain(Scope::Threads),
        }
    }

    /// Carries out one that is of a lock with a lock of this type, which need not be registered.
    /// Gives up on workers that hang for `patience`.
    fn carry_out(self, name: &str, kind: Type, on: &Conditions, patience: Duration) -> Result<Outcome> {
        match self {
            Self::Turns(run) => run.carry_out(name, kind, on, patience),
            Self::Hogs(run) => run.carry_out(name, kind, on, patience),
            Self::Handoff => handoff::carry_out(name, kind, on),
            Self::Recovery(run) => run.carry_out(name, kind, on, patience),
            Self::Fixed(run) => run.carry_out(name, kind),
            Self::Files(run) => run.carry_out(name, kind, on),
            _ => unreachable!("{self:?} is not of a lock"),
        }
    }
}

/// What a trial is run under.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Conditions {
    /// Not counted, before the window.
    pub warmup_ms: u64,
    /// The measured window.
    pub window_ms: u64,
    /// Calibration of the busy work.
    pub iterations_per_us: f64,
    /// Of random numbers.
    pub seed: u64,
    /// Where workers run, where the scenario does not say.
    pub pin: Pin,
}

/// A trial, for a process of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// What subjects are put through.
    pub scenario: Scenario,
    /// One subject, or several if the scenario [is shared](Scenario::is_shared).
    pub subjects: Vec<String>,
    /// What it is run under.
    pub conditions: Conditions,
}

impl Trial {
    /// A trial whose windows follow from the plan's.
    pub fn new(scenario: Scenario, subjects: Vec<String>, conditions: Conditions) -> Self {
        let window_ms = scenario.window_ms(conditions.window_ms);
        Self { scenario, subjects, conditions: Conditions { window_ms, ..conditions } }
    }

    /// What it takes, in seconds, its process included. What it costs to create a worker, to give
    /// it its first turn and to reap it was measured on two cores.
    pub fn takes_s(&self) -> f64 {
        let each = match self.scenario {
            Scenario::Turns(turns::Turns { workers: Workers::Processes(_), .. }) => 0.000_5,
            _ => 0.000_3,
        };
        self.own_time().as_secs_f64() + 0.020 + each * f64::from(self.scenario.workers())
    }

    /// Carries it out in this process. The figures of each subject.
    pub fn carry_out(&self) -> Result<Vec<Outcome>> {
        let Self { scenario, subjects, conditions } = self;
        ensure!(conditions.window_ms > 0, "a window of 0 ms measures nothing; allowed: at least 1 ms");
        let subject = subjects.first().map_or("", |name| name.as_str());
        Ok(vec![match scenario {
            Scenario::Pairs(run) => return run.carry_out(subjects, conditions),
            Scenario::Sets(run) => return run.carry_out(subjects, conditions),
            Scenario::Readers(run) => run.carry_out(subject, conditions)?,
            Scenario::Semaphores(run) => run.carry_out(subject, conditions)?,
            Scenario::Condvars(run) => run.carry_out(subject, conditions)?,
            Scenario::Tasks(run) => run.carry_out(subject, conditions)?,
            of_a_lock => {
                let kind = Entry::find(subject)?.make(of_a_lock.form())?;
                of_a_lock.carry_out(subject, kind, conditions, PATIENCE)?
            }
        }])
    }

    /// How long it may take: its own time, several times over for a machine that is busy, and what
    /// it costs to create and reap the workers.
    pub fn limit(&self) -> Duration {
        self.own_time() * 4 + Duration::from_millis(60_000 + u64::from(self.scenario.workers()) * 50)
    }

    /// How long its workers work.
    fn own_time(&self) -> Duration {
        let Conditions { warmup_ms, window_ms, .. } = self.conditions;
        let windows = match self.scenario {
            scenario if scenario.is_shared() => self.subjects.len() as u64,
            Scenario::Turns(run) => run.windows(),
            _ => 1,
        };
        Duration::from_millis(windows * (warmup_ms + window_ms))
    }
}

#[cfg(test)]
mod tests;
