//! Turns: by how many write phases a reader is passed that sleeps in line.
//!
//! Counted by the lock's meter: it is told when a reader goes to sleep, and when it is in; and the
//! writers say when a phase ends, before they release. A reader that sleeps sees the end of the
//! phase that is on, and, if it is below the top class and the type says so, of some more.

use crate::clients::place::Place;
use crate::roles::ByValue;
use crate::{TWO, found, sampled};
use core::cell::RefCell;
use std::collections::HashMap;
use ulocks_core::Private;
use ulocks_core::meter::sealed::Sealed;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::model::{Config, explore, thread};
use ulocks_core::raw::{RawRwLock, RawRwLockUpgrade};
use ulocks_core::signal::Soft;
use ulocks_core::spin::{Adaptive, NoSpin};
use ulocks_psrwlock::{
    Bulk, Central, Configuration, Distributed, Fairness as _, PhaseFair, RawPsRwLock, Sifted, Unchecked,
    Urgent, WriterBatch,
};
use ulocks_testkit::thread::{Arc, together};

/// What has happened in an execution.
#[derive(Default)]
struct Phases {
    ended: u32,
    /// By reader: how many phases had ended when it fell asleep in this acquisition.
    asleep: HashMap<usize, u32>,
    /// By reader: by how many it may be passed.
    bounds: HashMap<usize, u32>,
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
            let Some(&bound) = phases.bounds.get(&me) else { return };
            match event {
                Event::Slept => _ = phases.asleep.entry(me).or_insert(phases.ended),
                Event::Acquired => {
                    if let Some(before) = phases.asleep.remove(&me) {
                        let passed = phases.ended - before;
                        assert!(
                            passed <= bound,
                            "{passed} write phases passed a reader that slept, and {bound} may"
                        );
                    }
                }
                _ => {}
            }
        });
    }
}

type Counted<const SET: u8, F, R = Central, S = NoSpin> =
    Sifted<SET, Private<S, Turns>, F, R, Soft, Unchecked>;

/// The calling reader may be passed by so many.
fn may_be_passed(bound: u32) {
    PHASES.with_borrow_mut(|phases| _ = phases.bounds.insert(thread::current(), bound));
}

fn phase_ends() {
    PHASES.with_borrow_mut(|phases| phases.ended += 1);
}

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
    phase_ends();
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
            0 => {
                may_be_passed(D::Fairness::BATCH);
                for _ in 0..2 {
                    let token = place.lock.read_in::<Bulk>(core::panic::Location::caller());
                    place.leave(token);
                }
            }
            1 => {
                // A class of its own, and so its own line.
                may_be_passed(1);
                for _ in 0..2 {
                    let token = place.lock.read_in::<Urgent>(core::panic::Location::caller());
                    place.leave(token);
                }
            }
            _ => (0..4).for_each(|_| write(place, how)),
        }
    });
}

const WAYS: [Writes; 4] = [Writes::Plainly, Writes::Trying, Writes::Upgrading, Writes::Fairly];

#[test]
fn a_sleeping_reader_is_passed_by_as_many_as_the_type_says() {
    fn check<D: Configuration>(seed: u64) {
        for how in WAYS {
            for writers in [1, 2, 4, 8] {
                explore(sampled(2 * (writers + 2), seed), move || turns::<D>(writers, how));
            }
        }
    }
    check::<Counted<TWO, PhaseFair>>(1);
    check::<Counted<TWO, WriterBatch<3>>>(2);
    check::<Counted<TWO, WriterBatch<7>>>(3);
    check::<Counted<TWO, PhaseFair, Distributed<2>>>(4);
    check::<Counted<TWO, WriterBatch<2>, Distributed<2>>>(5);
    check::<Counted<TWO, PhaseFair, Central, Adaptive>>(6);
    check::<Counted<TWO, WriterBatch<3>, Central, Adaptive>>(7);
}

/// With more executions than above. A release that leaves the lock to a writer that spins can pass
/// the line in rare orders only.
#[test]
fn a_reader_that_sleeps_beside_two_writers_is_passed_by_one_phase() {
    explore(Config::sampled(1_000), || turns::<Counted<TWO, PhaseFair>>(2, Writes::Plainly));
    explore(Config::sampled(1_000), || turns::<Counted<TWO, PhaseFair>>(2, Writes::Trying));
    explore(Config::sampled(30_000), || {
        turns::<Counted<TWO, PhaseFair, Central, Adaptive>>(2, Writes::Plainly)
    });
}

/// The bound of a batch is reached: it is no weaker than it has to be.
#[test]
fn a_batch_is_used_to_the_full() {
    found("a bound of two for a batch of three", "3 write phases passed a reader that slept", || {
        PHASES.take();
        let lock = Arc::new(RawPsRwLock::<Counted<TWO, WriterBatch<3>>>::new());
        together(4, move |me| {
            if me == 0 {
                may_be_passed(2);
                let token = lock.read_in::<Bulk>(core::panic::Location::caller());
                // SAFETY: acquired the line before.
                unsafe { lock.unlock_read(token) };
                return;
            }
            for _ in 0..3 {
                lock.write();
                phase_ends();
                // SAFETY: acquired above.
                unsafe { lock.unlock_write(()) };
            }
        });
    });
}
