//! A run of a lock, for a process of its own, and what comes back.

use super::{Run, run};
use crate::run::clock::Calibration;
use crate::statistics::delays::Delay;
use crate::subjects::rwlocks;
use crate::workloads::Scenario;
use crate::workloads::figure::Figure;
use anyhow::Result;
use serde::{Deserialize, Serialize};

/// A run of one subject.
pub type Spec = crate::workloads::Spec<Run>;

/// What came of it. Delays are in ticks of the clock, its own part subtracted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The clock.
    pub clock: Calibration,
    /// Length of the window as it really was, in seconds.
    pub elapsed_s: f64,
    /// CPU time in the window that the hypervisor gave to others, in seconds, of all CPUs; none
    /// where the user does not say.
    pub steal_s: Option<f64>,
    /// The threads, those of one name together.
    pub roles: Vec<RoleOutcome>,
    /// Lock and unlock by themselves, in nanoseconds, where no thread contends.
    pub batch: Option<super::batch::Batch>,
}

impl Outcome {
    /// The threads called `name`.
    pub fn role(&self, name: &str) -> Option<&RoleOutcome> {
        self.roles.iter().find(|role| role.name == name)
    }

    /// What the readers waited that were looked at: those in handlers, or those in a hurry.
    pub fn top(&self) -> Option<Delay> {
        match self.role("idle") {
            Some(idle) => idle.handler?.lock,
            None => self.role("urgent")?.lock,
        }
    }

    /// The longest delay of a writer.
    fn longest(&self, of: fn(&RoleOutcome) -> Option<Delay>) -> Option<u64> {
        let writers = ["writer", "try-writer"].iter().filter_map(|name| self.role(name));
        writers.filter_map(|role| Some(of(role)?.max)).max()
    }

    /// A figure of `promises`, if this run has it.
    pub fn figure(&self, figure: Figure) -> Option<f64> {
        // What is below the clock's own part is not nothing.
        let ns = |ticks: u64| self.clock.ns(ticks.max(1) as f64);
        let writes = || Some(&self.role("writer")?.counts);
        Some(match figure {
            Figure::TopP999 => ns(self.top()?.p999),
            Figure::TopP99 => ns(self.top()?.p99),
            Figure::WritesPerSecond => writes()?.iter().sum::<u64>().max(1) as f64 / self.elapsed_s.max(1e-9),
            Figure::MaskedMax => ns(self.longest(|role| role.masked)?),
            _ => return None,
        })
    }
}

/// What threads of one name did in the window.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RoleOutcome {
    /// Their name.
    pub name: String,
    /// Acquisitions of each.
    pub counts: Vec<u64>,
    /// Attempts; as many as acquisitions where no thread tries.
    pub attempts: u64,
    /// How often they gave up.
    pub failures: u64,
    /// How long it took to get the lock.
    pub lock: Option<Delay>,
    /// And to let it go.
    pub unlock: Option<Delay>,
    /// How long signals were kept off them, where the lock says; from first to last, the warm-up
    /// included.
    pub masked: Option<Delay>,
    /// The same without the time for which they were ready and had no CPU, where the kernel counts
    /// that.
    pub held_off: Option<Delay>,
    /// Their handlers, if they had any.
    pub handler: Option<HandlerOutcome>,
    /// The fewest acquisitions, of all of them together, in any slot of the window.
    pub fewest: u64,
    /// Length of a slot: shorter in a window that is shorter.
    pub slot_ms: u64,
    /// Involuntary context switches, from first to last.
    pub preemptions: u64,
}

/// What signal handlers did.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct HandlerOutcome {
    /// From the expiry of the timer to the entry of the handler.
    pub delivery: Option<Delay>,
    /// How long it took to get the lock.
    pub lock: Option<Delay>,
    /// And to let it go.
    pub unlock: Option<Delay>,
    /// How often it was not to be had.
    pub refused: u64,
    /// Expiries for which no handler ran, since the one before had not been delivered.
    pub overrun: u64,
    /// Handlers that ran when the memory for their delays was full.
    pub lost: u64,
}

impl Scenario for Run {
    type Outcome = Outcome;

    fn threads(self) -> u32 {
        self.duties().len() as u32
    }

    fn carry_out(spec: &Spec) -> Result<Outcome> {
        rwlocks::visit(rwlocks::Entry::find(&spec.subject)?, run::Start(spec))
    }
}
