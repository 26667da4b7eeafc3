//! The semaphore.

use crate::permits::{
    Binary, a_release_publishes, never_more_out_than_in, overflow_changes_nothing, producers_and_consumers,
    the_acquirer_frees, the_large_one_is_not_overtaken, timeout_against_release,
    who_gives_up_lets_others_pass,
};
use std::sync::Arc;
use ulocks_core::model::linear::Recorder;
use ulocks_core::model::linear::specs::{self, SemaphoreCall};
use ulocks_core::model::signal::{self, Signal};
use ulocks_core::model::thread::spawn;
use ulocks_core::model::{Config, Deaths, Failure, Survivors, explore, finds_bug_saying};
use ulocks_core::spin::NoSpin;
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Private, Shared};
use ulocks_fair::{SemaphoreProtocol as Protocol, semaphore_seeded as bug};
use ulocks_testkit::model;

/// Waiters sleep at once: fewer steps, hence more executions of what is left.
type Sleeps = Private<NoSpin>;
type SleepsShared = Shared<NoSpin>;

/// Runs `check` on the semaphore in its variants, each with a chance of its own.
macro_rules! on_each {
    ($check:ident) => {
        $check::<Private, 0>(1);
        $check::<Sleeps, 0>(2);
        $check::<SleepsShared, 0>(3);
        $check::<SleepsShared, { bug::FIRST_IS_NEAR }>(4);
        $check::<SleepsShared, { bug::PAIRS }>(5);
    };
}

/// How many executions of a model of so many threads: about as many steps for each number.
fn sampled(threads: usize, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(8_000 / threads as u64) }
}

/// What a seeded bug is called, by whom it is found, and what is said of it.
fn found(name: &str, says: &str, client: impl Fn() + 'static) {
    let Failure { execution, .. } = finds_bug_saying(says, Config::sampled(10_000), client);
    println!("{name}: found at execution {execution}");
}

#[test]
fn one_permit_is_a_mutex() {
    fn check<P: Policy, const V: u8>(seed: u64) {
        explore(sampled(3, seed), || model::exclusion::<Binary<P, V>>(3));
        for threads in [4, 16] {
            explore(sampled(threads, seed), move || model::no_lost_wake::<Binary<P, V>>(threads, 2));
        }
        explore(sampled(4, seed), || model::try_lock_coherence::<Binary<P, V>>(4));
        let deaths =
            Config { deaths: Deaths::Threads(2), survivors: Survivors::MayBlock, ..sampled(4, seed) };
        explore(deaths, || model::exclusion_despite_deaths::<Binary<P, V>>(4));
    }
    on_each!(check);
}

#[test]
fn never_more_are_out_than_in() {
    fn check<P: Policy, const V: u8>(seed: u64) {
        for (threads, permits) in [(3, 2), (8, 3), (12, 5)] {
            explore(sampled(threads, seed), move || never_more_out_than_in::<P, V>(threads, permits));
        }
    }
    on_each!(check);
    found("TAKES_IN_TWO", "permits", || never_more_out_than_in::<Sleeps, { bug::TAKES_IN_TWO }>(2, 2));
}

#[test]
fn a_release_is_seen_by_who_gets_its_permits() {
    fn check<P: Policy, const V: u8>(seed: u64) {
        explore(Config { seed, ..Config::sampled(10_000) }, a_release_publishes::<P, V>);
    }
    check::<Sleeps, 0>(1);
    check::<SleepsShared, 0>(2);
    found("RELAXED_TAKE", "data race", a_release_publishes::<Sleeps, { bug::RELAXED_TAKE }>);
    found("RELAXED_GIVE", "data race", a_release_publishes::<Sleeps, { bug::RELAXED_GIVE }>);
    found("RELAXED_GRANT", "data race", a_release_publishes::<Sleeps, { bug::RELAXED_GRANT }>);
    found("RELAXED_TAKE", "data race", a_release_publishes::<SleepsShared, { bug::RELAXED_TAKE }>);
}

#[test]
fn nobody_sleeps_for_ever() {
    fn check<P: Policy, const V: u8>(seed: u64) {
        explore(sampled(4, seed), || producers_and_consumers::<P, V>(2, 2, false));
        explore(sampled(12, seed), || producers_and_consumers::<P, V>(4, 8, false));
        explore(sampled(4, seed), || producers_and_consumers::<P, V>(1, 3, true));
        explore(sampled(16, seed), || producers_and_consumers::<P, V>(1, 15, true));
    }
    on_each!(check);
}

#[test]
fn a_lost_wake_up_is_found() {
    fn two<P: Policy, const BUG: u8>(name: &str) {
        found(name, "", || producers_and_consumers::<P, BUG>(2, 4, false));
    }
    two::<Sleeps, { bug::PUSHES_SILENTLY }>("PUSHES_SILENTLY");
    two::<Sleeps, { bug::FORGETS_NEWS }>("FORGETS_NEWS");
    two::<Sleeps, { bug::COMMITS_BLINDLY }>("COMMITS_BLINDLY");
    two::<Sleeps, { bug::GRANTS_SILENTLY }>("GRANTS_SILENTLY");
    two::<SleepsShared, { bug::NO_DISTURBANCE }>("NO_DISTURBANCE");
    two::<SleepsShared, { bug::NO_NOTE }>("NO_NOTE");
    two::<SleepsShared, { bug::ADVANCES_SILENTLY }>("ADVANCES_SILENTLY");
}

/// Three in line are enough for one that is far, nine for two in one group and for two that share a bit.
#[test]
fn who_is_far_and_stays_there_is_found() {
    fn lost<const BUG: u8>(name: &str, consumers: usize) {
        found(name, "nobody can go on", move || {
            producers_and_consumers::<SleepsShared, BUG>(1, consumers, false);
        });
    }
    lost::<{ bug::CROSSES_SILENTLY }>("CROSSES_SILENTLY", 3);
    lost::<{ bug::NEVER_STAMPS }>("NEVER_STAMPS", 3);
    lost::<{ bug::STAMPS_FIRST }>("STAMPS_FIRST", 3);
    lost::<{ bug::LOOKS_AT_TURN_FIRST }>("LOOKS_AT_TURN_FIRST", 3);
    lost::<{ bug::RELAXED_STAMP }>("RELAXED_STAMP", 3);
    lost::<{ bug::RELAXED_LOOK }>("RELAXED_LOOK", 3);
    lost::<{ bug::CALLS_ONE }>("CALLS_ONE", 9);
    lost::<{ bug::SHARES_BITS }>("SHARES_BITS", 9);
}

#[test]
fn the_first_in_line_is_first() {
    fn check<P: Policy, const V: u8>(seed: u64) {
        for small in [1, 3, 8] {
            explore(sampled(2 + small, seed), move || the_large_one_is_not_overtaken::<P, V>(small));
        }
    }
    on_each!(check);
    found("SMALL_FIRST", "", || the_large_one_is_not_overtaken::<Sleeps, { bug::SMALL_FIRST }>(1));
    found("OVERTAKES", "overtakes", || the_large_one_is_not_overtaken::<Sleeps, { bug::OVERTAKES }>(1));
    found("OVERTAKES", "overtakes", || the_large_one_is_not_overtaken::<SleepsShared, { bug::OVERTAKES }>(1));
}

#[test]
fn a_timeout_loses_no_permit_and_strands_nobody() {
    fn check<P: Policy, const V: u8>(seed: u64) {
        for (timed, patient) in [(1, 0), (1, 1), (2, 2), (6, 6)] {
            explore(sampled(1 + timed + patient, seed), move || {
                timeout_against_release::<P, V>(timed, patient);
            });
        }
        // More than the twelve whose places between processes can be remembered.
        explore(sampled(20, seed), || timeout_against_release::<P, V>(16, 3));
        for behind in [1, 2, 8] {
            explore(sampled(1 + behind, seed), move || who_gives_up_lets_others_pass::<P, V>(behind));
        }
        explore(sampled(8, seed), || model::timeout_vs_unlock::<Binary<P, V>>(8));
    }
    on_each!(check);
}

#[test]
fn a_waiter_that_leaves_badly_is_found() {
    found("LEAVES_GRANT", "permits", || timeout_against_release::<Sleeps, { bug::LEAVES_GRANT }>(1, 0));
    found("LEAVES_COUNTED", "", || timeout_against_release::<Sleeps, { bug::LEAVES_COUNTED }>(1, 0));
    found("LEAVES_SILENTLY", "", || {
        who_gives_up_lets_others_pass::<Sleeps, { bug::LEAVES_SILENTLY }>(1);
    });
    found("NO_NOTE", "nobody can go on", || timeout_against_release::<SleepsShared, { bug::NO_NOTE }>(1, 1));
    found("LEAVES_UNSEEN", "", || timeout_against_release::<SleepsShared, { bug::LEAVES_UNSEEN }>(1, 2));
    found("MARKS_BLINDLY", "", || timeout_against_release::<SleepsShared, { bug::MARKS_BLINDLY }>(2, 2));
    found("STOPS_AT_LEFT", "", || timeout_against_release::<SleepsShared, { bug::STOPS_AT_LEFT }>(1, 2));
    found("LEAVES_TURN", "", || who_gives_up_lets_others_pass::<SleepsShared, { bug::LEAVES_TURN }>(1));
}

#[test]
fn the_release_touches_the_semaphore_no_more() {
    fn check<P: Policy, const V: u8>(seed: u64) {
        explore(Config { seed, ..Config::sampled(10_000) }, the_acquirer_frees::<P, V>);
        explore(sampled(8, seed), || model::last_unlocker_frees::<Binary<P, V>>(8));
    }
    check::<Sleeps, 0>(1);
    check::<SleepsShared, 0>(2);
    found("GRANTS_FIRST", "", the_acquirer_frees::<Sleeps, { bug::GRANTS_FIRST }>);
    found("DISTURBS_LATE", "", the_acquirer_frees::<SleepsShared, { bug::DISTURBS_LATE }>);
}

#[test]
fn an_overflow_changes_nothing() {
    fn check<P: Policy, const V: u8>(seed: u64) {
        for waiting in [false, true] {
            explore(sampled(3, seed), move || overflow_changes_nothing::<P, V>(waiting));
        }
    }
    on_each!(check);
    found("CHECKS_THEN_ADDS", "", || overflow_changes_nothing::<Sleeps, { bug::CHECKS_THEN_ADDS }>(false));
}

/// Every history of a few operations is one of a sequential semaphore's.
#[test]
fn histories_are_those_of_a_semaphore() {
    fn check<P: Policy, const V: u8>(seed: u64) {
        let config = Config { seed, ..Config::sampled(3_000) };
        explore(config, || {
            let semaphore = Arc::new(Protocol::<P, V>::new(2));
            let recorder = Recorder::new();
            let threads: Vec<_> = (0..4_u32)
                .map(|me| {
                    let (semaphore, recorder) = (Arc::clone(&semaphore), recorder.clone());
                    spawn(move || {
                        let wanted = 1 + me % 2;
                        let deadline = || Deadline::after(core::time::Duration::from_millis(1));
                        let (wanted_64, acquire) = (u64::from(wanted), wanted == 1);
                        let had = if acquire {
                            recorder.record(SemaphoreCall::Acquire(wanted_64), || {
                                semaphore.acquire(wanted);
                                true
                            })
                        } else {
                            // In line, permits are there for somebody else.
                            recorder.record(SemaphoreCall::Attempt(wanted_64), || {
                                semaphore.acquire_until(wanted, deadline())
                            })
                        };
                        let again = recorder.record(SemaphoreCall::Attempt(1), || semaphore.try_acquire(1));
                        let back = u32::from(again) + if had { wanted } else { 0 };
                        recorder
                            .record(SemaphoreCall::Release(back.into()), || semaphore.release(back).is_ok());
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            recorder.check(&specs::Semaphore(2)).unwrap_or_else(|error| panic!("{error}"));
        });
    }
    on_each!(check);
}

/// A handler that releases strikes a thread at any step of an acquisition, of a release, of a timeout.
#[test]
fn a_signal_handler_may_release() {
    fn check<P: Policy, const V: u8>(seed: u64) {
        let config = Config { seed, ..Config::sampled(4_000) };
        explore(config, || {
            let semaphore = Arc::new(Protocol::<P, V>::new(0));
            let waiter = {
                let semaphore = Arc::clone(&semaphore);
                spawn(move || semaphore.acquire(2))
            };
            let handled = Arc::clone(&semaphore);
            let usr1 = Signal::new(10);
            signal::install(usr1, 0, move || handled.release(1).expect("room"));
            let struck = {
                let semaphore = Arc::clone(&semaphore);
                spawn(move || {
                    let soon = Deadline::after(core::time::Duration::from_millis(1));
                    let had = semaphore.acquire_until(1, soon);
                    semaphore.release(1 + u32::from(had)).expect("room");
                })
            };
            signal::send(2, usr1);
            semaphore.release(1).expect("room");
            waiter.join().unwrap();
            struck.join().unwrap();
            // One from each of the three, less the two that were taken; the signal may come after the end of its thread.
            assert_eq!(semaphore.waiters(), 0);
            assert!(semaphore.available() <= 1, "{semaphore:?}");
        });
    }
    on_each!(check);
}
