//! The exhaustive exploration against two others that know nothing of its reductions: all strings
//! of choices, and chance.

use crate::{outcomes, threads};
use std::collections::BTreeSet;
use std::sync::Arc;
use ulocks_vm::explore::{Config, Strategy, explore, run};
use ulocks_vm::futex;
use ulocks_vm::sync::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use ulocks_vm::sync::{AtomicU32, Ordering, fence};
use ulocks_vm::thread;

/// How many executions there are, those that repeat another left out, and in all.
fn count(model: impl Fn() + 'static) -> (u64, u64) {
    let report = explore(Config::exhaustive(), model);
    (report.executions, report.redundant)
}

#[test]
fn as_many_executions_as_can_be_counted_by_hand() {
    type Words = (AtomicU32, AtomicU32, AtomicU32);
    fn words() -> Words {
        (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0))
    }
    // Nothing in common: one.
    let apart: [fn(&Words); 3] = [
        |words| words.0.store(1, Relaxed),
        |words| words.1.store(1, Relaxed),
        |words| words.2.store(1, Relaxed),
    ];
    assert_eq!(count(move || crate::discard(threads(words(), apart))).0, 1);
    // Two stores to one word: its two orders.
    let store: fn(&Words) = |words| words.0.store(1, Relaxed);
    assert_eq!(count(move || crate::discard(threads(words(), [store, store]))).0, 2);
    // Three: six.
    assert_eq!(count(move || crate::discard(threads(words(), [store, store, store]))).0, 6);
    // A store and a load: old or new.
    let load: fn(&Words) = |words| assert!(words.0.load(Relaxed) < 2);
    assert_eq!(count(move || crate::discard(threads(words(), [store, load]))).0, 2);
    // Loads change places.
    assert_eq!(count(move || crate::discard(threads(words(), [load, load, load]))).0, 1);
    // Updates of one word: their orders.
    let update: fn(&Words) = |words| assert!(words.0.fetch_add(1, AcqRel) < 4);
    assert_eq!(count(move || crate::discard(threads(words(), [update, update]))).0, 2);
    assert_eq!(count(move || crate::discard(threads(words(), [update, update, update]))).0, 6);
    assert_eq!(count(move || crate::discard(threads(words(), [update, update, update, update]))).0, 24);
    // Fences: one.
    let fences: fn(&Words) = |_| fence(SeqCst);
    assert_eq!(count(move || crate::discard(threads(words(), [fences, fences, fences]))).0, 1);
    // Wake-ups keep their order.
    let wakes: fn(&Words) =
        |words| assert_eq!(futex::wake(std::ptr::from_ref(&words.0).addr(), 1, 1, true), 0);
    assert_eq!(count(move || crate::discard(threads(words(), [wakes, wakes, wakes]))).0, 6);
    // With newest values only, two stores have two orders, and a store and a load.
    let newest = || Config { stale: 0, ..Config::exhaustive() };
    assert_eq!(explore(newest(), move || crate::discard(threads(words(), [store, store]))).executions, 2);
    assert_eq!(explore(newest(), move || crate::discard(threads(words(), [store, load]))).executions, 2);
    assert_eq!(explore(newest(), move || crate::discard(threads(words(), [load, load]))).executions, 1);
}

/// One operation of a random program. What it returns is part of the outcome.
#[derive(Clone, Copy, Debug)]
enum Op {
    Load(usize, Ordering),
    Store(usize, u32, Ordering),
    Add(usize, Ordering),
    Exchange(usize, u32, u32, Ordering),
    Fence(Ordering),
    Wait(usize, u32),
    Wake(usize),
    Expired,
}

/// Small numbers, by xorshift.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }

    fn op(&mut self, kernel: bool) -> Op {
        let word = self.below(2) as usize;
        match self.below(if kernel { 11 } else { 7 }) {
            0 | 1 => Op::Load(word, self.of(&[Relaxed, Acquire])),
            2 | 3 => Op::Store(word, 1 + self.below(2) as u32, self.of(&[Relaxed, Release])),
            4 => Op::Add(word, self.of(&[Relaxed, AcqRel])),
            5 => Op::Exchange(word, self.below(2) as u32, 3, self.of(&[Relaxed, AcqRel])),
            6 => Op::Fence(self.of(&[SeqCst, Acquire, Release])),
            7 | 8 => Op::Wait(word, 0),
            9 => Op::Wake(word),
            _ => Op::Expired,
        }
    }

    fn program(&mut self, threads: usize, length: u64, kernel: bool) -> Vec<Vec<Op>> {
        (0..threads).map(|_| (0..1 + self.below(length)).map(|_| self.op(kernel)).collect()).collect()
    }
}

fn perform(op: Op, words: &[AtomicU32; 2]) -> u32 {
    let soon = || ulocks_vm::clock::Time {
        clock: ulocks_vm::clock::Clock::Monotonic,
        since_zero: std::time::Duration::from_secs(2_000),
    };
    match op {
        Op::Load(word, order) => words[word].load(order),
        Op::Store(word, value, order) => {
            words[word].store(value, order);
            0
        }
        Op::Add(word, order) => words[word].fetch_add(1, order),
        Op::Exchange(word, old, new, order) => {
            words[word].compare_exchange(old, new, order, Relaxed).unwrap_or_else(|seen| 10 + seen)
        }
        Op::Fence(order) => {
            fence(order);
            0
        }
        Op::Wait(word, expected) => futex::wait(&words[word], expected, u32::MAX, Some(soon()), true) as u32,
        Op::Wake(word) => futex::wake(std::ptr::from_ref(&words[word]).addr(), 1, u32::MAX, true),
        Op::Expired => ulocks_vm::clock::has_passed(soon()).into(),
    }
}

/// What the operations of each thread returned, and what the words hold in the end.
type Outcome = (Vec<Vec<u32>>, [u32; 2]);

fn model(program: &[Vec<Op>]) -> impl Fn() -> Outcome + 'static {
    let program: Arc<Vec<Vec<Op>>> = Arc::new(program.to_vec());
    move || {
        let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let started: Vec<_> = (0..program.len())
            .map(|number| {
                let (program, words) = (Arc::clone(&program), Arc::clone(&words));
                thread::spawn(move || program[number].iter().map(|&op| perform(op, &words)).collect())
            })
            .collect();
        let seen = started.into_iter().map(|thread| thread.join().expect("nobody dies")).collect();
        (seen, [words[0].load(Relaxed), words[1].load(Relaxed)])
    }
}

/// All outcomes of `model`, by all strings of `length` answers below 3.
fn by_strings(model: impl Fn() -> Outcome + 'static, length: u32, stale: u32) -> BTreeSet<Outcome> {
    let model = std::rc::Rc::new(model);
    let seen = std::rc::Rc::new(std::cell::RefCell::new(BTreeSet::new()));
    for mut number in 0..3_u32.pow(length) {
        let mut bytes = Vec::new();
        for _ in 0..length {
            bytes.push((number % 3) as u8);
            number /= 3;
        }
        let (model, into) = (std::rc::Rc::clone(&model), std::rc::Rc::clone(&seen));
        let config = Config { strategy: Strategy::Bytes(bytes), stale, spurious: 0, ..Config::default() };
        run(&config, move || {
            let outcome = model();
            into.borrow_mut().insert(outcome);
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
    }
    seen.take()
}

#[test]
fn all_strings_show_what_the_exhaustive_exploration_shows() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for round in 0..40 {
        let program = dice.program(2, 2, false);
        let stale = if round % 2 == 0 { 8 } else { 0 };
        let exhaustive = outcomes(Config { stale, ..Config::exhaustive() }, model(&program));
        assert_eq!(by_strings(model(&program), 8, stale), exhaustive, "{program:?} stale {stale}");
    }
}

/// That chance shows nothing that is not in the exhaustive exploration, and all that is.
fn chance_agrees(seed: u64, programs: usize, threads: usize, length: u64, kernel: bool, executions: u64) {
    let mut dice = Dice(seed);
    let (mut all, mut missed) = (0, Vec::new());
    for round in 0..programs {
        let program = dice.program(threads, length, kernel);
        let stale = if round % 4 != 0 { 8 } else { 0 };
        let exhaustive = outcomes(Config { stale, ..Config::exhaustive() }, model(&program));
        let strategy = Strategy::Random;
        let config = Config { strategy, stale, spurious: 0, ..crate::sampled(executions) };
        let by_chance = outcomes(config, model(&program));
        let invented: Vec<_> = by_chance.difference(&exhaustive).collect();
        assert!(invented.is_empty(), "missed by the exhaustive exploration of {program:?}: {invented:?}");
        all += exhaustive.len();
        missed.extend(exhaustive.difference(&by_chance).map(|outcome| format!("{program:?}: {outcome:?}")));
    }
    println!("{all} outcomes, {} of which chance missed", missed.len());
    // Chance may miss what is rare, but not more than one in a hundred.
    assert!(
        missed.len() * 100 <= all,
        "{} of {all} missed by chance: {:#?}",
        missed.len(),
        &missed[..4.min(missed.len())]
    );
}

#[test]
fn chance_shows_what_the_exhaustive_exploration_shows_of_words() {
    chance_agrees(42, 40, 2, 3, false, 3_000);
    chance_agrees(43, 20, 3, 2, false, 3_000);
}

#[test]
fn chance_shows_what_the_exhaustive_exploration_shows_of_the_kernel() {
    chance_agrees(44, 40, 2, 3, true, 5_000);
    chance_agrees(45, 20, 3, 2, true, 5_000);
}
