//! Random executions.
//!
//! Uniform answers find little: with a switch at every step no thread ever gets far alone, and with
//! stale reads everywhere a lock hardly moves. Nor does one fixed bias do, for what one bug needs
//! another forbids. So every execution has habits, drawn when it begins: how often the running
//! thread is left for another, and for each kind of choice whether surprises come never, as often
//! as [`Odds`] says, or four times as often. (Groce et al., "Swarm Testing", ISSTA 2012.)
//!
//! Every execution of the model has positive probability in every execution that has all surprises
//! on.

use super::rng::Rng;
use super::{Candidate, Kind, Strategy};

/// How often a choice of each kind is not the tame one, in 65,536ths.
#[derive(Clone, Debug)]
pub(crate) struct Odds([u16; Kind::COUNT]);

impl Odds {
    /// No answer is preferred.
    pub(crate) const UNIFORM: u16 = u16::MAX;
    /// Three in four: a strategy that surprises nearly always would read the same old value a
    /// hundred thousand times, which no machine does, and a loop that looks until it sees a change
    /// would be taken for one that never ends.
    const MOST: u16 = 3 << 14;

    /// The same with `surprises` in 65,536 choices of `kind`.
    pub(crate) fn with(mut self, kind: Kind, surprises: u16) -> Self {
        self.0[kind as usize] = surprises;
        self
    }
}

impl Default for Odds {
    /// Stale reads, and what is needed together with them, often; what ends or disturbs a thread
    /// rarely, because the question comes at every step.
    fn default() -> Self {
        Self([Self::UNIFORM; Kind::COUNT])
            .with(Kind::Message, 1 << 14)
            .with(Kind::Place, 1 << 13)
            .with(Kind::WeakFailure, 1 << 12)
            .with(Kind::Spurious, 1 << 11)
            .with(Kind::Expire, 1 << 13)
            .with(Kind::Interrupt, 1 << 11)
            .with(Kind::Die, 1 << 10)
    }
}

/// Answers to everything but threads, by chance.
#[derive(Clone, Debug)]
pub(super) struct Surprises {
    odds: Odds,
    /// This execution's.
    drawn: [u16; Kind::COUNT],
}

impl Surprises {
    pub(super) fn new(odds: Odds) -> Self {
        Self { drawn: odds.0, odds }
    }

    /// A new execution: draws its habits.
    pub(super) fn begin(&mut self, rng: &mut Rng) {
        for (drawn, &odds) in self.drawn.iter_mut().zip(&self.odds.0) {
            *drawn = match (odds, rng.below(4)) {
                (Odds::UNIFORM, _) | (_, 0 | 1) => odds,
                (_, 2) => 0,
                _ => odds.saturating_mul(4).min(Odds::MOST),
            };
        }
    }

    #[inline]
    pub(super) fn pick(&self, kind: Kind, n: usize, rng: &mut Rng) -> usize {
        let odds = self.drawn[kind as usize];
        if odds == Odds::UNIFORM {
            return rng.below(n);
        }
        if rng.next() >> 48 >= u64::from(odds) { 0 } else { 1 + rng.below(n - 1) }
    }
}

/// Answers by chance.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    seed: u64,
    executions: u64,
    begun: u64,
    rng: Rng,
    surprises: Surprises,
    /// This execution leaves the running thread in one of so many steps.
    patience: usize,
    last: Option<usize>,
}

impl Random {
    pub(crate) fn new(seed: u64, executions: u64, odds: Odds) -> Self {
        let surprises = Surprises::new(odds);
        Self { seed, executions, begun: 0, rng: Rng::new(seed), surprises, patience: 1, last: None }
    }
}

impl Strategy for Random {
    fn begin(&mut self) -> bool {
        if self.begun == self.executions {
            return false;
        }
        self.rng = Rng::of_execution(self.seed, self.begun);
        self.begun += 1;
        self.surprises.begin(&mut self.rng);
        self.patience = 1 << self.rng.below(5);
        self.last = None;
        true
    }

    #[inline]
    fn thread(&mut self, enabled: &[Candidate]) -> usize {
        let may_stay = self.last == Some(enabled[0].thread);
        let index = if enabled.len() == 1 || may_stay && self.rng.below(self.patience) != 0 {
            0
        } else {
            self.rng.below(enabled.len())
        };
        self.last = Some(enabled[index].thread);
        index
    }

    #[inline]
    fn pick(&mut self, kind: Kind, n: usize) -> usize {
        self.surprises.pick(kind, n, &mut self.rng)
    }

    fn yielded(&mut self, thread: usize) {
        if self.last == Some(thread) {
            self.last = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Footprint;
    use super::*;

    fn threads(numbers: &[usize]) -> Vec<Candidate> {
        numbers.iter().map(|&thread| Candidate { thread, footprint: Footprint::Local }).collect()
    }

    /// The answers to a fixed list of questions.
    fn answers(random: &mut Random) -> Vec<usize> {
        let enabled = threads(&[2, 0, 1]);
        (0..50).flat_map(|_| [random.thread(&enabled), random.pick(Kind::Message, 5)]).collect()
    }

    #[test]
    fn it_ends_after_the_executions_asked_for() {
        let mut random = Random::new(1, 3, Odds::default());
        assert_eq!([(); 5].map(|()| random.begin()), [true, true, true, false, false]);
    }

    #[test]
    fn an_execution_depends_on_seed_and_number_and_not_on_those_before() {
        let mut one = Random::new(7, 9, Odds::default());
        assert!(one.begin());
        let first = answers(&mut one);
        assert!(one.begin());
        let second = answers(&mut one);
        assert_ne!(first, second);

        let mut another = Random::new(7, 9, Odds::default());
        assert!(another.begin() && another.begin());
        assert_eq!(answers(&mut another), second);
        let mut other_seed = Random::new(8, 9, Odds::default());
        assert!(other_seed.begin());
        assert_ne!(answers(&mut other_seed), first);
    }

    #[test]
    fn surprises_come_as_often_as_the_odds_say_or_four_times_as_often_or_never() {
        let odds = Odds::default().with(Kind::Die, 1 << 12); // 1 in 16
        let mut random = Random::new(3, 200, odds);
        let mut seen = [0; 3];
        while random.begin() {
            let surprises = (0..4_096).filter(|_| random.pick(Kind::Die, 2) == 1).count();
            // Expected 0, 256 (deviation 15), and 1,024 (deviation 28).
            match surprises {
                0 => seen[0] += 1,
                156..=356 => seen[1] += 1,
                844..=1_204 => seen[2] += 1,
                _ => panic!("{surprises} of 4096"),
            }
        }
        assert!(seen.iter().all(|&count| count >= 20), "{seen:?}");
    }

    #[test]
    fn without_preference_every_answer_is_equally_likely() {
        let mut random = Random::new(5, 1, Odds::default());
        assert!(random.begin());
        let mut counts = [0; 4];
        for _ in 0..40_000 {
            counts[random.pick(Kind::User, 4)] += 1;
        }
        assert!(counts.iter().all(|count| (9_000..11_000).contains(count)), "{counts:?}");
    }

    #[test]
    fn every_schedule_of_six_steps_of_two_threads_comes_about() {
        let mut random = Random::new(11, 20_000, Odds::default());
        let mut seen = std::collections::BTreeSet::new();
        while random.begin() {
            let mut running = 0;
            let schedule: Vec<usize> = (0..6)
                .map(|_| {
                    let enabled = threads(&[running, 1 - running]);
                    running = enabled[random.thread(&enabled)].thread;
                    running
                })
                .collect();
            seen.insert(schedule);
        }
        assert_eq!(seen.len(), 1 << 6);
    }

    #[test]
    fn a_spinning_thread_is_left_for_others() {
        let mut random = Random::new(1, 2_000, Odds::default());
        while random.begin() {
            // Even the most patient execution leaves the spinner by chance of one half each time.
            let enabled = threads(&[0, 1]);
            let left = (0..100).any(|_| {
                let index = random.thread(&enabled);
                random.yielded(0);
                index == 1
            });
            assert!(left);
        }
    }
}
