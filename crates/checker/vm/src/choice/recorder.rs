//! Writes executions down.

use super::bytes::write;
use super::{Candidate, Footprint, Kind, Strategy, Turn};

/// Answers as the strategy inside, and remembers the answers of this execution.
#[derive(Clone, Debug)]
pub(crate) struct Recorder<S> {
    strategy: S,
    bytes: Vec<u8>,
}

impl<S> Recorder<S> {
    pub(crate) fn new(strategy: S) -> Self {
        Self { strategy, bytes: Vec::new() }
    }

    /// The input that makes [`Bytes`](super::Bytes) repeat this execution so far. What would only
    /// say "tame" at the end is left out.
    pub(crate) fn bytes(&self) -> &[u8] {
        let end = self.bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        &self.bytes[..end]
    }

    pub(crate) fn strategy(&self) -> &S {
        &self.strategy
    }

    pub(crate) fn strategy_mut(&mut self) -> &mut S {
        &mut self.strategy
    }
}

impl<S: Strategy> Strategy for Recorder<S> {
    fn begin(&mut self) -> bool {
        self.bytes.clear();
        self.strategy.begin()
    }

    #[inline]
    fn thread(&mut self, enabled: &[Candidate]) -> usize {
        let index = self.strategy.thread(enabled);
        write(index, enabled.len(), &mut self.bytes);
        index
    }

    #[inline]
    fn pick(&mut self, kind: Kind, n: usize) -> usize {
        let answer = self.strategy.pick(kind, n);
        write(answer, n, &mut self.bytes);
        answer
    }

    fn yielded(&mut self, thread: usize) {
        self.strategy.yielded(thread);
    }

    fn follows(&mut self, thread: usize, other: usize) {
        self.strategy.follows(thread, other);
    }

    fn kept(&mut self, thread: usize, footprint: Footprint) {
        self.strategy.kept(thread, footprint);
    }

    fn all_orders(&mut self) {
        self.strategy.all_orders();
    }

    fn within(&mut self, turn: Turn, enabled: &[Candidate]) {
        self.strategy.within(turn, enabled);
    }

    fn fact(&mut self, found: Option<u32>) -> Option<u32> {
        self.strategy.fact(found)
    }

    fn repeats(&mut self) {
        self.strategy.repeats();
    }

    fn is_redundant(&self) -> bool {
        self.strategy.is_redundant()
    }
}

#[cfg(test)]
mod tests {
    use super::super::rng::Rng;
    use super::super::{Bytes, Footprint, Odds, Random};
    use super::*;

    /// Asks `strategy` questions that depend on the answers before, as a model does. The answers.
    fn execution(strategy: &mut impl Strategy, questions: usize) -> Vec<usize> {
        let mut state = Rng::new(42);
        let mut answers = Vec::new();
        for _ in 0..questions {
            let n = [1, 2, 3, 32, 256, 257, 60_000][state.below(7)];
            let answer = if state.below(2) == 0 && n <= 32 {
                let footprint = Footprint::Local;
                let enabled: Vec<_> = (0..n).map(|thread| Candidate { thread, footprint }).collect();
                strategy.thread(&enabled)
            } else {
                strategy.pick(Kind::User, n.max(2))
            };
            assert!(answer < n.max(2));
            state = Rng::new(state.next() ^ answer as u64);
            answers.push(answer);
        }
        answers
    }

    #[test]
    fn what_was_recorded_repeats_the_execution() {
        let mut recorder = Recorder::new(Random::new(9, 300, Odds::default()));
        while recorder.begin() {
            let answers = execution(&mut recorder, 100);
            let input = recorder.bytes().to_vec();
            let mut again = Recorder::new(Bytes::new(&input));
            assert!(again.begin());
            assert_eq!(execution(&mut again, 100), answers);
            assert_eq!(again.bytes(), input, "and is recorded as the same");
            assert_ne!(input.last(), Some(&0));
        }
    }

    #[test]
    fn any_input_is_recorded_in_its_plain_form() {
        let mut rng = Rng::new(4);
        for _ in 0..300 {
            let input: Vec<u8> = (0..150).map(|_| rng.next() as u8).collect();
            let mut recorder = Recorder::new(Bytes::new(&input));
            assert!(recorder.begin());
            let answers = execution(&mut recorder, 100);
            let plain = recorder.bytes().to_vec();
            assert_eq!(execution(&mut Bytes::new(&plain), 100), answers);
        }
    }

    #[test]
    fn a_new_execution_begins_with_nothing_recorded() {
        let mut recorder = Recorder::new(Bytes::new(&[1, 0, 0]));
        assert!(recorder.begin());
        assert_eq!([2, 2, 2].map(|n| recorder.pick(Kind::Spurious, n)), [1, 0, 0]);
        assert_eq!(recorder.bytes(), [1], "tame answers at the end are left out");
        assert!(!recorder.begin());
        assert_eq!(recorder.bytes(), [0; 0]);
    }
}
