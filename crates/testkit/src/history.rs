//! Long histories of real threads: is there an order of all calls, one at a time, that explains
//! what each returned?
//!
//! Linearizability (Herlihy, Wing 1990): each call is to take effect at one point between its
//! beginning and its end. Threads write down what they called, what came of it, and two
//! [stamps](Clock) of one counter; [`check`] looks at all of it afterwards.
//!
//! # How it is checked
//! Just in time (Lowe 2017): the stamps are gone through in their order, with all states the object
//! can be in at that moment, each with the open calls that have taken effect in it: a
//! *configuration*. When a call begins, nothing happens. When it ends, it must have taken effect: a
//! configuration in which it has not is replaced by those in which it has, perhaps after others
//! that are open. A call that changes nothing takes effect as soon as it can, because that takes
//! nothing from any thread. The history is explained if a configuration is left at its end. So
//! nothing is kept of what is over, and the work is for as many calls as are open at a time,
//! however long the history: not more than there were threads.
//!
//! It is exact: nothing is sampled, and no order is left out.
//!
//! It does not use `ulocks_core::model::linear`: the recorder of that checker exists on the virtual
//! machine only, and these histories are of real threads.

use core::fmt;
use core::fmt::Debug;
use core::hash::Hash;
use core::mem;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// What an object does, one call at a time.
pub trait Spec {
    /// What the object is between two calls.
    type State: Clone + Debug + Eq + Hash;
    /// What was called, and what came of it.
    type Call: Debug;

    /// The state after `call`, if in `state` that can come of it.
    fn after(&self, state: &Self::State, call: &Self::Call) -> Option<Self::State>;

    /// Whether `call` leaves every state as it is. It costs less to check those that say so.
    fn only_looks(&self, call: &Self::Call) -> bool;
}

/// Gives out stamps. Each is greater than all that were given out before.
#[derive(Debug, Default)]
pub struct Clock(AtomicU64);

impl Clock {
    /// Runs `call`, and says when.
    pub fn time<R>(&self, call: impl FnOnce() -> R) -> (Span, R) {
        // Nothing of the call moves out of it: a read-modify-write on either side.
        let began = self.0.fetch_add(1, SeqCst);
        let result = call();
        (Span { began, ended: self.0.fetch_add(1, SeqCst) }, result)
    }
}

/// When a call was open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The stamp before it.
    pub began: u64,
    /// The stamp after it.
    pub ended: u64,
}

/// A call of a history.
#[derive(Clone, Debug)]
pub struct Record<C> {
    /// When.
    pub span: Span,
    /// The thread.
    pub thread: usize,
    /// What.
    pub call: C,
}

/// What was found of a history that is explained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Calls that were checked.
    pub calls: usize,
    /// The most that were open at a time.
    pub most_open: usize,
    /// The most configurations at a time.
    pub most_configurations: usize,
}

/// A call that nothing explains.
#[derive(Clone)]
pub struct Unexplained {
    text: String,
}

impl fmt::Display for Unexplained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// As `unwrap` prints it.
impl Debug for Unexplained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Looks for an order of `history`, whose calls may come in any, that begins in `start`.
///
/// # Errors
/// If there is none: the first call for which there is none any more, and what was going on.
///
/// # Panics
/// If more than 64 calls are open at a time, or two stamps are the same.
pub fn check<S: Spec>(spec: &S, start: S::State, history: &[Record<S::Call>]) -> Result<Found, Unexplained> {
    let mut stamps: Vec<(u64, usize)> = Vec::with_capacity(2 * history.len());
    for (number, record) in history.iter().enumerate() {
        assert!(record.span.began < record.span.ended, "{record:?} ends before it begins");
        stamps.extend([(record.span.began, number), (record.span.ended, number)]);
    }
    stamps.sort_unstable();
    assert!(stamps.windows(2).all(|two| two[0].0 < two[1].0), "two stamps are the same");

    let mut search = Search {
        spec,
        history,
        open: [None; 64],
        configurations: vec![(start, 0)],
        next: Vec::new(),
        seen: HashSet::new(),
    };
    let mut found = Found { calls: history.len(), ..Found::default() };
    for (stamp, number) in stamps {
        if stamp == history[number].span.began {
            search.begin(number);
            found.most_open = found.most_open.max(search.open.iter().flatten().count());
        } else {
            search.end(number)?;
            found.most_configurations = found.most_configurations.max(search.configurations.len());
        }
    }
    Ok(found)
}

/// A state, and which of the open calls have taken effect in it.
type Configuration<S> = (<S as Spec>::State, u64);

struct Search<'a, S: Spec> {
    spec: &'a S,
    history: &'a [Record<S::Call>],
    /// The numbers of the open calls. The place of one is its bit.
    open: [Option<usize>; 64],
    configurations: Vec<Configuration<S>>,
    /// For the next round, so that memory is allocated once.
    next: Vec<Configuration<S>>,
    seen: HashSet<Configuration<S>>,
}

impl<S: Spec> Search<'_, S> {
    fn begin(&mut self, number: usize) {
        let place = self.open.iter().position(Option::is_none).expect("not more than 64 calls at a time");
        self.open[place] = Some(number);
        if self.spec.only_looks(&self.history[number].call) {
            let mut configurations = mem::take(&mut self.configurations);
            configurations.iter_mut().for_each(|configuration| self.look(configuration, 1 << place));
            self.configurations = configurations;
        }
    }

    /// Only configurations in which it has taken effect are left.
    fn end(&mut self, number: usize) -> Result<(), Unexplained> {
        let place = self.open.iter().position(|open| *open == Some(number)).expect("it has begun");
        let bit = 1 << place;
        let before = mem::take(&mut self.configurations);
        let mut todo = before.clone();
        while let Some(configuration) = todo.pop() {
            if configuration.1 & bit != 0 {
                self.keep((configuration.0, configuration.1 & !bit));
            } else {
                self.each_next(&configuration, |next| todo.push(next));
            }
        }
        self.seen.clear();
        mem::swap(&mut self.configurations, &mut self.next);
        if self.configurations.is_empty() {
            return Err(self.unexplained(number, &before));
        }
        self.open[place] = None;
        Ok(())
    }

    fn keep(&mut self, configuration: Configuration<S>) {
        if !self.next.contains(&configuration) {
            self.next.push(configuration);
        }
    }

    /// The configurations one call later, but those that were had already.
    fn each_next(&mut self, (state, done): &Configuration<S>, mut each: impl FnMut(Configuration<S>)) {
        for place in 0..64 {
            let Some(number) = self.open[place].filter(|_| done & 1 << place == 0) else { continue };
            let call = &self.history[number].call;
            // What only looks has taken effect already where it can.
            if self.spec.only_looks(call) {
                continue;
            }
            let Some(state) = self.spec.after(state, call) else { continue };
            let mut next = (state, done | 1 << place);
            self.look(&mut next, u64::MAX);
            if self.seen.insert(next.clone()) {
                each(next);
            }
        }
    }

    /// Lets those of `which` take effect that only look, and can.
    fn look(&self, (state, done): &mut Configuration<S>, which: u64) {
        for (place, number) in self.open.iter().enumerate() {
            let Some(number) = number.filter(|_| which & !*done & 1 << place != 0) else { continue };
            let call = &self.history[number].call;
            if self.spec.only_looks(call) && self.spec.after(state, call).is_some() {
                *done |= 1 << place;
            }
        }
    }

    fn unexplained(&self, number: usize, before: &[Configuration<S>]) -> Unexplained {
        use fmt::Write as _;
        let mut text = format!("nothing explains {:?}\nwhile these were open:\n", self.history[number]);
        for number in self.open.iter().flatten() {
            _ = writeln!(text, "  {:?}", self.history[*number]);
        }
        text += "and this could have been (state, calls of the above that had taken effect):\n";
        let places: Vec<_> = (0..64).filter(|place| self.open[*place].is_some()).collect();
        for (state, done) in before {
            let nth: Vec<_> = (0..places.len()).filter(|nth| done & 1 << places[*nth] != 0).collect();
            _ = writeln!(text, "  {state:?}, {nth:?}");
        }
        Unexplained { text }
    }
}
