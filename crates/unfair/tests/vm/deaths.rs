//! The throughput mutex between processes: waiters die, and the bounds of the others hold.

use core::time::Duration;
use ulocks_core::Shared;
use ulocks_core::futex::{Futex, Private};
use ulocks_core::model::Config;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::spin::NoSpin;
use ulocks_core::sync::spin_until;
use ulocks_core::time::Deadline;
use ulocks_testkit::model::deaths::{Face, Holder, Scene, each_step_of_a_waiter_may_be_its_last};
use ulocks_unfair::{After, Bound, HandOff, RawThroughputMutex};

type Lock<B> = RawThroughputMutex<Shared<NoSpin, Holder>, B>;

/// The holder keeps the mutex until a waiter has reserved it.
fn quiet<B: Bound>() -> Face<Lock<B>> {
    Face {
        is_held: |lock| lock.state().is_locked(),
        until_asked: |lock, nobody_waits| spin_until(|| lock.state().is_reserved() || nobody_waits()),
    }
}

/// Beside that, it wakes waiters in vain, as releases do whose mutex is taken again at once.
fn busy<B: Bound>() -> Face<Lock<B>> {
    Face {
        until_asked: |lock, nobody_waits| {
            while !lock.state().is_reserved() && !nobody_waits() {
                lock.requeue_key().expect("it has one").wake(u32::MAX);
                Futex::<Private>::new(0).wait(0, Some(Deadline::after(Duration::from_millis(50))));
            }
        },
        ..quiet()
    }
}

/// The bound holds again: a survivor reserves the mutex, however long it is held, and whatever the
/// dead has left.
fn check<B: Bound>(face: Face<Lock<B>>, seed: u64) {
    for (survivors, barges, keeps) in [(1, 1, true), (2, 3, true), (2, 3, false)] {
        let scene = Scene { survivors, barges, keeps };
        let config = Config { seed, spurious: 2, max_steps: 100_000, ..Config::sampled(200) };
        each_step_of_a_waiter_may_be_its_last(face, scene, 60, &config);
    }
}

#[test]
fn a_waiter_that_dies_strands_nobody_on_a_mutex_that_is_never_free() {
    check::<After>(busy(), 1);
    check::<HandOff>(busy(), 2);
}

/// The dead may have owed the mark for which a release would wake it.
#[test]
fn an_outsider_reserves_also_if_nobody_wakes_it() {
    check::<After>(quiet(), 3);
    check::<HandOff>(quiet(), 4);
}
