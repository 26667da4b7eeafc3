//! What random sets meet rarely: short scripts whose threads meet in one corner of the protocol.

use crate::random_recorded::{Array, Recorded, soon};
use ulocks_core::model::{Config, explore};
use ulocks_semarray::{Error, Fairness, Op, Wait};
use ulocks_testkit::model::free;
use ulocks_testkit::sets::{self, add, sub, wait_zero};
use ulocks_testkit::thread::{Arc, spawn, together, with};

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
    /// Waits until so many sets sleep at a semaphore: until it grows, and until it is zero.
    Until(usize, usize, usize),
}
use Step::{Closes, Counts, Reads, Sets, Soon, Tries, Until, Waits};

/// A script: its name, the values in the beginning, and what each thread does.
type Script = (&'static str, &'static [u32], &'static [&'static [Step]]);

const LIMIT: u32 = 9;

fn play((_, values, parts): Script) {
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
                Until(index, increase, zero) => recorded.until(index, increase, zero),
            }
        }
    });
    shared.reads();
    shared.check_at_rest();
    shared.check_history();
}

/// A set that names a semaphore twice needs a session.
const SESSION: &[sets::Op] = &[add(0, 1), add(1, 1), sub(0, 1), add(0, 1)];
const TURNED: &[sets::Op] = &[add(1, 1), add(0, 1), sub(1, 1), add(1, 1)];

const SCRIPTS: [Script; 25] = [
    (
        "a complex set times out while others bring what it waits for, and one wants a part of that",
        &[0, 0, 0],
        &[
            &[Soon(&[sub(0, 1), sub(1, 1), add(2, 1)])],
            &[Tries(&[add(0, 1)]), Counts(1)],
            &[Tries(&[add(1, 1)]), Counts(0)],
            &[Soon(&[sub(1, 1)])],
        ],
    ),
    (
        "a complex set moves to a queue with simple sets that time out",
        &[0, 0],
        &[
            &[Waits(&[sub(0, 1), sub(1, 1)])],
            &[Soon(&[sub(1, 1)])],
            &[Soon(&[sub(1, 2)])],
            &[Counts(1), Tries(&[add(0, 1)]), Tries(&[add(1, 1)]), Tries(&[add(1, 3)])],
        ],
    ),
    (
        "a set that moves keeps its age: it came before the set that it finds there",
        &[0, 0],
        &[
            &[Waits(&[sub(0, 1), sub(1, 1)])],
            &[Counts(0), Soon(&[sub(1, 1)])],
            &[Counts(1), Tries(&[add(0, 1)]), Tries(&[add(1, 1)]), Counts(1), Tries(&[add(1, 1)])],
        ],
    ),
    (
        "the same, and both wait for as long as it takes",
        &[0, 0],
        &[
            &[Waits(&[sub(0, 1), sub(1, 1)])],
            &[Until(0, 1, 0), Waits(&[sub(1, 1)])],
            &[
                Until(1, 1, 0),
                Tries(&[add(0, 1)]),
                Counts(1),
                Tries(&[add(1, 1)]),
                Counts(1),
                Tries(&[add(1, 1)]),
            ],
        ],
    ),
    (
        "of two candidates at different semaphores the older one proceeds",
        &[0, 0, 1],
        &[
            &[Waits(&[sub(0, 1), sub(2, 1)])],
            &[Until(0, 1, 0), Waits(&[sub(1, 1), sub(2, 1)])],
            &[Until(1, 1, 0), Tries(&[add(1, 1), add(0, 1)]), Reads, Tries(&[add(2, 1)])],
        ],
    ),
    (
        "two sets take the array lock while others post in bulk, in one pass and in another order",
        &[1, 0, 0, 0],
        &[
            &[Waits(&[sub(1, 1), sub(0, 1)])],
            &[Waits(&[sub(3, 1), sub(2, 1), wait_zero(1)])],
            &[Tries(&[add(0, 1), add(1, 1), add(2, 1), add(3, 1)]), Reads],
            &[Tries(&[add(3, 1), add(2, 1), sub(0, 1)]), Reads],
        ],
    ),
    (
        "another set takes what a complex set had found, while that stops at a later operation",
        &[1, 0],
        &[
            &[Soon(&[sub(0, 1).no_wait(), sub(1, 1)])],
            &[Soon(&[sub(0, 1), sub(1, 1)])],
            &[Counts(1), Tries(&[sub(0, 1)]), Counts(0), Counts(1)],
            &[Tries(&[add(1, 1)]), Tries(&[add(0, 1)])],
        ],
    ),
    (
        "the same, and nothing else happens: the set waits where it stops now",
        &[1, 0],
        &[
            &[Waits(&[sub(0, 1), sub(1, 1)])],
            &[
                Until(1, 1, 0),
                Tries(&[sub(0, 1)]),
                Counts(0),
                Counts(1),
                Tries(&[add(1, 1)]),
                Tries(&[add(0, 1)]),
            ],
        ],
    ),
    (
        "a zero that lasts as long as a thread is inside",
        &[1, 0],
        &[
            &[Soon(&[wait_zero(0)])],
            &[Soon(&[wait_zero(0), add(1, 1)])],
            &[Tries(&[sub(0, 1)]), Tries(&[add(0, 1)])],
            &[Counts(0), Tries(&[sub(0, 1), add(0, 1)]), Soon(&[wait_zero(1), sub(0, 1)])],
        ],
    ),
    (
        "a zero within a set serves nobody, one between two sets does",
        &[1],
        &[
            &[Waits(&[wait_zero(0)])],
            &[
                Until(0, 0, 1),
                Tries(&[sub(0, 1), add(0, 1)]),
                Counts(0),
                Tries(&[sub(0, 1)]),
                Tries(&[add(0, 1)]),
            ],
        ],
    ),
    (
        "of two sets that wait for a zero, one ends it",
        &[1],
        &[
            &[Waits(&[wait_zero(0)])],
            &[Waits(&[wait_zero(0), add(0, 1)])],
            &[Tries(&[sub(0, 1)]), Waits(&[sub(0, 1)])],
        ],
    ),
    (
        "a set waits for a zero of a semaphore that would follow another",
        &[1, 1],
        &[
            &[Waits(&[wait_zero(1)])],
            &[
                Tries(&[add(0, 1), add(1, 1)]),
                Until(1, 0, 1),
                Tries(&[add(0, 1), add(1, 1)]),
                Tries(&[sub(0, 3), sub(1, 3)]),
            ],
        ],
    ),
    (
        "a sleeper that would be too much now",
        &[LIMIT - 1, 0],
        &[
            &[Soon(&[add(0, 1), sub(1, 1)])],
            &[Counts(1), Tries(&[add(0, 1)]), Tries(&[sub(0, 1)])],
            &[Tries(&[add(1, 1)])],
        ],
    ),
    (
        "a sleeper that is not to wait for its second semaphore",
        &[0, 0],
        &[&[Waits(&[sub(0, 1), sub(1, 1).no_wait()])], &[Tries(&[add(0, 1)])]],
    ),
    (
        "an older set that needs more than there is does not stop a younger one that needs less",
        &[0],
        &[
            &[Waits(&[sub(0, 2)])],
            &[Until(0, 1, 0), Waits(&[sub(0, 1)])],
            &[Until(0, 2, 0), Tries(&[add(0, 1)]), Counts(0), Tries(&[add(0, 2)])],
        ],
    ),
    (
        "in a cascade two sets of one queue can be served: the younger needs less",
        &[0, 0],
        &[
            &[Soon(&[sub(0, 1), sub(1, 1)])],
            &[Counts(0), Soon(&[sub(0, 3), add(1, 1)])],
            &[Counts(0), Soon(&[sub(0, 1), add(1, 1)])],
            &[Counts(0), Tries(&[add(0, 2)]), Counts(0)],
        ],
    ),
    (
        "a pair from two posters, and beside it a set that wants a part",
        &[0, 1],
        &[
            &[Waits(&[sub(0, 1), sub(1, 1)])],
            &[Waits(&[sub(1, 1)])],
            &[Tries(&[add(0, 1)])],
            &[Tries(&[add(1, 1)])],
        ],
    ),
    (
        "two sets want the same pair, each in another order, and one set posts for both",
        &[0, 0],
        &[
            &[Waits(&[sub(0, 1), sub(1, 1)])],
            &[Waits(&[sub(1, 1), sub(0, 1)])],
            &[Tries(&[add(1, 2), add(0, 2)])],
        ],
    ),
    (
        "the same, posted one by one",
        &[0, 0],
        &[
            &[Waits(&[sub(0, 1), sub(1, 1)])],
            &[Waits(&[sub(1, 1), sub(0, 1)])],
            &[Tries(&[add(0, 1)]), Tries(&[add(1, 1)]), Tries(&[add(1, 1)]), Tries(&[add(0, 1)])],
        ],
    ),
    (
        "sessions in one order and in the other",
        &[0, 0],
        &[&[Tries(SESSION)], &[Tries(TURNED)], &[Tries(SESSION)]],
    ),
    (
        "sets in one order and in the other, against a cascade",
        &[0, 0],
        &[
            &[Waits(&[sub(1, 1), sub(0, 1)])],
            &[Tries(&[add(0, 1), add(1, 1)])],
            &[Tries(&[add(1, 1), add(0, 1)])],
            &[Tries(&[add(0, 1), add(1, 1)])],
        ],
    ),
    (
        "values are set, and the array is closed, while sets sleep and move",
        &[0, 0],
        &[
            &[Waits(&[sub(0, 1), sub(1, 1)])],
            &[Waits(&[sub(1, 2)]), Tries(&[add(0, 1)])],
            &[Soon(&[wait_zero(1), sub(0, 1)])],
            &[Sets(0, 1), Sets(1, 2), Counts(1), Closes],
        ],
    ),
    (
        "nothing happens but the end",
        &[0, 0],
        &[&[Waits(&[sub(0, 1)])], &[Waits(&[wait_zero(1), sub(0, 1)])], &[Closes]],
    ),
    (
        "a post comes with the end",
        &[1, 0],
        &[&[Waits(&[sub(0, 1), sub(1, 1)])], &[Tries(&[add(1, 1)])], &[Closes]],
    ),
    (
        "a thread that finds a part closed finds all of it closed",
        &[1, 0],
        &[&[Tries(&[sub(0, 1), add(0, 1)]), Tries(&[sub(1, 1)])], &[Closes]],
    ),
];

fn sampled(executions: u64, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(executions) }
}

#[test]
fn scripts_are_explained() {
    for script in SCRIPTS {
        print!("{}: ", script.0);
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
    let setter = with(&array, |array| {
        // The first fails, the second moves a unit on.
        assert_eq!(array.apply(&[Op::sub(0, 1), Op::sub(1, 1)], Wait::No), Err(Error::WouldBlock));
        array.apply(&[Op::sub(0, 1), Op::add(2, 1)], Wait::No).expect("it can proceed");
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
