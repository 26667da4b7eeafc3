//! Threads that begin together, or not at all.
//!
//! With a barrier, those that are there would wait for one that cannot be had, and the scope would
//! wait for them.

use anyhow::{Context, Result};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// Where the threads wait for each other.
struct Gate {
    count: usize,
    state: Mutex<State>,
    all_ready: Condvar,
    decided: Condvar,
}

#[derive(Default)]
struct State {
    /// How many threads are at the gate.
    ready: usize,
    /// Whether they go on or leave, once that is known.
    opened: Option<bool>,
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics with it")
    }

    /// Waits with the others. Whether the thread goes on.
    fn pass(&self) -> bool {
        let mut state = self.state();
        state.ready += 1;
        if state.ready == self.count {
            self.all_ready.notify_one();
        }
        let state = self.decided.wait_while(state, |state| state.opened.is_none());
        state.expect("nothing panics with it").opened == Some(true)
    }

    /// When all threads are at the gate, they go on.
    fn open(&self) {
        let state = self.all_ready.wait_while(self.state(), |state| state.ready < self.count);
        state.expect("nothing panics with it").opened = Some(true);
        self.decided.notify_all();
    }

    /// The threads leave, those that come later too.
    fn give_up(&self) {
        self.state().opened = Some(false);
        self.decided.notify_all();
    }
}

/// Threads that have begun together.
pub struct Crew<'scope, T>(Vec<ScopedJoinHandle<'scope, Option<T>>>);

impl<'scope, T: Send + 'scope> Crew<'scope, T> {
    /// Starts `count` threads in `scope`, each with `builder(index)`. Each prepares itself. When
    /// all have, this returns, and each runs `body(index, what it has prepared)`.
    ///
    /// # Errors
    /// If a thread cannot be had. The others leave without running `body`.
    pub fn start<P>(
        scope: &'scope Scope<'scope, '_>,
        count: usize,
        builder: impl Fn(usize) -> Builder,
        prepare: impl Fn(usize) -> P + Copy + Send + 'scope,
        body: impl Fn(usize, P) -> T + Copy + Send + 'scope,
    ) -> Result<Self> {
        let (state, all_ready, decided) = Default::default();
        let gate = Arc::new(Gate { count, state, all_ready, decided });
        let mut threads = Vec::with_capacity(count);
        for index in 0..count {
            let here = gate.clone();
            let thread = move || {
                let prepared = prepare(index);
                here.pass().then(|| body(index, prepared))
            };
            match builder(index).spawn_scoped(scope, thread) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    gate.give_up();
                    return Err(error).with_context(|| format!("cannot start thread {index} of {count}"));
                }
            }
        }
        gate.open();
        Ok(Self(threads))
    }

    /// Waits for the threads. What each has returned.
    ///
    /// # Panics
    /// If one has panicked.
    pub fn join(self) -> Vec<T> {
        let joined = self.0.into_iter().map(|thread| thread.join().expect("a thread comes to its end"));
        joined.map(|done| done.expect("the gate was opened")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;
    use std::thread;

    #[test]
    fn no_thread_begins_before_all_have_prepared() {
        let prepared = AtomicUsize::new(0);
        let seen = thread::scope(|scope| {
            let prepare = |index| {
                prepared.fetch_add(1, Relaxed);
                10 * index
            };
            let body = |index, tens| (index + tens, prepared.load(Relaxed));
            Crew::start(scope, 5, |_| Builder::new(), prepare, body).map(Crew::join)
        });
        assert_eq!(seen.unwrap(), [(0, 5), (11, 5), (22, 5), (33, 5), (44, 5)]);
    }

    /// No stack can be as large as this one.
    #[test]
    fn a_thread_that_cannot_be_had_is_an_error_and_no_hang() {
        let begun = AtomicUsize::new(0);
        let builder = |index| if index == 3 { Builder::new().stack_size(1 << 60) } else { Builder::new() };
        let error = thread::scope(|scope| {
            let body = |_, ()| begun.fetch_add(1, Relaxed);
            Crew::start(scope, 5, builder, |_| (), body).map(|_| ())
        });
        assert_eq!(error.unwrap_err().to_string(), "cannot start thread 3 of 5");
        assert_eq!(begun.into_inner(), 0, "a thread has begun without the others");
    }
}
