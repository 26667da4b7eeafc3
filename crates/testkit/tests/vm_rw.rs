//! Each model client for reader-writer locks passes on the plain lock. The mutants of the lock show
//! that each can fail.
#![cfg(world = "vm")]

use ulocks_core::model::{Config, explore};
use ulocks_testkit::model::rw::Role::{Read, TimedRead, TimedWrite, TryRead, TryWrite, Write};
use ulocks_testkit::model::upgrade::How;
use ulocks_testkit::model::{linear, rw, upgrade};
use ulocks_testkit::plain::rw::PlainRw;

fn sampled() -> Config {
    Config::sampled(2_000)
}

#[test]
fn exclusion_holds() {
    explore(sampled(), || rw::exclusion::<PlainRw>(&[Read, Write]));
    explore(sampled(), || rw::exclusion::<PlainRw>(&[Write, Write]));
    explore(sampled(), || rw::exclusion::<PlainRw>(&[Read, Read, Read, Write, Write]));
}

#[test]
fn nobody_sleeps_for_ever() {
    explore(sampled(), || rw::no_lost_wake::<PlainRw>(&[Read, Write], 2));
    explore(sampled(), || rw::no_lost_wake::<PlainRw>(&[Read, Write, Read, Write, Read], 2));
}

#[test]
fn readers_share() {
    explore(sampled(), || rw::readers_meet::<PlainRw>(1));
    explore(sampled(), || rw::readers_meet::<PlainRw>(4));
}

#[test]
fn a_timeout_strands_nobody() {
    explore(sampled(), || rw::timeout_vs_unlock::<PlainRw>(Write, &[TimedRead]));
    explore(sampled(), || rw::timeout_vs_unlock::<PlainRw>(Read, &[TimedWrite]));
    explore(sampled(), || rw::timeout_vs_unlock::<PlainRw>(Read, &[TimedWrite, Read]));
    explore(sampled(), || rw::timeout_vs_unlock::<PlainRw>(Write, &[TimedRead, Write, TimedWrite, Read]));
}

#[test]
fn an_interrupted_waiter_strands_nobody() {
    explore(sampled(), || rw::interrupt_vs_unlock::<PlainRw>(Write, &[TimedRead]));
    explore(sampled(), || rw::interrupt_vs_unlock::<PlainRw>(Read, &[TimedWrite, Read]));
    explore(sampled(), || {
        rw::interrupt_vs_unlock::<PlainRw>(Write, &[TimedRead, Write, TimedWrite, Read]);
    });
}

#[test]
fn who_gives_up_leaves_nothing_behind() {
    explore(sampled(), || rw::give_up_while_held::<PlainRw>(Read, 2));
    explore(sampled(), || rw::give_up_while_held::<PlainRw>(Write, 2));
}

#[test]
fn the_release_is_the_last_access() {
    explore(sampled(), || rw::last_unlocker_frees::<PlainRw>(1, 1));
    explore(sampled(), || rw::last_unlocker_frees::<PlainRw>(0, 2));
    explore(sampled(), || rw::last_unlocker_frees::<PlainRw>(2, 3));
}

#[test]
fn trying_tells_the_truth() {
    explore(sampled(), || rw::try_coherence::<PlainRw>(2, 0));
    explore(sampled(), || rw::try_coherence::<PlainRw>(1, 1));
    explore(sampled(), || rw::try_coherence::<PlainRw>(3, 2));
}

#[test]
fn an_upgradable_holder_excludes_whom_it_should() {
    explore(sampled(), || upgrade::upgradable_beside_readers::<PlainRw>(4));
}

#[test]
fn upgrades_hold() {
    for how in [How::Wait, How::TryFirst, How::Timed] {
        explore(sampled(), move || upgrade::upgrades::<PlainRw>(how, 1, 1, 0));
        explore(sampled(), move || upgrade::upgrades::<PlainRw>(how, 2, 2, 1));
        explore(sampled(), move || upgrade::upgrades::<PlainRw>(how, 2, 0, 0));
    }
}

#[test]
fn an_upgrade_waits_for_readers() {
    explore(sampled(), upgrade::upgrade_waits_for_readers::<PlainRw>);
}

#[test]
fn downgrades_hold() {
    explore(sampled(), || upgrade::downgrades::<PlainRw>(1, 1));
    explore(sampled(), || upgrade::downgrades::<PlainRw>(2, 0));
    explore(sampled(), || upgrade::downgrades::<PlainRw>(2, 1));
    explore(sampled(), || upgrade::downgrade_meets_readers::<PlainRw>(4));
    explore(sampled(), || upgrade::round_trips::<PlainRw>(How::Timed, 3, 2));
    explore(sampled(), || upgrade::round_trips::<PlainRw>(How::TryFirst, 2, 0));
}

#[test]
fn histories_have_an_order() {
    explore(sampled(), || linear::linearizable::<PlainRw>(&[Read, Write, TimedRead, TimedWrite], 2));
    explore(sampled(), || linear::linearizable::<PlainRw>(&[Read, TryRead, TryWrite, Write], 2));
}
