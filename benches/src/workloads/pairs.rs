//! An acquisition and its release, uncontended: several locks in one process, in turn.
//!
//! The differences are of a nanosecond, less than what two processes differ by. So the locks take
//! turns in short blocks, each in a loop compiled for it, and the blocks of one turn run within a
//! fraction of a millisecond of one another. A lock's figure is the median of its blocks. The loop
//! itself is part of it, the same for all: half a nanosecond that makes ratios look a little closer
//! to 1 than they are.
//!
//! Another thread is alive, asleep: without one glibc leaves out the atomic instructions, and
//! membarrier has no thread to speak to.

use super::*;
use crate::run::pinning;
use crate::run::threads::keep_a_thread_asleep;
use crate::statistics::{self, random::Rng};
use crate::subjects::locks::{Entry, Form, Locks, Scope};
use std::time::Instant;

/// Pairs in a block: some tens of microseconds, far from what a clock read takes and from a time
/// slice.
const BLOCK: u32 = 4_000;

/// An acquisition and its release, uncontended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pairs {
    /// Whether they are shared acquisitions.
    pub reads: bool,
    /// Whether the locks are those between processes.
    pub processes: bool,
}

impl Pairs {
    /// Carries it out in this process.
    pub fn carry_out(self, subjects: &[String], conditions: &Conditions) -> Result<Vec<Outcome>> {
        let scope = if self.processes { Scope::Processes } else { Scope::Threads };
        let lock = |name: &String| {
            let entry = Entry::find(name)?;
            ensure!(
                !self.reads || entry.shared_mode,
                "lock '{name}' has no mode for readers; allowed: {}",
                Entry::names(|entry| entry.shared_mode)
            );
            Locks::new(entry, Form::plain(scope), 1)
        };
        let locks = subjects.iter().map(lock).collect::<Result<Vec<_>>>()?;
        let block = |index: usize| {
            let lock: &Locks = &locks[index];
            lock.get(0).pairs(BLOCK, self.reads).as_nanos() as f64 / f64::from(BLOCK)
        };
        let medians = in_turns(subjects.len(), conditions, &block)?;
        Ok(medians.into_iter().map(|ns| Outcome::from([("pair".to_owned(), ns)])).collect())
    }
}

/// Blocks of so many subjects in turn, for a window each; the median of what `block(index)` says.
pub fn in_turns(subjects: usize, conditions: &Conditions, block: &dyn Fn(usize) -> f64) -> Result<Vec<f64>> {
    ensure!(subjects > 0, "nothing to compare; allowed: at least one subject");
    keep_a_thread_asleep();
    if let Some(&cpu) = pinning::order(Pin::Scatter)?.first() {
        pinning::bind(cpu)?;
    }
    let mut times = vec![Vec::new(); subjects];
    let (start, time) = (Instant::now(), Duration::from_millis(conditions.window_ms) * subjects as u32);
    let (mut turn, mut order, mut rng) = (0, Vec::from_iter(0..subjects), Rng::new(conditions.seed));
    // The first turns warm up caches and predictors.
    while turn < 5 || start.elapsed() < time {
        // Shuffled, so that none always follows the same one.
        rng.shuffle(&mut order);
        for &index in &order {
            let ns = block(index);
            if turn > 2 {
                times[index].push(ns);
            }
        }
        turn += 1;
    }
    Ok(times.iter().map(|times| statistics::median(times)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::HashSet;

    #[test]
    fn a_subject_does_not_always_follow_the_same_one() {
        let conditions =
            Conditions { warmup_ms: 0, window_ms: 50, iterations_per_us: 1.0, seed: 1, pin: Pin::None };
        // A thread of its own: it is bound to a CPU.
        let turns = std::thread::spawn(move || {
            let seen = RefCell::new(Vec::new());
            let block = |index| {
                seen.borrow_mut().push(index);
                std::thread::sleep(Duration::from_micros(10));
                1.0
            };
            in_turns(3, &conditions, &block).unwrap();
            seen.into_inner()
        });
        let seen = turns.join().unwrap();
        let inside = seen.chunks(3).flat_map(|turn| turn.windows(2).map(|pair| (pair[0], pair[1])));
        assert_eq!(inside.collect::<HashSet<_>>().len(), 6, "{} turns", seen.len() / 3);
    }
}
