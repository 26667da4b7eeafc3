//! The clients pass on the plain locks in loom's world too. What they find there is a matter for
//! the virtual machine, which is given the planted bugs.
#![cfg(world = "loom")]

use ulocks_core::model::{Config, explore};
use ulocks_testkit::model::rw;
use ulocks_testkit::model::rw::Role::{Read, TimedRead, Write};
use ulocks_testkit::plain::Plain;
use ulocks_testkit::plain::rw::PlainRw;

ulocks_testkit::loom_models! { Plain }

#[test]
fn readers_and_writers_exclude() {
    explore(Config::default(), || rw::exclusion::<PlainRw>(&[Read, Write]));
    explore(Config::default(), || rw::exclusion::<PlainRw>(&[Write, Write]));
}

#[test]
fn no_reader_or_writer_sleeps_for_ever() {
    explore(Config::default(), || rw::no_lost_wake::<PlainRw>(&[Read, Write], 1));
    explore(Config::bounded(1), || rw::no_lost_wake::<PlainRw>(&[Read, Write, Write], 1));
}

#[test]
fn a_timeout_of_a_reader_strands_nobody() {
    let config = Config { timeouts: 2, ..Config::default() };
    explore(config, || rw::timeout_vs_unlock::<PlainRw>(Write, &[TimedRead]));
}

#[test]
fn the_release_of_readers_and_writers_is_the_last_access() {
    explore(Config::default(), || rw::last_unlocker_frees::<PlainRw>(1, 1));
}
