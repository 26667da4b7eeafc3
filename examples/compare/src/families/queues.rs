//! Queues, stacks and lists.

use super::super::programs::{Program, right, wrong};
use super::super::world::fence;
use super::{Body, Place, quiet, run, wait};
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

pub const ALL: &[Program] = &[
    right("one producer, one consumer", || fast_forward(Release, Acquire, Release)),
    wrong("one producer, relaxed", || fast_forward(Relaxed, Acquire, Release)),
    wrong("one consumer, relaxed look", || fast_forward(Release, Relaxed, Release)),
    wrong("one consumer, relaxed release", || fast_forward(Release, Acquire, Relaxed)),
    right("bounded queue (Vyukov)", || bounded(Release, Acquire)),
    wrong("bounded queue, relaxed sequence", || bounded(Relaxed, Acquire)),
    wrong("bounded queue, relaxed look", || bounded(Release, Relaxed)),
    right("queue of many producers (Vyukov)", || producers(AcqRel, Release)),
    wrong("queue of many producers, relaxed swap", || producers(Relaxed, Release)),
    wrong("queue of many producers, relaxed link", || producers(AcqRel, Relaxed)),
    right("Michael and Scott", || michael_scott(Release, true)),
    wrong("Michael and Scott, relaxed link", || michael_scott(Relaxed, true)),
    wrong("Michael and Scott, no help", || michael_scott(Release, false)),
    right("Treiber, with a tag", || treiber(Release, Acquire, true)),
    wrong("Treiber, no tag", || treiber(Release, Acquire, false)),
    wrong("Treiber, relaxed push", || treiber(Relaxed, Acquire, true)),
    wrong("Treiber, relaxed pop", || treiber(Release, Relaxed, true)),
    right("Chase and Lev", || chase_lev(true, true, true, true)),
    wrong("Chase and Lev, no fence in take", || chase_lev(false, true, true, true)),
    wrong("Chase and Lev, no fence in steal", || chase_lev(true, false, true, true)),
    wrong("Chase and Lev, no fence in push", || chase_lev(true, true, false, true)),
    right("list with marks (Harris)", || harris(true, Release)),
    wrong("list without marks", || harris(false, Release)),
    wrong("list, relaxed insertion", || harris(true, Relaxed)),
    right("triple buffer", || triple_buffer(AcqRel, true)),
    wrong("triple buffer, relaxed swap", || triple_buffer(Relaxed, true)),
    wrong("triple buffer, in two steps", || triple_buffer(AcqRel, false)),
    right("channel of one value", || one_shot(AcqRel, true)),
    wrong("channel of one value, relaxed", || one_shot(Relaxed, true)),
    wrong("channel of one value, in two steps", || one_shot(AcqRel, false)),
];

/// One slot, which is full if its word is set. Two values go through it.
fn fast_forward(fill: Ordering, look: Ordering, empty: Ordering) {
    let produce = quiet(move |place: &Place<1, 1>| {
        for value in 1..=2 {
            wait(|| place.words[0].load(Acquire) == 0);
            place.write(0, value);
            place.words[0].store(1, fill);
        }
    });
    let consume = quiet(move |place: &Place<1, 1>| {
        for value in 1..=2 {
            wait(|| place.words[0].load(look) == 1);
            assert_eq!(place.read(0), value);
            place.words[0].store(0, empty);
        }
    });
    run(&[], vec![produce, consume]);
}

/// Two slots. Words 0 and 1 are their sequences, word 2 the next to fill, word 3 the next to empty.
fn bounded(done: Ordering, look: Ordering) {
    let push = |value: u32| {
        quiet(move |place: &Place<4, 2>| {
            let mut at = place.words[2].load(Relaxed);
            loop {
                let slot = at as usize % 2;
                if place.words[slot].load(look) == at {
                    match place.words[2].compare_exchange(at, at + 1, Relaxed, Relaxed) {
                        Ok(_) => {
                            place.write(slot, value);
                            return place.words[slot].store(at + 1, done);
                        }
                        Err(now) => at = now,
                    }
                } else {
                    at = place.words[2].load(Relaxed);
                }
            }
        })
    };
    let pop: Body<4, 2> = Box::new(move |place| {
        let at = place.words[3].load(Relaxed);
        let slot = at as usize % 2;
        if place.words[slot].load(look) != at + 1 {
            return 0;
        }
        if place.words[3].compare_exchange(at, at + 1, Relaxed, Relaxed).is_err() {
            return 0;
        }
        let value = place.read(slot);
        place.words[slot].store(at + 2, done);
        value
    });
    let (popped, place) = run(&[(1, 1)], vec![push(1), push(2), pop]);
    let pushed = place.read(0) + place.read(1);
    assert_eq!(pushed, 3, "a value is lost, {} was taken", popped[2]);
}

/// Word 0 is the head, which names a node; word `n` is the link of node `n`. Node 1 is the stub.
fn producers(swap: Ordering, link: Ordering) {
    let push = |node: u32| {
        quiet(move |place: &Place<4, 4>| {
            place.write(node as usize, node);
            place.words[node as usize].store(0, Relaxed);
            let before = place.words[0].swap(node, swap);
            place.words[before as usize].store(node, link);
        })
    };
    let pop = quiet(|place: &Place<4, 4>| {
        let mut at = 1;
        for _ in 0..2 {
            let next = place.words[at].load(Acquire) as usize;
            if next == 0 {
                return;
            }
            assert_eq!(place.read(next), next as u32);
            at = next;
        }
        assert_eq!(place.words[0].load(Relaxed) as usize, at);
    });
    let (_, place) = run(&[(0, 1)], vec![push(2), push(3), pop]);
    let first = place.words[1].load(Relaxed) as usize;
    assert_eq!(place.words[first].load(Relaxed) as usize, 5 - first);
}

/// Word 0 is the head, word 1 the tail, word `n` the link of node `n`. Node 2 is the dummy.
fn michael_scott(link: Ordering, helps: bool) {
    let push = |node: u32| {
        quiet(move |place: &Place<5, 5>| {
            place.write(node as usize, node);
            loop {
                let tail = place.words[1].load(Acquire);
                let next = &place.words[tail as usize];
                match next.compare_exchange(0, node, link, Acquire) {
                    Ok(_) => {
                        let _ = place.words[1].compare_exchange(tail, node, Release, Relaxed);
                        return;
                    }
                    Err(other) if helps => {
                        let _ = place.words[1].compare_exchange(tail, other, Release, Relaxed);
                    }
                    Err(_) => return,
                }
            }
        })
    };
    let pop: Body<5, 5> = Box::new(|place| {
        let head = place.words[0].load(Acquire);
        let next = place.words[head as usize].load(Acquire);
        if next == 0 || place.words[0].compare_exchange(head, next, AcqRel, Relaxed).is_err() {
            return 0;
        }
        place.read(next as usize)
    });
    let (_, place) = run(&[(0, 2), (1, 2)], vec![push(3), push(4), pop]);
    let first = place.words[2].load(Relaxed) as usize;
    assert!(first >= 3, "nothing was pushed");
    assert_eq!(place.words[first].load(Relaxed) as usize, 7 - first, "a node is lost");
}

/// Word 0 is the head, with the count of its changes above, word `n` the link of node `n`. One
/// thread takes a node, the other takes both and puts the first one back.
fn treiber(push: Ordering, pop: Ordering, has_tag: bool) {
    const TAG: u32 = 1 << 8;
    let tag = if has_tag { TAG } else { 0 };
    fn take(place: &Place<3, 3>, tag: u32, order: Ordering) -> u32 {
        let mut head = place.words[0].load(order);
        while !head.is_multiple_of(TAG) {
            let next = place.words[(head % TAG) as usize].load(Relaxed) % TAG;
            let new = (head - head % TAG) + tag + next;
            match place.words[0].compare_exchange(head, new, order, order) {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        head % TAG
    }
    fn put(place: &Place<3, 3>, node: u32, tag: u32, order: Ordering) {
        place.write(node as usize, node);
        let mut head = place.words[0].load(Relaxed);
        loop {
            place.words[node as usize].store(head % TAG, Relaxed);
            let new = (head - head % TAG) + tag + node;
            match place.words[0].compare_exchange(head, new, order, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }
    let one: Body<3, 3> = Box::new(move |place| {
        let node = take(place, tag, pop);
        if node != 0 {
            place.read(node as usize);
        }
        node
    });
    let other: Body<3, 3> = Box::new(move |place| {
        put(place, 2, tag, push);
        put(place, 1, tag, push);
        let (first, second) = (take(place, tag, pop), take(place, tag, pop));
        if first != 0 {
            put(place, first, tag, push);
        }
        second
    });
    let (mut taken, place) = run(&[], vec![one, other]);
    taken.push(take(&place, tag, pop));
    taken.retain(|&node| node != 0);
    let all = taken.len();
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), all, "a node was taken twice");
}

/// Word 0 is the top, word 1 the bottom, both from 1 on, and words 3 and 4 are the items. N. M. Lê
/// et al., PPoPP 2013.
pub fn chase_lev(fence_in_take: bool, fence_in_steal: bool, fence_in_push: bool, last_by_exchange: bool) {
    let take = move |place: &Place<5, 2>| -> u32 {
        let bottom = place.words[1].load(Relaxed) - 1;
        place.words[1].store(bottom, Relaxed);
        if fence_in_take {
            fence(SeqCst);
        }
        let top = place.words[0].load(Relaxed);
        if top > bottom {
            place.words[1].store(bottom + 1, Relaxed);
            return 0;
        }
        let item = place.words[2 + bottom as usize].load(Relaxed);
        if top < bottom {
            return item;
        }
        let is_mine = if last_by_exchange {
            place.words[0].compare_exchange(top, top + 1, SeqCst, Relaxed).is_ok()
        } else {
            place.words[0].store(top + 1, Relaxed);
            true
        };
        place.words[1].store(bottom + 1, Relaxed);
        if is_mine { item } else { 0 }
    };
    let own: Body<5, 2> = Box::new(move |place| {
        for item in 0..2 {
            place.write(item, 1);
            place.words[3 + item].store(1 << item, Relaxed);
            if fence_in_push {
                // It counts for the stores of `take`, too, which a releasing store would not.
                fence(Release);
            }
            place.words[1].store(item as u32 + 2, Relaxed);
        }
        take(place) | take(place) << 2
    });
    let steal = move || -> Body<5, 2> {
        Box::new(move |place| {
            let top = place.words[0].load(Acquire);
            if fence_in_steal {
                fence(SeqCst);
            }
            let bottom = place.words[1].load(Acquire);
            if top >= bottom {
                return 0;
            }
            let item = place.words[2 + top as usize].load(Relaxed);
            if place.words[0].compare_exchange(top, top + 1, SeqCst, Relaxed).is_err() {
                return 0;
            }
            assert_eq!(place.read(top as usize - 1), 1);
            item
        })
    };
    let two: Body<5, 2> = Box::new(move |place| steal()(place) | steal()(place) << 2);
    let (taken, _) = run(&[(0, 1), (1, 1)], vec![two, own]);
    let mut items: Vec<u32> =
        taken.iter().flat_map(|both| [both & 3, both >> 2]).filter(|&item| item != 0).collect();
    items.sort_unstable();
    assert_eq!(items, [1, 2], "each is taken once");
}

/// Word `n` is the link of node `n`, with a mark on top if the node is removed. Node 1 is before
/// node 2. One thread removes node 2, the other inserts node 3 behind it.
fn harris(marks: bool, insertion: Ordering) {
    const MARK: u32 = 1 << 8;
    let remove: Body<4, 4> = Box::new(move |place| {
        loop {
            let next = place.words[2].load(Acquire);
            if marks && place.words[2].compare_exchange(next, next | MARK, AcqRel, Relaxed).is_err() {
                continue;
            }
            place.words[1].store(next, Release);
            return next;
        }
    });
    let insert: Body<4, 4> = Box::new(move |place| {
        place.write(3, 7);
        let is_in = place.words[2].compare_exchange(0, 3, insertion, Relaxed).is_ok();
        u32::from(is_in)
    });
    let read = quiet(|place: &Place<4, 4>| {
        let next = place.words[2].load(Acquire) % MARK;
        if next == 3 {
            assert_eq!(place.read(3), 7);
        }
    });
    let (results, place) = run(&[(1, 2)], vec![remove, read, insert]);
    let is_reached = place.words[1].load(Relaxed) == 3;
    assert_eq!(is_reached, results[2] == 1, "a node is lost");
}

/// Buffers 0 to 2. The word names the one between writer and reader, and says if it is new.
fn triple_buffer(swap: Ordering, at_once: bool) {
    const NEW: u32 = 1 << 8;
    let exchange = move |place: &Place<1, 3>, mine: u32| {
        if at_once {
            return place.words[0].swap(mine, swap);
        }
        let other = place.words[0].load(Acquire);
        place.words[0].store(mine, Release);
        other
    };
    let writer = quiet(move |place: &Place<1, 3>| {
        let mut mine = 0;
        for value in 1..=3 {
            place.write(mine as usize, value);
            mine = exchange(place, mine | NEW) % NEW;
        }
    });
    let reader = quiet(move |place: &Place<1, 3>| {
        let (mut mine, mut last) = (2, 0);
        for _ in 0..2 {
            if place.words[0].load(Relaxed) >= NEW {
                mine = exchange(place, mine) % NEW;
                let value = place.read(mine as usize);
                assert!(value > last, "an old value");
                last = value;
            }
        }
    });
    run(&[(0, 1)], vec![writer, reader]);
}

/// The word: 1, a value is there; 2, the receiver is gone. The side that comes last cleans up.
fn one_shot(order: Ordering, at_once: bool) {
    let step = move |place: &Place<1, 1>, bit: u32| {
        if at_once {
            return place.words[0].fetch_or(bit, order);
        }
        let before = place.words[0].load(Acquire);
        place.words[0].store(before | bit, Release);
        before
    };
    let sender: Body<1, 1> = Box::new(move |place| {
        place.write(0, 1);
        let cleans_up = step(place, 1) == 2;
        if cleans_up {
            place.write(0, 0);
        }
        u32::from(cleans_up)
    });
    let receiver: Body<1, 1> = Box::new(move |place| {
        let cleans_up = step(place, 2) == 1;
        if cleans_up {
            place.write(0, 0);
        }
        u32::from(cleans_up)
    });
    let (cleaned, _) = run(&[], vec![sender, receiver]);
    assert_eq!(cleaned.iter().sum::<u32>(), 1, "cleaned up by none, or twice");
}
