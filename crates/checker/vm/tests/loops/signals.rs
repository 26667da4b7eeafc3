//! Flags, barriers and the like.

use crate::{Data, completes, each, fails, outcomes};
use std::collections::BTreeSet;
use ulocks_vm::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicBool, AtomicU32, fence, pause, spin_until, yield_now};

/// A flag publishes data.
fn flag(order: ulocks_vm::sync::Ordering, is_set: bool) -> impl Fn() + Clone + 'static {
    move || {
        let state = (AtomicBool::new(false), Data::default(), order, is_set);
        each(2, state, |(flag, data, order, is_set), me| {
            if me == 0 {
                data.add();
                if *is_set {
                    flag.store(true, *order);
                }
            } else {
                while !flag.load(Acquire) {}
                assert_eq!(data.get(), 1);
            }
        });
    }
}

#[test]
fn one_flag() {
    assert!(completes(flag(Release, true)) <= 3);
    fails("data race", flag(Relaxed, true));
    fails("deadlock", flag(Release, false));
}

/// Two flags at once; either will do. Which were seen.
fn either(words: [u32; 2]) -> impl Fn() -> u32 + Clone + 'static {
    move || {
        let state = ([0; 2].map(AtomicU32::new), words);
        let (seen, _) = each(3, state, |(flags, words), me| match me {
            2 => loop {
                let seen = flags[0].load(Acquire) + 2 * flags[1].load(Acquire);
                if seen != 0 {
                    return seen;
                }
                yield_now();
            },
            me => {
                flags[me].store(words[me], Release);
                0
            }
        });
        seen[2]
    }
}

#[test]
fn two_flags_at_once() {
    assert_eq!(outcomes(either([1, 1])), BTreeSet::from([1, 2, 3]));
    assert_eq!(outcomes(either([1, 0])), BTreeSet::from([1]));
    let neither = either([0, 0]);
    fails("deadlock", move || _ = neither());
}

/// An await inside an await: the outer one waits for a value, the inner one for a change.
fn nested(last: u32, is_machines: bool) -> impl Fn() + Clone + 'static {
    move || {
        let state = (AtomicU32::new(0), AtomicU32::new(0), last, is_machines);
        each(2, state, |(step, over, last, is_machines), me| {
            if me == 0 {
                (1..=*last).for_each(|n| step.store(n, Release));
                over.store(1, Release);
                return;
            }
            while step.load(Acquire) != 2 {
                if *is_machines {
                    spin_until(|| over.load(Acquire) == 1);
                } else {
                    while over.load(Acquire) == 0 {
                        pause();
                    }
                }
            }
        });
    }
}

#[test]
fn an_await_inside_an_await() {
    for is_machines in [false, true] {
        completes(nested(2, is_machines));
        fails("deadlock", nested(1, is_machines));
    }
}

/// The reader of a sequence lock begins again while a writer is at work.
fn sequence_lock(is_ended: bool, order: ulocks_vm::sync::Ordering) -> impl Fn() + Clone + 'static {
    move || {
        let state = ([0; 3].map(AtomicU32::new), is_ended, order);
        each(2, state, |([sequence, a, b], is_ended, order), me| {
            if me == 0 {
                sequence.store(1, Relaxed);
                fence(Release);
                a.store(1, Relaxed);
                b.store(1, Relaxed);
                if *is_ended {
                    sequence.store(2, *order);
                }
                return;
            }
            loop {
                let before = sequence.load(Acquire);
                let seen = (a.load(Relaxed), b.load(Relaxed));
                fence(Acquire);
                if before % 2 == 0 && sequence.load(Relaxed) == before {
                    assert_eq!(seen.0, seen.1);
                    break;
                }
            }
        });
    }
}

#[test]
fn the_reader_of_a_sequence_lock() {
    completes(sequence_lock(true, Release));
    fails("panic", sequence_lock(true, Relaxed));
    fails("deadlock", sequence_lock(false, Release));
}

/// A barrier that reverses its sense, used twice.
fn barrier(arrivals: u32, order: ulocks_vm::sync::Ordering) -> impl Fn() + Clone + 'static {
    move || {
        let state =
            (AtomicU32::new(arrivals), AtomicBool::new(false), [Data::default(), Data::default()], order);
        each(2, state, |(left, sense, data, order), me| {
            let mut mine = false;
            let mut wait = || {
                mine = !mine;
                if left.fetch_sub(1, *order) == 1 {
                    left.store(2, Relaxed);
                    sense.store(mine, Release);
                } else {
                    while sense.load(Acquire) != mine {
                        pause();
                    }
                }
            };
            data[me].add();
            wait();
            data[1 - me].get();
            wait();
            data[me].add();
        });
    }
}

#[test]
fn a_barrier_that_reverses_its_sense() {
    completes(barrier(2, AcqRel));
    fails("data race", barrier(2, Relaxed));
    fails("deadlock", barrier(3, AcqRel));
}

/// A value that is made once.
fn once(is_told: bool, order: ulocks_vm::sync::Ordering) -> impl Fn() + Clone + 'static {
    move || {
        let state = (AtomicU32::new(0), Data::default(), is_told, order);
        each(3, state, |(state, data, is_told, order), _| {
            match state.compare_exchange(0, 1, Acquire, Acquire) {
                Ok(_) => {
                    data.add();
                    if *is_told {
                        state.store(2, *order);
                    }
                }
                Err(mut seen) => {
                    while seen != 2 {
                        yield_now();
                        seen = state.load(Acquire);
                    }
                }
            }
            assert_eq!(data.get(), 1);
        });
    }
}

#[test]
fn once_and_for_all() {
    completes(once(true, Release));
    fails("data race", once(true, Relaxed));
    fails("deadlock", once(false, Release));
}

/// A thread takes what another puts: each swaps until the slot is as it likes it.
fn slot(is_put: bool) -> impl Fn() + Clone + 'static {
    move || {
        let state = (AtomicU32::new(0), is_put);
        each(2, state, |(slot, is_put), me| {
            if me == 0 {
                while slot.swap(0, Acquire) == 0 {}
            } else if *is_put {
                while slot.compare_exchange(0, 7, Release, Relaxed).is_err() {}
            }
        });
    }
}

#[test]
fn a_loop_of_swaps() {
    completes(slot(true));
    fails("deadlock", slot(false));
}

/// A reader counts itself in unless a writer is there; the writer waits for the readers.
fn readers(is_checked: bool, leaves: bool) -> impl Fn() + Clone + 'static {
    move || {
        let state = (AtomicU32::new(0), Data::default(), is_checked, leaves);
        each(3, state, |(word, data, is_checked, leaves), me| {
            const WRITER: u32 = 1 << 31;
            if me == 0 {
                loop {
                    let free = if *is_checked { 0 } else { word.load(Relaxed) };
                    if word.compare_exchange(free, free | WRITER, Acquire, Relaxed).is_ok() {
                        break;
                    }
                    pause();
                }
                data.add();
                word.fetch_and(!WRITER, Release);
                return;
            }
            let mut seen = word.load(Relaxed);
            loop {
                if seen & WRITER != 0 {
                    pause();
                    seen = word.load(Relaxed);
                    continue;
                }
                match word.compare_exchange(seen, seen + 1, Acquire, Relaxed) {
                    Ok(_) => break,
                    Err(now) => seen = now,
                }
            }
            data.get();
            if *leaves {
                word.fetch_sub(1, Release);
            }
        });
    }
}

#[test]
fn readers_and_a_writer_that_spin() {
    completes(readers(true, true));
    fails("data race", readers(false, true));
    fails("deadlock", readers(true, false));
}

/// Another thread changes a word within a round and puts it back: the next round is another.
#[test]
fn a_round_that_saw_a_word_change_and_change_back_is_repeated() {
    completes(|| {
        each(2, AtomicU32::new(1), |word, me| {
            if me == 0 {
                word.store(0, Relaxed);
                word.store(1, Relaxed);
            } else {
                while [(); 3].map(|()| word.load(Relaxed)) != [1; 3] {}
            }
        });
    });
}
