//! Checked locks under load. ThreadSanitizer runs this, too.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use ulocks_core::Private;
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_debug::{Checked, Class, FairMutex, Mutex, RwLock, deadlocks, held, waiters};
use ulocks_fair::RawFairMutex;
use ulocks_testkit::stress::{self, Load};
use ulocks_testkit::watchdog::watch;
use ulocks_unfair::RawThroughputMutex;

fn serves<L: RawMutex + Send + Sync + 'static>() {
    let load = Load { operations: 3_000, signals: true, ..Load::default() };
    stress::exclusion::<L>(load).check(load);
    stress::timed::<L>(load).check(load);
    stress::cancel::<L>(load).check(load);
    assert_eq!(stress::last_unlocker_unmaps::<L>(4, 50), 50);
}

#[test]
fn a_checked_lock_does_what_the_lock_inside_does() {
    let _alone = ALONE.lock();
    serves::<Checked<RawThroughputMutex<Private>>>();
    serves::<Checked<RawThroughputMutex<Private<NoSpin>>>>();
    serves::<Checked<RawFairMutex<Private>>>();
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
