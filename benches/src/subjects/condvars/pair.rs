//! What threads do with a mutex and its condition variables, compiled for each kind of them.
//!
//! What is under the mutex is plain memory. In the end it must say as much as the threads have
//! counted.

use super::{Monitor, Monitored};
use crate::subjects::laps::Lap;
use serde::{Deserialize, Serialize};

/// When a thread notifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Notify {
    /// While it holds the mutex.
    Under,
    /// After it has released the mutex.
    After,
}

/// What is under the mutex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Items in the buffer, or the number of waiters.
    pub now: u64,
    /// Items put in, or notifications of all.
    pub raised: u64,
    /// Items taken out.
    pub lowered: u64,
    /// Whether the run is over.
    pub closed: bool,
}

impl State {
    fn put(&mut self) {
        self.now += 1;
        self.raised += 1;
    }

    fn take(&mut self) {
        self.now -= 1;
        self.lowered += 1;
    }

    fn call(&mut self) {
        self.now = 0;
        self.raised += 1;
    }
}

/// What a thread does.
#[derive(Clone, Copy, Debug)]
pub enum Duty {
    /// Puts an item in as soon as there are fewer.
    Put(u64),
    /// Takes an item out.
    Take,
    /// Waits, as one of so many, until all are called.
    Wait(u64),
    /// Calls all of so many as soon as all wait.
    Call(u64),
}

/// Threads that wait for an item, or to be called, wait on this condition variable.
const ITEM: usize = 0;
/// Threads that wait for room, or for all to be there, wait on this one.
const ROOM: usize = 1;

/// A mutex and two condition variables.
pub struct Pair<M: Monitor> {
    state: M::Mutex,
    condvars: [M::Condvar; 2],
    notify: Notify,
}

impl<M: Monitor> Pair<M> {
    /// One that no thread uses.
    pub fn new(notify: Notify) -> Self {
        Self { state: M::Mutex::default(), condvars: Default::default(), notify }
    }

    /// Waits until `is_so`; gives nothing if it is not and the run is closed.
    #[inline]
    fn until<'a>(
        &'a self,
        condvar: usize,
        mut guard: M::Guard<'a>,
        is_so: impl Fn(&State) -> bool,
    ) -> Option<M::Guard<'a>> {
        loop {
            if is_so(&guard) {
                return Some(guard);
            }
            if guard.closed {
                return None;
            }
            guard = M::wait(&self.condvars[condvar], guard);
        }
    }

    /// Releases the mutex and notifies, in the order of the run.
    #[inline]
    fn release(&self, guard: M::Guard<'_>, condvar: usize, all: bool) {
        let notify = || {
            let condvar = &self.condvars[condvar];
            if all { M::notify_all(condvar, &self.state) } else { M::notify_one(condvar, &self.state) }
        };
        match self.notify {
            Notify::Under => {
                notify();
                drop(guard);
            }
            Notify::After => {
                drop(guard);
                notify();
            }
        }
    }

    /// Waits on one condition variable until `is_so`, changes the state, and notifies one or all
    /// that wait on the other.
    #[inline]
    fn step(
        &self,
        (on, other, all): (usize, usize, bool),
        is_so: impl Fn(&State) -> bool,
        change: impl FnOnce(&mut State),
    ) -> Option<()> {
        let mut state = self.until(on, M::lock(&self.state), |state| !state.closed && is_so(state))?;
        change(&mut state);
        self.release(state, other, all);
        Some(())
    }

    fn wait(&self, waiters: u64) -> Option<()> {
        let mut state = M::lock(&self.state);
        let call = state.raised;
        state.now += 1;
        if state.now == waiters {
            // The waiter is about to wait, so there is no release to notify after.
            M::notify_one(&self.condvars[ROOM], &self.state);
        }
        // A waiter that was called has its turn, even if the run was closed meanwhile.
        self.until(ITEM, state, |state| state.raised != call).map(drop)
    }
}

/// Turn after turn until there is none.
#[inline]
fn while_some(lap: &mut Lap<'_>, mut turn: impl FnMut() -> Option<()>) {
    while turn().is_some() {
        lap.done();
    }
}

impl<M: Monitor> Monitored for Pair<M> {
    fn go_round(&self, duty: Duty, lap: &mut Lap<'_>) {
        match duty {
            Duty::Put(most) => {
                while_some(lap, || self.step((ROOM, ITEM, false), |s| s.now < most, State::put))
            }
            Duty::Take => while_some(lap, || self.step((ITEM, ROOM, false), |s| s.now > 0, State::take)),
            Duty::Wait(waiters) => while_some(lap, || self.wait(waiters)),
            Duty::Call(all) => {
                while_some(lap, || self.step((ROOM, ITEM, true), |s| s.now == all, State::call))
            }
        }
    }

    fn close(&self) {
        M::lock(&self.state).closed = true;
        for condvar in &self.condvars {
            M::notify_all(condvar, &self.state);
        }
    }

    fn state(&self) -> State {
        *M::lock(&self.state)
    }
}
