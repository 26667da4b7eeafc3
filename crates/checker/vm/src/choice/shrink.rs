//! Makes a failing input small, so that what is left is what matters.
//!
//! Small means, in this order: few bytes that are not 0 (each is a surprise,
//! [`Bytes`](super::Bytes)), few bytes, small bytes. Five passes are repeated until none of them
//! helps:
//!
//! 1. cut the tail, by halves;
//! 2. set chunks of the bytes that are not 0 to 0, from half of them down to one;
//! 3. delete chunks, from half of the string down to one byte;
//! 4. make single bytes smaller;
//! 5. take out up to two neighbours among the bytes that are not 0, and give what follows another
//!    distance from what is before: with another thread running, there are other questions in
//!    between.
//!
//! The result cannot be made smaller by setting one byte to 0, by leaving out one, or by lowering
//! one by one, unless the budget ran out. There is no chance in it.
//!
//! Sources: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE
//! 28(2), 2002, for the chunks. MacIver and Donaldson, "Test-Case Reduction via Test-Case
//! Generation: Insights from the Hypothesis Reducer", ECOOP 2020, for reducing the answers to
//! choices in place of what was made of them.

/// Distances below this are all tried, and those that differ from the one before by at most
/// `REACH`.
const NEAR: usize = 64;
const REACH: usize = 16;
/// Bytes up to this are all tried where a byte is made smaller.
const SMALL: u8 = 8;

/// The smallest input found that still fails, with at most `budget` calls of `fails`. `input` is
/// taken to fail.
///
/// `fails` says whether an input fails *in the same way*: else the result may show another fault.
pub(crate) fn shrink(input: &[u8], budget: usize, fails: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let mut search = Search { best: input.to_vec(), budget, fails };
    // What is missing at the end is 0 anyway.
    search.best.truncate(end(input));
    loop {
        let before = search.best.clone();
        search.cut_tail();
        search.zero_chunks();
        search.delete_chunks();
        search.lower_bytes();
        search.join_over();
        if search.best == before || search.budget == 0 {
            return search.best;
        }
    }
}

struct Search<F> {
    best: Vec<u8>,
    budget: usize,
    fails: F,
}

impl<F: FnMut(&[u8]) -> bool> Search<F> {
    /// Takes `candidate` if it is smaller than the best so far and fails.
    fn attempt(&mut self, mut candidate: Vec<u8>) -> bool {
        candidate.truncate(end(&candidate));
        if self.budget == 0 || !is_smaller(&candidate, &self.best) {
            return false;
        }
        self.budget -= 1;
        let fails = (self.fails)(&candidate);
        if fails {
            self.best = candidate;
        }
        fails
    }

    fn cut_tail(&mut self) {
        let mut cut = self.best.len();
        while cut > 0 {
            while cut <= self.best.len() && self.attempt(self.best[..self.best.len() - cut].to_vec()) {}
            cut /= 2;
        }
    }

    fn zero_chunks(&mut self) {
        let mut size = self.surprises().len();
        while size > 0 {
            let mut end = self.surprises().len();
            while end > 0 {
                // Those before `end` are where they were, whatever was set to 0 behind them.
                let start = end.saturating_sub(size);
                let mut candidate = self.best.clone();
                for &position in &self.surprises()[start..end] {
                    candidate[position] = 0;
                }
                self.attempt(candidate);
                end = start;
            }
            size /= 2;
        }
    }

    fn delete_chunks(&mut self) {
        let mut size = self.best.len() / 2;
        while size > 0 {
            let mut end = self.best.len();
            while end >= size && self.budget > 0 {
                let start = end - size;
                // In a run of equal bytes each deletion of one gives the same string.
                if size > 1 || self.best.get(end) != Some(&self.best[start]) {
                    let mut candidate = self.best.clone();
                    candidate.drain(start..end);
                    self.attempt(candidate);
                }
                end = start.min(self.best.len());
            }
            size /= 2;
        }
    }

    fn lower_bytes(&mut self) {
        for position in (0..self.best.len()).rev() {
            while let Some(&byte) = self.best.get(position) {
                // Answers are taken modulo something small, so that lower bytes may mean higher
                // answers.
                let mut smaller = (1..=SMALL).chain([byte / 2, byte.saturating_sub(1)]);
                let lowered = smaller.any(|smaller| {
                    let mut candidate = self.best.clone();
                    candidate[position] = smaller;
                    self.attempt(candidate)
                });
                if !lowered {
                    break;
                }
            }
        }
    }

    fn join_over(&mut self) {
        for size in 0..=2 {
            for first in (0..self.surprises().len()).rev() {
                // An attempt that succeeds leaves the surprises before `first` where they are.
                let surprises = self.surprises();
                let Some(&next) = surprises.get(first + size) else { continue };
                let start = first.checked_sub(1).map_or(0, |before| surprises[before] + 1);
                let (head, tail) = (self.best[..start].to_vec(), self.best[next..].to_vec());
                let gap = next - start;
                let mut gaps = (0..gap.min(NEAR)).chain(gap.saturating_sub(REACH)..=gap + REACH);
                gaps.any(|gap| self.attempt([&head, &vec![0; gap], &tail].map(Vec::as_slice).concat()));
            }
        }
    }

    /// The positions of the bytes that are not 0.
    fn surprises(&self) -> Vec<usize> {
        (0..self.best.len()).filter(|&position| self.best[position] != 0).collect()
    }
}

/// The length without zeros at the end.
fn end(input: &[u8]) -> usize {
    input.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)
}

fn is_smaller(a: &[u8], b: &[u8]) -> bool {
    let size = |input: &[u8]| (input.iter().filter(|&&byte| byte != 0).count(), input.len());
    (size(a), a) < (size(b), b)
}

#[cfg(test)]
mod tests {
    use super::super::rng::Rng;
    use super::super::{Bytes, Candidate, Footprint, Kind, Strategy};
    use super::*;

    /// What is wrong with an execution.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Verdict {
        LostUpdate,
        Died,
    }

    /// Two threads add to a counter by a load and a store, ten times each; now and then one may
    /// die.
    fn execution(input: &[u8]) -> Option<Verdict> {
        let mut bytes = Bytes::new(input);
        let (mut steps, mut counter, mut loaded) = ([0; 2], 0, [0; 2]);
        let mut last = 0;
        loop {
            let mut enabled: Vec<usize> = (0..2).filter(|&thread| steps[thread] < 20).collect();
            enabled.sort_by_key(|&thread| thread != last);
            if enabled.is_empty() {
                return (counter != 20).then_some(Verdict::LostUpdate);
            }
            let footprint = Footprint::Everything;
            let candidates: Vec<_> = enabled.iter().map(|&thread| Candidate { thread, footprint }).collect();
            last = enabled[bytes.thread(&candidates)];
            if steps[last] % 2 == 0 {
                loaded[last] = counter;
            } else {
                counter = loaded[last] + 1;
            }
            steps[last] += 1;
            if steps[last] % 5 == 0 && bytes.pick(Kind::Die, 200) == 199 {
                return Some(Verdict::Died);
            }
        }
    }

    /// The smallest failing input, by trying all in order of size up to what has two surprises.
    fn smallest(verdict: Verdict) -> Vec<u8> {
        let one = |length: usize| (1..=255).map(move |byte| [vec![0; length - 1], vec![byte]].concat());
        let two = |length: usize| {
            (0..length - 1).rev().flat_map(move |at| {
                (1..=3).flat_map(move |a| {
                    (1..=3).map(move |b| {
                        let mut input = vec![0; length];
                        (input[at], input[length - 1]) = (a, b);
                        input
                    })
                })
            })
        };
        let fails = |input: &Vec<u8>| execution(input) == Some(verdict);
        (1..60).flat_map(one).find(fails).or_else(|| (2..60).flat_map(two).find(fails)).unwrap()
    }

    fn random_input(seed: u64, length: usize, verdict: Verdict) -> Vec<u8> {
        let mut rng = Rng::new(seed);
        loop {
            // Bytes that often mean to stay, so that each verdict comes about.
            let input: Vec<u8> = (0..length).map(|_| rng.next() as u8 & rng.next() as u8).collect();
            if execution(&input) == Some(verdict) {
                return input;
            }
        }
    }

    #[test]
    fn inputs_of_thousands_of_bytes_shrink_to_the_smallest_with_the_same_verdict() {
        for verdict in [Verdict::LostUpdate, Verdict::Died] {
            let smallest = smallest(verdict);
            assert_eq!(execution(&smallest), Some(verdict));
            for seed in 0..20 {
                let input = random_input(seed, 4_000, verdict);
                let small = shrink(&input, 20_000, |input| execution(input) == Some(verdict));
                assert_eq!(small, smallest, "seed {seed}");
                assert_eq!(small, shrink(&input, 20_000, |input| execution(input) == Some(verdict)));
            }
        }
    }

    #[test]
    fn surprises_that_are_needed_far_apart_are_kept_and_the_rest_goes() {
        // Fails where 7 comes somewhere before 200, with at least 100 bytes between them.
        let fails = |input: &[u8]| {
            let first = input.iter().position(|&byte| byte == 7);
            first.is_some_and(|first| input.iter().skip(first + 101).any(|&byte| byte == 200))
        };
        let mut rng = Rng::new(1);
        let mut input: Vec<u8> = (0..3_000).map(|_| rng.next() as u8).collect();
        (input[50], input[2_900]) = (7, 200);
        assert_eq!(shrink(&input, 50_000, fails), [vec![7], vec![0; 100], vec![200]].concat());
    }

    #[test]
    fn a_byte_becomes_as_small_as_it_can_be() {
        assert_eq!(shrink(&[9, 250, 3], 1_000, |input| input.iter().any(|&byte| byte >= 37)), [37]);
        assert_eq!(shrink(&[9, 250, 3], 1_000, |input| input.iter().any(|byte| byte % 4 == 2)), [2]);
    }

    #[test]
    fn an_input_that_fails_whatever_it_says_becomes_empty() {
        assert!(shrink(&[1, 2, 3], 100, |_| true).is_empty());
        assert_eq!(shrink(&[], 100, |_| true), Vec::<u8>::new());
    }

    #[test]
    fn the_budget_is_kept_and_what_was_found_by_then_still_fails() {
        let verdict = Verdict::LostUpdate;
        let input = random_input(3, 2_000, verdict);
        let mut before = input.clone();
        for budget in [0, 1, 2, 5, 10, 50, 100, 1_000] {
            let mut calls = 0;
            let small = shrink(&input, budget, |input| {
                calls += 1;
                execution(input) == Some(verdict)
            });
            assert!(calls <= budget, "{calls} of {budget}");
            assert_eq!(execution(&small), Some(verdict));
            assert!(small == before || is_smaller(&small, &before));
            before = small;
        }
    }

    #[test]
    fn an_input_that_only_fails_as_it_is_stays() {
        let input = [5, 0, 9];
        let mut calls = 0;
        let small = shrink(&input, 1_000, |candidate| {
            calls += 1;
            candidate == input
        });
        assert_eq!(small, input);
        assert!((5..100).contains(&calls), "each way was tried, in {calls}");
    }
}
