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

use super::*;
use crate::run::crew::together;
use crate::run::pinning;
use crate::run::threads::keep_a_thread_asleep;
use crate::subjects::locks::{Locks, Scope, Type};
use std::sync::Barrier;
use std::time::Instant;

/// Locks that are passed around.
pub const LOCKS: usize = 4;

/// Round trips in the figure above.
const ROUND_TRIPS: u64 = 4;

/// The time that `round_trips` take in each of so many pairs of threads, which run on neighbours in
/// the list of `cpus`. Each pair has [`LOCKS`] locks of its own.
pub fn measure(locks: &Locks, cpus: &[usize], pairs: usize, round_trips: u64) -> Result<Duration> {
    let turns = round_trips.div_ceil(ROUND_TRIPS);
    let gates: Vec<Barrier> = (0..pairs).map(|_| Barrier::new(2)).collect();
    let play = |index: usize| {
        let pair = index / 2;
        let [zero, one, two, three] = [0, 1, 2, 3].map(|lock| locks.get(LOCKS * pair + lock));
        // A panic here is a fault of the lock's, and ends the trial by its limit.
        let mut ready = || _ = gates[pair].wait();
        Ok(zero.hand_over([one, two, three], index.is_multiple_of(2), turns, &mut ready))
    };
    let (times, ()) = together(2 * pairs, cpus, &play, || ())?;
    let longest = times.into_iter().max().unwrap_or_default();
    // What was asked for, of what was done.
    Ok(longest.mul_f64(round_trips as f64 / (turns * ROUND_TRIPS) as f64))
}

/// Carries it out in this process: the rate is hand-overs a second, two a round trip.
pub fn carry_out(name: &str, kind: Type, conditions: &Conditions) -> Result<Outcome> {
    // Without exclusion no thread waits for another.
    ensure!(kind.excludes, "lock '{name}' is never handed over; allowed: locks that exclude");
    keep_a_thread_asleep();
    let locks = Locks::of(kind, Scope::Threads, LOCKS)?;
    let (cpus, window) = (pinning::order(Pin::Scatter)?, Duration::from_millis(conditions.window_ms));
    // The first chunk warms up; each of the others is a tenth of what fits by the one before.
    let mut chunk = 100;
    measure(&locks, &cpus, 1, chunk)?;
    let (start, mut trips, mut took) = (Instant::now(), 0, Duration::ZERO);
    while start.elapsed() < window {
        let time = measure(&locks, &cpus, 1, chunk)?;
        (trips, took) = (trips + chunk, took + time);
        let fitting = window.as_secs_f64() / 10.0 / (time.as_secs_f64() / chunk as f64);
        chunk = (fitting as u64).clamp(100, 10_000_000);
    }
    Ok(Outcome::from([("rate".to_owned(), 2.0 * trips as f64 / took.as_secs_f64())]))
}
