//! The models' clients on real threads, small enough for Miri, which looks for undefined behaviour
//! and leaks on the schedules it tries.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use ulocks_core::raw::RawRwLockUpgrade as Raw;
use ulocks_core::spin::{NoSpin, Patience};
use ulocks_core::{Private, Shared};
use ulocks_psrwlock::{
    BULK, Bulk, ByClass, Checked, Configuration, Eager, HANDLER, NESTED, Nested, Partial, PhaseFair,
    PsRwLockUpgradableReadGuard as UpgradableGuard, PsRwLockWith, PsRwLockWriteGuard as WriteGuard,
    RawPsRwLock, Sifted, URGENT, Urgent,
};
use ulocks_testkit::model::rw;
use ulocks_testkit::model::rw::Role::{Read, TimedRead, TimedWrite, Write};
use ulocks_testkit::model::upgrade::{self, How};
use ulocks_testkit::tasks::{Mixed, Restless, Tasks};

const THREE: u8 = BULK | URGENT | NESTED;
type AtSlots = Sifted<THREE, Private<NoSpin>, PhaseFair, Eager>;

fn clients<L: Raw + Send + Sync + 'static>() {
    rw::exclusion::<L>(&[Read, Write, TimedRead, TimedWrite]);
    rw::no_lost_wake::<L>(&[Read, Write, Write], 5);
    rw::readers_meet::<L>(2);
    rw::timeout_vs_unlock::<L>(Write, &[TimedRead, Write]);
    rw::timeout_vs_unlock::<L>(Read, &[TimedWrite, Write]);
    rw::give_up_while_held::<L>(Read, 2);
    rw::try_coherence::<L>(2, 1);
    rw::last_unlocker_frees::<L>(1, 2);
    upgrade::upgradable_beside_readers::<L>(2);
    upgrade::round_trips::<L>(How::Timed, 1, 1);
    upgrade::upgrade_waits_for_readers::<L>();
    upgrade::downgrade_meets_readers::<L>(2);
}

#[test]
fn the_lock_serves_its_clients() {
    clients::<RawPsRwLock>();
    clients::<RawPsRwLock<Sifted<BULK, Private<NoSpin>>>>();
    clients::<RawPsRwLock<Sifted<{ THREE | HANDLER }, Private<Patience<1_000>>>>>();
    clients::<RawPsRwLock<Sifted<THREE, Shared<NoSpin>>>>();
    clients::<RawPsRwLock<AtSlots>>();
}

#[test]
fn tasks_are_served() {
    clients::<Tasks<RawPsRwLock>>();
    clients::<Mixed<RawPsRwLock<Sifted<BULK, Private<NoSpin>>>>>();
    clients::<Restless<RawPsRwLock<AtSlots>>>();
}

/// Allocations, so that a reader beside a writer would touch what is freed.
fn typed<D: Configuration>() {
    let lock = PsRwLockWith::<Vec<u32>, D>::new(vec![0]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..3 {
                let (bulk, nested) = (lock.read(), lock.read_in::<Nested>());
                assert_eq!(bulk[0], nested[0]);
            }
        });
        scope.spawn(|| {
            for _ in 0..3 {
                let mut held = lock.upgradable_read();
                Partial::exclude::<Bulk>(&mut held);
                assert!(lock.read_in::<Urgent>()[0] <= 6);
                let mut held = UpgradableGuard::upgrade(held);
                *held = vec![held[0] + 1];
                let held = WriteGuard::downgrade(held);
                assert!(held[0] <= 6);
            }
        });
        for _ in 0..3 {
            let mut held = lock.write();
            *held = vec![held[0] + 1];
            WriteGuard::unlock_fair(held);
        }
    });
    assert_eq!(lock.into_inner(), [6]);
}

#[test]
fn the_typed_faces_guard_what_they_hold() {
    typed::<Sifted>();
    typed::<AtSlots>();
    typed::<
        Sifted<
            THREE,
            Private<NoSpin>,
            PhaseFair,
            ulocks_psrwlock::Central,
            ulocks_core::signal::Soft,
            Checked,
        >,
    >();
}
