//! The lock keeps its promises.

use crate::clients::classes::{nesting, one_at_a_time, sifting};
use crate::clients::giving_up::{the_other_writer_gets_in, upgrade_gives_up, writer_gives_up};
use crate::clients::phases::phases;
use crate::clients::place::{Held, behind, together_with};
use crate::{At, Batch, ENDLESS, Four, One, Raw, Spins, Three, Two, Watched};
use crate::{at_last, exact, timed, unordered};
use ulocks_core::Private;
use ulocks_core::model::{Config, explore, finds_bug_saying};
use ulocks_core::signal::Soft;
use ulocks_core::spin::Adaptive;
use ulocks_psrwlock::{
    BULK, Bulk, Central, Nested, PhaseFair, Sifted, URGENT, Unchecked, Urgent, WriterBatch,
};
use ulocks_testkit::model::rw::{self, Role};
use ulocks_testkit::model::upgrade::{self, How};

/// Two classes, with the default spinning, which in a model is one look.
type Spinning = Sifted<{ BULK | URGENT }, Private>;

#[test]
fn a_writer_is_alone() {
    explore(exact(4), || together_with([At::<One>::writes, At::<One>::reads::<Bulk>]));
    explore(exact(4), || together_with([At::<Two>::writes_twice, At::<Two>::reads::<Urgent>]));
    explore(exact(3), || {
        together_with([At::<Two>::writes, At::<Two>::reads::<Bulk>, At::<Two>::reads::<Urgent>])
    });
    explore(exact(3), || {
        together_with([At::<Three>::writes, At::<Three>::reads::<Bulk>, At::<Three>::reads::<Nested>])
    });
    explore(exact(3), || {
        together_with([At::<Three>::writes, At::<Three>::reads::<Urgent>, At::<Three>::reads::<Nested>])
    });
    explore(exact(3), || {
        together_with([At::<Four>::writes, At::<Four>::reads::<Bulk>, At::<Four>::reads::<Nested>])
    });
    explore(exact(2), || together_with([At::<Two>::writes, At::<Two>::writes, At::<Two>::reads::<Bulk>]));
    explore(exact(2), || {
        together_with([At::<Three>::writes, At::<Three>::writes, At::<Three>::reads::<Nested>])
    });
    explore(exact(2), || {
        together_with([At::<Spinning>::writes, At::<Spinning>::writes, At::<Spinning>::reads::<Bulk>])
    });
    explore(unordered(1), || together_with([At::<Two>::writes, At::<Two>::writes, At::<Two>::reads::<Bulk>]));
}

/// The waiters that a release must not forget.
#[test]
fn waiters_behind_a_writer_get_in() {
    explore(exact(3), || behind(Held::Written, [At::<Two>::reads::<Bulk>, At::<Two>::reads::<Urgent>]));
    explore(exact(2), || behind(Held::Written, [At::<Two>::writes, At::<Two>::reads::<Urgent>]));
}

#[test]
fn who_had_to_wait_gets_in() {
    for held in [Held::Written, Held::WrittenFairly, Held::Upgradable, Held::UpgradableFairly, Held::Bulk] {
        let is_fair = matches!(held, Held::WrittenFairly | Held::UpgradableFairly);
        let bound = if is_fair { 1 } else { 2 };
        explore(exact(bound), move || behind(held, [At::<Two>::writes, At::<Two>::reads::<Bulk>]));
        explore(exact(bound), move || behind(held, [At::<Two>::writes, At::<Two>::reads::<Urgent>]));
        explore(exact(bound), move || {
            behind(held, [At::<Three>::reads::<Urgent>, At::<Three>::reads::<Nested>])
        });
        explore(exact(bound), move || behind(held, [At::<Two>::writes, At::<Two>::writes]));
        explore(exact(bound), move || behind(held, [At::<Batch>::writes, At::<Batch>::reads::<Bulk>]));
        explore(exact(3), move || behind(held, [At::<Two>::writes]));
        explore(exact(3), move || behind(held, [At::<Two>::reads::<Bulk>]));
        explore(unordered(1), move || behind(held, [At::<Two>::writes, At::<Two>::reads::<Bulk>]));
        let twice = Config { spurious: 2, ..exact(1) };
        explore(twice, move || behind(held, [At::<Two>::writes, At::<Two>::reads::<Bulk>]));
    }
}

#[test]
fn the_family_s_clients_pass() {
    use Role::{Read, TimedRead, TimedWrite, Write};
    explore(exact(2), || rw::no_lost_wake::<Raw<Two>>(&[Read, Write], 2));
    explore(exact(2), || rw::readers_meet::<Raw<Two>>(2));
    explore(timed(1, 3), || rw::timeout_vs_unlock::<Raw<Two>>(Write, &[TimedRead, Write]));
    explore(timed(2, 3), || rw::timeout_vs_unlock::<Raw<Two>>(Read, &[TimedWrite, Read]));
    explore(at_last(2, 0), || rw::give_up_while_held::<Raw<Two>>(Read, 2));
    explore(at_last(2, 0), || rw::give_up_while_held::<Raw<Two>>(Write, 2));
}

#[test]
fn the_release_is_the_last_access() {
    explore(exact(4), || rw::last_unlocker_frees::<Raw<Two>>(1, 1));
    explore(exact(3), || rw::last_unlocker_frees::<Raw<Two>>(0, 2));
    explore(exact(2), || rw::last_unlocker_frees::<Raw<Two>>(1, 2));
    explore(exact(2), || rw::last_unlocker_frees::<Raw<Two>>(0, 3));
    explore(exact(2), || rw::last_unlocker_frees::<Raw<Two>>(2, 1));
}

#[test]
fn who_spins_is_left_the_lock() {
    type S = At<Spins>;
    explore(exact(2), || together_with([S::writes, S::reads::<Bulk>]));
    explore(exact(3), || behind(Held::Written, [S::writes]));
    explore(exact(2), || behind(Held::Written, [S::writes, S::reads::<Bulk>]));
    explore(exact(2), || behind(Held::Written, [S::writes, S::reads::<Urgent>]));
    explore(exact(1), || behind(Held::Written, [S::writes, S::writes]));
    explore(exact(1), || behind(Held::WrittenFairly, [S::writes, S::reads::<Bulk>]));
    explore(exact(2), || behind(Held::Written, [S::writes, S::tries_to_read::<Bulk>]));
    explore(exact(2), || behind(Held::Written, [S::writes, S::tries_to_write]));
    explore(exact(1), || behind(Held::Written, [S::writes, S::goes_up_and_down]));
    explore(exact(1), || behind(Held::Written, [S::writes, S::downgrades]));
    explore(timed(2, 3), || behind(Held::Written, [S::writes_in_time]));
    explore(timed(1, 3), || behind(Held::Written, [S::writes_in_time, S::reads::<Bulk>]));
    explore(timed(1, 3), || behind(Held::Written, [S::writes_in_time, S::reads_in_time::<Bulk>]));
    type One = Sifted<BULK, Private, PhaseFair, Central, Soft, Unchecked>;
    explore(exact(2), || behind(Held::Written, [At::<One>::writes, At::<One>::reads::<Bulk>]));
    type W = At<Watched<PhaseFair, Adaptive>>;
    explore(exact(2), || phases::<Watched<PhaseFair, Adaptive>, Bulk, 1>(1, [W::writes_two_phases], 1));
    explore(exact(2), || phases::<Watched<PhaseFair, Adaptive>, Urgent, 1>(1, [W::writes_two_phases], 1));
}

#[test]
fn who_nests_upward_gets_in() {
    explore(Config::unbounded(), nesting::<Two, Bulk, Urgent>);
    explore(exact(4), nesting::<Three, Bulk, Nested>);
    explore(exact(4), nesting::<Three, Urgent, Nested>);
    explore(exact(4), nesting::<Spinning, Bulk, Urgent>);
}

/// What the model says if nesting is forbidden: it would see a deadlock above.
#[test]
fn who_nests_otherwise_does_not() {
    finds_bug_saying(ENDLESS, exact(2), nesting::<Two, Bulk, Bulk>);
    finds_bug_saying(ENDLESS, exact(2), nesting::<Two, Urgent, Urgent>);
    finds_bug_saying(ENDLESS, exact(2), nesting::<Two, Urgent, Bulk>);
    // The same with the check.
    finds_bug_saying("deadlock: this thread asks", exact(2), nesting::<Spinning, Bulk, Bulk>);
    finds_bug_saying("deadlock: this thread asks", exact(2), nesting::<Spinning, Urgent, Bulk>);
}

#[test]
fn a_writer_lets_higher_classes_in() {
    explore(exact(3), || sifting::<Two, Urgent, 1>(1, [(); 1]));
    explore(exact(1), || sifting::<Two, Urgent, 1>(2, [(); 1]));
    explore(exact(2), || sifting::<Three, Nested, 2>(1, [(); 2]));
    explore(exact(3), one_at_a_time::<Two, Urgent>);
}

#[test]
fn a_reader_in_line_is_passed_by_one_phase() {
    type W = At<Watched>;
    explore(exact(2), || phases::<Watched, Bulk, 1>(1, [W::writes_two_phases], 1));
    explore(exact(2), || phases::<Watched, Urgent, 1>(1, [W::writes_two_phases], 1));
    explore(exact(2), || phases::<Watched, Bulk, 1>(1, [W::tries_a_phase], 1));
}

#[test]
fn a_reader_in_line_is_passed_by_a_batch() {
    type Twice = Watched<WriterBatch<2>>;
    type W = At<Twice>;
    explore(exact(2), || phases::<Twice, Bulk, 1>(2, [W::writes_two_phases], 1));
    explore(exact(2), || phases::<Twice, Urgent, 1>(1, [W::writes_two_phases], 1));
    // Two do.
    finds_bug_saying("passed by 2", exact(2), || phases::<Twice, Bulk, 1>(1, [W::writes_two_phases], 1));
}

#[test]
fn who_gives_up_strands_nobody() {
    explore(at_last(2, 3), || writer_gives_up::<Two, Bulk, Bulk>(1));
    explore(at_last(2, 3), || writer_gives_up::<Two, Urgent, Bulk>(1));
    explore(at_last(2, 3), || writer_gives_up::<Two, Urgent, Urgent>(1));
    explore(at_last(2, 3), || writer_gives_up::<Three, Nested, Urgent>(1));
    explore(at_last(2, 3), || upgrade_gives_up::<Two, Bulk, Bulk>(1));
    explore(at_last(2, 3), || upgrade_gives_up::<Two, Urgent, Bulk>(1));
    explore(timed(2, 3), the_other_writer_gets_in::<Two>);
    explore(timed(2, 3), || {
        together_with([At::<Two>::writes_in_time, At::<Two>::reads::<Bulk>, At::<Two>::writes])
    });
    explore(timed(2, 3), || {
        together_with([At::<Two>::writes_in_time, At::<Two>::reads_in_time::<Urgent>, At::<Two>::writes])
    });
    for held in [Held::Written, Held::WrittenFairly, Held::UpgradableFairly] {
        explore(timed(1, 2), move || behind(held, [At::<Two>::writes, At::<Two>::reads_in_time::<Bulk>]));
        explore(timed(1, 2), move || behind(held, [At::<Two>::writes, At::<Two>::writes_in_time]));
    }
}

#[test]
fn attempts_tell_the_truth() {
    explore(exact(3), || rw::try_coherence::<Raw<Two>>(1, 1));
    explore(exact(2), || rw::try_coherence::<Raw<Two>>(2, 1));
    explore(exact(2), || rw::try_coherence::<Raw<Two>>(2, 0));
    explore(exact(3), || {
        together_with([At::<Two>::tries_to_write, At::<Two>::tries_to_read::<Urgent>, At::<Two>::writes])
    });
    explore(exact(2), || behind(Held::Written, [At::<Two>::tries_to_write, At::<Two>::reads::<Bulk>]));
}

#[test]
fn upgrades_and_downgrades_hold() {
    for how in [How::Wait, How::TryFirst, How::Timed] {
        explore(timed(2, 2), move || upgrade::upgrades::<Raw<Two>>(how, 1, 1, 1));
        explore(timed(2, 2), move || upgrade::upgrades::<Raw<Two>>(how, 2, 0, 0));
    }
    explore(exact(3), || upgrade::upgradable_beside_readers::<Raw<Two>>(1));
    explore(at_last(2, 2), upgrade::upgrade_waits_for_readers::<Raw<Two>>);
    explore(exact(2), || upgrade::downgrade_meets_readers::<Raw<Two>>(2));
    explore(exact(2), || {
        together_with([At::<Two>::downgrades, At::<Two>::downgrades, At::<Two>::reads::<Urgent>])
    });
    explore(exact(2), || {
        together_with([At::<Two>::goes_up_and_down, At::<Two>::writes, At::<Two>::reads::<Bulk>])
    });
    explore(exact(2), || {
        together_with([At::<Two>::goes_up_and_down, At::<Two>::upgrades, At::<Two>::reads::<Urgent>])
    });
    explore(exact(2), || {
        together_with([At::<Two>::upgrades, At::<Two>::tries_to_upgrade, At::<Two>::reads::<Bulk>])
    });
    explore(timed(2, 3), || {
        together_with([At::<Two>::upgrades_in_time, At::<Two>::writes, At::<Two>::reads::<Urgent>])
    });
}

#[test]
fn no_writer_comes_between_a_write_and_its_downgrade() {
    explore(exact(2), || together_with([At::<Two>::downgrades, At::<Two>::downgrades]));
}

#[test]
fn fair_releases_hand_over() {
    // A thread that is woken for the write side, and sees nothing of it yet, gets it all the same.
    explore(unordered(2), || behind(Held::WrittenFairly, [At::<Two>::writes, At::<Two>::writes]));
    explore(exact(2), || {
        together_with([At::<Two>::writes_fairly, At::<Two>::writes_fairly, At::<Two>::reads::<Bulk>])
    });
    explore(exact(2), || {
        together_with([At::<Two>::reads_upgradably_and_fairly, At::<Two>::writes, At::<Two>::writes_fairly])
    });
    explore(timed(2, 3), || behind(Held::WrittenFairly, [At::<Two>::writes_in_time, At::<Two>::upgrades]));
    explore(timed(2, 3), || {
        behind(Held::UpgradableFairly, [At::<Two>::writes_in_time, At::<Two>::writes_in_time])
    });
}
