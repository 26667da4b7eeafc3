//! Toy systems, to hold strategies against: a few threads of straight-line code, simulated without
//! coroutines.
//!
//! [`Newest`] has one value a word, and everything that makes orders matter: values, blocking,
//! sleeping, a clock. [`Weak`] is a small machine of views, with stale reads, earlier places, and
//! release and acquire. Both print no two different histories as the same outcome if a thread could
//! tell.

mod weak;

use crate::choice::rng::Rng;
use crate::choice::{Candidate, Footprint, Kind, Strategy, Turn};
use std::collections::{BTreeSet, HashSet};
use std::hash::Hash;
pub(super) use weak::{Access, Weak};

/// What is left at the end, as numbers.
pub(super) type Outcome = Vec<u64>;
pub(super) type Answer<'a> = &'a mut dyn FnMut(Kind, usize) -> usize;

pub(super) trait System: Clone + Eq + Hash {
    fn enabled(&self) -> Vec<Candidate>;
    /// How many surprises there may still be, if there is a limit.
    fn surprises(&mut self) -> &mut Option<u32>;
    /// What `thread` would touch if it were not kept from running.
    fn kept(&self, _thread: usize) -> Option<Footprint> {
        None
    }
    /// What `thread` waits for that has not ended and cannot go on.
    fn waits(&self, _thread: usize) -> Option<Footprint> {
        None
    }
    /// One operation of an enabled thread.
    fn step(&mut self, thread: usize, answer: Answer<'_>);
    fn outcome(&self) -> Outcome;
}

/// One execution, ended where it is redundant. The system at the end.
pub(super) fn execute<S: System>(system: &S, strategy: &mut impl Strategy) -> S {
    let mut system = system.clone();
    let mut last = usize::MAX;
    loop {
        let mut enabled = system.enabled();
        enabled.sort_by_key(|candidate| candidate.thread != last);
        if enabled.is_empty() {
            return system;
        }
        let goes_on = enabled[0].thread == last;
        if let Some(left) = *system.surprises() {
            let (owner, waits) = (goes_on.then_some(last), system.waits(last));
            strategy.within(Turn { owner, waits }, &enabled);
            enabled.truncate(if goes_on && left == 0 { 1 } else { usize::MAX });
        }
        let before = last;
        last = enabled[strategy.thread(&enabled)].thread;
        if strategy.is_redundant() {
            return system;
        }
        if let Some(left) = system.surprises() {
            *left -= u32::from(goes_on && last != before);
        }
        system.step(last, &mut |kind, n| if n == 1 { 0 } else { strategy.pick(kind, n) });
        if let Some(footprint) = system.kept(last) {
            strategy.kept(last, footprint);
        }
    }
}

/// The outcomes of all executions that are not redundant, until `strategy` has no more.
pub(super) fn explore<S: System>(system: &S, strategy: &mut impl Strategy) -> BTreeSet<Outcome> {
    let mut outcomes = BTreeSet::new();
    while strategy.begin() {
        let end = execute(system, strategy);
        if !strategy.is_redundant() {
            outcomes.insert(end.outcome());
        }
    }
    outcomes
}

/// The states that a step of `thread` can lead to.
fn successors<S: System>(system: &S, thread: usize) -> Vec<S> {
    let mut all = Vec::new();
    let mut script: Vec<(usize, usize)> = Vec::new();
    loop {
        let mut next = system.clone();
        let mut asked = 0;
        next.step(thread, &mut |_, n| {
            if asked == script.len() {
                script.push((n, 0));
            }
            asked += 1;
            script[asked - 1].1
        });
        all.push(next);
        while script.last().is_some_and(|&(n, answer)| answer + 1 == n) {
            script.pop();
        }
        let Some((_, answer)) = script.last_mut() else { return all };
        *answer += 1;
    }
}

/// All outcomes, by a plain search through the states: shares nothing with the strategies.
pub(super) fn reachable<S: System>(system: &S) -> BTreeSet<Outcome> {
    let mut outcomes = BTreeSet::new();
    let mut seen = HashSet::new();
    let mut open = vec![(system.clone(), usize::MAX)];
    while let Some((mut state, turn)) = open.pop() {
        let enabled = state.enabled();
        if enabled.is_empty() {
            outcomes.insert(state.outcome());
        }
        let goes_on = enabled.iter().any(|candidate| candidate.thread == turn);
        let limit = *state.surprises();
        for Candidate { thread, .. } in enabled {
            let is_surprise = goes_on && thread != turn;
            if let Some(left) = limit {
                let Some(left) = left.checked_sub(is_surprise.into()) else { continue };
                *state.surprises() = Some(left);
            }
            // Without a limit it makes no difference whose turn it is.
            let turn = if limit.is_some() { thread } else { usize::MAX };
            let next = successors(&state, thread).into_iter().map(|next| (next, turn));
            open.extend(next.filter(|next| seen.insert(next.clone())));
        }
    }
    outcomes
}

/// A value that shows where it came from.
pub(super) fn mix(a: u64, b: u64) -> u64 {
    Rng::new(a ^ b.rotate_left(32)).next()
}

/// Operations of [`Newest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Op {
    /// Computes.
    Local,
    /// Leaves out the next operation if what was read so far is odd.
    SkipIfOdd,
    Read(u32),
    Write(u32),
    Add(u32),
    /// Waits until the word is not 0.
    Await(u32),
    /// Adds one to a word.
    Give(u32),
    /// One of so many answers.
    Pick(usize),
    /// Sleeps if the word holds an even number, and notes when.
    Sleep(u32),
    /// Wakes the longest sleeper.
    Wake,
    /// Wakes the longest sleeper and changes the word.
    Notify(u32),
    /// Reads the clock, which then advances.
    Tick,
    /// Adds to a word, as an operation of a lock does.
    Settle(u32),
    /// Waits until the lock is free, and takes it.
    Lock,
    /// Frees the lock, by whichever thread.
    Unlock,
    /// Reads and changes all there is, and wakes everyone.
    Everything,
}

impl Op {
    pub(super) fn footprint(self) -> Footprint {
        match self {
            Self::Local | Self::SkipIfOdd | Self::Pick(_) => Footprint::Local,
            Self::Read(word) | Self::Await(word) => Footprint::Read(word),
            Self::Write(word) => Footprint::Write(word),
            Self::Add(word) | Self::Give(word) => Footprint::Update(word),
            Self::Settle(word) => Footprint::Newest(word),
            Self::Lock | Self::Unlock => Footprint::Newest(LOCK),
            Self::Sleep(word) | Self::Notify(word) => Footprint::futex(&[word]),
            Self::Wake => Footprint::futex(&[]),
            Self::Tick => Footprint::Clock,
            Self::Everything => Footprint::Everything,
        }
    }
}

/// The number of words of a [`Newest`]; the last ones are a gate and a lock.
const WORDS: usize = 4;
const GATE: u32 = 2;
/// Odd if it is held.
const LOCK: u32 = 3;

/// A system with one value a word.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Newest {
    pub(super) programs: Vec<Vec<Op>>,
    pub(super) counters: Vec<usize>,
    registers: Vec<u64>,
    words: [u64; WORDS],
    sleepers: Vec<usize>,
    clock: u64,
    surprises: Option<u32>,
}

impl Newest {
    pub(super) fn new(programs: Vec<Vec<Op>>) -> Self {
        let (counters, registers) = (vec![0; programs.len()], vec![0; programs.len()]);
        Self {
            programs,
            counters,
            registers,
            words: [0; WORDS],
            sleepers: Vec::new(),
            clock: 0,
            surprises: None,
        }
    }

    /// Two or three threads with up to `length` operations each.
    pub(super) fn random(rng: &mut Rng, length: usize, with_picks: bool) -> Self {
        let op = |rng: &mut Rng| {
            let word = rng.below(2) as u32;
            match rng.below(if with_picks { 20 } else { 19 }) {
                0 => Op::Local,
                1 => Op::SkipIfOdd,
                2..=4 => Op::Read(word),
                5..=7 => Op::Write(word),
                8 => Op::Add(word),
                9 => Op::Await(GATE),
                10 => Op::Give(GATE),
                11 => Op::Sleep(word),
                12 => Op::Wake,
                13 => Op::Notify(word),
                14 => Op::Tick,
                15 => Op::Everything,
                16 => Op::Settle(word),
                17 => Op::Lock,
                18 => Op::Unlock,
                _ => Op::Pick(2),
            }
        };
        let threads = 2 + rng.below(2);
        Self::new((0..threads).map(|_| (0..1 + rng.below(length)).map(|_| op(rng)).collect()).collect())
    }

    pub(super) fn next(&self, thread: usize) -> Option<Op> {
        self.programs[thread].get(self.counters[thread]).copied()
    }

    fn is_held(&self) -> bool {
        self.words[LOCK as usize] % 2 == 1
    }

    fn wake(&mut self, count: usize) -> u64 {
        let woken: Vec<usize> = self.sleepers.drain(..count.min(self.sleepers.len())).collect();
        woken.into_iter().fold(0, |sum, thread| mix(sum, 1 + thread as u64))
    }
}

impl System for Newest {
    fn enabled(&self) -> Vec<Candidate> {
        let can_run = |&thread: &usize| match self.next(thread) {
            None => false,
            Some(Op::Await(word)) => self.words[word as usize] > 0,
            Some(Op::Lock) => !self.is_held(),
            Some(_) => !self.sleepers.contains(&thread),
        };
        let candidate = |thread| Candidate {
            thread,
            footprint: self.next(thread).map_or(Footprint::Local, Op::footprint),
        };
        (0..self.programs.len()).filter(can_run).map(candidate).collect()
    }

    fn surprises(&mut self) -> &mut Option<u32> {
        &mut self.surprises
    }

    fn waits(&self, thread: usize) -> Option<Footprint> {
        let op = self.programs.get(thread)?.get(self.counters[thread])?;
        let can_run = self.enabled().iter().any(|candidate| candidate.thread == thread);
        let asleep = self.sleepers.contains(&thread).then(|| Footprint::futex(&[]));
        (!can_run).then(|| asleep.unwrap_or(op.footprint()))
    }

    fn kept(&self, thread: usize) -> Option<Footprint> {
        (self.is_held() && self.next(thread) == Some(Op::Lock)).then(|| Op::Lock.footprint())
    }

    fn step(&mut self, thread: usize, answer: Answer<'_>) {
        let op = self.next(thread).expect("an enabled thread has an operation");
        self.counters[thread] += 1;
        let mine = mix(1 + thread as u64, self.counters[thread] as u64);
        let register = self.registers[thread];
        let heard = match op {
            Op::Local | Op::Write(_) | Op::Await(_) | Op::Give(_) => 0,
            Op::SkipIfOdd => {
                self.counters[thread] += (register & 1) as usize;
                0
            }
            Op::Read(word) | Op::Add(word) | Op::Settle(word) => self.words[word as usize],
            Op::Lock | Op::Unlock => 1 + self.words[LOCK as usize],
            Op::Pick(n) => 1 + answer(Kind::User, n) as u64,
            Op::Wake | Op::Notify(_) => self.wake(1),
            Op::Sleep(word) => {
                if self.words[word as usize] & 1 == 0 {
                    self.sleepers.push(thread);
                }
                mix(self.clock, self.words[word as usize])
            }
            Op::Tick => {
                self.clock += 1;
                self.clock
            }
            Op::Everything => {
                self.clock += 10;
                let all = self.words.iter().fold(self.clock, |sum, &word| mix(sum, word));
                mix(all, self.wake(usize::MAX))
            }
        };
        match op {
            Op::Write(word) => self.words[word as usize] = mix(mine, register),
            Op::Add(word) | Op::Settle(word) | Op::Notify(word) => {
                self.words[word as usize] = mix(self.words[word as usize], mine);
            }
            Op::Give(word) => self.words[word as usize] += 1,
            Op::Lock => self.words[LOCK as usize] += 1,
            Op::Unlock if self.is_held() => self.words[LOCK as usize] += 1,
            Op::Everything => {
                self.words[0] = mix(self.words[0], mine);
                self.words[1] = mix(self.words[1], mine);
                self.words[GATE as usize] += 1;
            }
            _ => {}
        }
        if heard != 0 {
            self.registers[thread] = mix(register, heard);
        }
    }

    fn outcome(&self) -> Outcome {
        let counters = self.counters.iter().map(|&counter| counter as u64);
        let sleepers = self.sleepers.iter().map(|&thread| 1_000 + thread as u64);
        let words = self.words.iter().chain(&self.registers).chain([&self.clock]).copied();
        words.chain(counters).chain(sleepers).collect()
    }
}
