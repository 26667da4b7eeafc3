//! Each model client for reader-writer locks passes on the plain lock. The mutants of the lock show
//! that each can fail.
#![cfg(world = "loom")]

use ulocks_core::model::{Config, explore};
use ulocks_testkit::model::rw::Role::{Read, TimedRead, TimedWrite, Write};
use ulocks_testkit::model::upgrade::How;
use ulocks_testkit::model::{rw, upgrade};
use ulocks_testkit::plain::rw::PlainRw;

fn exact() -> Config {
    Config::default()
}

fn with_timeouts() -> Config {
    Config { timeouts: 2, ..Config::default() }
}

/// All deadlines pass.
fn expiring() -> Config {
    Config { rest_expire: true, ..Config::default() }
}

#[test]
fn exclusion_holds() {
    explore(exact(), || rw::exclusion::<PlainRw>(&[Read, Write]));
    explore(exact(), || rw::exclusion::<PlainRw>(&[Write, Write]));
    explore(exact(), || rw::exclusion::<PlainRw>(&[Read, Read, Write]));
}

#[test]
fn nobody_sleeps_for_ever() {
    explore(exact(), || rw::no_lost_wake::<PlainRw>(&[Read, Write], 2));
    explore(exact(), || rw::no_lost_wake::<PlainRw>(&[Read, Write, Write], 1));
}

#[test]
fn readers_share() {
    explore(exact(), || rw::readers_meet::<PlainRw>(1));
    explore(Config::bounded(1), || rw::readers_meet::<PlainRw>(2));
}

#[test]
fn a_timeout_strands_nobody() {
    explore(with_timeouts(), || rw::timeout_vs_unlock::<PlainRw>(Write, &[TimedRead]));
    explore(with_timeouts(), || rw::timeout_vs_unlock::<PlainRw>(Read, &[TimedWrite]));
    explore(with_timeouts(), || rw::timeout_vs_unlock::<PlainRw>(Read, &[TimedWrite, Read]));
    explore(with_timeouts(), || rw::timeout_vs_unlock::<PlainRw>(Write, &[TimedRead, Write]));
}

#[test]
fn who_gives_up_leaves_nothing_behind() {
    explore(expiring(), || rw::give_up_while_held::<PlainRw>(Read, 2));
    explore(expiring(), || rw::give_up_while_held::<PlainRw>(Write, 2));
}

#[test]
fn the_release_is_the_last_access() {
    explore(exact(), || rw::last_unlocker_frees::<PlainRw>(1, 1));
    explore(exact(), || rw::last_unlocker_frees::<PlainRw>(0, 2));
    explore(exact(), || rw::last_unlocker_frees::<PlainRw>(2, 1));
}

#[test]
fn trying_tells_the_truth() {
    explore(exact(), || rw::try_coherence::<PlainRw>(2, 0));
    explore(exact(), || rw::try_coherence::<PlainRw>(1, 1));
    explore(exact(), || rw::try_coherence::<PlainRw>(2, 1));
}

#[test]
fn an_upgradable_holder_excludes_whom_it_should() {
    explore(exact(), || upgrade::upgradable_beside_readers::<PlainRw>(2));
}

#[test]
fn upgrades_hold() {
    for how in [How::Wait, How::TryFirst, How::Timed] {
        explore(with_timeouts(), move || upgrade::upgrades::<PlainRw>(how, 1, 1, 0));
        explore(with_timeouts(), move || upgrade::upgrades::<PlainRw>(how, 1, 1, 1));
        explore(with_timeouts(), move || upgrade::upgrades::<PlainRw>(how, 2, 0, 0));
    }
}

#[test]
fn an_upgrade_waits_for_readers() {
    explore(expiring(), upgrade::upgrade_waits_for_readers::<PlainRw>);
}

#[test]
fn downgrades_hold() {
    explore(exact(), || upgrade::downgrades::<PlainRw>(1, 1));
    explore(exact(), || upgrade::downgrades::<PlainRw>(2, 0));
    explore(exact(), || upgrade::downgrades::<PlainRw>(2, 1));
    explore(exact(), || upgrade::downgrade_meets_readers::<PlainRw>(2));
    explore(exact(), || upgrade::round_trips::<PlainRw>(How::Wait, 1, 1));
    explore(exact(), || upgrade::round_trips::<PlainRw>(How::TryFirst, 2, 0));
}
