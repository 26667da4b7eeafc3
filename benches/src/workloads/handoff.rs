//! A lock on its way from a thread that lets go to a thread that waits, and back: one round trip is
//! two hand-overs.
//!
//! Two threads pass four locks around so that each acquisition finds its lock held by the other
//! thread, which releases it next. No thread can barge, no thread polls: what is measured is the
//! release, the wake-up if the waiter sleeps, and the return of the acquisition. The threads run on
//! CPUs as far apart as possible, if there are two.
//!
//! A lock that spins has two steady states here: both threads spin and a trip takes less than a
//! microsecond, or both sleep, because a wake-up takes longer than the other is patient. A wide
//! interval says that it saw both.
//!
//! ```text
//!   A holds 0 2                                    B holds 1 3
//!   release 0 ───────────────────────────────────▶ acquire 0
//!   acquire 1 ◀─────────────────────────────────── release 1
//!   release 2 ───────────────────────────────────▶ acquire 2
//!   acquire 3 ◀─────────────────────────────────── release 3
//!   A holds 1 3: the same again the other way round B holds 0 2
//!   release 1 ───────────────────────────────────▶ acquire 1
//!   acquire 0 ◀─────────────────────────────────── release 0
//!   release 3 ───────────────────────────────────▶ acquire 3
//!   acquire 2 ◀─────────────────────────────────── release 2
//! ```

use crate::run::child::Task;
use crate::run::crew::Crew;
use crate::run::pinning::{self, Pin};
use crate::run::threads::keep_a_thread_asleep;
use crate::subjects::locks::{self, Entry, Lock, LockArray, Scope, Visitor};
use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

/// Locks that are passed around.
pub const LOCKS: usize = 4;

/// Round trips in the figure above.
const ROUND_TRIPS: u64 = 4;

/// The time `round_trips` take between threads on the first two of `cpus`.
pub fn measure<L: Lock>(row: &LockArray<L>, cpus: &[usize], round_trips: u64) -> Result<Duration> {
    let turns = round_trips.div_ceil(ROUND_TRIPS);
    let [zero, one, two, three] = [0, 1, 2, 3].map(|index| row.get(index));
    let prepare = |index: usize| {
        let bound = pinning::bind(cpus[index % cpus.len()]);
        let (first, second) = if index == 0 { (zero, two) } else { (one, three) };
        (bound, first.acquire(), second.acquire())
    };
    let play = |index: usize, (bound, first, second): (Result<()>, _, _)| {
        let start = Instant::now();
        if index == 0 {
            let (mut at_zero, mut at_two) = (first, second);
            for _ in 0..turns {
                drop(at_zero);
                let at_one = one.acquire();
                drop(at_two);
                let at_three = three.acquire();
                drop(at_one);
                at_zero = zero.acquire();
                drop(at_three);
                at_two = two.acquire();
            }
        } else {
            let (mut at_one, mut at_three) = (first, second);
            for _ in 0..turns {
                let at_zero = zero.acquire();
                drop(at_one);
                let at_two = two.acquire();
                drop(at_three);
                at_one = one.acquire();
                drop(at_zero);
                at_three = three.acquire();
                drop(at_two);
            }
        }
        bound.map(|()| start.elapsed())
    };
    let elapsed = thread::scope(|scope| {
        let crew = Crew::start(scope, 2, |_| Builder::new(), prepare, play)?;
        let times: Result<Vec<Duration>> = crew.join().into_iter().collect();
        times.map(|times| times[0])
    })?;
    // What was asked for, of what was done.
    Ok(elapsed.mul_f64(round_trips as f64 / (turns * ROUND_TRIPS) as f64))
}

/// Round trips of one lock for some time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HandoffSpec {
    /// A name in the registry of `locks`.
    pub lock: String,
    /// How long, about.
    pub window_ms: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct HandoffResult {
    /// Hand-overs a second: two a round trip.
    pub per_s: f64,
}

impl Task for HandoffSpec {
    type Answer = HandoffResult;

    fn carry_out(&self) -> Result<HandoffResult> {
        struct PingPong(Duration);
        impl Visitor for PingPong {
            type Output = Result<HandoffResult>;
            fn visit<L: Lock>(self, _: &'static Entry) -> Self::Output {
                let row = LockArray::<L>::new(Scope::Threads, LOCKS)?;
                let cpus = pinning::order(Pin::Scatter)?;
                let (start, mut trips, mut took) = (Instant::now(), 0, Duration::ZERO);
                // The first chunk warms up; each of the others is a tenth of what fits by the one
                // before.
                let mut chunk = 100;
                measure(&row, &cpus, chunk)?;
                loop {
                    let time = measure(&row, &cpus, chunk)?;
                    (trips, took) = (trips + chunk, took + time);
                    let fitting = self.0.as_secs_f64() / 10.0 / (time.as_secs_f64() / chunk as f64);
                    chunk = (fitting as u64).clamp(100, 10_000_000);
                    if start.elapsed() >= self.0 {
                        return Ok(HandoffResult { per_s: 2.0 * trips as f64 / took.as_secs_f64() });
                    }
                }
            }
        }
        keep_a_thread_asleep();
        let entry = locks::Entry::find(&self.lock)?;
        // Without exclusion no thread waits for another.
        ensure!(entry.excludes, "lock '{}' is never handed over; allowed: locks that exclude", entry.name);
        locks::visit(entry, Scope::Threads, PingPong(self.own_time()))?
    }

    fn own_time(&self) -> Duration {
        Duration::from_millis(self.window_ms)
    }

    fn workers(&self) -> u32 {
        2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_handed_over() {
        for lock in ["std", "sem_t", "mcs-park", "unfair"] {
            let result = HandoffSpec { lock: lock.into(), window_ms: 20 }.carry_out().unwrap();
            assert!(result.per_s.is_finite() && result.per_s > 0.0, "{lock}");
        }
        let error = HandoffSpec { lock: "none".into(), window_ms: 20 }.carry_out().unwrap_err();
        assert!(error.to_string().starts_with("lock 'none' is never handed over"), "{error}");
    }
}
