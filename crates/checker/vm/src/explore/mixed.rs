//! Chance and priorities in turn.

use crate::choice::{Candidate, Kind, Odds, Pct, Random, Strategy};

/// How many steps have to come in a certain order for the bugs that the priorities look for.
const DEPTH: usize = 3;

/// Every second execution by [`Random`], the others by [`Pct`].
pub(super) struct Mixed {
    random: Random,
    pct: Pct,
    by_priority: bool,
}

impl Mixed {
    pub(super) fn new(seed: u64, executions: u64) -> Self {
        Self {
            random: Random::new(seed, executions.div_ceil(2), Odds::default()),
            pct: Pct::new(seed, executions / 2, DEPTH, Odds::default()),
            by_priority: true,
        }
    }

    fn current(&mut self) -> &mut dyn Strategy {
        if self.by_priority { &mut self.pct } else { &mut self.random }
    }
}

impl Strategy for Mixed {
    fn begin(&mut self) -> bool {
        self.by_priority = !self.by_priority;
        self.current().begin()
    }

    fn thread(&mut self, enabled: &[Candidate]) -> usize {
        self.current().thread(enabled)
    }

    fn pick(&mut self, kind: Kind, n: usize) -> usize {
        self.current().pick(kind, n)
    }

    fn yielded(&mut self, thread: usize) {
        self.current().yielded(thread);
    }
}
