//! The mutex, with waiters that are tasks.

use crate::few::OnCpus;
use crate::mutex::sampled;
use crate::wakers::{a_waker_takes_the_lock_of_a_drop, a_waker_waits_for_the_next_in_line};
use ulocks_core::Private;
use ulocks_core::model::{Config, explore, pretend_cpus};
use ulocks_core::spin::{NoSpin, Patience};
use ulocks_fair::RawFairMutex;
use ulocks_testkit::model;
use ulocks_testkit::order::Recorder;
use ulocks_testkit::suite::MANY;
use ulocks_testkit::tasks::{Mixed, Restless, Tasks};

type Sleeper = RawFairMutex<Private<NoSpin>>;
type All = Tasks<Sleeper>;
type Some = Mixed<Sleeper>;
type Polled = Restless<Sleeper>;
type OnSixteen = OnCpus<Some, 16>;
/// A task that is next looks for a moment before it leaves its waker.
type Looking = Tasks<RawFairMutex<Private<Patience<1>>>>;

ulocks_testkit::vm_models! {
    sampled: sampled,
    locks: [All = 1, Some = 2, OnSixteen = 3, Polled = 4, Looking = 5],
    exhaustive: {
        exclusion: [All, Polled, Looking],
        no_lost_wake: [All, Polled, Looking],
        timeout_vs_unlock: [All, Looking],
        last_unlocker_frees: [All, Looking],
    },
    try_lock: [All, Looking],
}

type Recorded = RawFairMutex<Private<NoSpin, Recorder>>;

#[test]
fn who_came_first_is_served_first() {
    for threads in MANY {
        for timed in [false, true] {
            explore(sampled(threads, 1), move || model::in_order::<Tasks<Recorded>>(threads, timed));
            explore(sampled(threads, 2), move || model::in_order::<Mixed<Recorded>>(threads, timed));
        }
    }
}

/// Whatever a waker does, it does it when nothing is left to do for others.
#[test]
fn wakers_come_last() {
    let often = |seed| Config { seed, ..Config::sampled(20_000) };
    explore(often(1), a_waker_takes_the_lock_of_a_drop::<Private<NoSpin>>);
    for cpus in [2, 16] {
        explore(often(2), move || {
            pretend_cpus(cpus);
            a_waker_waits_for_the_next_in_line::<Private<NoSpin>>();
        });
    }
}
