//! What workers do with a lock for tasks, compiled for each.

use super::TaskLock;
use crate::run::busy_work::{Span, burn};
use crate::statistics::random::Rng;
use crate::subjects::locks::phase::{MEASURE, STOP};
use crossbeam_utils::CachePadded;
use std::pin::pin;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
use std::task::Poll;

/// What all workers share.
pub struct Job {
    /// Whether a task yields to the executor after each turn.
    pub yields: bool,
    /// Whether a task makes another future before each turn, polls it once, and drops it.
    pub cancels: bool,
    /// Inside the lock.
    pub hold: Span,
    /// Outside.
    pub think: Span,
    /// Of random numbers.
    pub seed: u64,
    /// The phase of the run.
    pub phase: AtomicU32,
    /// How many workers have ended.
    pub ended: AtomicUsize,
    /// Turns of each worker.
    pub turns: Vec<CachePadded<Turns>>,
    /// A number under the lock: the turns of all. No step adds to it at once, so a lock that does
    /// not exclude loses some.
    pub inside: AtomicU64,
}

/// The turns of a worker: all, and those in the window.
#[derive(Default)]
pub struct Turns {
    /// From first to last.
    pub all: AtomicU64,
    /// In the window.
    pub measured: AtomicU64,
}

impl Job {
    /// Inside the lock.
    fn add(&self, rng: &mut Rng) {
        self.inside.store(self.inside.load(Relaxed) + 1, Relaxed);
        burn_for(self.hold, rng);
    }

    /// After a turn. Whether there is another.
    fn count(&self, index: usize, rng: &mut Rng) -> bool {
        burn_for(self.think, rng);
        let (turns, phase) = (&self.turns[index], self.phase.load(Relaxed));
        turns.all.store(turns.all.load(Relaxed) + 1, Relaxed);
        if phase == MEASURE {
            turns.measured.store(turns.measured.load(Relaxed) + 1, Relaxed);
        }
        phase != STOP
    }

    fn end(&self) {
        self.ended.fetch_add(1, Release);
    }
}

fn burn_for(span: Span, rng: &mut Rng) {
    if !span.is_zero() {
        burn(span.draw(rng));
    }
}

/// What a task does. Beside others it yields to the executor after each turn, as one that awaits
/// something else.
pub async fn go_round<L: TaskLock>(lock: &L, job: &Job, index: usize) {
    let mut rng = Rng::new(job.seed.wrapping_add(index as u64));
    loop {
        if job.cancels {
            let polled = async {
                let mut other = pin!(lock.lock());
                std::future::poll_fn(|context| Poll::Ready(other.as_mut().poll(context).is_ready())).await
            };
            polled.await;
        }
        let guard = lock.lock().await;
        job.add(&mut rng);
        drop(guard);
        if !job.count(index, &mut rng) {
            return job.end();
        }
        if job.yields {
            tokio::task::yield_now().await;
        }
    }
}

/// What a thread does.
pub fn go_round_as_thread<L: TaskLock>(lock: &L, job: &Job, index: usize) {
    let mut rng = Rng::new(job.seed.wrapping_add(index as u64));
    loop {
        let guard = lock.lock_blocking();
        job.add(&mut rng);
        drop(guard);
        if !job.count(index, &mut rng) {
            return job.end();
        }
    }
}
