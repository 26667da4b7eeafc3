//! The programs: a few lines each, after the litmus tests of the literature or a known bug.

use super::world::{Arc, AtomicU32, JoinHandle, UnsafeCell, fence, spawn, yield_now};
use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release, SeqCst};

/// A program, and whether some execution of it is wrong.
#[derive(Clone, Copy)]
pub struct Program {
    pub name: &'static str,
    #[allow(dead_code, reason = "the table asks one world, and each has a list")]
    pub is_wrong: bool,
    pub run: fn(),
}

pub const ALL: &[Program] = &[
    wrong("relaxed flag", || flag(Relaxed)),
    right("release flag", || flag(Release)),
    wrong("two stores pass two loads", || store_buffering(Relaxed, false)),
    right("SeqCst stores and loads", || store_buffering(SeqCst, false)),
    right("SeqCst fences between", || store_buffering(Relaxed, true)),
    right("four threads, SeqCst", iriw),
    wrong("increment in two steps", two_steps),
    wrong("weak exchange fails twice", weak_exchange),
    wrong("failed exchange reads an old value", failed_exchange),
    wrong("exchange of an old value", old_exchange),
    wrong("spin lock, relaxed unlock", || spin_lock(Relaxed)),
    right("spin lock, yields", || spin_lock(Release)),
    wrong("stack takes a node back", stack),
    wrong("two waits in a circle", circle),
    wrong("load buffering", load_buffering),
];

pub const fn wrong(name: &'static str, run: fn()) -> Program {
    Program { name, is_wrong: true, run }
}

pub const fn right(name: &'static str, run: fn()) -> Program {
    Program { name, is_wrong: false, run }
}

struct Shared<const N: usize> {
    words: [AtomicU32; N],
    data: UnsafeCell<u32>,
}

// SAFETY: `data` is accessed by one thread at a time if the protocol is right. The tools say if
// not.
unsafe impl<const N: usize> Sync for Shared<N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Send for Shared<N> {}

fn shared<const N: usize>() -> Arc<Shared<N>> {
    let words = std::array::from_fn(|_| AtomicU32::new(0));
    Arc::new(Shared { words, data: UnsafeCell::new(0) })
}

/// Runs `body` in a thread of its own.
fn with<const N: usize, R: Send + 'static>(
    all: &Arc<Shared<N>>,
    body: impl FnOnce(&Shared<N>) -> R + Send + 'static,
) -> JoinHandle<R> {
    let all = Arc::clone(all);
    spawn(move || body(&all))
}

/// Data behind a flag.
fn flag(order: Ordering) {
    let all = shared::<1>();
    let sender = with(&all, move |all| {
        // SAFETY: no thread reads before the flag is set.
        all.data.with_mut(|data| unsafe { *data = 7 });
        all.words[0].store(1, order);
    });
    if all.words[0].load(Acquire) == 1 {
        // SAFETY: the flag is set.
        assert_eq!(all.data.with(|data| unsafe { *data }), 7);
    }
    sender.join().unwrap();
}

/// Dekker: each stores one word and loads the other.
fn store_buffering(order: Ordering, fences: bool) {
    let all = shared::<2>();
    let enters = move |all: &Shared<2>, mine: usize| {
        all.words[mine].store(1, order);
        if fences {
            fence(SeqCst);
        }
        all.words[1 - mine].load(order) == 0
    };
    let left = with(&all, move |all| enters(all, 0));
    let right = enters(&all, 1);
    assert!(!(left.join().unwrap() && right), "both are in");
}

/// Two readers of two independent writes agree on their order.
fn iriw() {
    let all = shared::<2>();
    let writer = |word: usize| with(&all, move |all| all.words[word].store(1, SeqCst));
    let writers = [writer(0), writer(1)];
    let other = with(&all, |all| (all.words[0].load(SeqCst), all.words[1].load(SeqCst)));
    let mine = (all.words[1].load(SeqCst), all.words[0].load(SeqCst));
    let theirs = other.join().unwrap();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert!((mine, theirs) != ((1, 0), (1, 0)), "the readers disagree");
}

/// A load and a store in place of an addition.
fn two_steps() {
    let all = shared::<1>();
    let add = |all: &Shared<1>| all.words[0].store(all.words[0].load(SeqCst) + 1, SeqCst);
    let other = with(&all, move |all| add(all));
    add(&all);
    other.join().unwrap();
    assert_eq!(all.words[0].load(SeqCst), 2);
}

/// One retry is not enough.
fn weak_exchange() {
    let word = AtomicU32::new(0);
    let once = || word.compare_exchange_weak(0, 1, Relaxed, Relaxed).is_ok();
    assert!(once() || once(), "it failed twice");
}

/// The failing exchange is a load: it need not see the newest value.
fn failed_exchange() {
    let all = shared::<2>();
    let other = with(&all, |all| {
        all.words[0].store(1, Relaxed);
        all.words[0].store(2, Relaxed);
        all.words[1].store(1, Relaxed);
    });
    if all.words[1].load(Relaxed) == 1 {
        assert_ne!(all.words[0].compare_exchange(5, 6, Relaxed, Relaxed), Err(1), "an old value");
    }
    other.join().unwrap();
}

/// An exchange may take the place behind a value that is not the newest.
fn old_exchange() {
    let all = shared::<2>();
    let other = with(&all, |all| {
        all.words[0].store(1, Relaxed);
        all.words[1].store(1, Relaxed);
    });
    let seen = all.words[1].load(Relaxed);
    let before = all.words[0].swap(2, Relaxed);
    other.join().unwrap();
    assert!(
        (seen, before) != (1, 0),
        "the exchange came before a store that was followed by one that is seen"
    );
}

/// Test-and-set, with a yield in each round.
fn spin_lock(unlock: Ordering) {
    let all = shared::<1>();
    let section = move |all: &Shared<1>| {
        while all.words[0].swap(1, Acquire) == 1 {
            yield_now();
        }
        // SAFETY: the lock is held.
        all.data.with_mut(|data| unsafe { *data += 1 });
        all.words[0].store(0, unlock);
    };
    let other = with(&all, move |all| section(all));
    section(&all);
    other.join().unwrap();
    // SAFETY: the other thread has ended.
    assert_eq!(all.data.with(|data| unsafe { *data }), 2);
}

/// Treiber's stack of two nodes without a tag: word 0 is the head, words 1 and 2 say what is behind
/// the nodes.
fn stack() {
    fn pop(all: &Shared<3>) -> u32 {
        let mut head = all.words[0].load(Acquire);
        while head != 0 {
            let next = all.words[head as usize].load(Relaxed);
            match all.words[0].compare_exchange(head, next, Acquire, Acquire) {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        head
    }
    fn push(all: &Shared<3>, node: u32) {
        let mut head = all.words[0].load(Relaxed);
        loop {
            all.words[node as usize].store(head, Relaxed);
            match all.words[0].compare_exchange(head, node, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }
    let all = shared::<3>();
    push(&all, 2);
    push(&all, 1);
    let other = with(&all, pop);
    let (first, second) = (pop(&all), pop(&all));
    if first != 0 {
        push(&all, first);
    }
    let (theirs, third) = (other.join().unwrap(), pop(&all));
    let taken = [theirs, second, third];
    for (nth, node) in taken.iter().enumerate().filter(|(_, node)| **node != 0) {
        assert!(!taken[..nth].contains(node), "a node was taken twice");
    }
}

/// Each waits for the other's flag before it sets its own.
fn circle() {
    let all = shared::<2>();
    let waits = |all: &Shared<2>, mine: usize| {
        while all.words[1 - mine].load(Acquire) == 0 {
            yield_now();
        }
        all.words[mine].store(1, Release);
    };
    let other = with(&all, move |all| waits(all, 0));
    waits(&all, 1);
    other.join().unwrap();
}

/// Each loads one word and then stores the other: Arm and Power let both loads read the stores.
fn load_buffering() {
    let all = shared::<2>();
    let passes = |all: &Shared<2>, mine: usize| {
        let seen = all.words[mine].load(Relaxed);
        all.words[1 - mine].store(1, Relaxed);
        seen
    };
    let other = with(&all, move |all| passes(all, 0));
    let mine = passes(&all, 1);
    assert!((mine, other.join().unwrap()) != (1, 1), "both loads read later stores");
}
