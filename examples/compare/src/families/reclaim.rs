//! Who may still use what is to be given back: counts, hazard pointers, epochs.

use super::super::programs::{Program, right, wrong};
use super::super::world::fence;
use super::{Body, Place, quiet, run, wait};
use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release, SeqCst};

pub const ALL: &[Program] = &[
    right("hazard pointer", || hazard(true, true)),
    wrong("hazard pointer, no fence", || hazard(false, true)),
    wrong("hazard pointer, no second look", || hazard(true, false)),
    right("read, copy, update", || rcu(true, Release, Acquire)),
    wrong("read, copy, update, no fence", || rcu(false, Release, Acquire)),
    wrong("read, copy, update, relaxed exit", || rcu(true, Relaxed, Acquire)),
    wrong("read, copy, update, relaxed look", || rcu(true, Release, Relaxed)),
    right("epochs", || epochs(true, true)),
    wrong("epochs, no fence", || epochs(false, true)),
    wrong("epochs, given back at once", || epochs(true, false)),
    right("reference count", || count(Release, true)),
    wrong("reference count, relaxed drop", || count(Relaxed, true)),
    wrong("reference count, no fence", || count(Release, false)),
    right("upgrade of a weak pointer", || weak(true)),
    wrong("upgrade of a weak pointer, in two steps", || weak(false)),
    right("the only pointer", || unique(Acquire)),
    wrong("the only pointer, relaxed look", || unique(Relaxed)),
    right("box made once", || once(Release, Acquire, true)),
    wrong("box made once, relaxed publication", || once(Relaxed, Acquire, true)),
    wrong("box made once, relaxed look", || once(Release, Relaxed, true)),
    wrong("box made twice", || once(Release, Acquire, false)),
];

/// Word 0 names the data in use, word 1 the data that a reader uses. Data 1 takes the place of 0,
/// which is then given back.
fn hazard(fences: bool, looks_again: bool) {
    let reader = quiet(move |place: &Place<2, 3>| {
        loop {
            let seen = place.words[0].load(Acquire);
            place.words[1].store(seen, Release);
            if fences {
                fence(SeqCst);
            }
            if !looks_again || place.words[0].load(Acquire) == seen {
                place.read(seen as usize);
                return place.words[1].store(0, Release);
            }
        }
    });
    let writer = quiet(move |place: &Place<2, 3>| {
        place.write(2, 1);
        place.words[0].store(2, Release);
        if fences {
            fence(SeqCst);
        }
        wait(|| place.words[1].load(Acquire) != 1);
        place.write(1, 9);
    });
    run(&[(0, 1)], vec![reader, writer]);
}

/// Word 0 names the data, word 1 says that a reader is in.
fn rcu(fences: bool, exit: Ordering, look: Ordering) {
    let reader = quiet(move |place: &Place<2, 2>| {
        place.words[1].store(1, Relaxed);
        if fences {
            fence(SeqCst);
        }
        let seen = place.words[0].load(Acquire);
        place.read(seen as usize);
        place.words[1].store(0, exit);
    });
    let writer = quiet(move |place: &Place<2, 2>| {
        place.write(1, 1);
        place.words[0].store(1, Release);
        if fences {
            fence(SeqCst);
        }
        wait(|| place.words[1].load(look) == 0);
        place.write(0, 9);
    });
    run(&[], vec![reader, writer]);
}

/// Word 0 is the epoch, word 1 that of the reader (0: it is out), word 2 names the data.
fn epochs(fences: bool, waits: bool) {
    let reader = quiet(move |place: &Place<3, 2>| {
        let epoch = place.words[0].load(Relaxed);
        place.words[1].store(epoch, Relaxed);
        if fences {
            fence(SeqCst);
        }
        let seen = place.words[2].load(Acquire);
        place.read(seen as usize);
        place.words[1].store(0, Release);
    });
    let writer = quiet(move |place: &Place<3, 2>| {
        place.write(1, 1);
        place.words[2].store(1, Release);
        for epoch in 2..4 {
            if fences {
                fence(SeqCst);
            }
            // Advances if the reader is out, or in this epoch already.
            if waits {
                wait(|| matches!(place.words[1].load(Acquire), local if local == 0 || local == epoch - 1));
            }
            place.words[0].store(epoch, Release);
        }
        place.write(0, 9);
    });
    run(&[(0, 1)], vec![reader, writer]);
}

fn count(drops: Ordering, fences: bool) {
    let body = |me: u32| {
        quiet(move |place: &Place<1, 1>| {
            if me == 0 {
                place.read(0);
            }
            if place.words[0].fetch_sub(1, drops) == 1 {
                if fences {
                    fence(Acquire);
                }
                place.write(0, 9);
            }
        })
    };
    run(&[(0, 2)], vec![body(0), body(1)]);
}

/// The last pointer goes while another thread upgrades.
fn weak(at_once: bool) {
    let drops = |place: &Place<1, 1>| {
        if place.words[0].fetch_sub(1, Release) == 1 {
            fence(Acquire);
            place.write(0, 9);
        }
    };
    let last = quiet(drops);
    let upgrades = quiet(move |place: &Place<1, 1>| {
        let mut seen = place.words[0].load(Relaxed);
        while seen != 0 {
            if !at_once {
                place.words[0].fetch_add(1, Acquire);
                break;
            }
            match place.words[0].compare_exchange(seen, seen + 1, Acquire, Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        if seen != 0 {
            assert_eq!(place.read(0), 0, "the value is gone");
            drops(place);
        }
    });
    run(&[(0, 1)], vec![last, upgrades]);
}

/// One of two pointers goes, and the other looks whether it is alone.
fn unique(look: Ordering) {
    let other = quiet(|place: &Place<1, 1>| {
        place.read(0);
        place.words[0].fetch_sub(1, Release);
    });
    let mine = quiet(move |place: &Place<1, 1>| {
        if place.words[0].load(look) == 1 {
            place.write(0, 1);
        }
    });
    run(&[(0, 2)], vec![other, mine]);
}

/// Each thread makes a value, and one of them is taken by both.
fn once(publish: Ordering, look: Ordering, at_once: bool) {
    let body = |me: u32| -> Body<1, 3> {
        Box::new(move |place| {
            let mut seen = place.words[0].load(look);
            if seen == 0 {
                place.write(me as usize, me);
                seen = me;
                if !at_once {
                    place.words[0].store(me, publish);
                } else if let Err(other) = place.words[0].compare_exchange(0, me, publish, look) {
                    seen = other;
                }
            }
            assert_eq!(place.read(seen as usize), seen);
            seen
        })
    };
    let (seen, _) = run(&[], vec![body(1), body(2)]);
    assert_eq!(seen[0], seen[1], "two values");
}
