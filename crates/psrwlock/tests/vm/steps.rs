//! Writes in steps and in two phases, beside more threads than loom has room for.

use crate::clients::steps::{End, Then, in_steps, polls_tell_the_truth, two_phases};
use crate::{FOUR, Sleeps, SleepsShared, THREE, TWO, sampled};
use ulocks_core::Private;
use ulocks_core::model::explore;
use ulocks_core::signal::Soft;
use ulocks_psrwlock::{
    Bulk, Central, Discipline, Distributed, Nested, PhaseFair, Sifted, Stage, Unchecked, Urgent, WriterBatch,
};

type All<const SET: u8, P = Sleeps, F = PhaseFair, R = Central> = Sifted<SET, P, F, R, Soft, Unchecked>;

/// Runs `check` on the disciplines there are, each with a chance of its own.
macro_rules! on_each {
    ($check:ident) => {
        $check::<All<TWO>>(1);
        $check::<All<THREE, Private>>(2);
        $check::<All<FOUR>>(3);
        $check::<All<FOUR, Sleeps, WriterBatch<3>>>(4);
        $check::<All<TWO, Sleeps, PhaseFair, Distributed<2>>>(5);
        $check::<All<THREE, SleepsShared, PhaseFair, Distributed<2>>>(6);
    };
}

#[test]
fn a_write_in_steps_is_alone() {
    fn check<D: Discipline>(seed: u64) {
        explore(sampled(4, seed), || polls_tell_the_truth::<D, Bulk>(Stage::Readers("Bulk")));
        explore(sampled(4, seed), || polls_tell_the_truth::<D, Urgent>(Stage::Readers("Urgent")));
        for end in [End::Waits, End::Finishes, End::Drops] {
            for polls in [0, 1, 2, 5] {
                explore(sampled(8, seed), move || in_steps::<D, Bulk>(polls, end, 2, 1));
                explore(sampled(12, seed), move || in_steps::<D, Urgent>(polls, end, 4, 3));
            }
        }
    }
    on_each!(check);
    explore(sampled(4, 1), || polls_tell_the_truth::<All<FOUR>, Nested>(Stage::Readers("Nested")));
}

#[test]
fn a_write_in_two_phases_is_alone() {
    fn check<D: Discipline>(seed: u64) {
        for then in [Then::Upgrades, Then::TriesToUpgrade, Then::UpgradesInTime, Then::Admits, Then::Releases]
        {
            explore(sampled(8, seed), move || two_phases::<D, Urgent>(then, 1, 1, 0));
            explore(sampled(12, seed), move || two_phases::<D, Urgent>(then, 2, 2, 3));
        }
    }
    on_each!(check);
}
