//! What the models would miss if they found nothing: each bug of `seeded`, but for those of slots and of handlers, which are
//! with their models.

use crate::clients::classes::{nesting, one_at_a_time, sifting};
use crate::clients::giving_up::{upgrade_gives_up, writer_gives_up};
use crate::clients::phases::phases;
use crate::clients::place::{Held, behind, together_with};
use crate::{At, ENDLESS, Raw, Spins, Two, Watched, at_last, exact, timed};
use ulocks_core::model::{Config, finds_bug_saying};
use ulocks_core::spin::Adaptive;
use ulocks_psrwlock::{Bulk, PhaseFair, Urgent, WriterBatch, seeded as bug};
use ulocks_testkit::model::rw;
use ulocks_testkit::model::upgrade::{self, How};

const RACE: &str = "Causality violation";

#[test]
fn each_missing_ordering_is_found() {
    fn found<const BUG: u8>() {
        finds_bug_saying(RACE, exact(2), || {
            together_with([At::<Two, BUG>::writes, At::<Two, BUG>::reads::<Bulk>])
        });
    }
    found::<{ bug::RELAXED_ARRIVAL }>();
    found::<{ bug::RELAXED_DEPARTURE }>();
    found::<{ bug::RELAXED_DRAIN }>();
    found::<{ bug::RELAXED_RELEASE }>();
}

#[test]
fn a_missing_wait_is_found() {
    finds_bug_saying(RACE, exact(2), || {
        type B = At<Two, { bug::DRAINS_FIRST }>;
        behind(Held::Bulk, [B::writes, B::reads::<Urgent>]);
    });
    finds_bug_saying(RACE, exact(2), || {
        upgrade::upgrades::<Raw<Two, { bug::UPGRADES_AT_ONCE }>>(How::Wait, 1, 1, 0);
    });
}

#[test]
fn who_is_let_in_between_is_found() {
    finds_bug_saying("somebody wrote between the sides of a downgrade", exact(2), || {
        type B = At<Two, { bug::OPENS_FIRST }>;
        together_with([B::downgrades, B::downgrades]);
    });
}

#[test]
fn a_lost_wake_up_is_found() {
    fn found<const BUG: u8>(config: Config, others: [crate::clients::place::Role<Two, BUG>; 2]) {
        finds_bug_saying("deadlock", config, move || behind(Held::Written, others));
    }
    found(exact(2), [At::<_, { bug::STALE_WAKE }>::reads::<Bulk>, At::reads::<Urgent>]);
    found(exact(2), [At::<_, { bug::READS_LATE }>::reads::<Bulk>, At::reads::<Urgent>]);
    found(exact(2), [At::<_, { bug::READS_LATE }>::writes, At::reads::<Urgent>]);
    found(exact(2), [At::<_, { bug::NO_EVENT }>::reads::<Bulk>, At::reads::<Urgent>]);
    found(exact(3), [At::<_, { bug::COUNTS_EARLY }>::reads::<Bulk>, At::reads::<Urgent>]);
    found(exact(3), [At::<_, { bug::COUNTS_EARLY }>::writes, At::reads::<Urgent>]);
    found(exact(2), [At::<_, { bug::FORGETS_OTHERS }>::writes, At::writes]);
    found(exact(2), [At::<_, { bug::LOOKS_FIRST }>::writes, At::reads::<Bulk>]);
    found(exact(2), [At::<_, { bug::LEAVES_QUIETLY }>::writes, At::reads::<Bulk>]);
}

#[test]
fn who_is_left_asleep_by_one_that_gives_up_is_found() {
    finds_bug_saying("deadlock", at_last(2, 3), writer_gives_up_one::<{ bug::ABANDONS_QUIETLY }>);
    finds_bug_saying("deadlock", at_last(2, 3), || {
        upgrade_gives_up::<Two, Urgent, Bulk, { bug::ABANDONS_QUIETLY }>(1)
    });
}

fn writer_gives_up_one<const BUG: u8>() {
    writer_gives_up::<Two, Urgent, Bulk, BUG>(1);
}

#[test]
fn what_is_no_sifting_is_found() {
    finds_bug_saying(ENDLESS, exact(2), || sifting::<Two, Urgent, { bug::SHUTS_ALL }, 1>(1, [(); 1]));
    finds_bug_saying(ENDLESS, exact(2), nesting::<Two, Bulk, Urgent, { bug::SHUTS_ALL }>);
    finds_bug_saying(ENDLESS, exact(2), one_at_a_time::<Two, Urgent, { bug::DRAINS_ALL }>);
}

#[test]
fn a_reader_in_line_that_is_passed_is_found() {
    type B<const BUG: u8> = At<Watched, BUG>;
    finds_bug_saying("passed by 2", exact(2), || {
        phases::<Watched, Bulk, { bug::PASSES_THE_LINE }, 1>(1, [B::writes_a_phase], 1);
    });
    finds_bug_saying("passed by 2", exact(2), || {
        phases::<Watched, Urgent, { bug::PASSES_THE_LINE }, 1>(1, [B::writes_a_phase], 1);
    });
    finds_bug_saying("passed by 2", exact(2), || {
        phases::<Watched, Bulk, { bug::CLEARS_THE_LINE }, 1>(1, [B::writes_a_phase], 1);
    });
    finds_bug_saying("passed by 2", exact(2), || {
        phases::<Watched, Bulk, { bug::TRIES_PAST_THE_LINE }, 1>(1, [B::tries_a_phase], 1);
    });
    finds_bug_saying("passed by 3", exact(2), || {
        type Twice = Watched<WriterBatch<2>>;
        type B = At<Twice, { bug::PASSES_THE_LINE }>;
        phases::<Twice, Bulk, { bug::PASSES_THE_LINE }, 1>(2, [B::writes_two_phases], 1);
    });
}

#[test]
fn a_lock_that_is_left_badly_is_found() {
    finds_bug_saying(RACE, exact(2), || {
        type B = At<Spins, { bug::OPENS_ANOTHERS }>;
        together_with([B::writes, B::reads::<Bulk>]);
    });
    finds_bug_saying("a lock that nobody uses is shut", timed(2, 3), || {
        behind(Held::Written, [At::<Spins, { bug::KEEPS_THE_MARK }>::writes_in_time]);
    });
    finds_bug_saying("passed by 2", exact(2), || {
        type W = Watched<PhaseFair, Adaptive>;
        type B = At<W, { bug::LEAVES_PAST_THE_LINE }>;
        phases::<W, Bulk, { bug::LEAVES_PAST_THE_LINE }, 1>(1, [B::writes_a_phase], 1);
    });
}

#[test]
fn a_touch_after_the_release_is_found() {
    // The reader's, and the writer's.
    for (readers, writers) in [(2, 1), (1, 1)] {
        finds_bug_saying("index out of bounds", exact(3), move || {
            rw::last_unlocker_frees::<Raw<Two, { bug::TOUCHES_AFTER }>>(readers, writers);
        });
    }
}
