//! How long a cache line takes from one CPU to another and back.
//!
//! Short sections depend on this more than on the lock. On a virtual machine it may change from
//! round to round, when the host moves the CPUs.

use super::crew::Crew;
use super::pinning::{self, Pin};
use crate::statistics::median;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread::{self, Builder};
use std::time::Instant;

/// Round trips that are timed together.
const BATCH: u32 = 100;
/// Batches. A batch in which one of the two threads is preempted is one of many.
const BATCHES: u32 = 41;

/// The time in nanoseconds in which a line goes to another CPU and comes back, at this moment: the
/// median of 41 batches. `None` if this process may use one CPU only, or cannot have two threads.
pub fn round_trip_ns() -> Option<f64> {
    let cpus = pinning::order(Pin::Scatter).ok().filter(|cpus| cpus.len() > 1)?;
    let turn = AtomicU32::new(0);
    let bind = |odd: usize| pinning::bind(cpus[odd]).is_ok();
    // The thread whose number is `odd` waits for `odd`, and then makes it the other's turn.
    let play = |odd: usize, bound: bool| {
        let (odd, mut batches) = (odd as u32, Vec::new());
        for _ in 0..BATCHES {
            let began = Instant::now();
            for _ in 0..BATCH {
                while turn.load(Acquire) != odd {
                    std::hint::spin_loop();
                }
                turn.store(1 - odd, Release);
            }
            batches.push(began.elapsed().as_nanos() as f64 / f64::from(BATCH));
        }
        bound.then_some(batches)
    };
    let played = thread::scope(|scope| Crew::start(scope, 2, |_| Builder::new(), bind, play).map(Crew::join));
    let both: Option<Vec<_>> = played.ok()?.into_iter().collect();
    both.map(|both| median(&both[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_takes_a_time_where_there_are_two_cpus() {
        let ns = round_trip_ns();
        assert_eq!(ns.is_some(), pinning::allowed().unwrap().len() > 1);
        assert!(ns.is_none_or(|ns| ns.is_finite() && ns > 0.0), "{ns:?}");
    }
}
