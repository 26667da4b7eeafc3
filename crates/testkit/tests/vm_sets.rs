//! Histories of semaphore arrays tell one that hands over from one that wakes all and lets them try
//! again.
#![cfg(world = "vm")]

use std::collections::BTreeMap;
use ulocks_core::condvar::RawCondvar;
use ulocks_core::model::{Config, explore, finds_bug_saying};
use ulocks_core::raw::RawMutex;
use ulocks_core::sync::UnsafeCell;
use ulocks_testkit::model::sets::History;
use ulocks_testkit::new_lock;
use ulocks_testkit::plain::Plain as Mutex;
use ulocks_testkit::sets::{Op, Outcome, Refusal, Sets, Waiters, add, sub, wait_zero};
use ulocks_testkit::thread::{self, Arc, together};

/// How many threads there may be, at most.
const THREADS: usize = 8;

/// The model under a mutex. If it hands over, a thread that completes a sleeper leaves the outcome
/// for it; if not, a thread that changes something sends all sleepers back, to try again.
struct Coarse<const HANDS_OVER: bool> {
    mutex: Mutex,
    changed: RawCondvar<Mutex>,
    state: UnsafeCell<(Sets, BTreeMap<usize, Outcome>)>,
}

// SAFETY: the state is accessed under the mutex only.
unsafe impl<const H: bool> Sync for Coarse<H> {}
// SAFETY: its parts are `Send`.
unsafe impl<const H: bool> Send for Coarse<H> {}

impl<const HANDS_OVER: bool> Coarse<HANDS_OVER> {
    fn new(start: Sets) -> Self {
        let state = UnsafeCell::new((start, BTreeMap::new()));
        Self { mutex: new_lock(), changed: RawCondvar::new(), state }
    }

    fn apply(&self, ops: &[Op]) -> Outcome {
        let me = thread::id();
        self.mutex.lock();
        self.come(me, ops);
        let outcome = loop {
            // SAFETY: the mutex is held.
            match self.state.with_mut(|state| unsafe { (*state).1.remove(&me) }) {
                Some(Err(Refusal::WouldBlock)) => self.come(me, ops),
                Some(outcome) => break outcome,
                // SAFETY: the mutex is held by this thread.
                None => unsafe { self.changed.wait(&self.mutex, (), None) }.0,
            }
        };
        self.changed.notify_all();
        // SAFETY: acquired by `lock` or by the last `wait`.
        unsafe { self.mutex.unlock(()) };
        outcome
    }

    /// The mutex is held.
    fn come(&self, me: usize, ops: &[Op]) {
        // SAFETY: the mutex is held.
        self.state.with_mut(|state| unsafe {
            let (sets, ended) = &mut *state;
            if !HANDS_OVER && sets.clone().apply(me, ops, false)[0].1.is_ok() {
                ended.extend((0..THREADS).flat_map(|who| sets.cancel(who, Refusal::WouldBlock)));
            }
            ended.extend(sets.apply(me, ops, true));
        });
    }

    fn look<T>(&self, at: impl FnOnce(&Sets) -> T) -> T {
        self.mutex.lock();
        // SAFETY: the mutex is held.
        let seen = self.state.with(|state| unsafe { at(&(*state).0) });
        // SAFETY: acquired above.
        unsafe { self.mutex.unlock(()) };
        seen
    }

    fn waiters(&self, index: usize) -> Waiters {
        self.look(|sets| sets.waiters()[index])
    }
}

/// Each thread looks which threads sleep, performs its set, and reads the values.
fn histories<const HANDS_OVER: bool>(start: [u32; 2], sets: &'static [&'static [Op]]) {
    let start = Sets::new(start, 9);
    let array = Arc::new(Coarse::<HANDS_OVER>::new(start.clone()));
    let history = History::new();
    let recorded = history.clone();
    together(sets.len(), move |me| {
        recorded.counts(0, || array.waiters(0));
        recorded.waits(sets[me], None, || array.apply(sets[me])).expect("in range");
        recorded.reads_all(|| array.look(|sets| sets.values().to_vec()));
    });
    history.check(start);
}

const MOVES: &[&[Op]] = &[&[sub(0, 1), sub(1, 1)], &[add(0, 1)], &[sub(1, 1)], &[add(1, 2)]];
const IN_LINE: &[&[Op]] = &[&[sub(0, 2)], &[sub(0, 1), add(0, 1)], &[add(0, 3)]];
const PASSES_ZERO: &[&[Op]] = &[&[wait_zero(0), add(1, 1)], &[sub(0, 1)]];

#[test]
fn who_hands_over_is_explained() {
    explore(Config::sampled(2_000), || histories::<true>([0, 0], MOVES));
    explore(Config::sampled(2_000), || histories::<true>([0, 0], IN_LINE));
    explore(Config::sampled(2_000), || histories::<true>([1, 0], PASSES_ZERO));
}

#[test]
fn who_wakes_all_and_lets_them_try_again_is_found() {
    let found = |start, sets| {
        finds_bug_saying("not linearizable", Config::sampled(20_000), move || {
            histories::<false>(start, sets)
        });
    };
    found([0, 0], MOVES);
    found([0, 0], IN_LINE);
    found([1, 0], PASSES_ZERO);
}
