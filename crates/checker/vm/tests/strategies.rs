//! The strategies against each other: what chance finds, the exhaustive exploration finds too.
//!
//! Random small programs of loads, stores, read-modify-writes, fences, timed sleeps and wake-ups.
//! The outcome of an execution is every value read, how every sleep ended, and the values in the
//! end. It leaves out most orders of steps; if it left out one too many, chance would come
//! upon an outcome that the exhaustive exploration has not. And one that reads each old value a few
//! times only has no others than one that reads them as often as it likes, and all those of one
//! that reads none.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use ulocks_vm::clock::{Clock, Time};
use ulocks_vm::explore::{Config, Report, Strategy, run};
use ulocks_vm::futex::{self, Waited};
use ulocks_vm::sync::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use ulocks_vm::sync::{AtomicU32, fence};
use ulocks_vm::thread;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((bits ^ (bits >> 31)) % bound as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Load(usize, Ordering),
    Store(usize, u32, Ordering),
    Add(usize, u32, Ordering),
    Exchange(usize, u32, u32, bool),
    Fence(Ordering),
    Sleep(usize, u32),
    Wake(usize),
}

/// What a thread saw, one number for each step that sees something.
type Seen = Vec<u32>;

impl Step {
    fn random(random: &mut Random, futexes: bool) -> Self {
        let word = random.below(2);
        let value = 1 + random.below(2) as u32;
        match random.below(if futexes { 8 } else { 6 }) {
            0 | 1 => Self::Load(word, random.one_of(&[Relaxed, Acquire, SeqCst])),
            2 | 3 => Self::Store(word, value, random.one_of(&[Relaxed, Release, SeqCst])),
            4 if random.below(2) == 0 => Self::Add(word, value, random.one_of(&[Relaxed, AcqRel])),
            4 => Self::Exchange(word, random.below(3) as u32, value, random.below(2) == 0),
            5 => Self::Fence(random.one_of(&[Acquire, Release, SeqCst, SeqCst])),
            6 => Self::Sleep(word, random.below(2) as u32),
            _ => Self::Wake(word),
        }
    }

    fn run(self, words: &[AtomicU32; 2], seen: &mut Seen) {
        match self {
            Self::Load(word, order) => seen.push(words[word].load(order)),
            Self::Store(word, value, order) => words[word].store(value, order),
            Self::Add(word, value, order) => seen.push(words[word].fetch_add(value, order)),
            Self::Exchange(word, from, to, weak) => {
                let exchanged = if weak {
                    words[word].compare_exchange_weak(from, to, AcqRel, Relaxed)
                } else {
                    words[word].compare_exchange(from, to, AcqRel, Relaxed)
                };
                seen.push(exchanged.unwrap_or_else(|other| 100 + other));
            }
            Self::Fence(order) => fence(order),
            Self::Sleep(word, expected) => {
                let deadline = Time { clock: Clock::Monotonic, since_zero: Duration::from_secs(2_000) };
                seen.push(match futex::wait(&words[word], expected, u32::MAX, Some(deadline), true) {
                    Waited::Woken => 200,
                    Waited::Mismatch => 201,
                    Waited::TimedOut => 202,
                    Waited::Interrupted => 203,
                });
            }
            Self::Wake(word) => {
                seen.push(300 + futex::wake((&raw const words[word]).addr(), 1, u32::MAX, true))
            }
        }
    }
}

/// All outcomes that `config` comes upon: what the threads saw, and the values in the end.
fn outcomes(config: &Config, program: &[Vec<Step>]) -> (BTreeSet<Vec<Seen>>, Report) {
    let outcomes = Rc::new(RefCell::new(BTreeSet::new()));
    let (told, program) = (Rc::clone(&outcomes), program.to_vec());
    let model = move || {
        let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let seen = Arc::new(Mutex::new(vec![Seen::new(); program.len()]));
        let threads: Vec<_> = program
            .iter()
            .enumerate()
            .map(|(number, steps)| {
                let (words, seen, steps) = (Arc::clone(&words), Arc::clone(&seen), steps.clone());
                thread::spawn(move || {
                    let mut mine = Seen::new();
                    steps.iter().for_each(|step| step.run(&words, &mut mine));
                    seen.lock().unwrap()[number] = mine;
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("nobody dies here");
        }
        let mut outcome = seen.lock().unwrap().clone();
        outcome.push(words.iter().map(|word| word.load(Relaxed)).collect());
        told.borrow_mut().insert(outcome);
    };
    let report = run(config, model).unwrap_or_else(|failure| panic!("{failure}"));
    let outcomes = outcomes.borrow().clone();
    (outcomes, report)
}

/// The exhaustive exploration lets an exchange at one place fail for no reason once, and not again
/// when it is tried again; here all steps are at one place.
fn keep_one_weak(steps: &mut [Step]) {
    let mut has_weak = [false; 2];
    for step in steps {
        if let Step::Exchange(word, _, _, weak) = step {
            *weak = *weak && !has_weak[*word];
            has_weak[*word] |= *weak;
        }
    }
}

/// The number of outcomes of `program`, and those that a smaller set of executions has and all do
/// not have. `None` if there are too many executions.
fn missed(program: &[Vec<Step>], chances: u64) -> Option<(usize, Vec<Vec<Seen>>)> {
    let exhaustive = Config { executions: 20_000, spurious: 1, ..Config::exhaustive() };
    // No program reads a word so often that this is a limit.
    let all = Config { stale: 16, ..exhaustive.clone() };
    let chance = Config { strategy: Strategy::Mixed, executions: chances, ..all.clone() };
    let newest = Config { stale: 0, ..exhaustive.clone() };

    let ((all, report), (some, smaller)) = (outcomes(&all, program), outcomes(&exhaustive, program));
    if !report.finished || !smaller.finished {
        return None;
    }
    let ((chance, _), (newest, _)) = (outcomes(&chance, program), outcomes(&newest, program));
    let missed = chance.difference(&all).chain(some.difference(&all)).chain(newest.difference(&some));
    Some((all.len(), missed.cloned().collect()))
}

/// Leaves out steps of a program of which the exhaustive exploration misses outcomes, as long as it
/// still does.
fn shrunk(mut program: Vec<Vec<Step>>) -> Vec<Vec<Step>> {
    loop {
        let places = (0..program.len()).flat_map(|t| (0..program[t].len()).map(move |step| (t, step)));
        let smaller = places.map(|(thread, step)| {
            let mut smaller = program.clone();
            smaller[thread].remove(step);
            smaller
        });
        let misses =
            |program: &Vec<Vec<Step>>| missed(program, 10_000).is_some_and(|(_, missed)| !missed.is_empty());
        match smaller.into_iter().find(misses) {
            Some(smaller) => program = smaller,
            None => return program,
        }
    }
}

/// `programs` random programs of `threads` threads with 2 to `steps` steps each.
fn compare(seed: u64, programs: usize, threads: usize, steps: usize, futexes: bool) {
    let mut random = Random(seed);
    let (mut complete, mut found) = (0, 0);
    for _ in 0..programs {
        let mut program: Vec<Vec<Step>> = (0..threads)
            .map(|_| (0..2 + random.below(steps - 1)).map(|_| Step::random(&mut random, futexes)).collect())
            .collect();
        program.iter_mut().for_each(|steps| keep_one_weak(steps));
        let Some((outcomes, missed_ones)) = missed(&program, 1_000) else { continue };
        if !missed_ones.is_empty() {
            let small = shrunk(program);
            panic!("all executions of {small:?} do not have these outcomes: {:?}", missed(&small, 10_000));
        }
        complete += 1;
        found += outcomes;
    }
    println!("{complete} programs of {programs} explored to the end: {found} outcomes");
    assert!(complete * 2 > programs, "too few of the programs are small enough");
}

#[test]
fn two_threads() {
    compare(1, 150, 2, 6, false);
}

#[test]
fn three_threads() {
    compare(2, 100, 3, 3, false);
}

#[test]
fn two_threads_that_sleep() {
    compare(3, 150, 2, 6, true);
}

#[test]
fn three_threads_that_sleep() {
    compare(4, 100, 3, 3, true);
}
