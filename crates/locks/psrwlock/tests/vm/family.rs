//! The promises of the family, kept by many threads: the clients of the test kit.

use crate::{FOUR, Lock, Sleeps, SleepsShared, THREE, TWO, sampled};
use ulocks_core::model::{Config, Strategy, explore};
use ulocks_core::raw::{RawInterruptible, RawRwLockUpgrade};
use ulocks_core::{Private, Shared};
use ulocks_psrwlock::{BULK, Eager, HANDLER, PhaseFair, ReadersFirst};
use ulocks_testkit::model::rw::Role::{self, Read, TimedRead, TimedWrite, TryRead, TryWrite, Write};
use ulocks_testkit::model::upgrade::How;
use ulocks_testkit::model::{rw, upgrade};

/// Runs `check` on the lock in its variants, each with a chance of its own.
macro_rules! on_each {
    ($check:ident) => {
        on_each_central!($check);
        $check::<Lock<TWO, Sleeps, PhaseFair, Eager>>(9);
        $check::<Lock<FOUR, Private, PhaseFair, Eager>>(10);
        $check::<Lock<TWO, SleepsShared, PhaseFair, Eager>>(11);
    };
}

/// Runs `check` on those whose readers are counted in the state.
macro_rules! on_each_central {
    ($check:ident) => {
        $check::<Lock<BULK>>(1);
        $check::<Lock<{ BULK | HANDLER }>>(12);
        $check::<Lock<BULK, Sleeps, ReadersFirst>>(13);
        $check::<Lock<BULK, Private, ReadersFirst>>(14);
        $check::<Lock<TWO>>(2);
        $check::<Lock<TWO, Private>>(3);
        $check::<Lock<THREE>>(4);
        $check::<Lock<FOUR>>(5);
        $check::<Lock<TWO, Shared>>(6);
        $check::<Lock<THREE, SleepsShared>>(7);
    };
}

trait Rw: RawRwLockUpgrade + RawInterruptible + Send + Sync + 'static {}
impl<L: RawRwLockUpgrade + RawInterruptible + Send + Sync + 'static> Rw for L {}

/// From two that meet to a crowd.
const CROWDS: [&[Role]; 5] = [
    &[Read, Write],
    &[Write, Read, Write],
    &[Read, TimedWrite, Write, TimedRead],
    &[Write, Read, TryWrite, TimedRead, TimedWrite, Write, TryRead, Read],
    &[
        Read, Write, Read, TimedWrite, Read, Write, TimedRead, Read, Write, TryRead, TryWrite, Read, Write,
        TimedRead, Read, TimedWrite,
    ],
];

#[test]
fn a_writer_is_alone() {
    fn check<L: Rw>(seed: u64) {
        for roles in CROWDS {
            explore(sampled(roles.len(), seed), move || rw::exclusion::<L>(roles));
        }
    }
    on_each!(check);
}

#[test]
fn a_small_lock_is_sound_in_all_executions() {
    // Without time, and so without writers that wait for readers to leave.
    let all = || Config { stale: 0, timeouts: false, ..Config::exhaustive() };
    explore(all(), || rw::exclusion::<Lock<TWO>>(&[TryRead, TryWrite]));
}

#[test]
fn nobody_sleeps_for_ever() {
    const ROLES: [&[Role]; 4] = [
        &[Write, Write, Read],
        &[Read, Write, Read, Write],
        &[Write, Write, Write, Read, Read, Write, Read, Read],
        &[
            Write, Read, Write, Read, Write, Read, Write, Read, Write, Read, Write, Read, Write, Read, Write,
            Read,
        ],
    ];
    fn check<L: Rw>(seed: u64) {
        for roles in ROLES {
            explore(sampled(roles.len(), seed), move || rw::no_lost_wake::<L>(roles, 2));
        }
        explore(sampled(8, seed), || rw::readers_meet::<L>(7));
        explore(sampled(3, seed), || rw::readers_meet::<L>(2));
    }
    on_each!(check);
}

#[test]
fn who_gives_up_strands_nobody() {
    fn check<L: Rw>(seed: u64) {
        for held in [Read, Write] {
            explore(sampled(3, seed), move || {
                rw::timeout_vs_unlock::<L>(held, &[TimedWrite, TimedRead, Write]);
            });
            explore(sampled(8, seed), move || {
                rw::timeout_vs_unlock::<L>(
                    held,
                    &[TimedWrite, TimedRead, Write, Read, TimedWrite, TimedRead, TimedWrite, Read],
                );
            });
            explore(sampled(8, seed), move || rw::give_up_while_held::<L>(held, 6));
        }
    }
    on_each!(check);
}

#[test]
fn who_is_interrupted_strands_nobody() {
    fn check<L: Rw>(seed: u64) {
        // By chance alone: if a thread that leaves has the lowest priority, those that wait for it
        // nap too often.
        let by_chance =
            |threads| Config { strategy: Strategy::Random, max_steps: 100_000, ..sampled(threads, seed) };
        for held in [Read, Write] {
            explore(by_chance(3), move || {
                rw::interrupt_vs_unlock::<L>(held, &[TimedWrite, TimedRead, Write]);
            });
            explore(by_chance(8), move || {
                rw::interrupt_vs_unlock::<L>(
                    held,
                    &[TimedWrite, TimedRead, Write, Read, TimedWrite, TimedRead, TimedWrite, Read],
                );
            });
        }
    }
    on_each!(check);
}

/// Not with slots: there an attempt to write shuts out readers for a moment, and another attempt
/// may find that.
#[test]
fn attempts_tell_the_truth() {
    fn check<L: Rw>(seed: u64) {
        for (readers, writers) in [(3, 0), (1, 1), (4, 3)] {
            explore(sampled(readers + writers, seed), move || rw::try_coherence::<L>(readers, writers));
        }
    }
    on_each_central!(check);
}

#[test]
fn the_release_is_the_last_access() {
    fn check<L: Rw>(seed: u64) {
        for (readers, writers) in [(1, 1), (0, 3), (2, 1), (4, 4)] {
            explore(sampled(readers + writers, seed), move || rw::last_unlocker_frees::<L>(readers, writers));
        }
    }
    on_each!(check);
}

#[test]
fn upgrades_and_downgrades_hold() {
    fn check<L: Rw>(seed: u64) {
        for how in [How::Wait, How::TryFirst, How::Timed] {
            explore(sampled(3, seed), move || upgrade::upgrades::<L>(how, 1, 1, 1));
            explore(sampled(8, seed), move || upgrade::upgrades::<L>(how, 3, 3, 2));
            explore(sampled(6, seed), move || upgrade::round_trips::<L>(how, 3, 3));
        }
        explore(sampled(5, seed), || upgrade::upgradable_beside_readers::<L>(4));
        explore(sampled(3, seed), upgrade::upgrade_waits_for_readers::<L>);
        explore(sampled(6, seed), || upgrade::downgrades::<L>(3, 3));
        explore(sampled(5, seed), || upgrade::downgrade_meets_readers::<L>(4));
    }
    on_each!(check);
}

/// Priorities with many changes: what takes a certain order of many steps.
#[test]
fn deep_orders_are_no_surprise() {
    for depth in [2, 5, 8] {
        let deep =
            move |threads| Config { strategy: Strategy::Pct { depth }, ..sampled(threads, depth as u64) };
        for roles in CROWDS {
            explore(deep(roles.len()), move || rw::exclusion::<Lock<THREE>>(roles));
        }
        explore(deep(6), || upgrade::upgrades::<Lock<THREE>>(How::Timed, 2, 2, 2));
    }
}
