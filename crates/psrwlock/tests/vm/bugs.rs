//! What the models would miss if they found nothing: the seeded bugs that have no better place. Those of handlers, turns, classes,
//! slots and naps are found beside what they break.

use crate::clients::place::{Held, Place, behind};
use crate::{Broken, THREE, TWO, found};
use ulocks_core::Private;
use ulocks_core::signal::Soft;
use ulocks_psrwlock::{Central, PhaseFair, Sifted, Unchecked, seeded as bug};
use ulocks_testkit::model::rw::Role::{Read, TimedWrite, Write};
use ulocks_testkit::model::upgrade::How;
use ulocks_testkit::model::{rw, upgrade};

/// Nobody sleeps on a wake-up that never comes, whatever its name.
pub(crate) const STUCK: &str = "nobody can go on";

#[test]
fn each_missing_ordering_is_found() {
    found("RELAXED_ARRIVAL", "data race", || {
        rw::exclusion::<Broken<TWO, { bug::RELAXED_ARRIVAL }>>(&[Read, Write]);
    });
    found("RELAXED_DEPARTURE", "data race", || {
        rw::exclusion::<Broken<TWO, { bug::RELAXED_DEPARTURE }>>(&[Read, Write]);
    });
    found("RELAXED_DRAIN", "data race", || {
        rw::exclusion::<Broken<TWO, { bug::RELAXED_DRAIN }>>(&[Read, Write]);
    });
    found("RELAXED_RELEASE", "data race", || {
        rw::exclusion::<Broken<TWO, { bug::RELAXED_RELEASE }>>(&[Write, Write]);
    });
}

#[test]
fn a_lost_wake_up_is_found() {
    const THREE_OF_THEM: &[rw::Role] = &[Read, Write, Write];
    found("STALE_WAKE", STUCK, || rw::no_lost_wake::<Broken<TWO, { bug::STALE_WAKE }>>(THREE_OF_THEM, 1));
    found("READS_LATE", STUCK, || rw::no_lost_wake::<Broken<TWO, { bug::READS_LATE }>>(THREE_OF_THEM, 1));
    found("NO_EVENT", STUCK, || rw::no_lost_wake::<Broken<TWO, { bug::NO_EVENT }>>(THREE_OF_THEM, 1));
    found("COUNTS_EARLY", STUCK, || rw::no_lost_wake::<Broken<TWO, { bug::COUNTS_EARLY }>>(THREE_OF_THEM, 1));
}

#[test]
fn a_writer_that_is_not_told_of_the_line_is_found() {
    // A second writer would take the owner that sleeps for one that leaves, and nap for ever.
    const TURNS: &[rw::Role] = &[Read, Write];
    found("LOOKS_FIRST", STUCK, || rw::no_lost_wake::<Broken<TWO, { bug::LOOKS_FIRST }>>(TURNS, 2));
    found("LEAVES_QUIETLY", STUCK, || rw::no_lost_wake::<Broken<TWO, { bug::LEAVES_QUIETLY }>>(TURNS, 2));
}

#[test]
fn a_writer_beside_a_reader_is_found() {
    found("DRAINS_FIRST", "data race", || {
        rw::exclusion::<Broken<TWO, { bug::DRAINS_FIRST }>>(&[Read, Read, Write])
    });
    found("UPGRADES_AT_ONCE", "data race", || {
        upgrade::upgrades::<Broken<TWO, { bug::UPGRADES_AT_ONCE }>>(How::Wait, 1, 1, 0);
    });
    found("OPENS_FIRST", "data race", || {
        upgrade::downgrades::<Broken<TWO, { bug::OPENS_FIRST }>>(2, 0);
    });
}

#[test]
fn a_touch_after_the_release_is_found() {
    found("TOUCHES_AFTER", "the atomic", || {
        rw::last_unlocker_frees::<Broken<TWO, { bug::TOUCHES_AFTER }>>(1, 1);
    });
}

#[test]
fn who_gives_up_badly_is_found() {
    found("ABANDONS_QUIETLY", STUCK, || {
        rw::timeout_vs_unlock::<Broken<THREE, { bug::ABANDONS_QUIETLY }>>(
            rw::Role::Read,
            &[TimedWrite, Read, Write],
        );
    });
}

#[test]
fn a_lock_that_is_left_badly_is_found() {
    found("OPENS_ANOTHERS", "data race", || {
        rw::exclusion::<Broken<TWO, { bug::OPENS_ANOTHERS }, Private>>(&[Read, Write]);
    });
    found("KEEPS_THE_MARK", "a lock that nobody uses is shut", || {
        type Spins = Sifted<TWO, Private, PhaseFair, Central, Soft, Unchecked>;
        behind(Held::Written, [Place::<Spins, { bug::KEEPS_THE_MARK }>::writes_in_time]);
    });
}
