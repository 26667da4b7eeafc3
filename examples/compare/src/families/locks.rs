//! Locks.

use super::super::programs::{Program, right, wrong};
use super::super::world::fence;
use super::{Body, Clients, Place, Strong, THREE, TWO, exclude, quiet, run, wait};
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

pub const ALL: &[Program] = &[
    right("ticket lock", || ticket(THREE, Acquire, Release, Draw::AtOnce)),
    wrong("ticket lock, relaxed wait", || ticket(TWO, Relaxed, Release, Draw::AtOnce)),
    wrong("ticket lock, relaxed unlock", || ticket(TWO, Acquire, Relaxed, Draw::AtOnce)),
    right("ticket lock, try", || ticket_try(Acquire)),
    wrong("ticket lock, relaxed try", || ticket_try(Relaxed)),
    right("test, then test and set", || ttas(true)),
    wrong("test, then set", || ttas(false)),
    right("MCS", || mcs(TWO, Release, Acquire, true)),
    wrong("MCS, relaxed hand-over", || mcs(TWO, Relaxed, Acquire, true)),
    wrong("MCS, relaxed wait", || mcs(TWO, Release, Relaxed, true)),
    wrong("MCS, does not wait for the link", || mcs(TWO, Release, Acquire, false)),
    right("CLH", || clh(TWO, Release, Acquire)),
    wrong("CLH, relaxed unlock", || clh(TWO, Relaxed, Acquire)),
    wrong("CLH, relaxed wait", || clh(TWO, Release, Relaxed)),
    right("Peterson", || peterson(TWO, Strong::Accesses, true, Release)),
    wrong("Peterson, acquire and release", || peterson(TWO, Strong::Not, true, Release)),
    wrong("Peterson, no turn", || peterson(TWO, Strong::Accesses, false, Release)),
    right("Dekker", || dekker(TWO, Strong::Accesses, SeqCst)),
    wrong("Dekker, acquire and release", || dekker(TWO, Strong::Not, Release)),
    right("bakery", || bakery(TWO, Strong::Accesses, true, SeqCst)),
    wrong("bakery, acquire and release", || bakery(TWO, Strong::Not, true, Release)),
    wrong("bakery, does not wait for a number", || bakery(TWO, Strong::Accesses, false, SeqCst)),
    right("readers and a writer", || counted(Release, Acquire)),
    wrong("readers and a writer, relaxed reader", || counted(Relaxed, Acquire)),
    wrong("readers and a writer, relaxed writer", || counted(Release, Relaxed)),
    right("upgrade of a reader", || upgrade(true)),
    wrong("upgrade of two readers", || upgrade(false)),
    right("phase-fair PF-T", || phase_fair(Release, Acquire)),
    wrong("phase-fair PF-T, relaxed reader's exit", || phase_fair(Relaxed, Acquire)),
    wrong("phase-fair PF-T, relaxed writer's entry", || phase_fair(Release, Relaxed)),
    right("bias for readers (BRAVO)", || bravo(true, true)),
    wrong("bias for readers, no fence", || bravo(false, true)),
    wrong("bias for readers, no second look", || bravo(true, false)),
    right("sense barrier", || barrier(AcqRel, true)),
    wrong("sense barrier, relaxed arrival", || barrier(Relaxed, true)),
    wrong("sense barrier, reset too late", || barrier(AcqRel, false)),
    right("semaphore", || semaphore(true, Release)),
    wrong("semaphore, two steps", || semaphore(false, Release)),
    wrong("semaphore, relaxed release", || semaphore(true, Relaxed)),
    right("parked waiter", || parked(true)),
    wrong("parked waiter, woken before the unlock", || parked(false)),
    right("left-right", || left_right(true, true)),
    wrong("left-right, no fence", || left_right(false, true)),
    wrong("left-right, writer does not wait", || left_right(true, false)),
];

/// How a ticket is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Draw {
    AtOnce,
    /// By a load and a store: two threads may have the same.
    InTwoSteps,
    /// At once; and a thread that finds one before it serves itself, as if the holder were gone.
    Impatient,
}

pub fn ticket(clients: Clients, look: Ordering, unlock: Ordering, draw: Draw) {
    exclude::<2>(
        clients,
        &[],
        move |place, _| {
            let mine = if draw == Draw::InTwoSteps {
                let mine = place.words[0].load(Relaxed);
                place.words[0].store(mine + 1, Relaxed);
                mine
            } else {
                place.words[0].fetch_add(1, Relaxed)
            };
            if draw == Draw::Impatient && place.words[1].load(Relaxed) + 1 == mine {
                place.words[1].fetch_add(1, Relaxed);
            }
            wait(|| place.words[1].load(look) == mine);
            true
        },
        move |place, _| {
            let served = place.words[1].load(Relaxed);
            place.words[1].store(served + 1, unlock);
        },
    );
}

fn ticket_try(look: Ordering) {
    exclude::<2>(
        THREE,
        &[],
        move |place, me| {
            if me == 2 {
                let mine = place.words[0].fetch_add(1, Relaxed);
                wait(|| place.words[1].load(Acquire) == mine);
                return true;
            }
            let served = place.words[1].load(look);
            place.words[0].compare_exchange(served, served + 1, Relaxed, Relaxed).is_ok()
        },
        move |place, _| {
            let served = place.words[1].load(Relaxed);
            place.words[1].store(served + 1, Release);
        },
    );
}

fn ttas(sets: bool) {
    exclude::<1>(
        TWO,
        &[],
        move |place, _| {
            wait(|| {
                place.words[0].load(Relaxed) == 0
                    && if sets {
                        place.words[0].swap(1, Acquire) == 0
                    } else {
                        place.words[0].store(1, SeqCst);
                        true
                    }
            });
            true
        },
        |place, _| place.words[0].store(0, Release),
    );
}

/// Word 0 is the tail; thread `n` has words `1 + 2 * n`, its link, and the next one, which is 1
/// while it waits.
pub fn mcs(clients: Clients, hand_over: Ordering, look: Ordering, waits_for_link: bool) {
    exclude::<7>(
        clients,
        &[],
        move |place, me| {
            let node = 1 + 2 * me as usize;
            place.words[node].store(0, Relaxed);
            place.words[node + 1].store(1, Relaxed);
            let before = place.words[0].swap(me + 1, AcqRel);
            if before != 0 {
                place.words[2 * before as usize - 1].store(me + 1, Release);
                wait(|| place.words[node + 1].load(look) == 0);
            }
            true
        },
        move |place, me| {
            let node = 1 + 2 * me as usize;
            if place.words[node].load(Acquire) == 0 {
                if place.words[0].compare_exchange(me + 1, 0, Release, Relaxed).is_ok() || !waits_for_link {
                    return;
                }
                wait(|| place.words[node].load(Acquire) != 0);
            }
            let next = place.words[node].load(Acquire);
            place.words[2 * next as usize].store(0, hand_over);
        },
    );
}

/// Word 0 is the tail, and names one of the words behind it, which is 1 while its thread has the
/// lock or waits for it. Thread `n` begins with word `n + 2`, and ends with its predecessor's.
pub fn clh(clients: Clients, unlock: Ordering, look: Ordering) {
    exclude::<5>(
        clients,
        &[(0, 1)],
        move |place, me| {
            place.words[me as usize + 2].store(1, Relaxed);
            let before = place.words[0].swap(me + 2, AcqRel);
            wait(|| place.words[before as usize].load(look) == 0);
            true
        },
        move |place, me| place.words[me as usize + 2].store(0, unlock),
    );
}

pub fn peterson(clients: Clients, strong: Strong, has_turn: bool, unlock: Ordering) {
    exclude::<3>(
        clients,
        &[],
        move |place, me| {
            let (mine, other) = (me as usize, 1 - me as usize);
            strong.store(&place.words[mine], 1);
            if has_turn {
                strong.store(&place.words[2], 1 - me);
            }
            wait(|| strong.load(&place.words[other]) == 0 || has_turn && strong.load(&place.words[2]) == me);
            true
        },
        move |place, me| place.words[me as usize].store(0, unlock),
    );
}

pub fn dekker(clients: Clients, strong: Strong, unlock: Ordering) {
    exclude::<3>(
        clients,
        &[],
        move |place, me| {
            let (mine, other) = (me as usize, 1 - me as usize);
            strong.store(&place.words[mine], 1);
            while strong.load(&place.words[other]) == 1 {
                if strong.load(&place.words[2]) != me {
                    strong.store(&place.words[mine], 0);
                    wait(|| strong.load(&place.words[2]) == me);
                    strong.store(&place.words[mine], 1);
                } else {
                    wait(|| strong.load(&place.words[other]) == 0);
                }
            }
            true
        },
        move |place, me| {
            place.words[2].store(1 - me, unlock);
            place.words[me as usize].store(0, unlock);
        },
    );
}

/// Words 0 and 1: who chooses a number; words 2 and 3: the numbers.
pub fn bakery(clients: Clients, strong: Strong, waits: bool, unlock: Ordering) {
    exclude::<4>(
        clients,
        &[],
        move |place, me| {
            let (mine, other) = (me as usize, 1 - me as usize);
            strong.store(&place.words[mine], 1);
            let number = 1 + strong.load(&place.words[2 + other]);
            strong.store(&place.words[2 + mine], number);
            strong.store(&place.words[mine], 0);
            if waits {
                wait(|| strong.load(&place.words[other]) == 0);
            }
            wait(|| {
                let theirs = strong.load(&place.words[2 + other]);
                theirs == 0 || (number, mine) < (theirs, other)
            });
            true
        },
        move |place, me| place.words[2 + me as usize].store(0, unlock),
    );
}

const WRITER: u32 = 1 << 16;

fn enter_to_read(word: &super::super::world::AtomicU32) {
    wait(|| {
        let seen = word.load(Relaxed);
        seen < WRITER && word.compare_exchange(seen, seen + 1, Acquire, Relaxed).is_ok()
    });
}

fn counted(reader: Ordering, writer: Ordering) {
    let reads = || -> Body<1, 1> {
        Box::new(move |place| {
            enter_to_read(&place.words[0]);
            let seen = place.read(0);
            place.words[0].fetch_sub(1, reader);
            seen
        })
    };
    let writes = quiet(move |place: &Place<1, 1>| {
        wait(|| place.words[0].compare_exchange(0, WRITER, writer, Relaxed).is_ok());
        place.count();
        place.words[0].store(0, Release);
    });
    run(&[], vec![reads(), writes, reads()]);
}

/// Two readers that want to write. One gives up if the other was first.
fn upgrade(gives_up: bool) {
    let body = || -> Body<1, 1> {
        Box::new(move |place| {
            let word = &place.words[0];
            enter_to_read(word);
            let is_first = word.fetch_or(WRITER, Relaxed) < WRITER;
            if !is_first && gives_up {
                word.fetch_sub(1, Release);
                return 0;
            }
            wait(|| word.load(Acquire) == WRITER + 1);
            place.count();
            word.store(0, Release);
            1
        })
    };
    let (held, place) = run(&[], vec![body(), body()]);
    assert_eq!(place.read(0), held.iter().sum::<u32>());
}

/// Words: readers in, readers out, writers in, writers out; a reader counts 4, the low bits of the
/// readers' entry say that a writer is there, and its phase.
fn phase_fair(exit: Ordering, entry: Ordering) {
    let reads = || {
        quiet(move |place: &Place<4, 1>| {
            let seen = place.words[0].fetch_add(4, Acquire) & 3;
            wait(|| seen == 0 || place.words[0].load(Acquire) & 3 != seen);
            place.read(0);
            place.words[1].fetch_add(4, exit);
        })
    };
    let writes = quiet(move |place: &Place<4, 1>| {
        let ticket = place.words[2].fetch_add(1, Relaxed);
        wait(|| place.words[3].load(Acquire) == ticket);
        let readers = place.words[0].fetch_add(2 | ticket & 1, Relaxed) & !3;
        wait(|| place.words[1].load(entry) == readers);
        place.count();
        place.words[0].fetch_and(!3, Release);
        place.words[3].store(ticket + 1, Release);
    });
    run(&[], vec![reads(), reads(), writes]);
}

/// Words: the bias, the slot of a reader, the lock below.
fn bravo(fences: bool, looks_again: bool) {
    let reads = quiet(move |place: &Place<3, 1>| {
        if place.words[0].load(Relaxed) == 1 {
            place.words[1].store(1, Relaxed);
            if fences {
                fence(SeqCst);
            }
            if !looks_again || place.words[0].load(Acquire) == 1 {
                place.read(0);
                return place.words[1].store(0, Release);
            }
            place.words[1].store(0, Relaxed);
        }
        wait(|| place.words[2].swap(1, Acquire) == 0);
        place.read(0);
        place.words[2].store(0, Release);
    });
    let writes = quiet(move |place: &Place<3, 1>| {
        wait(|| place.words[2].swap(1, Acquire) == 0);
        place.words[0].store(0, Relaxed);
        if fences {
            fence(SeqCst);
        }
        wait(|| place.words[1].load(Acquire) == 0);
        place.count();
        place.words[2].store(0, Release);
    });
    run(&[(0, 1)], vec![reads, writes]);
}

/// Two rounds of two threads. Words: how many have arrived, and the sense.
fn barrier(arrival: Ordering, resets_first: bool) {
    let body = |me: usize| {
        quiet(move |place: &Place<2, 2>| {
            for round in 0..2 {
                place.write(me, round + 1);
                if place.words[0].fetch_add(1, arrival) == 1 {
                    if resets_first {
                        place.words[0].store(0, Relaxed);
                    }
                    place.words[1].store(round + 1, Release);
                    if !resets_first {
                        place.words[0].store(0, Relaxed);
                    }
                } else {
                    wait(|| place.words[1].load(Acquire) == round + 1);
                }
                if round == 0 {
                    assert_eq!(place.words[1].load(Relaxed), 1, "too early");
                } else {
                    assert_eq!(place.read(1 - me), 2, "an old round");
                }
            }
        })
    };
    run(&[], vec![body(0), body(1)]);
}

fn semaphore(at_once: bool, release: Ordering) {
    exclude::<1>(
        TWO,
        &[(0, 1)],
        move |place, _| {
            wait(|| match place.words[0].load(Acquire) {
                0 => false,
                free if at_once => place.words[0].compare_exchange(free, free - 1, Acquire, Relaxed).is_ok(),
                free => {
                    place.words[0].store(free - 1, Relaxed);
                    true
                }
            });
            true
        },
        move |place, _| _ = place.words[0].fetch_add(1, release),
    );
}

/// A waiter leaves a mark, and sleeps until its token comes. Words: the lock (2: somebody sleeps),
/// the token.
fn parked(unlocks_first: bool) {
    exclude::<2>(
        TWO,
        &[],
        |place, _| {
            if place.words[0].compare_exchange(0, 1, Acquire, Relaxed).is_err() {
                while place.words[0].swap(2, Acquire) != 0 {
                    wait(|| place.words[1].swap(0, Acquire) == 1);
                }
            }
            true
        },
        move |place, _| {
            let is_waited_for = if unlocks_first {
                place.words[0].swap(0, Release) == 2
            } else {
                let is_waited_for = place.words[0].load(Relaxed) == 2;
                if is_waited_for {
                    place.words[1].store(1, Release);
                }
                place.words[0].store(0, Release);
                return;
            };
            if is_waited_for {
                place.words[1].store(1, Release);
            }
        },
    );
}

/// Two copies of the data; the word says which one readers take, and another counts them there.
fn left_right(fences: bool, waits: bool) {
    let reads = quiet(move |place: &Place<2, 2>| {
        place.words[1].fetch_add(1, Acquire);
        if fences {
            fence(SeqCst);
        }
        let side = place.words[0].load(Acquire) as usize;
        place.read(side);
        place.words[1].fetch_sub(1, Release);
    });
    let writes = quiet(move |place: &Place<2, 2>| {
        place.write(1, 1);
        place.words[0].store(1, Release);
        if fences {
            fence(SeqCst);
        }
        if waits {
            wait(|| place.words[1].load(Acquire) == 0);
        }
        place.write(0, 1);
    });
    run(&[], vec![reads, writes]);
}
