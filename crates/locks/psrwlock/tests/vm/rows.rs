//! Readers in rows: each reader in the state gets the lock a row, and each writer takes it away.

use crate::place::{Of, Place, Role, play};
use crate::{Lock, Sleeps, THREE, TWO, sampled};
use ulocks_core::model::{Config, explore};
use ulocks_core::signal::Soft;
use ulocks_core::sync::Ordering::{Acquire, Release};
use ulocks_core::sync::{AtomicU32, spin_until};
use ulocks_psrwlock::{Bulk, ByClass, Eager, Nested, Partial, PhaseFair, PsRwLockWith, Sifted, Unchecked};
use ulocks_testkit::model::rw::{
    self,
    Role::{Read, TimedWrite, TryWrite, Write},
};
use ulocks_testkit::model::upgrade::{self, How};
use ulocks_testkit::thread::{Arc, spawn, with};

type Rows = Lock<TWO, Sleeps, PhaseFair, Eager>;

fn within(preemptions: u32) -> Config {
    Config { preemptions: Some(preemptions), ..Config::exhaustive() }
}

#[test]
fn a_row_is_got_used_and_taken_away() {
    explore(within(6), || rw::exclusion::<Rows>(&[Read, Write]));
    explore(within(3), || rw::exclusion::<Rows>(&[Read, Read, Write]));
    explore(within(3), || rw::no_lost_wake::<Rows>(&[Read, Write], 2));
    explore(within(3), || upgrade::upgrades::<Rows>(How::Wait, 1, 1, 0));
    explore(within(2), || rw::timeout_vs_unlock::<Rows>(Read, &[TimedWrite]));
}

/// A reader that has learned of the row may be late: one writer takes the row away, and the next
/// one does not look at it.
#[test]
fn a_reader_does_not_stay_in_a_row_that_is_gone() {
    type D = Sifted<THREE, Sleeps, PhaseFair, Eager, Soft, Unchecked>;
    explore(within(4), || {
        let place = Place::<D>::new();
        place.leave(place.read_of(Of::Bulk)); // gets the row
        let reader = with(&place, |place| place.leave(place.read_of(Of::Bulk)));
        place.writes();
        place.writes();
        place.leave(place.read_of(Of::Bulk)); // the same row again
        reader.join().expect("the reader panicked");
        place.check_at_rest(2);
    });
}

/// The same where the row is taken away by an upgradable reader that has closed this class alone.
#[test]
fn a_reader_does_not_stay_in_a_row_that_a_part_of_a_write_took_away() {
    type D = Sifted<TWO, Sleeps, PhaseFair, Eager, Soft, Unchecked>;
    explore(within(4), || {
        let lock = Arc::new(PsRwLockWith::<usize, D>::new(0));
        drop(lock.read()); // gets the row
        let reader = with(&lock, |lock| assert!(*lock.read() <= 1));
        let mut guard = lock.upgradable_read();
        Partial::exclude::<Bulk>(&mut guard);
        drop(guard);
        *lock.write() += 1;
        reader.join().expect("the reader panicked");
    });
}

/// One reader holds it before the look. Another one gets it a row, and holds it at a slot before
/// the first one leaves.
#[test]
fn a_lock_that_is_held_all_the_time_is_locked() {
    type D = Sifted<THREE, Sleeps, PhaseFair, Eager, Soft, Unchecked>;
    explore(within(3), || {
        let lock = Arc::new(PsRwLockWith::<usize, D>::new(0));
        let inside = Arc::new(AtomicU32::new(0));
        let first = lock.read_in::<Nested>();
        let look = with(&lock, |lock| assert!(lock.is_locked(), "a reader is inside"));
        let second = {
            let (lock, inside) = (Arc::clone(&lock), Arc::clone(&inside));
            spawn(move || {
                drop(lock.read()); // gets the row
                let _second = lock.read();
                inside.store(1, Release);
                look.join().expect("the look panicked");
            })
        };
        spin_until(|| inside.load(Acquire) == 1);
        drop(first);
        second.join().expect("the reader panicked");
    });
}

#[test]
fn readers_in_rows_are_seen() {
    const MANY: &[rw::Role] = &[Read, Read, Write, Read, Read, Write, Read, TryWrite, Read, Read];
    for seed in 1..=4 {
        let old = |threads| Config { stale: 32, ..sampled(threads, seed) };
        explore(old(2), || rw::exclusion::<Rows>(&[Read, Write]));
        explore(old(3), || rw::exclusion::<Rows>(&[Read, Read, Write]));
        explore(old(3), || rw::exclusion::<Rows>(&[Read, Read, TryWrite]));
        explore(old(10), || rw::exclusion::<Rows>(MANY));
        explore(old(10), || rw::no_lost_wake::<Rows>(MANY, 3));
        explore(old(2), || rw::last_unlocker_frees::<Rows>(1, 1));
        explore(old(4), || rw::last_unlocker_frees::<Rows>(3, 1));
    }
}

/// Where loads read the newest value and stores go last, nothing needs the fence.
#[test]
fn readers_in_rows_are_seen_where_nothing_is_old() {
    let newest = Config { stale: 0, ..sampled(2, 1) };
    explore(newest, || rw::exclusion::<Rows>(&[Read, Write]));
}

#[test]
fn rows_and_classes_do_not_mix_up() {
    type All = Sifted<THREE, Sleeps, PhaseFair, Eager, Soft, Unchecked>;
    const ROLES: &[Role] = &[
        Role::Nest,
        Role::Write,
        Role::Nest,
        Role::TimedWrite,
        Role::Read(Of::Bulk),
        Role::TryRead(Of::Bulk),
        Role::Upgrade,
        Role::TryUpgrade,
    ];
    for seed in 1..=3 {
        explore(sampled(8, seed), || play::<All>(ROLES, 2));
    }
}
