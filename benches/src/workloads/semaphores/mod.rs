//! Semaphore arrays: the program of 2010, and threads that do the same thing over and over.
//!
//! Exclusion is checked: a worker or manager that holds a semaphore raises its counter by a load
//! and a store, and in the end the counters must say as much as the threads. And an array must be
//! left as it was found.

mod wakes;

use super::watched::{GRACE, Seen, Watch, Work};
use super::*;
use crate::run::busy_work::{Span, burn};
use crate::run::pinning;
use crate::statistics::random::Rng;
use crate::subjects::laps::Lap;
use crate::subjects::locks::Scope;
use crate::subjects::semaphores::{Entry, Part, Semaphores};
use crossbeam_utils::CachePadded;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use ulocks_semarray::Op;
pub use wakes::EACH;

/// How many semaphores a poster posts to.
pub const BULK: usize = 64;

/// In which order workers that have been found ready are posted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// As they were found.
    Fifo,
    /// The last first.
    Lifo,
    /// Shuffled.
    Random,
}

/// What semaphores are put through.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Run {
    /// Chris Mason's `sembench`: each waits for a semaphore of its own, and one posts to many at a
    /// time.
    Wakes {
        /// Those that wait.
        workers: Workers,
        /// The most that are posted to in a round.
        wakes: u32,
        /// In which order.
        order: Order,
    },
    /// Each takes and gives back a semaphore of its own, all in one array.
    Own {
        /// How many.
        threads: u32,
        /// Whether one more posts to many others of the array and takes that back, all the time.
        poster: bool,
    },
    /// Workers that each want one of two semaphores, and a manager that wants both.
    Manager {
        /// How many workers.
        workers: u32,
        /// How long each of them holds what it took, in microseconds.
        hold_us: u32,
    },
}

impl Run {
    /// What a subject needs for it.
    fn part(self) -> Part {
        match self {
            Self::Wakes { workers: Workers::Threads(_), .. } => Part::Wakes,
            Self::Wakes { workers: Workers::Processes(_), .. } => Part::Processes,
            Self::Own { .. } => Part::Singles,
            Self::Manager { .. } => Part::Manager,
        }
    }

    /// Whether a subject can take part in it.
    pub fn admits(self, entry: &Entry) -> bool {
        entry.parts.contains(&self.part())
    }

    /// Workers that it starts.
    pub fn workers(self) -> u32 {
        match self {
            Self::Wakes { workers, .. } => workers.count() + 1,
            Self::Own { threads, poster } => threads + u32::from(poster),
            Self::Manager { workers, .. } => workers + 1,
        }
    }

    /// Carries it out in this process.
    pub fn carry_out(self, subject: &str, conditions: &Conditions) -> Result<Outcome> {
        let entry = Entry::find(subject)?;
        let others = Entry::names(|entry| self.admits(entry));
        ensure!(self.admits(entry), "'{subject}' takes no part in a run of this kind; allowed: {others}");
        ensure!(self.workers() > 0, "a run without threads; allowed: at least one");
        self.carry_out_on(entry, conditions, GRACE)
    }

    fn carry_out_on(self, entry: &Entry, conditions: &Conditions, grace: Duration) -> Result<Outcome> {
        let count = self.workers() as usize;
        let workers = match self {
            Self::Wakes { workers: Workers::Processes(_), .. } => Workers::Processes(count as u32 - 1),
            _ => Workers::Threads(count as u32),
        };
        let watch = Watch {
            who: format!("'{}'", entry.name),
            workers,
            cpus: pinning::order(conditions.pin)?,
            last_is_free: matches!(self, Self::Wakes { .. }),
            conditions,
            grace,
        };
        if let Self::Wakes { wakes, order, .. } = self {
            return wakes::carry_out(entry, &watch, (count - 1, wakes as usize), order);
        }
        let job = Arc::new(Job::new(self, entry, conditions)?);
        let seen = watch.run(job.clone())?;
        job.check(&watch.who, &seen)?;
        let beside = matches!(self, Self::Manager { .. } | Self::Own { poster: true, .. });
        let mut outcome = seen.figures(0..count - usize::from(beside), entry.family);
        if beside {
            let (alone, others) = seen.counts.split_last().expect("one is beside");
            let mean = others.iter().sum::<u64>().max(1) as f64 / others.len() as f64;
            // None at all counts as one: less cannot be seen.
            outcome.insert("share".into(), (*alone).max(1) as f64 / mean);
        }
        Ok(outcome)
    }
}

/// A run of some semaphores.
struct Job {
    run: Run,
    semaphores: Box<dyn Semaphores>,
    /// As they were, and must be in the end.
    values: Vec<u32>,
    /// What semaphores protect, one for each.
    taken: Vec<CachePadded<AtomicU64>>,
    hold: Span,
    seed: u64,
}

impl Job {
    fn new(run: Run, entry: &Entry, conditions: &Conditions) -> Result<Self> {
        let (values, hold_us) = match run {
            Run::Own { threads, .. } => ([vec![1; threads as usize], vec![0; BULK]].concat(), 0),
            Run::Manager { hold_us, .. } => (vec![1; 2], hold_us),
            _ => (vec![0; run.workers() as usize], 0),
        };
        Ok(Self {
            run,
            semaphores: (entry.make)(&values, Scope::Threads)?,
            taken: values.iter().map(|_| CachePadded::default()).collect(),
            values,
            hold: Span::new("a hold time", u64::from(hold_us) * 1000, conditions.iterations_per_us)?,
            seed: conditions.seed,
        })
    }

    /// What a thread takes at once, in runs in which it takes and gives back.
    fn mine(&self, index: usize) -> Vec<usize> {
        match self.run {
            // Workers that want the same semaphore run on all CPUs.
            Run::Manager { workers, .. } if index < workers as usize => vec![2 * index / workers as usize],
            Run::Manager { .. } => vec![0, 1],
            _ => Vec::new(),
        }
    }

    fn take(&self, index: usize, lap: &mut Lap<'_>) {
        let mine = self.mine(index);
        let of = |op: fn(usize, u32) -> Op| mine.iter().map(|&i| op(i, 1)).collect::<Vec<_>>();
        let (take, give) = (self.semaphores.set(&of(Op::sub)), self.semaphores.set(&of(Op::add)));
        let mut rng = Rng::new(self.seed.wrapping_add(index as u64));
        lap.run(|| {
            take();
            for &semaphore in &mine {
                // A load and a store, which is right only if one thread at a time does it.
                let taken = &self.taken[semaphore];
                taken.store(taken.load(Relaxed).wrapping_add(1), Relaxed);
            }
            burn(self.hold.draw(&mut rng));
            give();
        });
    }

    /// What must be true when all have ended.
    fn check(&self, who: &str, seen: &Seen) -> Result<()> {
        let raised: u64 = self.taken.iter().map(|taken| taken.load(Relaxed)).sum();
        let each = seen.turns.iter().enumerate();
        let told: u64 = each.map(|(index, turns)| turns * self.mine(index).len() as u64).sum();
        ensure!(raised == told, "{who}: lost updates: {told} turns, but the counters say {raised}");
        let now = self.semaphores.values();
        ensure!(now == self.values, "{who} was not left as it was found: {now:?}");
        Ok(())
    }
}

impl Work for Job {
    fn go_round(&self, index: usize, lap: &mut Lap<'_>) {
        match self.run {
            Run::Own { threads, .. } if index == threads as usize => {
                let bulk = index..index + BULK;
                let of = |op: fn(usize, u32) -> Op| bulk.clone().map(|i| op(i, 1)).collect::<Vec<_>>();
                self.semaphores.turns(&of(Op::add), &of(Op::sub), lap);
            }
            Run::Own { .. } => self.semaphores.turns(&[Op::sub(index, 1)], &[Op::add(index, 1)], lap),
            _ => self.take(index, lap),
        }
    }

    fn enough(&self) -> u64 {
        2 * u64::from(self.run.workers())
    }
}

#[cfg(test)]
mod tests;
