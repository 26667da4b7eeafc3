//! The calock keeps its promises.

use crate::impatient::impatient_strand_nobody;
use crate::overtaking::promoted_is_next;
use crate::sampled;
use ulocks_calock::{Every, RawCalock};
use ulocks_core::Private;
use ulocks_core::model::{Config, explore};
use ulocks_core::queue::Advice;
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::suite::MANY;
use ulocks_testkit::tickets::{all_at_once, all_beside_a_barger, one_by_one, one_gives_up};

/// One thread is to be active, so that the candidate takes what was idle alone.
pub enum AlwaysSolo {}

impl Advice for AlwaysSolo {
    const ALWAYS_SOLO: bool = true;
}

/// The first nap that ends is a whole interval.
type Short = Every<1>;
/// The candidate naps several times before its interval has passed.
type Long = Every<300_000>;

type Calock = RawCalock<Private, Short>;
type Sleeper = RawCalock<Private<NoSpin>, Short>;
type Napper = RawCalock<Private<NoSpin>, Long>;
/// The interval never ends, so what was idle is found by a nap that ends, or not at all.
type Solo = RawCalock<Private, Every<{ u64::MAX }, AlwaysSolo>>;

ulocks_testkit::vm_models! {
    sampled: sampled,
    locks: [Calock = 1, Sleeper = 2, Napper = 3, Solo = 4],
    exhaustive: {
        preemptions: 4,
        exclusion: [Sleeper, Napper],
        no_lost_wake: [Sleeper, Napper],
        timeout_vs_unlock: [Sleeper],
        last_unlocker_frees: [Sleeper, Napper],
    },
    try_lock: [Calock],
    interrupted: [Sleeper = 1, Napper = 2],
    deaths: [Calock = 1, Sleeper = 2],
}

#[test]
fn a_waiter_that_gives_up_early_strands_nobody() {
    fn impatient<L: RawMutex + Send + Sync + 'static>(seed: u64) {
        for threads in MANY {
            explore(sampled(threads, seed), move || impatient_strand_nobody::<L>(threads - 1));
        }
    }
    explore(Config::sampled(25_000), || impatient_strand_nobody::<Sleeper>(2));
    impatient::<Calock>(1);
    impatient::<Sleeper>(2);
    impatient::<Napper>(3);
    impatient::<Solo>(4);
}

#[test]
fn the_promoted_is_next() {
    explore(Config::sampled(25_000), || _ = promoted_is_next::<Short>(2, 3, || {}));
    for threads in [2, 3, 4, 8] {
        explore(sampled(threads, 1), move || _ = promoted_is_next::<Short>(threads, 2, || {}));
        explore(sampled(threads, 2), move || _ = promoted_is_next::<Long>(threads, 2, || {}));
    }
}

#[test]
fn those_who_were_notified_all_get_the_mutex() {
    for waiters in [2, 8] {
        for while_holding in [false, true] {
            explore(sampled(2 * waiters, 1), move || all_at_once::<Sleeper>(waiters, while_holding));
            explore(sampled(2 * waiters, 1), move || one_by_one::<Napper>(waiters, while_holding));
        }
        explore(sampled(2 * waiters, 1), move || all_beside_a_barger::<Sleeper>(waiters));
        explore(sampled(2 * waiters, 1), move || one_gives_up::<Sleeper>(waiters));
    }
}
