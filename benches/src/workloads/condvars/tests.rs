use super::loops::run_with;
use super::*;
use crate::run::child::Task;
use crate::subjects::condvars::Entry;
use crate::subjects::condvars::Monitor;
use crate::subjects::locks;
use anyhow::Result;
use std::collections::HashSet;
use std::thread;
use std::time::Duration;

const BUFFER: Load =
    Load::Buffer { producers: 2, consumers: 2, capacity: 2, notify: Notify::After, one: false };

fn spec(subject: &str, load: Load) -> Spec {
    let run = Run { load, place: Place::Free };
    Spec { subject: subject.into(), run, warmup_ms: 2, window_ms: 20, iterations_per_us: 100.0, seed: 1 }
}

fn loads() -> Vec<Load> {
    let buffer = |producers, consumers, capacity, notify, one| Load::Buffer {
        producers,
        consumers,
        capacity,
        notify,
        one,
    };
    let mut loads = vec![
        buffer(1, 1, 1, Notify::Under, false),
        buffer(2, 2, 64, Notify::After, false),
        buffer(1, 8, 2, Notify::Under, true),
        buffer(3, 1, 2, Notify::After, true),
        Load::Timed { waiters: 3 },
    ];
    for notify in Notify::ALL {
        loads.extend([Load::PingPong { notify }, Load::Crowd { waiters: 7, notify }]);
    }
    loads
}

#[test]
fn every_pair_carries_out_every_load() {
    for entry in Entry::all() {
        for load in loads() {
            let spec = spec(entry.name, load);
            let outcome =
                spec.carry_out().unwrap_or_else(|error| panic!("{}, {}: {error:#}", entry.name, spec.run));
            let counted = match load {
                Load::Buffer { consumers, .. } => consumers,
                Load::PingPong { .. } => 2,
                Load::Crowd { waiters, .. } | Load::Timed { waiters } => waiters,
            };
            assert_eq!(outcome.counts.len(), counted as usize, "{} {}", entry.name, spec.run);
            assert_eq!(outcome.counts.iter().sum::<u64>(), outcome.ops);
            assert!(outcome.elapsed_s >= 0.02, "{outcome:?}");
        }
    }
}

#[test]
fn threads_run_where_they_are_put() {
    for place in Place::ALL {
        let spec = Spec { run: Run { load: BUFFER, place }, ..spec("std", BUFFER) };
        spec.carry_out().unwrap();
    }
    let [free, apart, together] = Place::ALL.map(|place| place.cpus().unwrap());
    assert!(free.is_empty() && together.len() == 1 && together[0] == apart[0]);
    assert_eq!(apart.len(), crate::run::pinning::allowed().unwrap().len());
}

#[test]
fn what_cannot_run_is_refused() {
    let buffer = |producers, consumers, capacity| Load::Buffer {
        producers,
        consumers,
        capacity,
        notify: Notify::After,
        one: false,
    };
    for load in [buffer(0, 2, 1), buffer(2, 0, 1), buffer(1, 1, 0), Load::Timed { waiters: 0 }] {
        let error = spec("std", load).carry_out().unwrap_err().to_string();
        assert!(error.contains("; allowed: at least 1"), "{error}");
    }
    let error = spec("semaphore", BUFFER).carry_out().unwrap_err().to_string();
    assert!(
        error.starts_with("unknown condition variable 'semaphore'; allowed: std, parking_lot, "),
        "{error}"
    );
}

#[test]
fn pairs_have_unique_names_and_mutexes_of_the_registry() {
    let names: HashSet<&str> = Entry::all().iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), Entry::all().len());
    for entry in Entry::all() {
        assert_eq!(locks::Entry::find(entry.lock).unwrap().family, entry.family, "{}", entry.name);
    }
}

/// std's, with one thing broken.
struct Broken<const FAULT: u8>;

/// A notification of one reaches no thread.
const DEAF: u8 = 0;
/// A notification of all reaches one.
const SHY: u8 = 1;
/// A wait whose time is limited times out at once.
const HASTY: u8 = 2;

impl<const FAULT: u8> Monitor for Broken<FAULT> {
    type Mutex<T: Send + 'static> = std::sync::Mutex<T>;
    type Guard<'a, T: Send + 'static> = std::sync::MutexGuard<'a, T>;
    type Condvar = std::sync::Condvar;

    fn mutex<T: Send + 'static>(value: T) -> Result<Self::Mutex<T>> {
        Ok(std::sync::Mutex::new(value))
    }

    fn condvar() -> Result<Self::Condvar> {
        Ok(std::sync::Condvar::new())
    }

    fn lock<T: Send + 'static>(mutex: &Self::Mutex<T>) -> Self::Guard<'_, T> {
        mutex.lock().unwrap()
    }

    fn wait<'a, T: Send + 'static>(condvar: &Self::Condvar, guard: Self::Guard<'a, T>) -> Self::Guard<'a, T> {
        condvar.wait(guard).unwrap()
    }

    fn wait_for<'a, T: Send + 'static>(
        condvar: &Self::Condvar,
        guard: Self::Guard<'a, T>,
        timeout: Duration,
    ) -> (Self::Guard<'a, T>, bool) {
        if FAULT == HASTY {
            thread::yield_now();
            return (guard, true);
        }
        let (guard, ended) = condvar.wait_timeout(guard, timeout).unwrap();
        (guard, ended.timed_out())
    }

    fn notify_one<T: Send + 'static>(condvar: &Self::Condvar, _: &Self::Mutex<T>) {
        if FAULT != DEAF {
            condvar.notify_one();
        }
    }

    fn notify_all<T: Send + 'static>(condvar: &Self::Condvar, _: &Self::Mutex<T>) {
        if FAULT == SHY {
            condvar.notify_one();
        } else {
            condvar.notify_all();
        }
    }
}

#[test]
fn a_lost_wake_up_is_an_error_and_not_a_hang() {
    let grace = Duration::from_millis(300);
    let fails =
        |spec: &Spec, run: fn(&Spec, Duration) -> Result<Outcome>| run(spec, grace).unwrap_err().to_string();

    let error = fails(&spec("deaf", BUFFER), run_with::<Broken<DEAF>>);
    assert_eq!(
        error,
        "'deaf', 2+2, capacity 2, notify after the lock: the threads did not get on for 0.3 s: a wake-up was lost"
    );
    // Most consumers wait while one producer feeds so many. When the run is closed, one of them is
    // woken.
    let load = Load::Buffer { producers: 1, consumers: 64, capacity: 1, notify: Notify::After, one: false };
    let error = fails(&spec("shy", load), run_with::<Broken<SHY>>);
    assert!(error.starts_with("'shy', 1+64, capacity 1, notify after the lock: "), "{error}");
    assert!(
        error.ends_with(" of 65 threads sleep on 0.3 s after all were notified: a wake-up was lost"),
        "{error}"
    );
}

#[test]
fn a_wait_that_times_out_before_its_time_is_an_error() {
    let error = run_with::<Broken<HASTY>>(&spec("hasty", Load::Timed { waiters: 2 }), Duration::from_secs(5));
    assert!(error.unwrap_err().to_string().ends_with(" waits timed out before their time"));
}
