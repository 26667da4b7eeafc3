//! What random sets meet rarely: short scripts whose threads meet in one corner of the protocol.

use crate::random_recorded::{Array, Recorded, soon};
use ulocks_core::model::{Config, explore};
use ulocks_semarray::{Error, Fairness, Op, Wait};
use ulocks_testkit::model::free;
use ulocks_testkit::sets::{self, add, sub, wait_zero};
use ulocks_testkit::thread::{Arc, spawn, together};

/// What a thread does next.
#[derive(Clone, Copy, Debug)]
enum Step {
    Waits(&'static [sets::Op]),
    Soon(&'static [sets::Op]),
    Tries(&'static [sets::Op]),
    Sets(usize, u32),
    Counts(usize),
    Reads,
    Closes,
}
use Step::{Closes, Counts, Reads, Sets, Soon, Tries, Waits};

/// A script: the values in the beginning, and what each thread does.
type Script = (&'static [u32], &'static [&'static [Step]]);

const LIMIT: u32 = 9;

fn play((values, parts): Script) {
    let shared = Recorded::new(values, LIMIT, Fairness::Barging);
    let recorded = Arc::clone(&shared);
    together(parts.len(), move |me| {
        for step in parts[me] {
            match *step {
                Waits(ops) => drop(recorded.applies(ops, Wait::Until(None))),
                Soon(ops) => drop(recorded.applies(ops, soon())),
                Tries(ops) => drop(recorded.applies(ops, Wait::No)),
                Sets(index, value) => recorded.sets(index, value),
                Counts(index) => recorded.counts(index),
                Reads => recorded.reads(),
                Closes => recorded.closes(),
            }
        }
    });
    shared.reads();
    shared.check_at_rest();
    shared.check_history();
}

/// A complex set times out while two threads bring what it waits for, and another wants a part of
/// that.
const GIVES_UP: Script = (
    &[0, 0, 0],
    &[
        &[Soon(&[sub(0, 1), sub(1, 1), add(2, 1)])],
        &[Tries(&[add(0, 1)]), Counts(1)],
        &[Tries(&[add(1, 1)]), Counts(0)],
        &[Soon(&[sub(1, 1)])],
    ],
);

/// A complex set moves to a queue with a simple set that times out.
const MOVES_AMONG_TIMED: Script = (
    &[0, 0],
    &[
        &[Waits(&[sub(0, 1), sub(1, 1)])],
        &[Soon(&[sub(1, 1)])],
        &[Soon(&[sub(1, 2)])],
        &[Counts(1), Tries(&[add(0, 1)]), Tries(&[add(1, 1)]), Tries(&[add(1, 3)])],
    ],
);

/// It keeps its age where it moves: it came before the set that it finds there.
const KEEPS_ITS_AGE: Script = (
    &[0, 0],
    &[
        &[Waits(&[sub(0, 1), sub(1, 1)])],
        &[Counts(0), Soon(&[sub(1, 1)])],
        &[Counts(1), Tries(&[add(0, 1)]), Tries(&[add(1, 1)]), Counts(1), Tries(&[add(1, 1)])],
    ],
);

/// Two sets take the array lock while others post in bulk, in one pass and in another order.
const BULK: Script = (
    &[1, 0, 0, 0],
    &[
        &[Waits(&[sub(1, 1), sub(0, 1)])],
        &[Waits(&[sub(3, 1), sub(2, 1), wait_zero(1)])],
        &[Tries(&[add(0, 1), add(1, 1), add(2, 1), add(3, 1)]), Reads],
        &[Tries(&[add(3, 1), add(2, 1), sub(0, 1)]), Reads],
    ],
);

/// Another set takes what a complex set had found, while that stops at a later operation.
const PREFIX_DRAINED: Script = (
    &[1, 0],
    &[
        &[Soon(&[sub(0, 1).no_wait(), sub(1, 1)])],
        &[Soon(&[sub(0, 1), sub(1, 1)])],
        &[Counts(1), Tries(&[sub(0, 1)]), Counts(0), Counts(1)],
        &[Tries(&[add(1, 1)]), Tries(&[add(0, 1)])],
    ],
);

/// A zero that lasts as long as a thread is inside.
const PASSING_ZERO: Script = (
    &[1, 0],
    &[
        &[Soon(&[wait_zero(0)])],
        &[Soon(&[wait_zero(0), add(1, 1)])],
        &[Tries(&[sub(0, 1)]), Tries(&[add(0, 1)])],
        &[Counts(0), Tries(&[sub(0, 1), add(0, 1)]), Soon(&[wait_zero(1), sub(0, 1)])],
    ],
);

/// A sleeper that would be too much now.
const OVERFLOWS: Script = (
    &[LIMIT - 1, 0],
    &[
        &[Soon(&[add(0, 1), sub(1, 1)])],
        &[Counts(1), Tries(&[add(0, 1)]), Tries(&[sub(0, 1)])],
        &[Tries(&[add(1, 1)])],
    ],
);

/// An older set that needs more than there is does not stop a younger one that needs less.
const SKIPS: Script = (
    &[0],
    &[
        &[Waits(&[sub(0, 2)])],
        &[Counts(0), Waits(&[sub(0, 1)])],
        &[Counts(0), Tries(&[add(0, 1)]), Counts(0), Tries(&[add(0, 2)])],
    ],
);

/// Values are set, and the array is closed, while sets sleep and move.
const SETS_AND_CLOSES: Script = (
    &[0, 0],
    &[
        &[Waits(&[sub(0, 1), sub(1, 1)])],
        &[Waits(&[sub(1, 2)]), Tries(&[add(0, 1)])],
        &[Soon(&[wait_zero(1), sub(0, 1)])],
        &[Sets(0, 1), Sets(1, 2), Counts(1), Closes],
    ],
);

const SCRIPTS: [(&str, Script); 11] = [
    ("gives up", GIVES_UP),
    ("moves among timed ones", MOVES_AMONG_TIMED),
    ("keeps its age", KEEPS_ITS_AGE),
    ("bulk", BULK),
    ("prefix drained", PREFIX_DRAINED),
    ("passing zero", PASSING_ZERO),
    ("overflows", OVERFLOWS),
    ("skips", SKIPS),
    ("sets and closes", SETS_AND_CLOSES),
    ("behind", BEHIND),
    ("closes", CLOSES),
];

fn sampled(executions: u64, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(executions) }
}

#[test]
fn scripts_are_explained() {
    for (name, script) in SCRIPTS {
        print!("{name}: ");
        explore(sampled(1_500, 1), move || play(script));
    }
}

/// A timed set, alone: it must leave as if it had never been there.
fn leaves_nothing(ops: &'static [sets::Op]) {
    let recorded = Recorded::new(&[0, 0], LIMIT, Fairness::Barging);
    assert!(recorded.applies(ops, soon()).is_err());
    recorded.check_at_rest();
}

#[test]
fn a_timed_out_set_leaves_nothing() {
    const SETS: [&[sets::Op]; 3] =
        [&[sub(1, 1)], &[sub(1, 1), sub(0, 1)], &[wait_zero(0), add(0, 1), sub(1, 1)]];
    for ops in SETS {
        explore(Config::exhaustive(), move || leaves_nothing(ops));
    }
}

/// A value that is read was there between two sets.
fn reads() {
    let array = Arc::new(Array::new(&[1, 0, 0], LIMIT, 9, Fairness::Barging));
    let others = Arc::clone(&array);
    let setter = spawn(move || {
        // The first fails, the second moves a unit on.
        assert_eq!(others.apply(&[Op::sub(0, 1), Op::sub(1, 1)], Wait::No), Err(Error::WouldBlock));
        others.apply(&[Op::sub(0, 1), Op::add(2, 1)], Wait::No).expect("it can proceed");
    });
    let (left, right) = (array.value(2).expect("an index"), array.value(0).expect("an index"));
    assert!(left == 0 || right == 0, "a unit is in two places");
    let (right, left) = (array.value(0).expect("an index"), array.value(2).expect("an index"));
    assert!(left == 1 || right == 1, "a unit is nowhere");
    setter.join().expect("the setter panicked");
}

#[test]
fn what_is_read_was_there() {
    explore(sampled(4_000, 1), reads);
}

/// An address of an array that may be gone.
#[derive(Clone, Copy)]
struct Address(*const Array);
// SAFETY: the models keep the array until all have done what they say they do.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

/// Sets, one after the other.
type Many = &'static [&'static [Op]];

/// Each of the others posts. The thread that has waited for all of that frees the array.
fn last_touch(posts: Many, all: Many) {
    let array = Box::into_raw(Box::new(Array::new(&[0; 3], LIMIT, 9, Fairness::Barging)));
    let address = Address(array.cast_const());
    let posters: Vec<_> = posts
        .iter()
        .map(|post| {
            spawn(move || {
                let address = address;
                // SAFETY: the array is there until this has been done.
                unsafe { &*address.0 }.apply(post, Wait::No).expect("there is room");
            })
        })
        .collect();
    for set in all {
        // SAFETY: only this thread frees.
        unsafe { &*array }.apply(set, Wait::Until(None)).expect("all of it comes");
    }
    // SAFETY: it came from `Box::into_raw`, and all that was to be done has been done.
    unsafe { free(array) };
    posters.into_iter().for_each(|poster| poster.join().expect("a poster panicked"));
}

#[test]
fn a_thread_that_has_seen_all_may_free() {
    // Not the first semaphore, because an allocator uses the place of its word.
    const ONE: &[Op] = &[Op::add(1, 1)];
    const TWO: &[Op] = &[Op::add(2, 1)];
    const BOTH: &[Op] = &[Op::add(1, 1), Op::add(2, 1)];
    const LIKEWISE: &[Op] = &[Op::add(2, 1), Op::add(1, 1)];
    const ALL_ONE: &[Op] = &[Op::sub(1, 2)];
    const SET: &[Op] = &[Op::sub(1, 1), Op::sub(2, 1)];
    const SETS: &[Op] = &[Op::sub(2, 2), Op::sub(1, 2)];
    const SCRIPTS: [(Many, Many); 4] = [
        (&[ONE, ONE], &[ALL_ONE]),
        (&[ONE, TWO], &[SET]),
        (&[BOTH, LIKEWISE], &[SETS]),
        (&[ONE, LIKEWISE, TWO], &[SETS]),
    ];
    for (posts, all) in SCRIPTS {
        explore(sampled(2_000, 1), move || last_touch(posts, all));
    }
}

/// Nothing happens but the end.
const CLOSES: Script = (&[0, 0], &[&[Waits(&[sub(0, 1)])], &[Waits(&[wait_zero(1), sub(0, 1)])], &[Closes]]);

/// In a cascade two sets of one queue can be served: the younger needs less.
const BEHIND: Script = (
    &[0, 0],
    &[
        &[Soon(&[sub(0, 1), sub(1, 1)])],
        &[Counts(0), Soon(&[sub(0, 3), add(1, 1)])],
        &[Counts(0), Soon(&[sub(0, 1), add(1, 1)])],
        &[Counts(0), Tries(&[add(0, 2)]), Counts(0)],
    ],
);
