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
        if self.notify == Notify::Under {
            notify();
            drop(guard);
        } else {
            drop(guard);
            notify();
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

    #[inline]
    fn turn(&self, duty: Duty) -> Option<()> {
        match duty {
            Duty::Put(most) => self.step(
                (ROOM, ITEM, false),
                |s| s.now < most,
                |s| {
                    s.now += 1;
                    s.raised += 1;
                },
            ),
            Duty::Take => self.step(
                (ITEM, ROOM, false),
                |s| s.now > 0,
                |s| {
                    s.now -= 1;
                    s.lowered += 1;
                },
            ),
            Duty::Wait(waiters) => self.wait(waiters),
            Duty::Call(all) => self.step(
                (ROOM, ITEM, true),
                |s| s.now == all,
                |s| {
                    s.now = 0;
                    s.raised += 1;
                },
            ),
        }
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

impl<M: Monitor> Monitored for Pair<M> {
    fn go_round(&self, duty: Duty, lap: &mut Lap<'_>) {
        while self.turn(duty).is_some() {
            lap.done();
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
