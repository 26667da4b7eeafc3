//! Toy systems, to hold strategies against: a few threads of straight-line code, simulated without
//! coroutines.
//!
//! [`Newest`] has one value a word, and everything that makes orders matter: values, blocking,
//! sleeping, a clock. [`Weak`] is a small machine of views, with stale reads, earlier places, and
//! release and acquire. Both print no two different histories as the same outcome if a thread could
//! tell.

use super::rng::Rng;
use super::{Candidate, Footprint, Kind, Strategy};
use std::collections::{BTreeSet, HashSet};
use std::hash::Hash;

/// What is left at the end, as numbers.
pub(super) type Outcome = Vec<u64>;
pub(super) type Answer<'a> = &'a mut dyn FnMut(Kind, usize) -> usize;

pub(super) trait System: Clone + Eq + Hash {
    fn enabled(&self) -> Vec<Candidate>;
    /// What `thread` would touch if it were not kept from running.
    fn kept(&self, _thread: usize) -> Option<Footprint> {
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
        last = enabled[strategy.thread(&enabled)].thread;
        if strategy.is_redundant() {
            return system;
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
    let mut seen = HashSet::from([system.clone()]);
    let mut open = vec![system.clone()];
    while let Some(state) = open.pop() {
        let enabled = state.enabled();
        if enabled.is_empty() {
            outcomes.insert(state.outcome());
        }
        for candidate in enabled {
            open.extend(successors(&state, candidate.thread).into_iter().filter(|s| seen.insert(s.clone())));
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
}

impl Newest {
    pub(super) fn new(programs: Vec<Vec<Op>>) -> Self {
        let (counters, registers) = (vec![0; programs.len()], vec![0; programs.len()]);
        Self { programs, counters, registers, words: [0; WORDS], sleepers: Vec::new(), clock: 0 }
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

/// Operations of [`Weak`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Access {
    Load {
        word: u32,
        acquire: bool,
    },
    Store {
        word: u32,
        release: bool,
    },
    /// Always writes.
    Add {
        word: u32,
        acq_rel: bool,
    },
    /// Writes if the value is even.
    Exchange {
        word: u32,
        acq_rel: bool,
    },
}

impl Access {
    fn footprint(self) -> Footprint {
        match self {
            Self::Load { word, .. } => Footprint::Read(word),
            Self::Store { word, .. } => Footprint::Write(word),
            Self::Add { word, .. } | Self::Exchange { word, .. } => Footprint::Update(word),
        }
    }
}

/// A message is named by its author; 0 is the first one of each word.
type Name = u64;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Message {
    name: Name,
    value: u64,
    view: Vec<Name>,
    /// The next one was written by a read-modify-write that read this one.
    is_updated: bool,
}

/// A small machine of views: each word a history, in its order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Weak {
    programs: Vec<Vec<Access>>,
    counters: Vec<usize>,
    registers: Vec<u64>,
    /// Of each thread, by word: the oldest message it may read.
    views: Vec<Vec<Name>>,
    words: Vec<Vec<Message>>,
}

impl Weak {
    pub(super) fn new(programs: Vec<Vec<Access>>) -> Self {
        let first = Message { name: 0, value: 0, view: vec![0; 2], is_updated: false };
        let threads = programs.len();
        Self {
            programs,
            counters: vec![0; threads],
            registers: vec![0; threads],
            views: vec![vec![0; 2]; threads],
            words: vec![vec![first]; 2],
        }
    }

    /// Two or three threads with up to `length` operations each.
    pub(super) fn random(rng: &mut Rng, length: usize) -> Self {
        let access = |rng: &mut Rng| {
            let (word, strong) = (rng.below(2) as u32, rng.below(2) == 0);
            match rng.below(8) {
                0..=2 => Access::Load { word, acquire: strong },
                3..=5 => Access::Store { word, release: strong },
                6 => Access::Add { word, acq_rel: strong },
                _ => Access::Exchange { word, acq_rel: strong },
            }
        };
        let threads = 2 + rng.below(2);
        Self::new((0..threads).map(|_| (0..1 + rng.below(length)).map(|_| access(rng)).collect()).collect())
    }

    fn position(&self, word: usize, name: Name) -> usize {
        self.words[word].iter().position(|message| message.name == name).expect("a message that exists")
    }

    fn join(&self, a: &[Name], b: &[Name]) -> Vec<Name> {
        let later = |word| if self.position(word, a[word]) >= self.position(word, b[word]) { a } else { b };
        (0..a.len()).map(|word| later(word)[word]).collect()
    }

    /// The places from the newest message back to the oldest `thread` may see, those that `allowed`
    /// refuses left out.
    fn places(&self, thread: usize, word: usize, allowed: impl Fn(&Message) -> bool) -> Vec<usize> {
        let floor = self.position(word, self.views[thread][word]);
        (floor..self.words[word].len()).rev().filter(|&place| allowed(&self.words[word][place])).collect()
    }

    fn read(&mut self, thread: usize, word: usize, place: usize, acquire: bool) {
        let message = self.words[word][place].clone();
        self.registers[thread] = mix(self.registers[thread], message.value);
        self.views[thread][word] = message.name;
        if acquire {
            self.views[thread] = self.join(&self.views[thread], &message.view);
        }
    }

    /// Writes behind `place`; `with` is the view of a release sequence it continues.
    fn write(&mut self, thread: usize, word: usize, place: usize, release: bool, with: Option<Vec<Name>>) {
        let name = 100 * (1 + thread as u64) + self.counters[thread] as u64;
        let value = mix(name, if with.is_some() { self.words[word][place].value } else { 0 });
        let message = Message { name, value, view: vec![0; self.words.len()], is_updated: false };
        self.words[word].insert(place + 1, message);
        self.views[thread][word] = name;
        let mut view = with.unwrap_or_else(|| vec![0; self.words.len()]);
        if release {
            view = self.join(&view, &self.views[thread]);
        }
        view[word] = name;
        self.words[word][place + 1].view = view;
    }
}

impl System for Weak {
    fn enabled(&self) -> Vec<Candidate> {
        let next = |thread: usize| self.programs[thread].get(self.counters[thread]);
        let candidate = |thread| Some(Candidate { thread, footprint: next(thread)?.footprint() });
        (0..self.programs.len()).filter_map(candidate).collect()
    }

    fn step(&mut self, thread: usize, answer: Answer<'_>) {
        let access = self.programs[thread][self.counters[thread]];
        self.counters[thread] += 1;
        let mut one_of = |kind, places: Vec<usize>| places[answer(kind, places.len())];
        match access {
            Access::Load { word, acquire } => {
                let place = one_of(Kind::Message, self.places(thread, word as usize, |_| true));
                self.read(thread, word as usize, place, acquire);
            }
            Access::Store { word, release } => {
                let place = one_of(Kind::Place, self.places(thread, word as usize, |m| !m.is_updated));
                self.write(thread, word as usize, place, release, None);
            }
            Access::Add { word, acq_rel } | Access::Exchange { word, acq_rel } => {
                let word = word as usize;
                let writes = |m: &Message| matches!(access, Access::Add { .. }) || m.value & 1 == 0;
                let places = self.places(thread, word, |m| !writes(m) || !m.is_updated);
                let place = one_of(Kind::Message, places);
                self.read(thread, word, place, acq_rel);
                if writes(&self.words[word][place]) {
                    let view = self.words[word][place].view.clone();
                    self.words[word][place].is_updated = true;
                    self.write(thread, word, place, acq_rel, Some(view));
                }
            }
        }
    }

    fn outcome(&self) -> Outcome {
        let histories = self
            .words
            .iter()
            .flat_map(|word| word.iter().flat_map(|message| [message.name, message.value]).chain([u64::MAX]));
        histories.chain(self.registers.iter().copied()).collect()
    }
}
