//! The throughput mutex between processes: waiters die, and the bounds of the others hold.

use core::time::Duration;
use ulocks_core::Shared;
use ulocks_core::futex::{Futex, Private};
use ulocks_core::model::Config;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::spin::NoSpin;
use ulocks_core::time::Deadline;
use ulocks_testkit::model::deaths::{Face, Holder, Scene, each_step_of_a_waiter_may_be_its_last};
use ulocks_unfair::{After, Bound, HandOff, RawThroughputMutex};

type Lock<B> = RawThroughputMutex<Shared<NoSpin, Holder>, B>;

fn face<B: Bound>() -> Face<Lock<B>> {
    Face {
        is_held: |lock| lock.state().is_locked(),
        until_asked: |lock, nobody_waits| {
            // A living waiter reserves when it has been woken in vain. The lock is not even free for a moment.
            while !lock.state().is_reserved() && !nobody_waits() {
                lock.requeue_key().expect("it has one").wake(u32::MAX);
                Futex::<Private>::new(0).wait(0, Some(Deadline::after(Duration::from_millis(50))));
            }
        },
    }
}

/// The bound holds again: a survivor reserves the mutex, however long it is held, and whatever the dead has left.
fn check<B: Bound>(seed: u64) {
    for (survivors, barges, keeps) in [(1, 1, true), (2, 3, true), (2, 3, false)] {
        let scene = Scene { survivors, barges, keeps };
        let config = Config { seed, spurious: 2, max_steps: 100_000, ..Config::sampled(200) };
        each_step_of_a_waiter_may_be_its_last::<Lock<B>>(face(), scene, 60, &config);
    }
}

#[test]
fn a_waiter_that_dies_strands_nobody_on_a_mutex_that_is_never_free() {
    check::<After>(1);
    check::<HandOff>(2);
}
