//! Writes in steps, and in two phases.

use crate::clients::steps::{End, Then, in_steps, polls_tell_the_truth, two_phases};
use crate::{Plain, Three, Two, exact, timed};
use ulocks_core::model::explore;
use ulocks_psrwlock::{BULK, Bulk, Distributed, Nested, PhaseFair, Stage, URGENT, Urgent};

type Slots = Plain<{ BULK | URGENT }, PhaseFair, Distributed<1>>;

#[test]
fn a_write_in_steps_is_alone() {
    explore(exact(2), || polls_tell_the_truth::<Two, Bulk>(Stage::Readers("Bulk")));
    explore(exact(2), || polls_tell_the_truth::<Three, Nested>(Stage::Readers("Nested")));
    explore(exact(2), || polls_tell_the_truth::<Slots, Bulk>(Stage::Readers("Bulk")));
    for end in [End::Waits, End::Finishes, End::Drops] {
        for polls in 1..3 {
            explore(exact(2), move || in_steps::<Two, Bulk>(polls, end, 1, 0));
            explore(exact(2), move || in_steps::<Two, Urgent>(polls, end, 1, 0));
        }
        explore(exact(1), move || in_steps::<Two, Bulk>(1, end, 1, 1));
        explore(exact(1), move || in_steps::<Slots, Bulk>(1, end, 1, 1));
    }
}

#[test]
fn a_write_in_two_phases_is_alone() {
    for then in [Then::Upgrades, Then::TriesToUpgrade, Then::UpgradesInTime, Then::Admits, Then::Releases] {
        explore(exact(3), move || two_phases::<Two, Urgent>(then, 0, 1, 0));
        explore(exact(1), move || two_phases::<Two, Urgent>(then, 0, 1, 1));
        explore(timed(2, 2), move || two_phases::<Two, Urgent>(then, 1, 0, 0));
        explore(exact(2), move || two_phases::<Slots, Urgent>(then, 0, 1, 0));
    }
}
