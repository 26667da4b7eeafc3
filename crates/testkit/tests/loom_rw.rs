//! Each model client for reader-writer locks passes on the sound lock and fails on the bug it is there for.
#![cfg(all(ulocks_loom, feature = "loom"))]

use ulocks_core::futex::Private;
use ulocks_core::model::{Config, explore, finds_bug_saying};
use ulocks_testkit::broken::rw::{self as broken, CountedRw, PlainRw};
use ulocks_testkit::model::rw::Role::{Read, TimedRead, TimedWrite, Write};
use ulocks_testkit::model::upgrade::How;
use ulocks_testkit::model::{rw, upgrade};

type Broken<const BUG: u8> = CountedRw<Private, BUG>;

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
fn exclusion_finds_a_reader_that_passes_a_writer() {
    finds_bug_saying("Causality violation", exact(), || {
        rw::exclusion::<Broken<{ broken::READ_LOAD_THEN_ADD }>>(&[Read, Write]);
    });
}

#[test]
fn exclusion_finds_a_writer_that_passes_a_reader() {
    finds_bug_saying("Causality violation", exact(), || {
        rw::exclusion::<Broken<{ broken::WRITE_IGNORES_READERS }>>(&[Read, Write]);
    });
}

#[test]
fn exclusion_finds_releases_that_publish_nothing() {
    finds_bug_saying("Causality violation", exact(), || {
        rw::exclusion::<Broken<{ broken::RELAXED_UNLOCK_READ }>>(&[Read, Write]);
    });
    finds_bug_saying("Causality violation", exact(), || {
        rw::exclusion::<Broken<{ broken::RELAXED_UNLOCK_WRITE }>>(&[Read, Write]);
    });
}

#[test]
fn nobody_sleeps_for_ever() {
    explore(exact(), || rw::no_lost_wake::<PlainRw>(&[Read, Write], 2));
    explore(exact(), || rw::no_lost_wake::<PlainRw>(&[Read, Write, Write], 1));
}

#[test]
fn no_lost_wake_finds_a_last_reader_that_wakes_nobody() {
    finds_bug_saying("deadlock", exact(), || {
        rw::no_lost_wake::<Broken<{ broken::NO_WAKE_READ }>>(&[Read, Write], 1);
    });
}

#[test]
fn no_lost_wake_finds_a_release_that_forgets_sleepers() {
    // Two threads cannot show it: one must be woken and another forgotten.
    explore(exact(), || rw::no_lost_wake::<Broken<{ broken::WAKES_ONE }>>(&[Read, Write], 1));
    finds_bug_saying("deadlock", exact(), || {
        rw::no_lost_wake::<Broken<{ broken::WAKES_ONE }>>(&[Read, Write, Read], 1);
    });
}

#[test]
fn readers_share() {
    explore(exact(), || rw::readers_meet::<PlainRw>(1));
    explore(Config::bounded(1), || rw::readers_meet::<PlainRw>(2));
}

#[test]
fn readers_meet_finds_a_reader_that_is_let_in_alone() {
    finds_bug_saying("deadlock", exact(), || rw::readers_meet::<Broken<{ broken::LATE_READER_IS_ALONE }>>(1));
}

#[test]
fn a_timeout_strands_nobody() {
    explore(with_timeouts(), || rw::timeout_vs_unlock::<PlainRw>(Write, &[TimedRead]));
    explore(with_timeouts(), || rw::timeout_vs_unlock::<PlainRw>(Read, &[TimedWrite]));
    explore(with_timeouts(), || rw::timeout_vs_unlock::<PlainRw>(Read, &[TimedWrite, Read]));
    explore(with_timeouts(), || rw::timeout_vs_unlock::<PlainRw>(Write, &[TimedRead, Write]));
}

#[test]
fn timeout_vs_unlock_finds_a_timeout_that_loses_a_wake_up() {
    finds_bug_saying("deadlock", with_timeouts(), || {
        rw::timeout_vs_unlock::<Broken<{ broken::TIMEOUT_CLEARS_PARKED }>>(Write, &[TimedRead, Write]);
    });
    finds_bug_saying("deadlock", with_timeouts(), || {
        rw::timeout_vs_unlock::<Broken<{ broken::TIMEOUT_CLEARS_PARKED }>>(Read, &[TimedWrite, Write]);
    });
}

#[test]
fn who_gives_up_leaves_nothing_behind() {
    explore(expiring(), || rw::give_up_while_held::<PlainRw>(Read, 2));
    explore(expiring(), || rw::give_up_while_held::<PlainRw>(Write, 2));
}

#[test]
fn give_up_while_held_finds_a_writer_that_keeps_readers_out_and_one_that_gets_in() {
    finds_bug_saying("writers that gave up keep readers out", expiring(), || {
        rw::give_up_while_held::<Broken<{ broken::TIMEOUT_LEAVES_TRACE }>>(Read, 1);
    });
    finds_bug_saying("a writer is not alone", expiring(), || {
        rw::give_up_while_held::<Broken<{ broken::WRITE_IGNORES_READERS }>>(Read, 1);
    });
}

#[test]
fn the_release_is_the_last_access() {
    explore(exact(), || rw::last_unlocker_frees::<PlainRw>(1, 1));
    explore(exact(), || rw::last_unlocker_frees::<PlainRw>(0, 2));
    explore(exact(), || rw::last_unlocker_frees::<PlainRw>(2, 1));
}

#[test]
fn last_unlocker_frees_finds_a_touch_after_the_release_of_either() {
    finds_bug_saying("index out of bounds", exact(), || {
        rw::last_unlocker_frees::<Broken<{ broken::TOUCH_AFTER_UNLOCK_READ }>>(1, 1);
    });
    finds_bug_saying("index out of bounds", exact(), || {
        rw::last_unlocker_frees::<Broken<{ broken::TOUCH_AFTER_UNLOCK_WRITE }>>(1, 1);
    });
}

#[test]
fn trying_tells_the_truth() {
    explore(exact(), || rw::try_coherence::<PlainRw>(2, 0));
    explore(exact(), || rw::try_coherence::<PlainRw>(1, 1));
    explore(exact(), || rw::try_coherence::<PlainRw>(2, 1));
}

#[test]
fn try_coherence_finds_a_writer_beside_a_reader() {
    finds_bug_saying("try_write succeeded beside a reader", exact(), || {
        rw::try_coherence::<Broken<{ broken::TRY_WRITE_IGNORES_READERS }>>(1, 0);
    });
}

#[test]
fn an_upgradable_holder_excludes_whom_it_should() {
    explore(exact(), || upgrade::upgradable_beside_readers::<PlainRw>(2));
    finds_bug_saying("keeps readers out", exact(), || {
        upgrade::upgradable_beside_readers::<Broken<{ broken::UPGRADABLE_EXCLUDES_READERS }>>(1);
    });
    finds_bug_saying("two upgradable", exact(), || {
        upgrade::upgradable_beside_readers::<Broken<{ broken::TWO_UPGRADABLES }>>(1);
    });
    finds_bug_saying("try_write succeeded", exact(), || {
        upgrade::upgradable_beside_readers::<Broken<{ broken::UPGRADABLE_ADMITS_WRITERS }>>(1);
    });
}

#[test]
fn upgrades_hold() {
    for how in [How::Wait, How::TryFirst, How::Timed] {
        explore(with_timeouts(), move || upgrade::upgrades::<PlainRw>(how, 1, 1, 0));
        explore(with_timeouts(), move || upgrade::upgrades::<PlainRw>(how, 1, 1, 1));
        explore(with_timeouts(), move || upgrade::upgrades::<PlainRw>(how, 2, 0, 0));
    }
    explore(expiring(), upgrade::upgrade_waits_for_readers::<PlainRw>);
}

#[test]
fn upgrades_finds_those_that_see_no_readers_out() {
    finds_bug_saying("Causality violation", exact(), || {
        upgrade::upgrades::<Broken<{ broken::UPGRADE_IGNORES_READERS }>>(How::Wait, 1, 1, 0);
    });
    finds_bug_saying("Causality violation", exact(), || {
        upgrade::upgrades::<Broken<{ broken::RELAXED_UPGRADE }>>(How::Wait, 1, 1, 0);
    });
}

#[test]
fn upgrades_finds_those_that_let_go() {
    finds_bug_saying("somebody wrote", exact(), || {
        upgrade::upgrades::<Broken<{ broken::UPGRADE_LETS_GO }>>(How::Wait, 1, 0, 1);
    });
    finds_bug_saying("lost the upgradable access", expiring(), || {
        upgrade::upgrade_waits_for_readers::<Broken<{ broken::FAILED_UPGRADE_LETS_GO }>>();
    });
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

#[test]
fn downgrades_finds_a_writer_in_between() {
    finds_bug_saying("somebody wrote", exact(), || {
        upgrade::downgrades::<Broken<{ broken::DOWNGRADE_LETS_GO }>>(2, 0);
    });
}

#[test]
fn downgrade_meets_readers_finds_what_is_kept_from_them() {
    finds_bug_saying("deadlock", exact(), || {
        upgrade::downgrade_meets_readers::<Broken<{ broken::NO_WAKE_DOWNGRADE }>>(1);
    });
    finds_bug_saying("Causality violation", exact(), || {
        upgrade::downgrade_meets_readers::<Broken<{ broken::RELAXED_DOWNGRADE }>>(1);
    });
}

#[test]
fn round_trips_finds_an_upgradable_that_lets_writers_in() {
    finds_bug_saying("Causality violation", exact(), || {
        upgrade::round_trips::<Broken<{ broken::UPGRADABLE_ADMITS_WRITERS }>>(How::Wait, 2, 0);
    });
}
