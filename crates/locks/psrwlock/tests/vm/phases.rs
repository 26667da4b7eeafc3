//! Turns: by how many write phases a reader is passed that sleeps in line.
//!
//! Counted by the lock's meter: it is told when a reader goes to sleep, and when it is in; and the
//! writers say when a phase ends, before they release. A reader that sleeps sees the end of the
//! phase that is on, and of no other.

use crate::place::Place;
use crate::{TWO, sampled};
use core::cell::RefCell;
use std::collections::{HashMap, HashSet};
use ulocks_core::Private;
use ulocks_core::meter::sealed::Sealed;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::model::{Config, explore, thread};
use ulocks_core::raw::{RawRwLock, RawRwLockUpgrade};
use ulocks_core::signal::Soft;
use ulocks_core::spin::{Adaptive, NoSpin};
use ulocks_psrwlock::{Bulk, Central, Configuration, Eager, PhaseFair, Sifted, Unchecked, Urgent};
use ulocks_testkit::thread::together;

/// What has happened in an execution.
#[derive(Default)]
struct Phases {
    ended: u32,
    /// By reader: how many phases had ended when it fell asleep in this acquisition.
    asleep: HashMap<usize, u32>,
    readers: HashSet<usize>,
}

std::thread_local! {
    static PHASES: RefCell<Phases> = RefCell::default();
}

/// Counts the phases that pass a sleeping reader.
struct Turns;

// SAFETY: it panics to fail a test of the virtual machine, which ends the execution.
unsafe impl Sealed for Turns {}

impl Meter for Turns {
    const INIT: Self = Self;

    fn count(&self, event: Event) {
        let me = thread::current();
        PHASES.with_borrow_mut(|phases| {
            if !phases.readers.contains(&me) {
                return;
            }
            match event {
                Event::Slept => _ = phases.asleep.entry(me).or_insert(phases.ended),
                Event::Acquired => {
                    if let Some(before) = phases.asleep.remove(&me) {
                        let passed = phases.ended - before;
                        assert!(passed <= 1, "{passed} write phases passed a reader that slept, and 1 may");
                    }
                }
                _ => {}
            }
        });
    }
}

type Counted<R = Central, S = NoSpin> = Sifted<TWO, Private<S, Turns>, PhaseFair, R, Soft, Unchecked>;

/// What the writers do, one after the other.
#[derive(Clone, Copy, Debug)]
enum Writes {
    Plainly,
    Trying,
    Upgrading,
    Fairly,
}

/// One phase.
fn write<D: Configuration>(place: &Place<D>, how: Writes) {
    use ulocks_core::raw::RawRwLockFair;
    let lock = &place.lock;
    match how {
        Writes::Trying => {
            if lock.try_write().is_none() {
                return;
            }
        }
        Writes::Upgrading => {
            lock.upgradable();
            // SAFETY: acquired the line before.
            unsafe { lock.upgrade(()) };
        }
        Writes::Plainly | Writes::Fairly => lock.write(),
    }
    place.count();
    PHASES.with_borrow_mut(|phases| phases.ended += 1);
    // SAFETY: acquired above.
    unsafe {
        match how {
            Writes::Fairly => lock.unlock_write_fair(()),
            _ => lock.unlock_write(()),
        }
    }
}

/// So many writers, several times each, and a reader of each class.
fn turns<D: Configuration>(writers: usize, how: Writes) {
    PHASES.take();
    let place = Place::<D>::new();
    together(writers + 2, move |me| {
        let place = &*place;
        match me {
            // Classes of their own, and so lines of their own.
            0 | 1 => {
                PHASES.with_borrow_mut(|phases| _ = phases.readers.insert(thread::current()));
                for _ in 0..2 {
                    let token = if me == 0 { place.read::<Bulk>() } else { place.read::<Urgent>() };
                    place.leave(token);
                }
            }
            _ => (0..4).for_each(|_| write(place, how)),
        }
    });
}

const WAYS: [Writes; 4] = [Writes::Plainly, Writes::Trying, Writes::Upgrading, Writes::Fairly];

#[test]
fn a_sleeping_reader_is_passed_by_one_phase() {
    fn check<D: Configuration>(seed: u64) {
        for how in WAYS {
            for writers in [1, 2, 4, 8] {
                explore(sampled(2 * (writers + 2), seed), move || turns::<D>(writers, how));
            }
        }
    }
    check::<Counted>(1);
    check::<Counted<Eager>>(4);
    check::<Counted<Central, Adaptive>>(6);
}

/// With more executions than above.
#[test]
fn a_reader_that_sleeps_beside_two_writers_is_passed_by_one_phase() {
    explore(Config::sampled(1_000), || turns::<Counted>(2, Writes::Plainly));
    explore(Config::sampled(1_000), || turns::<Counted>(2, Writes::Trying));
    explore(Config::sampled(15_000), || turns::<Counted<Central, Adaptive>>(2, Writes::Plainly));
}
