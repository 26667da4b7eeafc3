//! Idioms: what one word tells of others.

use super::super::programs::{Program, right, wrong};
use super::super::world::fence;
use super::{Body, Place, quiet, run, wait};
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

pub const ALL: &[Program] = &[
    right("sequence lock", || sequence(1, Acquire, Second::Fence, true, Release)),
    wrong("sequence lock, reader without a fence", || {
        sequence(1, Acquire, Second::Load(Relaxed), true, Release)
    }),
    wrong("sequence lock, writer without a fence", || sequence(1, Acquire, Second::Fence, false, Release)),
    right("sequence lock, read by an update", || sequence_update(Release)),
    wrong("sequence lock, relaxed end of a write", || sequence_update(Relaxed)),
    right("event count", || events(true, true)),
    wrong("event count, no fence", || events(false, true)),
    wrong("event count, no second look", || events(true, false)),
    right("waker", || waker(AcqRel, true)),
    wrong("waker, relaxed", || waker(Relaxed, true)),
    wrong("waker, no second look", || waker(AcqRel, false)),
    right("fences and a relay", || relay(true, true)),
    wrong("relay, no fence behind the last", || relay(true, false)),
    wrong("relay, no fence in the first", || relay(false, true)),
    right("exchanges of one word", || exchanges(true)),
    wrong("exchanges of two words", || exchanges(false)),
    right("chain of updates", || chain(AcqRel)),
    wrong("chain, broken by a store", broken_chain),
    right("flags of two", || flags(Release)),
    wrong("flags of two, relaxed", || flags(Relaxed)),
    right("double check", || double_check(Release, Acquire)),
    wrong("double check, relaxed look", || double_check(Release, Relaxed)),
    wrong("double check, relaxed store", || double_check(Relaxed, Acquire)),
    right("stop flag and a count", || stop(true)),
    wrong("stop flag, count too late", || stop(false)),
];

/// The second look at the sequence.
#[derive(Clone, Copy)]
pub enum Second {
    /// Behind an `Acquire` fence.
    Fence,
    /// With this ordering, and without a fence.
    Load(Ordering),
}

/// Word 0 is the sequence, words 1 and 2 the data. H.-J. Boehm, MSPC 2012.
pub fn sequence(rounds: u32, first: Ordering, second: Second, writer_fence: bool, end: Ordering) {
    let writer = quiet(move |place: &Place<3, 0>| {
        for round in 1..=rounds {
            place.words[0].store(2 * round - 1, Relaxed);
            if writer_fence {
                fence(Release);
            }
            place.words[1].store(round, Relaxed);
            place.words[2].store(round, Relaxed);
            place.words[0].store(2 * round, end);
        }
    });
    let reader = quiet(move |place: &Place<3, 0>| {
        for _ in 0..rounds {
            let before = place.words[0].load(first);
            let data = (place.words[1].load(Relaxed), place.words[2].load(Relaxed));
            let after = match second {
                Second::Fence => {
                    fence(Acquire);
                    place.words[0].load(Relaxed)
                }
                Second::Load(order) => place.words[0].load(order),
            };
            if before == after && before.is_multiple_of(2) {
                assert_eq!(data.0, data.1, "half of a write");
            }
        }
    });
    run(&[], vec![writer, reader]);
}

/// The reader's second look is an update that changes nothing.
fn sequence_update(end: Ordering) {
    let writer = quiet(move |place: &Place<3, 0>| {
        let before = place.words[0].swap(1, Acquire);
        place.words[1].store(1, Relaxed);
        place.words[2].store(1, Relaxed);
        place.words[0].store(before + 2, end);
    });
    let reader = quiet(move |place: &Place<3, 0>| {
        let before = place.words[0].load(Acquire);
        let data = (place.words[1].load(Relaxed), place.words[2].load(Relaxed));
        let after = place.words[0].fetch_add(0, Release);
        if before == after && before.is_multiple_of(2) {
            assert_eq!(data.0, data.1, "half of a write");
        }
    });
    run(&[], vec![writer, reader]);
}

/// Words: the condition, the waiters, the events.
fn events(fences: bool, looks_again: bool) {
    let waiter = quiet(move |place: &Place<3, 1>| {
        if place.words[0].load(Acquire) == 0 {
            // Not Relaxed: under load buffering it would be the event that this thread waits for.
            let event = place.words[2].load(Acquire);
            place.words[1].store(1, Relaxed);
            if fences {
                fence(SeqCst);
            }
            if !looks_again || place.words[0].load(Acquire) == 0 {
                wait(|| place.words[2].load(Acquire) != event);
            }
        }
        wait(|| place.words[0].load(Acquire) == 1);
        place.read(0);
    });
    let notifier = quiet(move |place: &Place<3, 1>| {
        place.write(0, 1);
        place.words[0].store(1, Release);
        if fences {
            fence(SeqCst);
        }
        if place.words[1].load(Relaxed) == 1 {
            place.words[2].fetch_add(1, Release);
        }
    });
    run(&[], vec![waiter, notifier]);
}

/// Bit 0 of word 0: a waker is there; bit 1: it was woken. Word 1 is the condition, word 2 the
/// wake-up, data 0 the waker.
fn waker(order: Ordering, looks_again: bool) {
    let waiter = quiet(move |place: &Place<3, 1>| {
        if place.words[1].load(Acquire) == 1 {
            return;
        }
        place.write(0, 1);
        let before = place.words[0].fetch_or(1, order);
        if looks_again && (before & 2 != 0 || place.words[1].load(Acquire) == 1) {
            return;
        }
        wait(|| place.words[2].load(Acquire) == 1);
    });
    let wakes = quiet(move |place: &Place<3, 1>| {
        place.words[1].store(1, Release);
        if place.words[0].fetch_or(2, order) & 1 != 0 {
            place.read(0);
            place.words[2].store(1, Release);
        }
    });
    run(&[], vec![waiter, wakes]);
}

/// Data goes from the first thread to the last by way of another, which only relays a flag.
fn relay(first: bool, last: bool) {
    let sender = quiet(move |place: &Place<2, 1>| {
        place.write(0, 7);
        if first {
            fence(Release);
        }
        place.words[0].store(1, Relaxed);
    });
    let relays = quiet(|place: &Place<2, 1>| {
        if place.words[0].load(Relaxed) == 1 {
            fence(AcqRel);
            place.words[1].store(1, Relaxed);
        }
    });
    let receiver = quiet(move |place: &Place<2, 1>| {
        if place.words[1].load(Relaxed) == 1 {
            if last {
                fence(Acquire);
            }
            assert_eq!(place.read(0), 7);
        }
    });
    run(&[], vec![sender, relays, receiver]);
}

/// Store buffering, with an exchange between store and load. Those of one word are ordered.
fn exchanges(of_one: bool) {
    let body = |mine: usize, word: usize| -> Body<4, 0> {
        Box::new(move |place| {
            place.words[mine].store(1, Relaxed);
            place.words[word].swap(1, AcqRel);
            place.words[1 - mine].load(Relaxed)
        })
    };
    let (seen, _) = run(&[], vec![body(0, 2), body(1, if of_one { 2 } else { 3 })]);
    assert_ne!(seen, [0, 0], "both are in");
}

/// What the first thread releases is known behind the updates of the others.
fn chain(order: Ordering) {
    let body = |me: u32| {
        quiet(move |place: &Place<1, 3>| {
            place.write(me as usize, 1);
            if place.words[0].fetch_add(1, order) == 2 {
                (0..3).for_each(|which| assert_eq!(place.read(which), 1));
            }
        })
    };
    run(&[], vec![body(0), body(1), body(2)]);
}

fn broken_chain() {
    let sender = quiet(|place: &Place<1, 1>| {
        place.write(0, 1);
        place.words[0].store(1, Release);
        place.words[0].store(2, Relaxed);
    });
    let receiver = quiet(|place: &Place<1, 1>| {
        if place.words[0].load(Acquire) == 2 {
            place.read(0);
        }
    });
    run(&[], vec![sender, receiver]);
}

/// Each of two threads says that it is ready.
fn flags(order: Ordering) {
    let body = |me: usize| {
        quiet(move |place: &Place<2, 2>| {
            place.write(me, 1);
            place.words[me].store(1, order);
            if place.words[1 - me].load(Acquire) == 1 {
                place.read(1 - me);
            }
        })
    };
    run(&[], vec![body(0), body(1)]);
}

/// Words: whether the value is made, and the lock under which it is.
fn double_check(store: Ordering, look: Ordering) {
    let body = || {
        quiet(move |place: &Place<2, 1>| {
            if place.words[0].load(look) == 0 {
                wait(|| place.words[1].swap(1, Acquire) == 0);
                if place.words[0].load(Relaxed) == 0 {
                    place.write(0, 7);
                    place.words[0].store(1, store);
                }
                place.words[1].store(0, Release);
            }
            assert_eq!(place.read(0), 7);
        })
    };
    run(&[], vec![body(), body()]);
}

/// A worker counts itself before it looks at the flag; the stopper waits until none is counted.
fn stop(counts_first: bool) {
    let worker = quiet(move |place: &Place<2, 1>| {
        if counts_first {
            place.words[1].fetch_add(1, SeqCst);
        }
        fence(SeqCst);
        let is_stopped = place.words[0].load(Acquire) == 1;
        if !counts_first {
            place.words[1].fetch_add(1, SeqCst);
        }
        if !is_stopped {
            place.read(0);
        }
        place.words[1].fetch_sub(1, Release);
    });
    let stops = quiet(|place: &Place<2, 1>| {
        place.words[0].store(1, Release);
        fence(SeqCst);
        wait(|| place.words[1].load(Acquire) == 0);
        place.write(0, 9);
    });
    run(&[], vec![worker, stops]);
}
