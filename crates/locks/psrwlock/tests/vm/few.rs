//! Two or three threads on a plain lock, each model with many executions: what takes a certain
//! order of a few steps is met here rather than in a crowd.

use crate::place::Place;
use crate::{Lock, Sleeps, THREE, TWO};
use core::time::Duration;
use ulocks_core::Private;
use ulocks_core::model::{Config, explore};
use ulocks_core::raw::RawRwLock;
use ulocks_core::signal::Soft;
use ulocks_core::time::Deadline;
use ulocks_psrwlock::{Bulk, Central, Eager, Fenced, PhaseFair, Sifted, Unchecked};
use ulocks_testkit::model::rw::Role::{Read, TimedWrite, Write};
use ulocks_testkit::model::upgrade::How;
use ulocks_testkit::model::{rw, upgrade};
use ulocks_testkit::thread::with;

type Two = Lock<TWO>;
type Slots = Lock<TWO, Sleeps, PhaseFair, Eager>;
type Fences = Lock<TWO, Sleeps, PhaseFair, Fenced>;

fn many() -> Config {
    Config::sampled(10_000)
}

#[test]
fn one_write_and_one_read_are_explored_to_the_end() {
    let all = Config::exhaustive;
    explore(all(), || rw::exclusion::<Two>(&[Read, Write]));
    explore(all(), || rw::no_lost_wake::<Two>(&[Read, Write], 1));
    explore(all(), || rw::last_unlocker_frees::<Two>(1, 1));
    explore(all(), || upgrade::upgrades::<Two>(How::Wait, 1, 1, 0));
    explore(all(), || upgrade::downgrades::<Two>(1, 1));
    explore(all(), || rw::exclusion::<Two>(&[Write, Write]));
    let within = || Config { preemptions: Some(3), ..all() };
    explore(within(), || rw::exclusion::<Slots>(&[Read, Write]));
    explore(within(), || rw::timeout_vs_unlock::<Two>(Read, &[TimedWrite]));
}

#[test]
fn a_writer_is_alone_where_the_kernel_refuses_membarrier() {
    let within = || Config { preemptions: Some(3), ..Config::exhaustive() };
    explore(within(), || rw::exclusion::<Fences>(&[Read, Write]));
    explore(many(), || rw::exclusion::<Fences>(&[Read, Read, Write]));
}

#[test]
fn a_writer_is_alone_among_few() {
    explore(many(), || rw::exclusion::<Two>(&[Read, Write]));
    explore(many(), || rw::exclusion::<Two>(&[Write, Write]));
    explore(many(), || rw::exclusion::<Two>(&[Read, Read, Write]));
    explore(many(), || rw::exclusion::<Lock<TWO, Private>>(&[Read, Write]));
}

#[test]
fn nobody_sleeps_for_ever_among_few() {
    explore(many(), || rw::no_lost_wake::<Two>(&[Read, Write, Write], 1));
    explore(many(), || rw::no_lost_wake::<Two>(&[Read, Read, Write], 1));
}

/// With a second writer this would tell less: it would take the owner that sleeps for one that
/// leaves, and nap.
#[test]
fn the_only_writer_is_told_of_the_line() {
    explore(many(), || rw::no_lost_wake::<Two>(&[Read, Write], 2));
}

#[test]
fn upgrades_and_downgrades_hold_among_few() {
    explore(many(), || upgrade::upgrades::<Two>(How::Wait, 1, 1, 0));
    explore(many(), || upgrade::downgrades::<Two>(2, 0));
}

/// Beside a flag that is stale, and without patience.
#[test]
fn a_deadline_that_has_passed_tries_once() {
    explore(Config::sampled(500), || {
        let place = Place::<Sifted<THREE, Sleeps, PhaseFair, Central, Soft, Unchecked>>::new();
        place.lock.write();
        let reader = with(&place, Place::reads::<Bulk>);
        place.unlock_write();
        reader.join().expect("the reader panicked");
        let passed = Deadline::after(Duration::ZERO);
        place.lock.write_until(passed).expect("a free lock is not had");
        place.unlock_write();
    });
}

#[test]
fn the_release_is_the_last_access_of_two() {
    explore(many(), || rw::last_unlocker_frees::<Two>(1, 1));
}

#[test]
fn a_writer_that_gives_up_strands_neither_readers_nor_writers() {
    explore(many(), || rw::timeout_vs_unlock::<Lock<THREE>>(Read, &[TimedWrite, Read, Write]));
}
