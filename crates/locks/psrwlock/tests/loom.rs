//! A few small models in loom's world, on the clients of the test kit: that the lock works there,
//! for models of protocols that are built on it. What the planted bugs break, and all larger
//! models, is the virtual machine's.
#![cfg(all(ulocks_loom, feature = "loom"))]

use ulocks_core::Private;
use ulocks_core::model::explore;
use ulocks_core::signal::Soft;
use ulocks_core::spin::NoSpin;
use ulocks_psrwlock::{BULK, Central, PhaseFair, RawPsRwLock, Sifted, URGENT, Unchecked};
use ulocks_testkit::model::rw::Role::{Read, TimedRead, TimedWrite, Write};
use ulocks_testkit::model::rw::{exclusion, last_unlocker_frees, no_lost_wake, timeout_vs_unlock};
use ulocks_testkit::suite::{exact, timed, unordered};
use ulocks_testkit::tasks::{Mixed, Tasks};

/// No thread spins, and none checks nesting.
type Lock = RawPsRwLock<Sifted<{ BULK | URGENT }, Private<NoSpin>, PhaseFair, Central, Soft, Unchecked>>;

#[test]
fn a_writer_is_alone() {
    explore(exact(3), || exclusion::<Lock>(&[Read, Write]));
    explore(exact(2), || exclusion::<Lock>(&[Write, Write]));
    explore(unordered(1), || exclusion::<Lock>(&[Read, Write, Write]));
}

#[test]
fn nobody_sleeps_for_ever() {
    explore(exact(2), || no_lost_wake::<Lock>(&[Read, Write], 2));
    explore(exact(1), || no_lost_wake::<Lock>(&[Read, Write, Write], 1));
}

#[test]
fn who_gives_up_strands_nobody() {
    explore(timed(1, 3), || timeout_vs_unlock::<Lock>(Write, &[TimedRead, Write]));
    explore(timed(1, 3), || timeout_vs_unlock::<Lock>(Read, &[TimedWrite, Read]));
}

#[test]
fn the_release_is_the_last_access() {
    explore(exact(3), || last_unlocker_frees::<Lock>(1, 1));
    explore(exact(2), || last_unlocker_frees::<Lock>(0, 2));
}

#[test]
fn tasks_wait_beside_threads() {
    explore(exact(1), || exclusion::<Tasks<Lock>>(&[Read, Write]));
    explore(exact(1), || exclusion::<Mixed<Lock>>(&[Write, Write]));
    explore(exact(1), || no_lost_wake::<Mixed<Lock>>(&[Read, Write], 1));
    explore(timed(1, 2), || timeout_vs_unlock::<Tasks<Lock>>(Write, &[TimedWrite]));
}
