//! What the threads of a run do.
//!
//! Whatever is under the mutex is plain memory, raised by a load and a store. In the end it must
//! say as much as the threads have counted.

use super::crew::{self, Counted, GRACE, Workload};
use super::{Load, Notify, Outcome, Spec};

use crate::subjects::condvars::{self, Entry, Monitor, Visitor};
use crate::workloads::Scenario as _;
use anyhow::{Result, bail, ensure};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

/// Carries out a run.
pub(super) fn run(spec: &Spec, entry: &'static Entry) -> Result<Outcome> {
    struct With<'a>(&'a Spec);
    impl Visitor for With<'_> {
        type Output = Result<Outcome>;
        fn visit<M: Monitor>(self, _: &'static Entry) -> Result<Outcome> {
            run_with::<M>(self.0, GRACE)
        }
    }
    condvars::visit(entry, With(spec))
}

/// Carries it out with a pair that need not be registered.
pub(super) fn run_with<M: Monitor>(spec: &Spec, grace: Duration) -> Result<Outcome> {
    ensure!(
        spec.run.threads() > 1 && !matches!(spec.run.load, Load::Buffer { producers: 0, .. }),
        "{}: a side without threads; allowed: at least 1",
        spec.run
    );
    let threads = spec.run.threads() as usize;
    // Which threads are counted: those of one side, for the other side's turns are the same ones.
    let (counted, looked_at) = match spec.run.load {
        Load::Buffer { producers, consumers, capacity, notify, one } => {
            ensure!(capacity > 0 && consumers > 0, "{}: nothing can move; allowed: at least 1", spec.run);
            let buffer = Buffer::<M> {
                pair: Pair::new(notify)?,
                producers: producers as usize,
                capacity: u64::from(capacity),
                not_full: if one { 0 } else { 1 },
            };
            (crew::run(spec, buffer, grace)?, producers as usize..threads)
        }
        Load::PingPong { notify } => (crew::run(spec, PingPong::<M>(Pair::new(notify)?), grace)?, 0..threads),
        Load::Crowd { waiters, notify } => {
            let crowd = Crowd::<M> { pair: Pair::new(notify)?, waiters: u64::from(waiters) };
            (crew::run(spec, crowd, grace)?, 0..threads - 1)
        }
        Load::Timed { waiters } => {
            let timed = Timed::<M> {
                pair: Pair::new(Notify::After)?,
                waiters: waiters as usize,
                early: AtomicU64::new(0),
            };
            (crew::run(spec, timed, grace)?, 0..threads - 1)
        }
    };
    let Counted { elapsed_s, cpu_s, switches, counts } = counted;
    let counts = counts[looked_at].to_vec();
    Ok(Outcome { elapsed_s, cpu_s, switches, ops: counts.iter().sum(), counts })
}

/// What is under the mutex.
#[derive(Default)]
struct State {
    /// Items in the buffer; the thread that has the turn; the number of waiters.
    now: u64,
    /// Items put in, turns, notifications of all.
    raised: u64,
    /// Items taken out.
    lowered: u64,
    /// Whether the run is over.
    closed: bool,
}

/// A mutex and two condition variables, as they lie in a structure of a program.
struct Pair<M: Monitor> {
    state: M::Mutex<State>,
    condvars: [M::Condvar; 2],
    notify: Notify,
}

impl<M: Monitor> Pair<M> {
    fn new(notify: Notify) -> Result<Self> {
        Ok(Self { state: M::mutex(State::default())?, condvars: [M::condvar()?, M::condvar()?], notify })
    }

    #[inline]
    fn lock(&self) -> M::Guard<'_, State> {
        M::lock(&self.state)
    }

    /// Waits until the run is closed or `condition` no longer holds.
    #[inline]
    fn wait_while<'a>(
        &'a self,
        condvar: usize,
        mut guard: M::Guard<'a, State>,
        condition: impl Fn(&State) -> bool,
    ) -> M::Guard<'a, State> {
        while condition(&guard) && !guard.closed {
            guard = M::wait(&self.condvars[condvar], guard);
        }
        guard
    }

    /// Releases the mutex and notifies, in the order of the run.
    #[inline]
    fn release(&self, guard: M::Guard<'_, State>, condvar: usize, all: bool) {
        let notify = || {
            let condvar = &self.condvars[condvar];
            if all {
                M::notify_all(condvar, &self.state);
            } else {
                M::notify_one(condvar, &self.state);
            }
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

    fn close(&self) {
        self.lock().closed = true;
        for condvar in &self.condvars {
            M::notify_all(condvar, &self.state);
        }
    }
}

/// Threads that wait for an item wait on this condition variable.
const NOT_EMPTY: usize = 0;

/// A bounded buffer. The first threads are the producers.
struct Buffer<M: Monitor> {
    pair: Pair<M>,
    producers: usize,
    capacity: u64,
    /// The condition variable of producers that wait for room.
    not_full: usize,
}

impl<M: Monitor> Workload for Buffer<M> {
    #[inline]
    fn turn(&self, index: usize) -> bool {
        // One condition variable for both sides: the notified thread may be of the wrong side.
        let all = self.not_full == NOT_EMPTY;
        if index < self.producers {
            let full = |state: &State| state.now >= self.capacity;
            let mut state = self.pair.wait_while(self.not_full, self.pair.lock(), full);
            if state.closed {
                return false;
            }
            state.now += 1;
            state.raised += 1;
            self.pair.release(state, NOT_EMPTY, all);
        } else {
            let mut state = self.pair.wait_while(NOT_EMPTY, self.pair.lock(), |state| state.now == 0);
            if state.closed {
                return false;
            }
            state.now -= 1;
            state.lowered += 1;
            self.pair.release(state, self.not_full, all);
        }
        true
    }

    /// More than can be had with one side asleep.
    fn enough(&self) -> u64 {
        2 * self.capacity + 2
    }

    fn close(&self) {
        self.pair.close();
    }

    fn check(&self, turns: &[u64]) -> Result<()> {
        let state = self.pair.lock();
        let (put, got) = turns.split_at(self.producers);
        let (put, got): (u64, u64) = (put.iter().sum(), got.iter().sum());
        ensure!(
            (state.raised, state.lowered, state.now) == (put, got, put.wrapping_sub(got))
                && state.now <= self.capacity,
            "lost updates: {put} items were put in and {got} taken out, but the buffer says {}, {}, and holds {}",
            state.raised,
            state.lowered,
            state.now
        );
        Ok(())
    }
}

/// A turn passed to and fro.
struct PingPong<M: Monitor>(Pair<M>);

impl<M: Monitor> Workload for PingPong<M> {
    #[inline]
    fn turn(&self, index: usize) -> bool {
        let mut state = self.0.wait_while(index, self.0.lock(), |state| state.now != index as u64);
        if state.closed {
            return false;
        }
        state.now ^= 1;
        state.raised += 1;
        self.0.release(state, index ^ 1, false);
        true
    }

    fn enough(&self) -> u64 {
        2
    }

    fn close(&self) {
        self.0.close();
    }

    fn check(&self, turns: &[u64]) -> Result<()> {
        let (state, all) = (self.0.lock(), turns.iter().sum::<u64>());
        ensure!(state.raised == all, "lost updates: {all} turns, but the counter says {}", state.raised);
        Ok(())
    }
}

/// Waiters wait on this condition variable, and the notifying thread on the other.
const CALLED: usize = 0;
const GATHERED: usize = 1;

/// Many, and a last thread that notifies all of them as soon as all wait.
struct Crowd<M: Monitor> {
    pair: Pair<M>,
    waiters: u64,
}

impl<M: Monitor> Workload for Crowd<M> {
    fn turn(&self, index: usize) -> bool {
        let mut state = self.pair.lock();
        if index as u64 == self.waiters {
            let mut state = self.pair.wait_while(GATHERED, state, |state| state.now < self.waiters);
            if state.closed {
                return false;
            }
            state.now = 0;
            state.raised += 1;
            self.pair.release(state, CALLED, true);
            return true;
        }
        let call = state.raised;
        state.now += 1;
        if state.now == self.waiters {
            // The waiter is about to wait, so there is no release to notify after.
            M::notify_one(&self.pair.condvars[GATHERED], &self.pair.state);
        }
        // A waiter that was called has its turn, even if the run was closed meanwhile.
        self.pair.wait_while(CALLED, state, |state| state.raised == call).raised != call
    }

    fn enough(&self) -> u64 {
        2 * self.waiters + 2
    }

    fn close(&self) {
        self.pair.close();
    }

    fn check(&self, turns: &[u64]) -> Result<()> {
        let calls = self.pair.lock().raised;
        let [waiters @ .., caller] = turns else { bail!("a crowd without anybody") };
        let strays = waiters.iter().filter(|&&turns| turns != calls).count();
        ensure!(
            *caller == calls && strays == 0,
            "{calls} calls, but {strays} of {} waiters came back more or less often",
            waiters.len()
        );
        Ok(())
    }
}

/// Waits that mostly time out, and a last thread that notifies one now and then.
struct Timed<M: Monitor> {
    pair: Pair<M>,
    waiters: usize,
    /// Waits that timed out before their time.
    early: AtomicU64,
}

impl<M: Monitor> Workload for Timed<M> {
    fn turn(&self, index: usize) -> bool {
        if index == self.waiters {
            thread::sleep(Load::PAUSE);
        }
        let mut state = self.pair.lock();
        if state.closed {
            return false;
        }
        state.raised += 1;
        if index == self.waiters {
            self.pair.release(state, CALLED, false);
            return true;
        }
        let begin = Instant::now();
        let (_state, timed_out) = M::wait_for(&self.pair.condvars[CALLED], state, Load::PATIENCE);
        if timed_out && begin.elapsed() < Load::PATIENCE {
            self.early.fetch_add(1, Relaxed);
        }
        true
    }

    fn enough(&self) -> u64 {
        2 * self.waiters as u64
    }

    fn close(&self) {
        self.pair.close();
    }

    fn check(&self, turns: &[u64]) -> Result<()> {
        let (early, all) = (self.early.load(Relaxed), turns.iter().sum::<u64>());
        ensure!(early == 0, "{early} waits timed out before their time");
        let raised = self.pair.lock().raised;
        ensure!(raised == all, "lost updates: {all} turns, but the counter says {raised}");
        Ok(())
    }
}
