//! What each release costs at most beside readers that come and go without a pause, in the cost
//! model: virtual time, which is the same in every run.
//!
//! A read-modify-write of the state costs a queue of all CPUs at the state's cache line. So the
//! unit of the table is the longest `unlock_read` of the same run, which is one read-modify-write.
//! A release that is wait-free takes a fixed number of units on any number of CPUs. A release that
//! loops against readers takes more units on more CPUs, without a bound.
//!
//! `cargo xtask vm -p ulocks-psrwlock -- releases --nocapture` prints the table.

use crate::THREE;
use core::cell::Cell;
use std::rc::Rc;
use ulocks_core::Private;
use ulocks_core::signal::Soft;
use ulocks_psrwlock::{
    Bulk, ByClass, Central, Configuration, Eager, Nested, Partial, PhaseFair, PsRwLockReadGuard,
    PsRwLockUpgradableReadGuard as Upgradable, PsRwLockWith, PsRwLockWriteGuard as WriteGuard, Readers,
    Sifted, ThreadClass, Unchecked, Urgent,
};
use ulocks_vm_cost::{Machine, Run, Worker};

type InClasses<R> = Sifted<THREE, Private, PhaseFair, R, Soft, Unchecked>;
type Lock<D> = PsRwLockWith<u32, D>;
/// Acquires, and times one release by the closure.
type Release<D> = fn(&Lock<D>, &dyn Fn(&mut dyn FnMut()));

const CPUS: [usize; 5] = [2, 8, 16, 32, 64];
/// The most units of a release: telling two kinds of sleepers, two attempts, and leaving, with some
/// room.
const MOST_UNITS: f64 = 8.0;
/// The most time of one read-modify-write for each CPU, in the longest distances of the machine.
const MOST_DISTANCES: f64 = 2.0;

/// Times `release` of a guard.
fn drops<G>(guard: G, time: &dyn Fn(&mut dyn FnMut()), mut release: impl FnMut(G)) {
    let mut guard = Some(guard);
    time(&mut || guard.take().map_or((), &mut release));
}

/// Every way to give something up, by name; the first is the unit.
fn releases<D: Configuration>() -> Vec<(&'static str, Release<D>)> {
    vec![
        ("unlock_read", |lock, time| drops(lock.read(), time, drop)),
        ("unlock_read, Nested", |lock, time| drops(lock.read_in::<Nested>(), time, drop)),
        ("unlock_read_fair", |lock, time| drops(lock.read(), time, PsRwLockReadGuard::unlock_fair)),
        ("unlock_upgradable", |lock, time| drops(lock.upgradable_read(), time, drop)),
        ("unlock_upgradable_fair", |lock, time| {
            drops(lock.upgradable_read(), time, Upgradable::unlock_fair);
        }),
        ("unlock_write", |lock, time| drops(lock.write(), time, drop)),
        ("unlock_write_fair", |lock, time| drops(lock.write(), time, WriteGuard::unlock_fair)),
        ("downgrade", |lock, time| {
            let mut held = None;
            drops(lock.write(), time, |guard| held = Some(WriteGuard::downgrade(guard)));
        }),
        ("downgrade_to_upgradable", |lock, time| {
            let mut held = None;
            drops(lock.write(), time, |guard| held = Some(WriteGuard::downgrade_to_upgradable(guard)));
        }),
        ("downgrade_upgradable", |lock, time| {
            let mut held = None;
            drops(lock.upgradable_read(), time, |guard| held = Some(Upgradable::downgrade(guard)));
        }),
        ("unlock, Bulk excluded", |lock, time| drops(excluded::<Bulk, D>(lock), time, drop)),
        ("unlock, Urgent excluded", |lock, time| drops(excluded::<Urgent, D>(lock), time, drop)),
        ("unlock_fair, Bulk excluded", |lock, time| {
            drops(excluded::<Bulk, D>(lock), time, Upgradable::unlock_fair);
        }),
        ("downgrade, Urgent excluded", |lock, time| {
            let mut held = None;
            drops(excluded::<Urgent, D>(lock), time, |guard| held = Some(Upgradable::downgrade(guard)));
        }),
        ("admit, Urgent excluded", |lock, time| {
            let mut held = excluded::<Urgent, D>(lock);
            time(&mut || Partial::admit(&mut held));
        }),
        ("admit, all excluded", |lock, time| {
            let mut held = excluded::<Nested, D>(lock);
            time(&mut || Partial::admit(&mut held));
        }),
    ]
}

fn excluded<C: ThreadClass, D: Configuration>(lock: &Lock<D>) -> Upgradable<'_, u32, D> {
    let mut held = lock.upgradable_read();
    Partial::exclude::<C>(&mut held);
    held
}

/// The longest time that the release takes beside readers on all other CPUs, in nanoseconds, and
/// how many there were.
fn worst<D: Configuration>(cpus: usize, release: Release<D>) -> (f64, u64) {
    let run = Run { warm_up_ns: 0.0, time_ns: 400e3, ..Run::new(Machine::example_with(cpus), cpus) };
    let seen = Rc::new(Cell::new((0.0, 0)));
    let pending = Rc::new(Cell::new(None));
    let (records, current) = (Rc::clone(&seen), Rc::clone(&pending));
    let body = move |lock: &Lock<D>, worker: &Worker| {
        let time = |body: &mut dyn FnMut()| {
            let began = worker.now_ns();
            current.set(Some(began));
            body();
            current.set(None);
            let (worst, number) = records.get();
            records.set((f64::max(worst, worker.now_ns() - began), number + 1));
        };
        loop {
            match worker.index() {
                0 => {
                    release(lock, &time);
                    worker.think();
                }
                1 => reads::<Urgent, D>(lock, worker),
                2 => reads::<Nested, D>(lock, worker),
                _ => reads::<Bulk, D>(lock, worker),
            }
        }
    };
    run.of(|| Lock::<D>::new(0), body).expect("a run of the cost model");
    let (worst, number) = seen.get();
    // One that has not come to its end has taken until the end.
    let unfinished = pending.get().map_or(0.0, |began| run.time_ns - began);
    (f64::max(worst, unfinished), number)
}

fn reads<C: ThreadClass, D: Configuration>(lock: &Lock<D>, worker: &Worker) {
    let guard = lock.read_in::<C>();
    worker.work_about(30.0);
    drop(guard);
}

/// The table of a discipline, whose worst cases are held to the bounds.
fn table<R: Readers>(name: &str) {
    println!("\n{name}: longest release in ns of virtual time, and in units; CPUs: {CPUS:?}");
    let memory = Machine::example().memory;
    let mut units = [0.0_f64; CPUS.len()];
    let mut broken = Vec::new();
    for (release, time) in releases::<InClasses<R>>() {
        let mut row = format!("{release:>27}:");
        for (cpus, unit) in CPUS.into_iter().zip(&mut units) {
            let (worst, number) = worst(cpus, time);
            if number == 0 {
                broken.push(format!("{release} on {cpus} CPUs never came to its end"));
            }
            *unit = if *unit == 0.0 { worst } else { *unit };
            row += &format!(" {worst:>8.0} {:>5.1}", worst / *unit);
            if worst > MOST_UNITS * MOST_DISTANCES * cpus as f64 * memory.cross_socket {
                broken.push(format!("{release} on {cpus} CPUs: {worst} ns"));
            }
        }
        println!("{row}");
    }
    assert!(broken.is_empty(), "a release grows faster than the number of CPUs: {broken:?}");
}

#[test]
fn releases_grow_no_faster_than_the_number_of_cpus() {
    table::<Central>("readers in the state");
    table::<Eager>("Bulk readers at 8 slots");
}
