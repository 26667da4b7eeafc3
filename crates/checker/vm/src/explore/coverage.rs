//! What the executions of an exploration did at each place of the source, so that a green model
//! can be doubted.
//!
//! A *site* is a place of call and what is called there. Each execution adds to its counts. A site
//! at which something never happened, in all executions together, is one that the model did not
//! put to the test: see [`Site::doubts`].

use super::kernel::Clocks;
use super::machine::Machine;
use crate::clock::Time;
use crate::engine::{At, Update};
use core::fmt;
use core::panic::Location;
use std::collections::{BTreeMap, HashMap};

/// What is called at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// A load of an atomic.
    Load,
    /// A store to an atomic.
    Store,
    /// A read-modify-write that cannot fail.
    Update,
    /// A compare-and-exchange.
    Exchange,
    /// One that may fail for no reason.
    WeakExchange,
    /// A futex wait without a deadline.
    Wait,
    /// One with a deadline.
    TimedWait,
    /// A futex wake-up, or a move to another futex.
    Wake,
    /// A look at the clock, to see whether a deadline is over.
    Deadline,
}

/// What can happen at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Event {
    /// The operation was carried out.
    Ran,
    /// Another thread ran before it, although it could have been carried out already.
    Preempted,
    /// It read a value that was not the newest.
    ReadOld,
    /// It was placed behind a newer value, or read one that had been replaced.
    PlacedBehind,
    /// The exchange was made.
    Exchanged,
    /// The exchange failed, since the value was another.
    Failed,
    /// The exchange failed for no reason.
    FailedForNoReason,
    /// The thread did not fall asleep, since the word held another value.
    FoundChanged,
    /// The thread fell asleep.
    Slept,
    /// A sleeper was woken: by the wake-up, or in the wait.
    Woken,
    /// The wait ended for no reason.
    WokenForNoReason,
    /// The wait ended with a signal.
    Interrupted,
    /// The deadline was over.
    TimedOut,
    /// The deadline was not over.
    NotYet,
}

impl Operation {
    /// What is to happen at a site of this kind, if a model tries all of it.
    #[must_use]
    pub fn expected(self) -> &'static [Event] {
        use Event::{
            Exchanged, Failed, FailedForNoReason, FoundChanged, NotYet, Preempted, ReadOld, Slept, TimedOut,
            Woken,
        };
        match self {
            Self::Load | Self::Update => &[Preempted, ReadOld],
            Self::Store => &[Preempted],
            Self::Exchange => &[Preempted, ReadOld, Exchanged, Failed],
            Self::WeakExchange => &[Preempted, ReadOld, Exchanged, Failed, FailedForNoReason],
            Self::Wait => &[Preempted, FoundChanged, Slept, Woken],
            Self::TimedWait => &[Preempted, FoundChanged, Slept, Woken, TimedOut],
            Self::Wake => &[Preempted, Woken],
            Self::Deadline => &[NotYet, TimedOut],
        }
    }
}

impl Operation {
    pub(super) fn of(update: &Update<'_>) -> Self {
        match (update.weak, update.name) {
            (true, _) => Self::WeakExchange,
            (false, "compare_exchange") => Self::Exchange,
            (false, _) => Self::Update,
        }
    }

    pub(super) fn wait(deadline: Option<Time>) -> Self {
        if deadline.and_then(Clocks::moment).is_some() { Self::TimedWait } else { Self::Wait }
    }
}

impl Event {
    /// Each of them.
    pub const ALL: [Self; 14] = [
        Self::Ran,
        Self::Preempted,
        Self::ReadOld,
        Self::PlacedBehind,
        Self::Exchanged,
        Self::Failed,
        Self::FailedForNoReason,
        Self::FoundChanged,
        Self::Slept,
        Self::Woken,
        Self::WokenForNoReason,
        Self::Interrupted,
        Self::TimedOut,
        Self::NotYet,
    ];
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Load => "load",
            Self::Store => "store",
            Self::Update => "update",
            Self::Exchange => "exchange",
            Self::WeakExchange => "weak exchange",
            Self::Wait => "wait",
            Self::TimedWait => "timed wait",
            Self::Wake => "wake",
            Self::Deadline => "deadline",
        })
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ran => "ran",
            Self::Preempted => "was preempted",
            Self::ReadOld => "read an old value",
            Self::PlacedBehind => "was placed behind a newer value",
            Self::Exchanged => "was made",
            Self::Failed => "failed",
            Self::FailedForNoReason => "failed for no reason",
            Self::FoundChanged => "found the word changed",
            Self::Slept => "slept",
            Self::Woken => "woke",
            Self::WokenForNoReason => "woke for no reason",
            Self::Interrupted => "was interrupted",
            Self::TimedOut => "was over its deadline",
            Self::NotYet => "was ahead of its deadline",
        })
    }
}

/// A place of call, and how often each event happened there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    at: At,
    operation: Operation,
    counts: Counts,
}

type Counts = [u64; Event::ALL.len()];

impl Site {
    /// Where it is.
    #[must_use]
    pub fn at(&self) -> &'static Location<'static> {
        self.at
    }

    /// What is called there.
    #[must_use]
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// How often that happened there.
    #[must_use]
    pub fn count(&self, event: Event) -> u64 {
        self.counts[event as usize]
    }

    /// What never happened there, although it can at a site of this kind. Some of it may be
    /// impossible for this program: the holder of a lock reads no old value of what the lock
    /// protects.
    pub fn doubts(&self) -> impl Iterator<Item = Event> + '_ {
        self.operation.expected().iter().copied().filter(|&event| self.count(event) == 0)
    }
}

/// What the executions of an exploration did at each site.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// By the address of the place, since that is fast.
    counts: HashMap<(usize, Operation), (At, Counts)>,
}

impl Coverage {
    fn add(&mut self, at: At, operation: Operation, events: &[Event]) {
        let key = (core::ptr::from_ref(at).addr(), operation);
        let (_, counts) = self.counts.entry(key).or_insert((at, Counts::default()));
        for event in events {
            counts[*event as usize] += 1;
        }
    }

    /// The sites, by file, line and column.
    #[must_use]
    pub fn sites(&self) -> Vec<Site> {
        // One place may have several addresses, if it was compiled more than once.
        let mut sites: BTreeMap<_, Site> = BTreeMap::new();
        for ((_, operation), (at, counts)) in &self.counts {
            let key = (at.file(), at.line(), at.column(), *operation);
            let site =
                sites.entry(key).or_insert(Site { at, operation: *operation, counts: Counts::default() });
            site.counts.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        sites.into_values().collect()
    }
}

/// How many sites there are, and those at which something never happened.
impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sites = self.sites();
        let doubtful: Vec<_> = sites.iter().filter(|site| site.doubts().next().is_some()).collect();
        writeln!(f, "{} sites, {} of them with something that never happened", sites.len(), doubtful.len())?;
        for site in doubtful {
            let place = format!("{}:{}", super::story::place_of(site.at), site.at.column());
            let never: Vec<_> = site.doubts().map(|event| event.to_string()).collect();
            let (ran, never) = (site.count(Event::Ran), never.join(", "));
            writeln!(f, "  {place}  {} ran {ran} times, never {never}", site.operation)?;
        }
        Ok(())
    }
}

impl Machine<'_, '_> {
    /// Counts `events` for an operation of the current thread, which has just been carried out.
    #[inline]
    pub(super) fn cover(&mut self, at: At, operation: Operation, events: &[Event]) {
        if self.coverage.is_some() {
            self.cover_now(at, operation, events);
        }
    }

    #[cold]
    fn cover_now(&mut self, at: At, operation: Operation, events: &[Event]) {
        let preempted = core::mem::take(&mut self.threads[self.current].preempted);
        if let Some(coverage) = &mut self.coverage {
            coverage.add(at, operation, &[Event::Ran]);
            coverage.add(at, operation, if preempted { &[Event::Preempted] } else { &[] });
            coverage.add(at, operation, events);
        }
    }

    /// `chosen` goes next; the others could have.
    #[cold]
    pub(super) fn cover_preemptions(&mut self, chosen: usize) {
        for other in self.enabled.iter().map(|candidate| candidate.thread) {
            if other != chosen
                && let Some(thread) = self.threads.get_mut(other)
            {
                thread.preempted = true;
            }
        }
    }

    /// Counts what comes of an operation that was counted before.
    pub(super) fn cover_end(&mut self, at: At, operation: Operation, event: Event) {
        if let Some(coverage) = &mut self.coverage {
            coverage.add(at, operation, &[event]);
        }
    }
}
