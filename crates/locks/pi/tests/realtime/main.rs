//! Priorities, where the system lets the test have them (`CAP_SYS_NICE` or `RLIMIT_RTPRIO`); where
//! not, each test says so and passes.
//!
//! The threads of real-time priority sleep or take the mutex. None of them spins, but for one that
//! keeps the heir of a mutex from its CPU, for less than a second. What is waited for
//! is a state that the kernel shows in `/proc`, and a watchdog ends a test that hangs.
#![cfg(not(any(miri, ulocks_loom, ulocks_vm)))]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};
use ulocks_core::futex::{Futex, Local as Here};
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, tid};
use ulocks_pi::{PiCondvarWith, PiLockError, PiMutexGuard, PiMutexWith};
use ulocks_testkit::task;
use ulocks_testkit::watchdog::watch;

type Exact = Private<NoSpin>;
type Mutex<T> = PiMutexWith<T, Exact>;

/// Gives the calling thread the real-time priority `priority`. False if the system does not allow
/// it.
fn run_at(priority: i32) -> bool {
    task::schedule(0, libc::SCHED_FIFO, priority).is_ok()
}

/// Whether threads of this process may have real-time priorities; says so if not.
fn allowed(test: &str) -> bool {
    let allowed = thread::spawn(|| run_at(1)).join().expect("asking does not panic");
    if !allowed {
        println!("not tested: {test}: SCHED_FIFO is not permitted here");
    }
    allowed
}

/// The priority a thread runs with at this moment: 20 plus its nice value for an ordinary thread,
/// -1 - p at real-time priority p.
fn priority_of(thread: u32) -> i32 {
    let stat =
        fs::read_to_string(format!("/proc/self/task/{thread}/stat")).expect("a thread of this process");
    // The name before it is in parentheses; the priority is the 18th field, the state after the
    // name the third.
    let rest = stat.rsplit(") ").next().expect("a name in parentheses");
    rest.split(' ').nth(15).and_then(|field| field.parse().ok()).expect("a number")
}

#[track_caller]
fn until(done: impl FnMut() -> bool) {
    ulocks_testkit::limit::until("it is so as this line says", done);
}

/// Runs `body` in a thread of that priority (0: an ordinary one), and returns its id once it sleeps
/// in a futex call, or has ended.
fn asleep<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    priority: i32,
    body: impl FnOnce() -> T + Send + 'scope,
) -> (u32, ScopedJoinHandle<'scope, T>) {
    let (id, handle) = task::begun(scope, move || {
        assert!(priority == 0 || run_at(priority), "permitted a moment ago");
        body()
    });
    let id = id.unsigned_abs();
    until(|| handle.is_finished() || task::is_in_futex_call(std::process::id(), id).unwrap_or(false));
    (id, handle)
}

/// What a thread sleeps on until the test lets it go.
struct Gate(Futex<Here>);

impl Gate {
    fn wait(&self) {
        while self.0.load(SeqCst) == 0 {
            self.0.wait(0, None);
        }
    }

    fn open(&self) {
        self.0.store(1, SeqCst);
        self.0.key().wake(u32::MAX);
    }
}

#[test]
fn the_highest_priority_is_served_first_and_the_first_among_equals() {
    if !allowed("the highest first") {
        return;
    }
    let _watchdog = watch("the highest first", String::new);
    let served = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let held = served.lock().unwrap();
        for (name, priority) in [(1, 2), (2, 5), (3, 3), (4, 5), (5, 4), (6, 2)] {
            let served = &served;
            asleep(scope, priority, move || served.lock().unwrap().push(name));
        }
        drop(held);
    });
    assert_eq!(served.into_inner(), [2, 4, 5, 3, 1, 6]);
}

/// As long as the thread that it was handed to has not run.
#[test]
fn what_was_handed_over_goes_to_a_thread_of_higher_priority_that_comes() {
    let test = "a thread of higher priority";
    let [here, there, ..] = task::cpus_of(0)[..] else {
        return println!("not tested: {test}: it takes two CPUs");
    };
    if !allowed(test) {
        return;
    }
    let _watchdog = watch(test, String::new);
    let (served, is_computing, is_done) = (Mutex::new(Vec::new()), AtomicU32::new(0), AtomicU32::new(0));
    let locks_on = |cpu, priority| {
        task::bind(0, &[cpu]);
        assert!(run_at(priority), "permitted a moment ago");
        served.lock().unwrap().push(priority);
    };
    thread::scope(|scope| {
        let held = served.lock().unwrap();
        asleep(scope, 0, || locks_on(here, 1));
        // It keeps the waiter from its CPU.
        scope.spawn(|| {
            task::bind(0, &[here]);
            assert!(run_at(3), "permitted a moment ago");
            is_computing.store(1, SeqCst);
            while is_done.load(SeqCst) == 0 {
                std::hint::spin_loop();
            }
        });
        until(|| is_computing.load(SeqCst) == 1);
        drop(held);
        scope.spawn(|| locks_on(there, 2)).join().expect("it does not panic");
        is_done.store(1, SeqCst);
    });
    assert_eq!(served.into_inner(), [2, 1]);
}

#[test]
fn the_notified_are_served_by_priority_too() {
    if !allowed("the notified") {
        return;
    }
    let _watchdog = watch("the notified", String::new);
    let (served, condvar) = (Mutex::new(Vec::new()), PiCondvarWith::<Exact>::new());
    thread::scope(|scope| {
        for priority in [2, 5, 3, 4] {
            let (served, condvar) = (&served, &condvar);
            asleep(scope, priority, move || {
                condvar.wait(served.lock().unwrap()).unwrap().push(priority);
            });
        }
        let mut held = served.lock().unwrap();
        assert_eq!(condvar.notify_one(&served), Ok(1));
        assert_eq!(condvar.notify_all(&served), Ok(3));
        // They have been moved to the mutex and wait there: this thread runs with the priority of
        // the best.
        assert_eq!(priority_of(tid::current()), -1 - 5);
        held.push(0);
        drop(held);
    });
    assert_eq!(served.into_inner(), [0, 5, 4, 3, 2]);
}

#[test]
fn the_owner_inherits_and_gives_back() {
    if !allowed("the owner inherits") {
        return;
    }
    let _watchdog = watch("the owner inherits", String::new);
    let (mutex, gate) = (Mutex::new(()), Gate(Futex::new(0)));
    let ordinary = priority_of(tid::current());
    thread::scope(|scope| {
        let (owner, _) = asleep(scope, 0, || {
            let held = mutex.lock().unwrap();
            gate.wait();
            drop(held);
            assert_eq!(priority_of(tid::current()), ordinary);
        });
        assert_eq!(priority_of(owner), ordinary);
        // One that gives up takes its priority with it. On a slow machine it may have given up
        // before anybody looks; then another waits for longer.
        let (mut patience, mut is_seen) = (Duration::from_millis(300), false);
        while !is_seen {
            let mutex = &mutex;
            let (_, timed) = asleep(scope, 9, move || mutex.try_lock_for(patience).unwrap().is_none());
            until(|| {
                is_seen |= priority_of(owner) == -1 - 9;
                is_seen || timed.is_finished()
            });
            assert!(timed.join().unwrap());
            until(|| priority_of(owner) == ordinary);
            patience *= 2;
        }
        asleep(scope, 7, || drop(mutex.lock().unwrap()));
        until(|| priority_of(owner) == -1 - 7);
        gate.open();
    });
}

#[test]
fn priority_goes_along_a_chain_of_two() {
    if !allowed("a chain of two") {
        return;
    }
    let _watchdog = watch("a chain of two", String::new);
    let (first, second, gate) = (Mutex::new(()), Mutex::new(()), Gate(Futex::new(0)));
    let ordinary = priority_of(tid::current());
    thread::scope(|scope| {
        let (owner, _) = asleep(scope, 0, || {
            let _held = first.lock().unwrap();
            gate.wait();
        });
        let (middle, _) = asleep(scope, 0, || {
            let _held = second.lock().unwrap();
            drop(first.lock().unwrap());
        });
        assert_eq!((priority_of(owner), priority_of(middle)), (ordinary, ordinary));
        asleep(scope, 6, || drop(second.lock().unwrap()));
        until(|| priority_of(owner) == -1 - 6 && priority_of(middle) == -1 - 6);
        gate.open();
    });
}

/// Needs no priorities.
#[test]
fn a_circle_is_told_to_who_closes_it() {
    let _watchdog = watch("a circle", String::new);
    let (first, second) = (Mutex::new(()), Mutex::new(()));
    thread::scope(|scope| {
        let held = first.lock().unwrap();
        let (_, other) = asleep(scope, 0, || {
            let _held = second.lock().unwrap();
            drop(first.lock().unwrap());
        });
        assert!(matches!(second.lock(), Err(PiLockError::Deadlock)));
        drop(held);
        other.join().unwrap();
    });
}

/// Needs no priorities.
#[test]
fn the_end_of_an_owner_is_told_to_who_waits() {
    let _watchdog = watch("the end of an owner", String::new);
    let (mutex, gate) = (Mutex::new(0), Gate(Futex::new(0)));
    thread::scope(|scope| {
        asleep(scope, 0, || {
            let mut held = mutex.lock().unwrap();
            *held = 1;
            gate.wait();
            std::mem::forget(held);
        });
        let (_, heir) = asleep(scope, 0, || match mutex.lock() {
            Err(PiLockError::OwnerDied(orphan)) => {
                // SAFETY: the guard was forgotten, and nothing is left of it.
                *unsafe { orphan.into_guard() } += 1;
                true
            }
            _ => false,
        });
        let (_, next) = asleep(scope, 0, || mutex.lock().map(|guard| *guard).ok());
        gate.open();
        assert!(heir.join().unwrap());
        assert_eq!(next.join().unwrap(), Some(2), "only the first is told");
    });
}

/// Safe code had a second guard, beside the reference that a thread has leaked and handed on.
#[test]
fn what_a_thread_has_leaked_no_other_thread_gets() {
    let _watchdog = watch("a leaked guard", String::new);
    let (mutex, gate) = (Mutex::new(0), Gate(Futex::new(0)));
    thread::scope(|scope| {
        let (_, owner) = asleep(scope, 0, || {
            let leaked: &mut u32 = PiMutexGuard::leak(mutex.lock().unwrap());
            gate.wait();
            leaked
        });
        let panics = |wait: fn(&Mutex<u32>)| {
            let mutex = &mutex;
            move || catch_unwind(AssertUnwindSafe(|| wait(mutex))).is_err()
        };
        let in_time =
            |mutex: &Mutex<u32>| drop(mutex.as_infallible().try_lock_for(Duration::from_secs(3_600)));
        // They are served in this order. Each ends with the mutex, and the next one is told.
        let (_, first) = asleep(scope, 0, panics(|mutex| drop(mutex.as_infallible().lock())));
        let (_, second) = asleep(scope, 0, panics(in_time));
        let (_, third) = asleep(scope, 0, || matches!(mutex.lock(), Err(PiLockError::OwnerDied(_))));
        gate.open();
        let leaked = owner.join().unwrap();
        let told = [first, second, third].map(|waiter| waiter.join().unwrap());
        assert_eq!(told, [true; 3], "a thread has got a guard");
        *leaked += 1;
    });
    assert!(matches!(mutex.lock(), Err(PiLockError::OwnerGone | PiLockError::OwnerDied(_))));
}

/// Has an owner end while a thread waits for its mutex, and keeps that thread, the heir, from its
/// CPU. Meanwhile runs `act`. Returns what it returned, and what the heir was told; `None` if the
/// system does not let the test have that.
fn before_the_heir_runs<T: Send>(
    test: &str,
    mutex: &Mutex<u32>,
    act: impl FnOnce() -> T + Send,
) -> Option<(T, bool)> {
    let [here, there, ..] = task::cpus_of(0)[..] else {
        println!("not tested: {test}: it takes two CPUs");
        return None;
    };
    if !allowed(test) {
        return None;
    }
    let gate = Gate(Futex::new(0));
    thread::scope(|scope| {
        let (owner, _) = asleep(scope, 0, || {
            task::bind(0, &[there]);
            std::mem::forget(mutex.lock());
            gate.wait();
        });
        let (_, heir) = asleep(scope, 0, || {
            task::bind(0, &[here]);
            let Err(PiLockError::OwnerDied(orphan)) = mutex.lock() else { return false };
            // SAFETY: the guard was forgotten, and nothing is left of it.
            drop(unsafe { orphan.into_guard() });
            true
        });
        let acted = thread::scope(|scope| {
            let gate = &gate;
            let acts = scope.spawn(move || {
                task::bind(0, &[here]);
                assert!(run_at(1), "permitted a moment ago");
                gate.open();
                let owner = format!("/proc/self/task/{owner}");
                until(|| !Path::new(&owner).exists());
                act()
            });
            acts.join().expect("it does not panic")
        });
        Some((acted, heir.join().expect("it does not panic")))
    })
}

/// The word named the owner that had ended, and the kernel answered `EINVAL`.
#[test]
fn a_thread_that_comes_before_the_heir_runs_waits_for_it() {
    let _watchdog = watch("before the heir runs", String::new);
    let mutex = Mutex::new(0);
    let act = || mutex.lock().map(drop).map_err(|error| error.to_string());
    if let Some(outcome) = before_the_heir_runs("before the heir runs", &mutex, act) {
        assert_eq!(outcome, (Ok(()), true));
    }
}

/// It was told that the word is no lock's, since another thread kept the heir from its CPU.
#[test]
fn a_thread_waits_for_an_heir_that_does_not_run_for_long() {
    let test = "an heir that does not run for long";
    let _watchdog = watch(test, String::new);
    let (mutex, cpus, gate) = (Mutex::new(0), task::cpus_of(0), Gate(Futex::new(0)));
    thread::scope(|scope| {
        let (_, arriving) = asleep(scope, 0, || {
            task::bind(0, &cpus[cpus.len() - 1..]);
            gate.wait();
            mutex.lock().map(drop).map_err(|error| error.to_string())
        });
        let act = || {
            gate.open();
            // For longer than one asks about a word whose owner may live.
            let end = Instant::now() + Duration::from_millis(600);
            while !arriving.is_finished() && Instant::now() < end {
                std::hint::spin_loop();
            }
        };
        let heir = before_the_heir_runs(test, &mutex, act);
        gate.open();
        assert_eq!(arriving.join().expect("it does not panic"), Ok(()));
        assert!(heir.is_none_or(|((), is_told)| is_told));
    });
}

/// The same of a notification, which was lost.
#[test]
fn a_notification_before_the_heir_runs_moves_its_waiter() {
    let _watchdog = watch("a notification before the heir runs", String::new);
    let (mutex, condvar) = (Mutex::new(0), PiCondvarWith::<Exact>::new());
    thread::scope(|scope| {
        let (_, waiter) = asleep(scope, 0, || condvar.wait(mutex.lock().unwrap()).is_ok());
        let test = "a notification before the heir runs";
        if let Some(outcome) = before_the_heir_runs(test, &mutex, || condvar.notify_one(&mutex)) {
            assert_eq!(outcome, (Ok(1), true));
        } else {
            assert_eq!(condvar.notify_one(&mutex), Ok(1));
        }
        assert!(waiter.join().unwrap());
    });
}
