//! Checked locks under load. ThreadSanitizer runs this, too.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use ulocks_core::Private;
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_debug::*;
use ulocks_fair::RawFairMutex;
use ulocks_pi::RawPiMutex;
use ulocks_testkit::stress::{self, Load};
use ulocks_testkit::watchdog::watch;
use ulocks_unfair::RawThroughputMutex;

fn serves<L: RawMutex + Send + Sync + 'static>() {
    let load = Load { operations: 3_000, signals: true, ..Load::default() };
    stress::exclusion::<L>(load).check();
    stress::timed::<L>(load).check();
    stress::cancel::<L>(load).check();
    assert_eq!(stress::last_unlocker_unmaps::<L>(4, 50), 50);
}

#[test]
fn a_checked_lock_does_what_the_lock_inside_does() {
    let _alone = ALONE.lock();
    serves::<Checked<RawThroughputMutex<Private>>>();
    serves::<Checked<RawThroughputMutex<Private<NoSpin>>>>();
    serves::<Checked<RawFairMutex<Private>>>();
    serves::<Checked<RawPiMutex<Private>>>();
}

/// A place for one item: each thread waits at nearly each step, every third time with a deadline
/// that passes soon.
#[test]
fn a_checked_pi_condvar_passes_everything_on() {
    const ITEMS: usize = 500;
    let _alone = ALONE.lock();
    let _watchdog = watch("a place with a PiCondvar", || format!("{:?}", held()));
    let (place, changed, sum) = (PiMutex::new(None), PiCondvar::new(), AtomicUsize::new(0));
    let wait = |guard, nth: usize| match nth.is_multiple_of(3) {
        true => changed.wait_for(guard, Duration::from_micros(50)).map(|(guard, _)| guard),
        false => changed.wait(guard),
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for item in 1..=ITEMS {
                    let mut to = place.lock().unwrap();
                    while to.is_some() {
                        to = wait(to, item).unwrap();
                    }
                    *to = Some(item);
                    changed.notify_all(&place).unwrap();
                }
            });
            scope.spawn(|| {
                for nth in 1..=ITEMS {
                    let mut from = place.lock().unwrap();
                    let item = loop {
                        match from.take() {
                            Some(item) => break item,
                            None => from = wait(from, nth).unwrap(),
                        }
                    };
                    changed.notify_all(&place).unwrap();
                    drop(from);
                    sum.fetch_add(item, Relaxed);
                }
            });
        }
    });
    assert_eq!(sum.into_inner(), ITEMS * (ITEMS + 1));
    assert!(held().locks().is_empty() && !place.is_locked());
}

/// The lists are of the whole process: one test at a time.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

static OUTER: Class = Class::new("outer");
static TABLE: Class = Class::new("table");
static INNER: Class = Class::new("inner");

/// Threads that begin and end lock in one order, while another one reads all lists. They go on
/// until it has seen some locks.
#[test]
fn lists_are_whole_while_threads_come_and_go() {
    const LEAST: usize = 30;
    const SEEN: usize = 100;
    const ROUNDS: usize = 100;
    let _alone = ALONE.lock();
    let _watchdog = watch("lists of checked locks", || format!("{:?}", held()));
    let (outer, table) = (Mutex::new_in(&OUTER, 0_usize), RwLock::new_in(&TABLE, 0_usize));
    let inner = FairMutex::new_in(&INNER, 0_usize);
    let (is_over, listed) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut generations = 0;
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !is_over.load(Relaxed) {
                for lock in held().locks() {
                    assert!(["outer", "table", "inner"].contains(&lock.lock.name.as_str()), "{lock:?}");
                    assert!(lock.at.file().ends_with("stress.rs"), "{lock:?}");
                    listed.fetch_add(1, Relaxed);
                }
                for waiter in waiters() {
                    assert!(["outer", "table", "inner"].contains(&waiter.lock.name.as_str()), "{waiter:?}");
                }
                let circles = deadlocks();
                assert!(circles.is_empty(), "{circles:?}");
            }
        });
        while generations < LEAST || listed.load(Relaxed) < SEEN {
            generations += 1;
            thread::scope(|scope| {
                for me in 0..3 {
                    let (outer, table, inner) = (&outer, &table, &inner);
                    scope.spawn(move || {
                        for round in 0..ROUNDS {
                            let mut in_outer = outer.lock();
                            if (round + me) % 4 == 0 {
                                *table.write() += 1;
                            } else {
                                let reads = table.read();
                                *inner.lock() += usize::from(*reads < usize::MAX);
                            }
                            *in_outer += 1;
                        }
                    });
                }
            });
        }
        is_over.store(true, Relaxed);
        reader.join().expect("the lists are whole");
    });
    let all = 3 * generations * ROUNDS;
    assert_eq!((outer.into_inner(), table.into_inner() + inner.into_inner()), (all, all));
}
