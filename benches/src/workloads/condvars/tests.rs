use super::*;
use crate::run::syscalls;
use crate::subjects::condvars::{Monitor, Pair, State, Traits};
use std::sync::{Mutex, MutexGuard};

fn conditions() -> Conditions {
    Conditions { warmup_ms: 2, window_ms: 20, iterations_per_us: 100.0, seed: 1, pin: Pin::Scatter }
}

fn run(load: Load, notify: Notify) -> Run {
    Run { load, notify, place: Place::Free }
}

fn buffer(producers: u32, consumers: u32, capacity: u32) -> Load {
    Load::Buffer { producers, consumers, capacity }
}

#[test]
fn every_pair_carries_out_every_load() {
    for entry in Entry::all() {
        for load in [buffer(1, 1, 1), buffer(2, 2, 64), buffer(1, 8, 2), Load::Crowd(7)] {
            for notify in [Notify::Under, Notify::After] {
                let outcome = run(load, notify).carry_out(entry.name, &conditions());
                let outcome = outcome.unwrap_or_else(|error| panic!("{} {load:?}: {error:#}", entry.name));
                assert!(outcome["rate"] > 0.0 && outcome["switches"] > 0.0, "{} {load:?}", entry.name);
                // glibc enters the kernel from within: no figure, rather than zero.
                let counts = syscalls::countable() && entry.name != "pthread";
                assert_eq!(outcome.contains_key("futexes"), counts, "{} {load:?}", entry.name);
            }
        }
    }
}

#[test]
fn threads_run_where_they_are_put() {
    let [free, apart, together] =
        [Place::Free, Place::Apart, Place::Together].map(|place| place.cpus().unwrap());
    assert!(free.is_empty() && together.len() == 1 && together[0] == apart[0]);
    assert_eq!(apart.len(), pinning::allowed().unwrap().len());
    for place in [Place::Apart, Place::Together] {
        Run { place, ..run(buffer(2, 2, 2), Notify::After) }.carry_out("std", &conditions()).unwrap();
    }
}

#[test]
fn what_cannot_run_is_refused() {
    for load in [buffer(0, 2, 1), buffer(2, 0, 1), buffer(1, 1, 0), Load::Crowd(0)] {
        let error = run(load, Notify::After).carry_out("std", &conditions()).unwrap_err().to_string();
        assert!(error.ends_with("; allowed: at least 1"), "{error}");
    }
    let error = run(buffer(1, 1, 1), Notify::After).carry_out("semaphore", &conditions()).unwrap_err();
    assert!(error.to_string().starts_with("unknown condition variable 'semaphore'; allowed: std, "));
}

/// std's, with one thing broken.
struct Broken<const FAULT: u8>;

/// A notification of one reaches no thread.
const DEAF: u8 = 0;
/// A notification of all reaches one.
const SHY: u8 = 1;
/// The mutex is released while an item is moved.
const LEAKY: u8 = 2;

impl<const FAULT: u8> Monitor for Broken<FAULT> {
    type Mutex = Mutex<State>;
    type Guard<'a> = MutexGuard<'a, State>;
    type Condvar = std::sync::Condvar;

    fn lock(mutex: &Mutex<State>) -> MutexGuard<'_, State> {
        let mut guard = mutex.lock().unwrap();
        // As if another thread's update had been overwritten.
        guard.raised -= u64::from(FAULT == LEAKY && guard.raised == 1);
        guard
    }

    fn wait<'a>(condvar: &std::sync::Condvar, guard: Self::Guard<'a>) -> Self::Guard<'a> {
        condvar.wait(guard).unwrap()
    }

    fn notify_one(condvar: &std::sync::Condvar, _: &Mutex<State>) {
        if FAULT != DEAF {
            condvar.notify_one();
        }
    }

    fn notify_all(condvar: &std::sync::Condvar, _: &Mutex<State>) {
        if FAULT == SHY { condvar.notify_one() } else { condvar.notify_all() }
    }
}

fn broken<const FAULT: u8>(load: Load) -> String {
    let make = |notify| Box::new(Pair::<Broken<FAULT>>::new(notify)) as Box<dyn Monitored>;
    let entry = Entry { name: "broken", about: "", family: false, kind: Traits { make, countable: true } };
    let outcome = run(load, Notify::After).carry_out_on(&entry, &conditions(), Duration::from_millis(300));
    outcome.unwrap_err().to_string()
}

#[test]
fn a_lost_wake_up_is_an_error_and_no_hang() {
    let error = broken::<DEAF>(buffer(2, 2, 2));
    assert_eq!(error, "'broken': the workers did not get on for 0.3 s: a wake-up was lost");
    // Most consumers wait while one producer feeds so many. When the run is closed, one of them is
    // woken.
    let error = broken::<SHY>(buffer(1, 64, 1));
    assert!(error.ends_with(" of 65 workers sleep on 0.3 s after the end: a wake-up was lost"), "{error}");
}

#[test]
fn a_lost_update_is_an_error() {
    let error = broken::<LEAKY>(buffer(2, 2, 2));
    assert!(error.starts_with("'broken': lost updates: "), "{error}");
}
