//! Condition variables, each with its mutex: bounded buffers, and a crowd that is called.

use super::watched::{GRACE, Seen, Watch, Work};
use super::*;
use crate::run::pinning;
use crate::subjects::condvars::{Duty, Entry, Monitored};
use crate::subjects::laps::Lap;
use std::sync::Arc;

pub use crate::subjects::condvars::Notify;

/// On which CPUs the threads run. What two threads do depends on nothing as much as on whether they
/// share a CPU, and the scheduler keeps to one or the other for as long as a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Wherever the scheduler puts them, as in most programs.
    Free,
    /// In turn on different CPUs, as far apart as possible.
    Apart,
    /// All on one CPU.
    Together,
}

impl Place {
    /// The CPUs that threads are dealt to in turn; none if they are not bound.
    fn cpus(self) -> Result<Vec<usize>> {
        let all = pinning::order(if self == Self::Free { Pin::None } else { Pin::Scatter })?;
        Ok(if self == Self::Together { all[..1].to_vec() } else { all })
    }
}

/// What the threads do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// A bounded buffer: a number under a mutex.
    Buffer {
        /// Threads that put items in.
        producers: u32,
        /// Threads that take items out.
        consumers: u32,
        /// The most items that the buffer holds.
        capacity: u32,
    },
    /// One thread notifies all of so many, as soon as all of them wait.
    Crowd(u32),
}

/// What a condition variable is put through.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// What the threads do.
    pub load: Load,
    /// When they notify.
    pub notify: Notify,
    /// Where they run.
    pub place: Place,
}

impl Run {
    /// Workers that it starts.
    pub fn workers(self) -> u32 {
        match self.load {
            Load::Buffer { producers, consumers, .. } => producers + consumers,
            Load::Crowd(waiters) => waiters + 1,
        }
    }

    /// Carries it out in this process.
    pub fn carry_out(self, subject: &str, conditions: &Conditions) -> Result<Outcome> {
        self.carry_out_on(Entry::find(subject)?, conditions, GRACE)
    }

    fn carry_out_on(self, entry: &Entry, conditions: &Conditions, grace: Duration) -> Result<Outcome> {
        let sides = match self.load {
            Load::Buffer { producers, consumers, capacity } => producers.min(consumers).min(capacity),
            Load::Crowd(waiters) => waiters,
        };
        ensure!(sides > 0, "a side without threads, or a buffer without room; allowed: at least 1");
        let watch = Watch {
            who: format!("'{}'", entry.name),
            workers: Workers::Threads(self.workers()),
            cpus: self.place.cpus()?,
            last_is_free: false,
            conditions,
            grace,
        };
        let job = Arc::new(Job { load: self.load, pair: (entry.make)(self.notify) });
        let seen = watch.run(job.clone())?;
        job.check(&watch.who, &seen)?;
        // Those of one side are counted, for the other side's turns are the same ones.
        let of = match self.load {
            Load::Buffer { producers, consumers, .. } => producers as usize..(producers + consumers) as usize,
            Load::Crowd(waiters) => 0..waiters as usize,
        };
        Ok(seen.figures(of, entry.countable))
    }
}

struct Job {
    load: Load,
    pair: Box<dyn Monitored>,
}

impl Job {
    /// What must be true when all have ended.
    fn check(&self, who: &str, seen: &Seen) -> Result<()> {
        let state = self.pair.state();
        match self.load {
            Load::Buffer { producers, capacity, .. } => {
                let (put, got) = seen.turns.split_at(producers as usize);
                let (put, got): (u64, u64) = (put.iter().sum(), got.iter().sum());
                let right = (state.raised, state.lowered, state.now) == (put, got, put.wrapping_sub(got));
                ensure!(
                    right && state.now <= u64::from(capacity),
                    "{who}: lost updates: {put} items were put in and {got} taken out, but the buffer says {state:?}"
                );
            }
            Load::Crowd(_) => {
                let strays = seen.turns.iter().filter(|&&turns| turns != state.raised).count();
                let calls = state.raised;
                ensure!(
                    strays == 0,
                    "{who}: {calls} calls, but {strays} threads say that there were more or fewer"
                );
            }
        }
        Ok(())
    }
}

impl Work for Job {
    fn go_round(&self, index: usize, lap: &mut Lap<'_>) {
        let duty = match self.load {
            Load::Buffer { producers, capacity, .. } if index < producers as usize => {
                Duty::Put(capacity.into())
            }
            Load::Buffer { .. } => Duty::Take,
            Load::Crowd(waiters) if index < waiters as usize => Duty::Wait(waiters.into()),
            Load::Crowd(waiters) => Duty::Call(waiters.into()),
        };
        self.pair.go_round(duty, lap);
    }

    /// More than can be had with one side asleep.
    fn enough(&self) -> u64 {
        let (Load::Buffer { capacity: most, .. } | Load::Crowd(most)) = self.load;
        2 * u64::from(most) + 2
    }

    fn close(&self) {
        self.pair.close();
    }
}

#[cfg(test)]
mod tests;
