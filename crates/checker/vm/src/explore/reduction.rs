//! The exhaustive strategy leaves out orders by what operations say they touch. Here small random
//! programs run on the machine itself twice, with and without, and must come to the same results.

use super::Config;
use super::run::{Choices, Driver, Kept, execute, relation};
use crate::choice::footprint::{Relation, is_covered};
use crate::choice::{Exhaustive, Footprint, Recorder, Strategy as _};
use crate::clock::{Clock, Time, has_passed, now};
use crate::futex::{self, Waited};
use crate::sync::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::sync::{AtomicU32, UnsafeCell, fence, spin_until, yield_now};
use crate::thread;
use core::cell::RefCell;
use core::time::Duration;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

mod fair;

/// Which of two words.
type Which = usize;

#[derive(Clone, Copy, Debug)]
enum Op {
    Load(Which, Ordering),
    Store(Which, Ordering),
    Add(Which, Ordering),
    Exchange(Which, Ordering),
    Fence(Ordering),
    /// Sleeps while the word is 0, for so many milliseconds at most, or for ever.
    Wait(Which, Option<u64>),
    Wake(Which),
    Requeue(Which),
    /// Spins until the word is not 0.
    Spin(Which),
    /// Spins until one of the words is not 0, with a fence and a yield in each round.
    SpinOnBoth,
    /// Exchanges the word for 1 until it was 0.
    Swap(Which),
    /// Takes one off, once there is one; it looks before and after.
    Take(Which),
    /// Sleeps as long as the word is 0.
    Sleep(Which),
    /// Adds to the other word and yields, until the word is not 0.
    Count(Which),
    /// Looks under a try-lock, the other word, and yields, until the word is not 0.
    Poll(Which),
    /// Adds to the word so often, and yields each time.
    Rounds(Which, u32),
    /// Whether a millisecond has passed since it began.
    Clock,
    /// Stores 0.
    Clear(Which),
    /// Writes plain data, if the word is odd.
    Plain(Which),
}

/// How a program spins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Loop {
    /// By `spin_until`.
    Machines,
    /// By a loop.
    Bare,
    /// By a loop that gives up after so many rounds.
    Bounded(u32),
}

/// What a thread knows that gave up.
const GAVE_UP: u32 = u32::MAX;

impl Loop {
    /// Lets others go, where nothing else ends a loop that changes something.
    fn yields(self) {
        if !matches!(self, Self::Bounded(_)) {
            yield_now();
        }
    }

    /// The first answer of `round`.
    fn spin(self, mut round: impl FnMut() -> Option<u32>) -> u32 {
        match self {
            Self::Machines => {
                let mut answer = None;
                spin_until(|| {
                    answer = round();
                    answer.is_some()
                });
                answer.expect("the wait is over")
            }
            Self::Bare => loop {
                if let Some(answer) = round() {
                    return answer;
                }
            },
            Self::Bounded(rounds) => (0..rounds).find_map(|_| round()).unwrap_or(GAVE_UP),
        }
    }
}

/// A generator of our own: the strategies' is not to blame for the programs.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn op(&mut self) -> Op {
        let word = self.below(2);
        let mut one_of = |orders: [Ordering; 3]| orders[self.below(3)];
        let (read, write, both) = (
            one_of([Relaxed, Acquire, SeqCst]),
            one_of([Relaxed, Release, SeqCst]),
            one_of([Relaxed, AcqRel, SeqCst]),
        );
        match self.below(15) {
            0..=2 => Op::Load(word, read),
            3..=5 => Op::Store(word, write),
            6 => Op::Add(word, both),
            7 => Op::Exchange(word, both),
            8 => Op::Fence(if self.below(2) == 0 { SeqCst } else { AcqRel }),
            9 => Op::Wait(word, [None, Some(1), Some(2)][self.below(3)]),
            10 => Op::Wake(word),
            11 => Op::Requeue(word),
            12 => Op::Spin(word),
            13 => Op::Clock,
            _ => Op::Plain(word),
        }
    }

    fn program(&mut self) -> Vec<Vec<Op>> {
        let (threads, most) = [(2, 3), (3, 2), (2, 5), (3, 3)][self.below(4)];
        (0..threads).map(|_| (0..1 + self.below(most)).map(|_| self.op()).collect()).collect()
    }
}

struct Shared {
    words: [AtomicU32; 2],
    plain: UnsafeCell<u32>,
}

// SAFETY: the machine reports a race on `plain`, and all its threads are one of the system.
unsafe impl Sync for Shared {}

impl Shared {
    /// What `op` makes its thread know.
    fn run(&self, op: Op, me: usize, step: usize, how: Loop) -> u32 {
        let mine = 10 * (me as u32 + 1) + step as u32;
        let address = |word: Which| core::ptr::from_ref(&self.words[word]).addr();
        let deadline = |ms| Time {
            clock: Clock::Monotonic,
            since_zero: now(Clock::Monotonic) + Duration::from_millis(ms),
        };
        match op {
            Op::Load(word, order) => self.words[word].load(order),
            Op::Store(word, order) => {
                self.words[word].store(mine, order);
                0
            }
            Op::Clear(word) => {
                self.words[word].store(0, Relaxed);
                0
            }
            Op::Add(word, order) => self.words[word].fetch_add(100, order),
            Op::Exchange(word, order) => {
                let failure = if order == Relaxed { Relaxed } else { Acquire };
                self.words[word].compare_exchange(0, mine, order, failure).unwrap_or_else(|holds| holds)
            }
            Op::Fence(order) => {
                fence(order);
                0
            }
            Op::Wait(word, ms) => match futex::wait(&self.words[word], 0, 1, ms.map(deadline), true) {
                Waited::Woken => 1,
                Waited::Mismatch => 2,
                Waited::TimedOut => 3,
                Waited::Interrupted => 4,
            },
            Op::Wake(word) => futex::wake(address(word), 1, 1, true),
            Op::Requeue(word) => {
                let moved = futex::cmp_requeue(&self.words[word], 0, 0, 1, address(1 - word), true);
                moved.map_or(9, |(woken, moved)| 10 * woken + moved)
            }
            Op::Spin(word) => how.spin(|| Some(self.words[word].load(Acquire)).filter(|seen| *seen != 0)),
            Op::SpinOnBoth => how.spin(|| {
                // Two places: a loop is recognised at the first that it comes back to.
                let seen = [self.words[0].load(Relaxed), self.words[1].load(Relaxed)];
                fence(SeqCst);
                yield_now();
                Some(seen[0] + 1_000 * seen[1]).filter(|seen| *seen != 0)
            }),
            Op::Swap(word) => how.spin(|| Some(self.words[word].swap(1, AcqRel)).filter(|seen| *seen == 0)),
            Op::Take(word) => how.spin(|| {
                let word = &self.words[word];
                let seen = word.load(Relaxed);
                let taken = seen > 0 && word.compare_exchange(seen, seen - 1, Acquire, Relaxed).is_ok();
                if taken || word.load(Relaxed) > 900 {
                    return Some(seen);
                }
                None
            }),
            Op::Sleep(word) => how.spin(|| {
                let seen = self.words[word].load(Acquire);
                if seen == 0 {
                    _ = futex::wait(&self.words[word], 0, 1, None, true);
                }
                Some(seen).filter(|seen| *seen != 0)
            }),
            Op::Count(word) => how.spin(|| {
                let seen = self.words[word].load(Acquire);
                if seen == 0 {
                    self.words[1 - word].fetch_add(100, AcqRel);
                    how.yields();
                }
                Some(seen).filter(|seen| *seen != 0)
            }),
            Op::Poll(word) => how.spin(|| {
                let lock = &self.words[1 - word];
                if lock.compare_exchange(0, mine, AcqRel, Relaxed).is_ok() {
                    let seen = self.words[word].load(Acquire);
                    lock.store(0, Release);
                    if seen != 0 {
                        return Some(seen);
                    }
                }
                how.yields();
                None
            }),
            Op::Rounds(word, rounds) => {
                for _ in 0..rounds {
                    self.words[word].fetch_add(100, AcqRel);
                    yield_now();
                }
                0
            }
            Op::Clock => has_passed(deadline(1)).into(),
            Op::Plain(word) => {
                let seen = self.words[word].load(Acquire);
                if seen & 1 == 1 {
                    // SAFETY: no other thread runs now.
                    self.plain.with_mut(|plain| unsafe { *plain = mine });
                }
                seen
            }
        }
    }
}

fn program(seed: u64) -> Vec<Vec<Op>> {
    Lcg(seed * 7_919 + 1).program()
}

/// Programs that take more executions are left out.
const LIMIT: u64 = 5_000;

/// What is left of an execution: how it went wrong, what each thread knows, and the words if it
/// came to its end.
type End = (Option<&'static str>, Vec<Vec<u32>>, Vec<u32>);

/// All ends of `program`, or `None` if there are too many executions.
fn ends(program: &[Vec<Op>], config: &Config, relation: Relation, how: Loop) -> Option<(BTreeSet<End>, u64)> {
    let known: Arc<Mutex<Vec<Vec<u32>>>> = Arc::default();
    let last: Rc<RefCell<Vec<u32>>> = Rc::default();
    let (for_model, for_end, code) = (Arc::clone(&known), Rc::clone(&last), program.to_vec());
    let model: Rc<dyn Fn()> = Rc::new(move || {
        let words = [AtomicU32::new(0), AtomicU32::new(0)];
        let shared = Arc::new(Shared { words, plain: UnsafeCell::new(0) });
        let spawn = |(me, ops): (usize, &Vec<Op>)| {
            let (shared, known, ops) = (Arc::clone(&shared), Arc::clone(&for_model), ops.clone());
            thread::spawn(move || {
                for (step, op) in ops.into_iter().enumerate() {
                    let answer = shared.run(op, me, step, how);
                    known.lock().unwrap_or_else(PoisonError::into_inner)[me].push(answer);
                }
            })
        };
        let threads: Vec<_> = code.iter().enumerate().map(spawn).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        *for_end.borrow_mut() = shared.words.iter().map(|word| word.load(Relaxed)).collect();
    });

    let mut choices: Choices<'_> = Recorder::new(Driver::Exhaustive(Exhaustive::new(LIMIT, relation)));
    let (mut ends, mut executions) = (BTreeSet::new(), 0);
    while choices.begin() {
        *known.lock().unwrap() = vec![Vec::new(); program.len()];
        last.borrow_mut().clear();
        let outcome = execute(config, &mut choices, true, Kept::Nothing, &model);
        if !choices.is_redundant() {
            executions += 1;
            let verdict = outcome.verdict.map(|verdict| verdict.kind());
            // Where a fault ends the run, how far the others came is a matter of order.
            let known = match verdict {
                None | Some("deadlock" | "lost wake-up") => known.lock().unwrap().clone(),
                Some(_) => Vec::new(),
            };
            ends.insert((verdict, known, last.borrow().clone()));
        }
    }
    let Driver::Exhaustive(exhaustive) = choices.strategy() else { unreachable!("made so above") };
    exhaustive.coverage().is_complete.then_some((ends, executions))
}

fn nothing(_: Footprint, _: Footprint) -> bool {
    false
}

/// Holds the ends of programs with and without leaving out against each other.
fn nothing_is_lost(stale: u32) {
    let (with, without) = nothing_is_lost_by(&Config { stale, ..Config::exhaustive() });
    assert!(with < without / 2, "{with} of {without} executions");
}

/// As `nothing_is_lost`. How many executions there were with and without.
fn nothing_is_lost_by(config: &Config) -> (u64, u64) {
    const PROGRAMS: u64 = 60;
    let (mut small, mut with, mut without) = (0, 0, 0);
    for seed in 0..PROGRAMS {
        let program = program(seed);
        let Some((all, executions)) = ends(&program, config, nothing, Loop::Machines) else { continue };
        let (some, fewer) =
            ends(&program, config, relation(config), Loop::Machines).expect("fewer than without");
        assert_eq!(some, all, "seed {seed}: {program:?}");
        small += 1;
        with += fewer;
        without += executions;
    }
    println!("{small} programs, {with} of {without} executions");
    assert!(small > PROGRAMS / 2, "{small} programs");
    (with, without)
}

#[test]
fn nothing_is_lost_by_what_is_left_out() {
    nothing_is_lost(u32::MAX);
}

#[test]
fn nothing_is_lost_where_old_values_are_read_so_often_at_most() {
    nothing_is_lost(1);
    nothing_is_lost(2);
}

#[test]
fn nothing_is_lost_within_a_limit_of_preemptions() {
    for most in 0..4 {
        let config = Config { preemptions: Some(most), ..Config::exhaustive() };
        let (with, without) = nothing_is_lost_by(&config);
        assert!(most == 0 || with < without, "{with} of {without} executions");
    }
}

#[test]
fn a_wrong_relation_is_noticed() {
    // Where only newest values are read, a write covers no read.
    let config = Config { stale: 0, ..Config::exhaustive() };
    let is_noticed = (0..60).any(|seed| {
        let program = program(seed);
        let all = ends(&program, &config, nothing, Loop::Machines);
        all.is_some_and(|(all, _)| {
            ends(&program, &config, is_covered, Loop::Machines).is_some_and(|(some, _)| some != all)
        })
    });
    assert!(is_noticed);
}

#[test]
fn nothing_is_lost_where_only_newest_values_are_read() {
    nothing_is_lost(0);
}

impl Lcg {
    /// Two or three threads, one of which spins; stores of 0 too.
    fn looping(&mut self) -> Vec<Vec<Op>> {
        let spin = |lcg: &mut Self| match lcg.below(5) {
            4 => Op::Take(lcg.below(2)),
            0 => Op::Spin(lcg.below(2)),
            1 => Op::SpinOnBoth,
            2 => Op::Swap(lcg.below(2)),
            _ => Op::Sleep(lcg.below(2)),
        };
        let other = |lcg: &mut Self| match lcg.below(6) {
            0 => spin(lcg),
            1 => Op::Clear(lcg.below(2)),
            2 => Op::Wake(lcg.below(2)),
            3 => Op::Load(lcg.below(2), Acquire),
            4 => Op::Add(lcg.below(2), AcqRel),
            _ => Op::Store(lcg.below(2), Release),
        };
        let mut threads: Vec<Vec<Op>> = vec![vec![other(self), spin(self), Op::Plain(self.below(2))]];
        for _ in 0..1 + self.below(2) {
            threads.push((0..1 + self.below(3)).map(|_| other(self)).collect());
        }
        threads
    }
}

/// Holds the ends of programs that spin by loops against those of the same programs that spin by
/// `spin_until`, and against those of loops that give up.
#[test]
fn a_bare_loop_comes_to_the_same_ends() {
    const PROGRAMS: u64 = 150;
    let config = Config { stale: u32::MAX, max_steps: 1_000, ..Config::exhaustive() };
    let ends = |program: &[Vec<Op>], how| ends(program, &config, relation(&config), how);
    let (mut with_machines, mut with_bounded, mut stuck) = (0, 0, 0);
    for seed in 0..PROGRAMS {
        let program = Lcg(seed * 7_919 + 1).looping();
        let Some((bare, _)) = ends(&program, Loop::Bare) else { continue };
        assert!(!bare.iter().any(|end| end.0 == Some("livelock")), "seed {seed}: {program:?}");
        stuck += u32::from(bare.iter().any(|end| end.0.is_some()));
        // A round of `spin_until` that sleeps and is woken does more than look: not comparable.
        let sleeps = program.iter().flatten().any(|op| matches!(op, Op::Sleep(_)));
        if let Some((machines, _)) = ends(&program, Loop::Machines).filter(|_| !sleeps) {
            assert_eq!(bare, machines, "seed {seed}: {program:?}");
            with_machines += 1;
        }
        if let Some((bounded, _)) = ends(&program, Loop::Bounded(4)) {
            let is_over =
                |end: &&End| end.0.is_none() && !end.1.iter().flatten().any(|&known| known == GAVE_UP);
            let some: BTreeSet<_> = bare.iter().filter(is_over).collect();
            let all: BTreeSet<_> = bounded.iter().filter(is_over).collect();
            assert_eq!(some, all, "seed {seed}: {program:?}");
            with_bounded += 1;
        }
    }
    println!("{with_machines} and {with_bounded} programs, {stuck} that get stuck or go wrong");
    assert!(with_machines > 70 && with_bounded > 100 && stuck > 50);
}
