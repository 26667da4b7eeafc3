//! The bounds of an exploration of all executions that kept it from some of them.

use core::fmt;
use core::panic::Location;

/// Where a bound first left something out, and how often it did in all executions together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The line of the model.
    pub at: &'static Location<'static>,
    /// How often.
    pub times: u64,
}

/// The bounds that were hit. An exploration that hit none has seen all executions there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// A load had to read the newest value although an older one was there:
    /// [`Config::stale`](super::Config::stale).
    pub stale: Option<Hit>,
    /// A weak exchange did not fail for no reason, since it had just done so.
    pub weak_failures: Option<Hit>,
    /// A fruitless round of a busy-wait was not repeated until there was something new to see. That
    /// leaves out executions only if a round does more than look: if it changes something in a
    /// closure of [`spin_until`](crate::sync::spin_until), even if it puts it back, or if it counts
    /// outside of the thread's stack.
    pub rounds: Option<Hit>,
    /// A thread that yields in a loop in which it also changes something made way for others, which
    /// took a step each before it went on. That leaves out executions in which it goes several
    /// rounds while another thread that can go takes no step.
    pub yields: Option<Hit>,
    /// A thread kept its turn or read the newest value, since the execution had had all its
    /// preemptions: [`Config::preemptions`](super::Config::preemptions).
    pub preemptions: Option<Hit>,
    /// The model did not want to vary this part: [`stop`](super::stop), [`skip`](super::skip).
    pub stopped: Option<Hit>,
}

/// One of the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Stale,
    WeakFailures,
    Rounds,
    Yields,
    Preemptions,
    Stopped,
}

impl Bounds {
    /// Whether one of them was hit.
    #[must_use]
    pub fn is_hit(&self) -> bool {
        *self != Self::default()
    }

    fn all(&self) -> [(&'static str, Option<Hit>); 6] {
        [
            ("an old value read as often in a row as allowed", self.stale),
            ("a second failure in a row of a weak exchange", self.weak_failures),
            ("a fruitless round of a busy-wait repeated", self.rounds),
            ("an unfair turn after a yield", self.yields),
            ("a preemption more than allowed", self.preemptions),
            ("what the model stopped from being varied", self.stopped),
        ]
    }

    /// The bound was hit.
    pub(super) fn hit(&mut self, bound: Bound, at: &'static Location<'static>) {
        let place = match bound {
            Bound::Stale => &mut self.stale,
            Bound::WeakFailures => &mut self.weak_failures,
            Bound::Rounds => &mut self.rounds,
            Bound::Yields => &mut self.yields,
            Bound::Preemptions => &mut self.preemptions,
            Bound::Stopped => &mut self.stopped,
        };
        place.get_or_insert(Hit { at, times: 0 }).times += 1;
    }

    /// Those of another execution.
    pub(super) fn add(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.stale, other.stale),
            (&mut self.weak_failures, other.weak_failures),
            (&mut self.rounds, other.rounds),
            (&mut self.yields, other.yields),
            (&mut self.preemptions, other.preemptions),
            (&mut self.stopped, other.stopped),
        ] {
            if let Some(hit) = theirs {
                mine.get_or_insert(Hit { times: 0, ..hit }).times += hit.times;
            }
        }
    }
}

/// What was left out, and where first.
impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hits = self.all().into_iter().filter_map(|(what, hit)| Some((what, hit?)));
        for (nth, (what, hit)) in hits.enumerate() {
            let comma = if nth == 0 { "" } else { ", " };
            write!(f, "{comma}{what} ({}, {} times)", super::story::place_of(hit.at), hit.times)?;
        }
        Ok(())
    }
}
