//! A condition variable and a barrier of std's shape.

use super::mutex::{Mutex, MutexGuard};
use super::object::{Beside, Object, Token};
use core::fmt;
use core::panic::Location;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, LockResult};

/// As `std::sync::Condvar`.
///
/// A notification orders nothing; the mutex does. Which of several waiters it wakes is a choice of
/// the exploration. There are no spurious wake-ups.
pub struct Condvar {
    state: Object,
    waiters: Beside<VecDeque<Arc<Token>>>,
}

/// Whether a wait ended by its time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the time-out passed without a notification.
    #[must_use]
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    /// A condition variable that no thread waits for.
    #[track_caller]
    #[must_use]
    pub fn new() -> Self {
        Self { state: Object::new(0), waiters: Beside::default() }
    }

    #[track_caller]
    fn enqueue(&self) -> Arc<Token> {
        let token = Arc::new(Token::new());
        self.state.step("wait", None, Relaxed, Location::caller(), |events| events + 1);
        self.waiters.with(|waiters| waiters.push_back(Arc::clone(&token)));
        token
    }

    /// Releases the mutex, waits for a notification, and takes the mutex.
    ///
    /// # Errors
    /// None: the type is std's.
    #[track_caller]
    pub fn wait<'a, T: ?Sized>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let (at, mutex) = (Location::caller(), guard.mutex());
        let token = self.enqueue();
        drop(guard);
        token.take("wait", Relaxed, at);
        Ok(mutex.take(at))
    }

    /// Waits while `condition` is true.
    ///
    /// # Errors
    /// None: the type is std's.
    #[track_caller]
    pub fn wait_while<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'a, T>> {
        while condition(&mut guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// As [`wait`](Self::wait), for `timeout` at most. Where
    /// [`Config::timeouts`](crate::explore::Config::timeouts) is off, no timeout passes.
    ///
    /// # Errors
    /// None: the type is std's.
    #[track_caller]
    pub fn wait_timeout<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let (at, mutex) = (Location::caller(), guard.mutex());
        let token = self.enqueue();
        drop(guard);
        let notified = token.take_for("wait", Relaxed, timeout) || {
            self.state.step("give up", None, Relaxed, at, |events| events + 1);
            self.waiters.with(|waiters| {
                let before = waiters.len();
                waiters.retain(|waiter| !Arc::ptr_eq(waiter, &token));
                waiters.len() == before
            })
        };
        Ok((mutex.take(at), WaitTimeoutResult(!notified)))
    }

    /// Wakes one waiter, if there is one.
    #[track_caller]
    pub fn notify_one(&self) {
        let at = Location::caller();
        self.state.step("notify_one", None, Relaxed, at, |events| events + 1);
        let count = self.waiters.with(|waiters| waiters.len());
        let chosen = if count > 1 { crate::explore::choose(count) } else { 0 };
        let waiter = self.waiters.with(|waiters| waiters.remove(chosen));
        if let Some(waiter) = waiter {
            waiter.give("wake", Relaxed, at);
        }
    }

    /// Wakes all waiters.
    #[track_caller]
    pub fn notify_all(&self) {
        let at = Location::caller();
        self.state.step("notify_all", None, Relaxed, at, |events| events + 1);
        let waiters = self.waiters.with(core::mem::take);
        for waiter in waiters {
            waiter.give("wake", Relaxed, at);
        }
    }
}

impl Default for Condvar {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").field("waiters", &self.waiters.with(|waiters| waiters.len())).finish()
    }
}

/// As `std::sync::Barrier`.
#[derive(Debug)]
pub struct Barrier {
    /// How many threads have arrived, and how often all have.
    state: Mutex<(usize, u64)>,
    all_arrived: Condvar,
    count: usize,
}

/// What a thread is told that has passed a [`Barrier`].
#[derive(Debug)]
pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    /// Whether the thread is the one that arrived last.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

impl Barrier {
    /// A barrier for `count` threads.
    #[track_caller]
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self { state: Mutex::new((0, 0)), all_arrived: Condvar::new(), count }
    }

    /// Waits until as many threads wait as the barrier is for.
    #[track_caller]
    pub fn wait(&self) -> BarrierWaitResult {
        let at = Location::caller();
        let mut state = self.state.take(at);
        let round = state.1;
        state.0 += 1;
        if state.0 < self.count {
            while state.1 == round {
                let (Ok(again) | Err(again)) = self.all_arrived.wait(state).map_err(|e| e.into_inner());
                state = again;
            }
            return BarrierWaitResult(false);
        }
        *state = (0, round + 1);
        self.all_arrived.notify_all();
        BarrierWaitResult(true)
    }
}
