//! Writes in steps and in two phases, beside more threads than loom has room for.

use crate::clients::steps::{
    End, Then, by_news, given_up, gives_way_once, in_steps, old_news, polls_tell_the_truth, two_phases,
};
use crate::{FOUR, Sleeps, SleepsShared, THREE, TWO, sampled, tame};
use ulocks_core::Private;
use ulocks_core::model::explore;
use ulocks_core::signal::Soft;
use ulocks_psrwlock::{
    Bulk, Central, Configuration, Distributed, Nested, PhaseFair, Sifted, Stage, Unchecked, Urgent,
    WriterBatch,
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
    fn check<D: Configuration>(seed: u64) {
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

/// A thread that waits for news of the write side waits for ever if it is not told.
#[test]
fn news_of_the_write_side_is_not_lost() {
    fn check<D: Configuration>(seed: u64) {
        explore(sampled(3, seed), || by_news::<D, Bulk>(1, 2, 0, 1));
        explore(sampled(4, seed), || by_news::<D, Bulk>(2, 1, 0, 1));
        explore(sampled(4, seed), || by_news::<D, Bulk>(1, 2, 1, 1));
        explore(sampled(8, seed), || by_news::<D, Urgent>(2, 2, 2, 3));
    }
    on_each!(check);
}

/// A wake-up of the owner goes to the owner.
#[test]
fn old_news_of_readers_takes_no_wake_up() {
    fn check<D: Configuration>(seed: u64) {
        explore(sampled(4, seed), || old_news::<D>(1, 2));
        explore(sampled(6, seed), || old_news::<D>(2, 3));
    }
    on_each!(check);
}

#[test]
fn a_writer_gives_way_to_writes_in_steps_once() {
    fn check<D: Configuration>(_seed: u64) {
        explore(tame(), gives_way_once::<D>);
    }
    on_each!(check);
}

#[test]
fn a_write_in_steps_that_is_given_up_strands_nobody() {
    fn check<D: Configuration>(seed: u64) {
        for forgets in [false, true] {
            explore(sampled(2, seed), move || given_up::<D>(1, forgets, 1));
            explore(sampled(4, seed), move || given_up::<D>(1, forgets, 3));
            explore(sampled(4, seed), move || given_up::<D>(2, forgets, 3));
        }
    }
    on_each!(check);
}

#[test]
fn a_write_in_two_phases_is_alone() {
    fn check<D: Configuration>(seed: u64) {
        for then in [Then::Upgrades, Then::TriesToUpgrade, Then::UpgradesInTime, Then::Admits, Then::Releases]
        {
            explore(sampled(8, seed), move || two_phases::<D, Urgent>(then, 1, 1, 0));
            explore(sampled(12, seed), move || two_phases::<D, Urgent>(then, 2, 2, 3));
        }
    }
    on_each!(check);
}
