//! Each model client for reader-writer locks passes on the sound lock and fails on the bug it is there for.
#![cfg(all(ulocks_vm, feature = "vm"))]

use ulocks_core::futex::Private;
use ulocks_core::model::{Config, explore, finds_bug_saying};
use ulocks_testkit::broken::rw::{self as broken, CountedRw, PlainRw};
use ulocks_testkit::model::rw::Role::{Read, TimedRead, TimedWrite, TryRead, TryWrite, Write};
use ulocks_testkit::model::upgrade::How;
use ulocks_testkit::model::{linear, rw, upgrade};

type Broken<const BUG: u8> = CountedRw<Private, BUG>;

fn sampled() -> Config {
    Config::sampled(2_000)
}

/// What a seeded bug may take.
fn hunt() -> Config {
    Config::sampled(20_000)
}

#[test]
fn exclusion_holds() {
    explore(sampled(), || rw::exclusion::<PlainRw>(&[Read, Write]));
    explore(sampled(), || rw::exclusion::<PlainRw>(&[Write, Write]));
    explore(sampled(), || rw::exclusion::<PlainRw>(&[Read, Read, Read, Write, Write]));
}

#[test]
fn exclusion_finds_a_reader_that_passes_a_writer() {
    finds_bug_saying("data race", hunt(), || {
        rw::exclusion::<Broken<{ broken::READ_LOAD_THEN_ADD }>>(&[Read, Write]);
    });
}

#[test]
fn exclusion_finds_a_writer_that_passes_a_reader() {
    finds_bug_saying("data race", hunt(), || {
        rw::exclusion::<Broken<{ broken::WRITE_IGNORES_READERS }>>(&[Read, Write]);
    });
}

#[test]
fn exclusion_finds_releases_that_publish_nothing() {
    finds_bug_saying("data race", hunt(), || {
        rw::exclusion::<Broken<{ broken::RELAXED_UNLOCK_READ }>>(&[Read, Write]);
    });
    finds_bug_saying("data race", hunt(), || {
        rw::exclusion::<Broken<{ broken::RELAXED_UNLOCK_WRITE }>>(&[Read, Write]);
    });
}

#[test]
fn nobody_sleeps_for_ever() {
    explore(sampled(), || rw::no_lost_wake::<PlainRw>(&[Read, Write], 2));
    explore(sampled(), || rw::no_lost_wake::<PlainRw>(&[Read, Write, Read, Write, Read], 2));
}

#[test]
fn no_lost_wake_finds_a_last_reader_that_wakes_nobody() {
    finds_bug_saying("lost wake-up", hunt(), || {
        rw::no_lost_wake::<Broken<{ broken::NO_WAKE_READ }>>(&[Read, Write], 1);
    });
}

#[test]
fn no_lost_wake_finds_a_release_that_forgets_sleepers() {
    // Two threads cannot show it: one must be woken and another forgotten.
    explore(sampled(), || rw::no_lost_wake::<Broken<{ broken::WAKES_ONE }>>(&[Read, Write], 1));
    finds_bug_saying("lost wake-up", hunt(), || {
        rw::no_lost_wake::<Broken<{ broken::WAKES_ONE }>>(&[Read, Write, Read], 1);
    });
}

#[test]
fn readers_share() {
    explore(sampled(), || rw::readers_meet::<PlainRw>(1));
    explore(sampled(), || rw::readers_meet::<PlainRw>(4));
}

#[test]
fn readers_meet_finds_a_reader_that_is_let_in_alone() {
    finds_bug_saying("nobody can go on", hunt(), || {
        rw::readers_meet::<Broken<{ broken::LATE_READER_IS_ALONE }>>(1)
    });
}

#[test]
fn a_timeout_strands_nobody() {
    explore(sampled(), || rw::timeout_vs_unlock::<PlainRw>(Write, &[TimedRead]));
    explore(sampled(), || rw::timeout_vs_unlock::<PlainRw>(Read, &[TimedWrite]));
    explore(sampled(), || rw::timeout_vs_unlock::<PlainRw>(Read, &[TimedWrite, Read]));
    explore(sampled(), || rw::timeout_vs_unlock::<PlainRw>(Write, &[TimedRead, Write, TimedWrite, Read]));
}

#[test]
fn timeout_vs_unlock_finds_a_timeout_that_loses_a_wake_up() {
    finds_bug_saying("lost wake-up", hunt(), || {
        rw::timeout_vs_unlock::<Broken<{ broken::TIMEOUT_CLEARS_PARKED }>>(Write, &[TimedRead, Write]);
    });
    finds_bug_saying("lost wake-up", hunt(), || {
        rw::timeout_vs_unlock::<Broken<{ broken::TIMEOUT_CLEARS_PARKED }>>(Read, &[TimedWrite, Write]);
    });
}

#[test]
fn who_gives_up_leaves_nothing_behind() {
    explore(sampled(), || rw::give_up_while_held::<PlainRw>(Read, 2));
    explore(sampled(), || rw::give_up_while_held::<PlainRw>(Write, 2));
}

#[test]
fn give_up_while_held_finds_a_writer_that_keeps_readers_out_and_one_that_gets_in() {
    finds_bug_saying("writers that gave up keep readers out", hunt(), || {
        rw::give_up_while_held::<Broken<{ broken::TIMEOUT_LEAVES_TRACE }>>(Read, 1);
    });
    finds_bug_saying("a writer is not alone", hunt(), || {
        rw::give_up_while_held::<Broken<{ broken::WRITE_IGNORES_READERS }>>(Read, 1);
    });
}

#[test]
fn the_release_is_the_last_access() {
    explore(sampled(), || rw::last_unlocker_frees::<PlainRw>(1, 1));
    explore(sampled(), || rw::last_unlocker_frees::<PlainRw>(0, 2));
    explore(sampled(), || rw::last_unlocker_frees::<PlainRw>(2, 3));
}

#[test]
fn last_unlocker_frees_finds_a_touch_after_the_release_of_either() {
    finds_bug_saying("the atomic", hunt(), || {
        rw::last_unlocker_frees::<Broken<{ broken::TOUCH_AFTER_UNLOCK_READ }>>(1, 1);
    });
    finds_bug_saying("the atomic", hunt(), || {
        rw::last_unlocker_frees::<Broken<{ broken::TOUCH_AFTER_UNLOCK_WRITE }>>(1, 1);
    });
}

#[test]
fn trying_tells_the_truth() {
    explore(sampled(), || rw::try_coherence::<PlainRw>(2, 0));
    explore(sampled(), || rw::try_coherence::<PlainRw>(1, 1));
    explore(sampled(), || rw::try_coherence::<PlainRw>(3, 2));
}

#[test]
fn try_coherence_finds_a_writer_beside_a_reader() {
    finds_bug_saying("try_write succeeded beside a reader", hunt(), || {
        rw::try_coherence::<Broken<{ broken::TRY_WRITE_IGNORES_READERS }>>(1, 0);
    });
}

#[test]
fn an_upgradable_holder_excludes_whom_it_should() {
    explore(sampled(), || upgrade::upgradable_beside_readers::<PlainRw>(4));
    finds_bug_saying("keeps readers out", hunt(), || {
        upgrade::upgradable_beside_readers::<Broken<{ broken::UPGRADABLE_EXCLUDES_READERS }>>(1);
    });
    finds_bug_saying("two upgradable", hunt(), || {
        upgrade::upgradable_beside_readers::<Broken<{ broken::TWO_UPGRADABLES }>>(1);
    });
    finds_bug_saying("try_write succeeded", hunt(), || {
        upgrade::upgradable_beside_readers::<Broken<{ broken::UPGRADABLE_ADMITS_WRITERS }>>(1);
    });
}

#[test]
fn upgrades_hold() {
    for how in [How::Wait, How::TryFirst, How::Timed] {
        explore(sampled(), move || upgrade::upgrades::<PlainRw>(how, 1, 1, 0));
        explore(sampled(), move || upgrade::upgrades::<PlainRw>(how, 2, 2, 1));
        explore(sampled(), move || upgrade::upgrades::<PlainRw>(how, 2, 0, 0));
    }
    explore(sampled(), upgrade::upgrade_waits_for_readers::<PlainRw>);
}

#[test]
fn upgrades_finds_those_that_see_no_readers_out() {
    finds_bug_saying("data race", hunt(), || {
        upgrade::upgrades::<Broken<{ broken::UPGRADE_IGNORES_READERS }>>(How::Wait, 1, 1, 0);
    });
    finds_bug_saying("data race", hunt(), || {
        upgrade::upgrades::<Broken<{ broken::RELAXED_UPGRADE }>>(How::Wait, 1, 1, 0);
    });
}

#[test]
fn upgrades_finds_those_that_let_go() {
    finds_bug_saying("somebody wrote", hunt(), || {
        upgrade::upgrades::<Broken<{ broken::UPGRADE_LETS_GO }>>(How::Wait, 1, 0, 1);
    });
    finds_bug_saying("lost the upgradable access", hunt(), || {
        upgrade::upgrade_waits_for_readers::<Broken<{ broken::FAILED_UPGRADE_LETS_GO }>>();
    });
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
fn downgrades_finds_a_writer_in_between() {
    finds_bug_saying("somebody wrote", hunt(), || {
        upgrade::downgrades::<Broken<{ broken::DOWNGRADE_LETS_GO }>>(2, 0);
    });
}

#[test]
fn downgrade_meets_readers_finds_what_is_kept_from_them() {
    finds_bug_saying("lost wake-up", hunt(), || {
        upgrade::downgrade_meets_readers::<Broken<{ broken::NO_WAKE_DOWNGRADE }>>(1);
    });
    finds_bug_saying("data race", hunt(), || {
        upgrade::downgrade_meets_readers::<Broken<{ broken::RELAXED_DOWNGRADE }>>(1);
    });
}

#[test]
fn round_trips_finds_an_upgradable_that_lets_writers_in() {
    finds_bug_saying("data race", hunt(), || {
        upgrade::round_trips::<Broken<{ broken::UPGRADABLE_ADMITS_WRITERS }>>(How::Wait, 2, 0);
    });
}

#[test]
fn histories_have_an_order() {
    explore(sampled(), || linear::linearizable::<PlainRw>(&[Read, Write, TimedRead, TimedWrite], 2));
    explore(sampled(), || linear::linearizable::<PlainRw>(&[Read, TryRead, TryWrite, Write], 2));
    finds_bug_saying("no order", hunt(), || {
        linear::linearizable::<Broken<{ broken::WRITE_IGNORES_READERS }>>(&[Read, Write], 1);
    });
    finds_bug_saying("no order", hunt(), || {
        linear::linearizable::<Broken<{ broken::READ_LOAD_THEN_ADD }>>(&[Read, Write, Write], 2);
    });
}
