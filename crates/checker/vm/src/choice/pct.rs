//! Probabilistic concurrency testing: few changes of priority, in random places.
//!
//! Most bugs need few things to happen in a certain order. A bug that needs `d` orders has *depth*
//! `d`: a use before the initialisation has depth 1, a lost update 2. This strategy finds a bug of
//! depth `d` with probability at least `1 / (n k^(d-1))` in every execution, where `n` threads take
//! `k` steps. A uniformly random walk gives no such bound: there it falls exponentially in `k`.
//!
//! # Protocol
//! 1. Each thread has a priority, and the enabled one with the highest runs. First priorities are
//!    in random order.
//! 2. `d - 1` change points are drawn from the steps `1..=k`. After the step of a change point, the
//!    thread that made it gets a priority below all first ones; which of the change points gives
//!    which is random too.
//! 3. A thread that spins (`yielded`) gets the lowest priority of all. This is not in the paper,
//!    whose programs do not spin; without it, a thread that waits for one of lower priority would
//!    do so for ever.
//!
//! `k` is learnt: the longest of the executions so far, where one that was much longer than those
//! after it is forgotten by and by. All that is not a choice of threads is answered as
//! [`Random`](super::Random) does.
//!
//! Source: Burckhardt, Kothari, Musuvathi and Nagarakatte, "A Randomized Scheduler with
//! Probabilistic Guarantees of Finding Bugs", ASPLOS 2010.

use super::random::{Odds, Surprises};
use super::rng::Rng;
use super::{Candidate, Kind, Strategy};

/// First priorities are from here on.
const FIRST: u64 = 1 << 63;
/// Those of change points are from here on, and those of threads that have spun are below.
const CHANGED: u64 = 1 << 32;
/// The first execution's `k`.
const FIRST_GUESS: u64 = 64;

/// Runs threads by priorities that change `depth - 1` times.
#[derive(Clone, Debug)]
pub(crate) struct Pct {
    seed: u64,
    executions: u64,
    begun: u64,
    depth: usize,
    rng: Rng,
    surprises: Surprises,
    /// `k`.
    expected: u64,
    /// Steps of this execution.
    steps: u64,
    last: usize,
    /// By [`slot`]; 0 is a thread that was not seen yet.
    priorities: Vec<u64>,
    /// Change points to come, the next one last: after which step, and the priority it gives.
    changes: Vec<(u64, u64)>,
    /// The priority of the thread that spun last.
    lowest: u64,
}

impl Pct {
    /// # Panics
    /// If `depth` is 0.
    pub(crate) fn new(seed: u64, executions: u64, depth: usize, odds: Odds) -> Self {
        assert!(depth > 0, "PCT with depth 0: at least 1, which means no change of priority");
        Self {
            seed,
            executions,
            begun: 0,
            depth,
            rng: Rng::new(seed),
            surprises: Surprises::new(odds),
            expected: FIRST_GUESS,
            steps: 0,
            last: 0,
            priorities: Vec::new(),
            changes: Vec::with_capacity(depth - 1),
            lowest: CHANGED,
        }
    }

    fn learn(&mut self) {
        let forgotten = self.expected.saturating_sub(self.steps).div_ceil(16);
        self.expected =
            if self.begun == 1 { self.steps } else { self.steps.max(self.expected - forgotten) }.max(1);
    }

    /// The priority of `thread`, drawn when it is seen first.
    #[inline]
    fn priority(&mut self, thread: usize) -> u64 {
        if let Some(&priority) = self.priorities.get(slot(thread))
            && priority != 0
        {
            return priority;
        }
        self.meet(thread)
    }

    #[cold]
    fn meet(&mut self, thread: usize) -> u64 {
        let slot = slot(thread);
        if slot >= self.priorities.len() {
            self.priorities.resize(slot + 1, 0);
        }
        self.priorities[slot] = FIRST | self.rng.next();
        self.priorities[slot]
    }
}

/// Where the priority of `thread` lies. The first place is for the largest number, by which a
/// machine may have a candidate that is no thread, such as its clock.
#[inline]
fn slot(thread: usize) -> usize {
    thread.wrapping_add(1)
}

impl Strategy for Pct {
    fn begin(&mut self) -> bool {
        if self.begun == self.executions {
            return false;
        }
        if self.begun > 0 {
            self.learn();
        }
        self.rng = Rng::of_execution(self.seed, self.begun);
        self.begun += 1;
        self.surprises.begin(&mut self.rng);
        self.steps = 0;
        self.priorities.fill(0);
        self.lowest = CHANGED;
        self.changes.clear();
        for which in 1..self.depth {
            let after = 1 + self.rng.below(self.expected as usize) as u64;
            self.changes.push((after, CHANGED + which as u64));
        }
        self.changes.sort_unstable_by(|a, b| b.cmp(a));
        true
    }

    #[inline]
    fn thread(&mut self, enabled: &[Candidate]) -> usize {
        while let Some(&(after, priority)) = self.changes.last()
            && after == self.steps
        {
            self.priorities[slot(self.last)] = priority;
            self.changes.pop();
        }
        self.steps += 1;
        let mut best = 0;
        let mut highest = 0;
        for (index, candidate) in enabled.iter().enumerate() {
            let priority = self.priority(candidate.thread);
            if priority > highest {
                (best, highest) = (index, priority);
            }
        }
        self.last = enabled[best].thread;
        best
    }

    #[inline]
    fn pick(&mut self, kind: Kind, n: usize) -> usize {
        self.surprises.pick(kind, n, &mut self.rng)
    }

    fn yielded(&mut self, thread: usize) {
        self.priority(thread);
        self.lowest -= 1;
        self.priorities[slot(thread)] = self.lowest;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Footprint;
    use super::*;
    use std::collections::BTreeMap;

    const THREADS: usize = 3;
    const STEPS: usize = 8;

    fn pct(executions: u64, depth: usize) -> Pct {
        Pct::new(2010, executions, depth, Odds::default())
    }

    /// One execution of `THREADS` threads of `STEPS` steps each: which thread made each step.
    fn schedule(pct: &mut Pct) -> Vec<usize> {
        let mut left = [STEPS; THREADS];
        let mut schedule: Vec<usize> = Vec::new();
        loop {
            let mut enabled: Vec<usize> = (0..THREADS).filter(|&thread| left[thread] > 0).collect();
            enabled.sort_by_key(|thread| schedule.last() != Some(thread));
            if enabled.is_empty() {
                return schedule;
            }
            let footprint = Footprint::Everything;
            let candidates: Vec<_> = enabled.iter().map(|&thread| Candidate { thread, footprint }).collect();
            let thread = enabled[pct.thread(&candidates)];
            left[thread] -= 1;
            schedule.push(thread);
        }
    }

    /// When `thread` made its `step`-th step, from 0.
    fn when(schedule: &[usize], thread: usize, step: usize) -> usize {
        schedule.iter().enumerate().filter(|&(_, &t)| t == thread).nth(step).unwrap().0
    }

    /// Bugs of depth 1, 2 and 3: thread 1 begins before thread 0 does; it makes its sixth step
    /// between two of thread 0; and it does so with thread 0 getting ahead of its seventh.
    fn bug(depth: usize, schedule: &[usize]) -> bool {
        let at = |thread, step| when(schedule, thread, step);
        match depth {
            1 => at(1, 0) < at(0, 0),
            2 => at(0, 3) < at(1, 5) && at(1, 5) < at(0, 4),
            _ => at(0, 3) < at(1, 5) && at(1, 5) < at(0, 4) && at(0, 4) < at(1, 6),
        }
    }

    fn hits(depth: usize, bug_depth: usize, executions: u64) -> u64 {
        let mut pct = pct(executions, depth);
        let mut hits = 0;
        while pct.begin() {
            hits += u64::from(bug(bug_depth, &schedule(&mut pct)));
        }
        hits
    }

    #[test]
    fn a_bug_of_depth_d_is_found_as_often_as_the_theorem_says() {
        let k = (THREADS * STEPS) as f64;
        for (depth, executions) in [(1, 2_000), (2, 20_000), (3, 200_000)] {
            let promised = executions as f64 / (THREADS as f64 * k.powi(depth as i32 - 1));
            let hits = hits(depth, depth, executions);
            // Four standard deviations below what is promised at least.
            assert!(hits as f64 >= promised - 4.0 * promised.sqrt(), "depth {depth}: {hits} of {promised}");
        }
    }

    #[test]
    fn with_one_change_of_priority_too_few_it_is_never_found() {
        assert_eq!(hits(1, 2, 5_000), 0);
        assert_eq!(hits(2, 3, 50_000), 0);
    }

    #[test]
    fn without_changes_threads_run_one_after_the_other_in_each_order_equally_often() {
        let mut orders = BTreeMap::new();
        let mut pct = pct(6_000, 1);
        while pct.begin() {
            let mut order = schedule(&mut pct);
            order.dedup();
            *orders.entry(order).or_insert(0) += 1;
        }
        // Mean 1,000, deviation 29.
        assert!(orders.len() == 6 && orders.values().all(|count| (850..1_150).contains(count)), "{orders:?}");
    }

    #[test]
    fn the_number_of_steps_is_learnt_and_a_long_execution_forgotten() {
        let mut pct = pct(200, 2);
        let one = [Candidate { thread: 0, footprint: Footprint::Local }];
        let mut run = |steps: u64| {
            assert!(pct.begin());
            for _ in 0..steps {
                pct.thread(&one);
            }
            pct.expected
        };
        assert_eq!(run(24), FIRST_GUESS);
        assert_eq!(run(20), 24);
        assert_eq!(run(5_000), 23, "the longest counts, less a little");
        assert_eq!(run(24), 5_000);
        let last = (0..150).map(|_| run(24)).last();
        assert_eq!(last, Some(24));
    }

    #[test]
    fn a_thread_that_spins_lets_all_others_run_first() {
        let mut pct = pct(500, 3);
        let candidates = [0, 1, 2].map(|thread| Candidate { thread, footprint: Footprint::Local });
        while pct.begin() {
            let spinner = pct.thread(&candidates);
            pct.yielded(spinner);
            assert_ne!(pct.thread(&candidates), spinner);
            let second = pct.last;
            pct.yielded(second);
            assert_eq!(pct.thread(&candidates), 3 - spinner - second);
        }
    }

    #[test]
    fn a_candidate_with_the_largest_number_has_a_priority_as_any_other() {
        let mut pct = pct(200, 3);
        let candidates = [usize::MAX, 0].map(|thread| Candidate { thread, footprint: Footprint::Clock });
        let mut first = [0; 2];
        while pct.begin() {
            for step in 0..64 {
                let index = pct.thread(&candidates);
                first[index] += usize::from(step == 0);
            }
        }
        assert!(first.iter().all(|&count| count > 50), "{first:?}");
    }

    #[test]
    fn it_ends_after_the_executions_asked_for_and_repeats_with_the_same_seed() {
        let run = || {
            let mut pct = pct(50, 3);
            let mut schedules = Vec::new();
            while pct.begin() {
                schedules.push(schedule(&mut pct));
            }
            assert!(!pct.begin());
            schedules
        };
        let schedules = run();
        assert_eq!((schedules.len(), &schedules), (50, &run()));
    }

    #[test]
    #[should_panic(expected = "depth 0: at least 1")]
    fn depth_0_is_refused() {
        pct(1, 0);
    }
}
