//! The state of one execution: memory, threads, and which of them goes next.
//!
//! # Rules
//! 1. Whenever a thread is chosen, the next operation of every other thread is announced, with what
//!    it may touch. The exhaustive strategy leaves out orders by these footprints, so one that is
//!    too small loses executions.
//! 2. What no other thread can tell is done at once. A thread that a signal may strike, or whose
//!    death takes others with it, has no such operations.
//! 3. A waiting thread is a candidate as soon as what it waits for has come, or a signal has;
//!    chosen for a signal alone, it runs a handler. The clock is a candidate where all executions
//!    are tried; otherwise it is asked for before each step.
//! 4. When no thread can go, the execution has ended, or it is stuck: without a wake-up that was
//!    owed, or came too early (`stuck.rs` says when), in a deadlock otherwise. An armed signal need
//!    not come and saves no thread.
//! 5. Five bounds keep executions finite, and each leaves out repetitions: one thread's steps in a
//!    row (not where all executions are tried), reads of one old message, failures of one weak
//!    exchange for no reason, fruitless rounds of a busy-wait, unfair turns after a yield. A
//!    program can count repetitions, so `bounds.rs` keeps where they were left out. An execution
//!    without an end is a livelock.

use super::Config;
use super::bounds::Bounds;
use super::coverage::Coverage;
use super::freed::Freed;
use super::kernel::{Clocks, Sleeper, Vain};
use super::linux;
use super::loops::Loops;
use super::narrow::Narrow;
use super::rounds::Round;
use super::run::Choices;
use super::steering::Steering;
use super::story::{Said, Story};
use super::verdict::Verdict;
use super::words::chooser;
use super::yields::Yields;
use crate::choice::{Candidate, Footprint, Kind, Strategy as _};
use crate::engine::{At, Until};
use crate::memory::{Loc, Memory, MsgId};
use core::ops::Range;
use core::time::Duration;
use std::collections::VecDeque;

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// Its turn.
    Ready,
    /// Another value in one of the words it read in its last round.
    Spinning,
    /// A wake-up, or the end of its deadline, or a signal.
    Asleep,
    /// A newest value.
    Settling(Loc, Until),
    /// A step of each thread that its yield makes way for.
    MakingWay,
    /// The end of a thread.
    Joining(usize),
    /// It has died, and the kernel has not yet cleaned up after it.
    Exiting,
    /// Nothing: it has ended, or died.
    Done,
}

/// The next thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Thread(usize),
    Over,
}

/// The number by which the clock is a candidate: chosen, it moves to the next deadline.
pub(super) const CLOCK: usize = usize::MAX;

/// How often in a row a thread that could go may be passed over, where chance chooses.
const LONGEST_PASSING: u32 = 1_000;

/// How many steps an execution that repeats another is given to come to its end. What is cut off
/// leaks, so it is better to let it end; but nothing makes its threads take turns.
const LONGEST_REPETITION: u64 = 1_000;

pub(super) struct Thread {
    pub(super) status: Status,
    pub(super) footprint: Footprint,
    pub(super) at: Option<At>,
    /// By word: the message it read last, and how often in a row it counted.
    pub(super) reads: Vec<(Loc, MsgId, u32)>,
    /// The round of its busy-wait, and those in which that is done.
    pub(super) round: Round,
    pub(super) outer_rounds: Vec<Round>,
    /// What it has done since it changed something last.
    pub(super) loops: Loops,
    pub(super) yields: Yields,
    /// Where its last weak exchange failed for no reason, and was not tried again since.
    pub(super) failed_weakly: Option<(Loc, At)>,
    /// Whether another thread has run since it could have carried out what it announced.
    pub(super) preempted: bool,
    /// How often another one was chosen although it could go, since it went last.
    pub(super) passed: u32,
    pub(super) linux: linux::OfThread,
}

impl Thread {
    pub(super) fn waits(&self) -> bool {
        !matches!(self.status, Status::Ready | Status::Exiting | Status::Done)
    }
}

/// One execution.
pub(super) struct Machine<'a, 's> {
    pub(super) config: &'a Config,
    pub(super) choices: &'a mut Choices<'s>,
    /// Whether every execution is to be tried: the clock is among the candidates to go next, and
    /// what could be repeated without end is not.
    pub(super) is_systematic: bool,
    /// The step at which this execution turned out to repeat another.
    pub(super) redundant_since: Option<u64>,
    pub(super) memory: Memory,
    pub(super) threads: Vec<Thread>,
    pub(super) current: usize,
    pub(super) steps: u64,
    pub(super) run: u64,
    pub(super) verdict: Option<Verdict>,
    pub(super) story: Option<Story>,
    /// What is known of the sites, if that is asked for.
    pub(super) coverage: Option<Coverage>,
    /// The histories of words, by the number in their bytes.
    pub(super) words: Vec<Loc>,
    pub(super) first_number: u64,
    pub(super) bytes: Narrow<8>,
    pub(super) halves: Narrow<16>,
    pub(super) queue: VecDeque<Sleeper>,
    pub(super) vain: Vec<Vain>,
    pub(super) clocks: Clocks,
    pub(super) freed: Freed,
    pub(super) spurious: u32,
    pub(super) bounds: Bounds,
    /// Words that a thread has asked for what they stand for.
    pub(super) asked: Vec<Loc>,
    /// Stores of threads that have returned, where the story has to tell them if one asks: the
    /// word, the message, and the thread with its last place.
    pub(super) untold: Vec<(Loc, MsgId, usize, At)>,
    /// How often spinners were let go although there was nothing new to see.
    pub(super) last_looks: u32,
    /// Whether a thread has yielded fairly.
    pub(super) made_way: bool,
    /// Whether what is created now was there before the run.
    pub(super) before_all: bool,
    pub(super) steering: Steering,
    pub(super) linux: linux::OfMachine,
    /// Scratch for `schedule`.
    pub(super) enabled: Vec<Candidate>,
}

impl<'a, 's> Machine<'a, 's> {
    pub(super) fn new(
        config: &'a Config,
        choices: &'a mut Choices<'s>,
        is_systematic: bool,
        run: u64,
        story: Option<Story>,
    ) -> Self {
        Self {
            config,
            choices,
            is_systematic,
            redundant_since: None,
            memory: Memory::new(),
            threads: Vec::new(),
            current: 0,
            steps: 0,
            run,
            verdict: None,
            story,
            coverage: None,
            words: Vec::new(),
            // Numbers differ from run to run, so that a word that outlived its run is noticed.
            first_number: 1 + (run % 0x7f_ffff) * 0x100,
            bytes: Narrow::default(),
            halves: Narrow::default(),
            queue: VecDeque::new(),
            vain: Vec::new(),
            clocks: Clocks::default(),
            freed: Freed::default(),
            spurious: 0,
            bounds: Bounds::default(),
            asked: Vec::new(),
            untold: Vec::new(),
            last_looks: 0,
            made_way: false,
            before_all: false,
            steering: Steering::default(),
            linux: Default::default(),
            enabled: Vec::new(),
        }
    }

    pub(super) fn current(&self) -> usize {
        self.current
    }

    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    pub(super) fn run(&self) -> u64 {
        self.run
    }

    pub(super) fn take_verdict(&mut self) -> Option<Verdict> {
        self.verdict.take()
    }

    pub(super) fn into_story(self) -> Option<Story> {
        self.memory.recycle();
        self.threads.into_iter().for_each(|thread| thread.loops.recycle());
        self.story
    }

    pub(super) fn pick(&mut self, kind: Kind, count: usize) -> usize {
        if count < 2 || self.steering.is_tame() {
            0
        } else {
            chooser(self.choices, self.config.stale > 0, &mut false)(kind, count)
        }
    }

    // The story.

    pub(super) fn tell(&mut self, at: At, what: impl FnOnce() -> Said) {
        let (step, thread) = (self.steps, self.current);
        if let Some(story) = &mut self.story {
            story.tell(step, thread, at, what());
        }
    }

    // Threads.

    pub(super) fn start_thread(&mut self, parent: Option<(usize, bool)>) -> usize {
        let number = self.memory.spawn(parent.map(|(parent, _)| parent));
        let linux = linux::OfThread::new(&self.threads, parent);
        self.threads.push(Thread {
            status: Status::Ready,
            footprint: Footprint::Local,
            at: None,
            reads: Vec::new(),
            round: Round::default(),
            outer_rounds: Vec::new(),
            loops: Loops::new(),
            yields: Yields::default(),
            failed_weakly: None,
            preempted: false,
            passed: 0,
            linux,
        });
        if let Some((parent, _)) = parent {
            self.choices.follows(number, parent);
        }
        number
    }

    /// Where the current thread was last seen.
    pub(super) fn last_place(&self) -> Option<At> {
        self.threads[self.current].at
    }

    /// A thread has come to its end.
    pub(super) fn finish(&mut self, thread: usize) {
        self.threads[thread].status = self.at_its_end(thread);
        self.threads[thread].footprint = Footprint::Everything;
    }

    /// A stack is free for another thread: what was known of the data on it is of no use any more.
    pub(super) fn forget_stack(&mut self, stack: Range<usize>) {
        self.memory.plain_forget(stack.start, stack.len());
    }

    /// Whether all threads have come to their end, by themselves.
    pub(super) fn has_ended(&self) -> bool {
        !self.somebody_died() && self.threads.iter().all(|thread| thread.status == Status::Done)
    }

    pub(super) fn joined(&mut self, thread: usize, at: At) {
        self.moves_on();
        self.memory.join(self.current, thread);
        self.choices.follows(self.current, thread);
        self.tell(at, || Said::Joined { thread });
    }

    pub(super) fn announce(&mut self, status: Status, footprint: Footprint, at: At) {
        let thread = &mut self.threads[self.current];
        thread.status = status;
        thread.footprint = footprint;
        thread.at = Some(at);
        if self.is_systematic
            && matches!(status, Status::Settling(..))
            && !self.can_go_by_itself(self.current)
        {
            self.choices.kept(self.current, footprint);
        }
    }

    /// Chooses the next thread and makes it the current one.
    pub(super) fn schedule(&mut self) -> Next {
        loop {
            if self.redundant_since.is_some_and(|since| self.steps > since + LONGEST_REPETITION) {
                return Next::Over;
            }
            let mut time_passes = self.next_deadline().is_some();
            if self.is_systematic {
                self.forget_the_stuck();
            } else if time_passes && self.pick(Kind::Expire, 2) == 1 {
                self.advance_clock();
                time_passes = self.next_deadline().is_some();
            }
            self.collect_enabled(time_passes);
            if self.enabled.is_empty() {
                if self.somebody_looked_too_early() {
                    self.choices.repeats();
                    self.redundant_since = Some(self.steps);
                    continue;
                }
                if self.lets_spinners_look_again() {
                    continue;
                }
                self.verdict = self.nobody_can_go();
                return Next::Over;
            }
            if self.steps >= self.config.max_steps {
                self.verdict = Some(Verdict::Livelock(self.stuck()));
                return Next::Over;
            }
            if !self.is_systematic {
                self.let_the_passed_over_go();
            }
            // What depends on nothing is done at once: every order of it and anything else is the
            // same.
            let local = self.enabled.iter().position(|candidate| candidate.footprint == Footprint::Local);
            let chosen = match local {
                Some(local) => local,
                None => {
                    // An armed signal need not come: any last step of another keeps it from coming.
                    // A thread that must keep its turn keeps others from going.
                    if self.linux.has_handlers() || self.keeps_its_turn() {
                        self.choices.all_orders();
                    }
                    self.restrict_enabled();
                    let chosen = self.choices.thread(&self.enabled);
                    self.takes_its_turn(self.enabled[chosen].thread);
                    chosen
                }
            };
            if self.is_systematic && self.redundant_since.is_none() && self.choices.is_redundant() {
                self.redundant_since = Some(self.steps);
            }
            let Candidate { thread, footprint } = self.enabled[chosen];
            self.steps += 1;
            if self.is_systematic && !footprint.is_invisible() {
                self.took_a_step(thread);
            }
            if thread == CLOCK {
                self.advance_clock();
                continue;
            }
            if !self.is_systematic && self.enabled.len() > 1 {
                for candidate in &self.enabled {
                    if let Some(passed) = self.threads.get_mut(candidate.thread) {
                        passed.passed += 1;
                    }
                }
            }
            self.threads[thread].passed = 0;
            if self.coverage.is_some() && local.is_none() && thread != CLOCK {
                self.cover_preemptions(thread);
            }
            if self.threads[thread].status == Status::Exiting {
                self.exit(thread);
                continue;
            }
            self.current = thread;
            return Next::Thread(thread);
        }
    }

    /// A thread that was passed over for long is the only one that can go: by chance one thread, or
    /// several by turns, may poll for ever for what it is about to do. Where all executions are
    /// tried, none may be left out for its length.
    fn let_the_passed_over_go(&mut self) {
        let Self { threads, enabled, .. } = self;
        let is_due = |candidate: &Candidate| {
            threads.get(candidate.thread).is_some_and(|thread| thread.passed >= LONGEST_PASSING)
        };
        if enabled.iter().any(is_due) {
            enabled.retain(is_due);
        }
    }

    /// The threads that can go, the current one first; and the clock, if a thread waits for it.
    ///
    /// A thread that could only go on for an armed signal counts if another one can go: the signal
    /// need not come.
    fn collect_enabled(&mut self, time_passes: bool) {
        let mut enabled = core::mem::take(&mut self.enabled);
        enabled.clear();
        let mut is_stuck = true;
        let count = self.threads.len();
        let order = core::iter::once(self.current).chain((0..count).filter(|&thread| thread != self.current));
        for number in order.filter(|&number| number < count) {
            let by_itself = self.can_go_by_itself(number);
            if by_itself || (self.threads[number].waits() && self.signal_is_due(number)) {
                is_stuck &= !by_itself && !self.signal_is_pending(number);
                enabled.push(Candidate { thread: number, footprint: self.footprint(number) });
            }
        }
        if time_passes {
            if self.is_systematic || is_stuck {
                enabled.push(Candidate { thread: CLOCK, footprint: Footprint::Clock });
            }
        } else if is_stuck {
            enabled.clear();
        }
        self.enabled = enabled;
    }

    /// What the next step of a thread may touch.
    fn footprint(&self, number: usize) -> Footprint {
        let announced = self.threads[number].footprint;
        if self.may_be_struck(number, announced) { Footprint::Everything } else { announced }
    }

    /// Whether a thread can go on, signals aside.
    pub(super) fn can_go_by_itself(&self, number: usize) -> bool {
        let thread = &self.threads[number];
        match thread.status {
            Status::Ready | Status::Exiting => true,
            Status::Done => false,
            Status::MakingWay => thread.yields.may_go_on(),
            Status::Joining(other) => self.threads[other].status == Status::Done,
            Status::Asleep => self.sleeper_can_go(number),
            Status::Settling(loc, until) => until.holds(self.memory.newest(loc)),
            Status::Spinning => {
                let round = &thread.round;
                round.goes_on()
                    || round.is_blind()
                    || round.deadline.is_some_and(|deadline| deadline <= self.clocks.now())
                    || (round.changes || !self.waits_in_vain()) && self.can_see_another(number)
            }
        }
    }

    /// The earliest deadline that a spinning thread waits for.
    pub(super) fn next_spinners_deadline(&self) -> Option<Duration> {
        let spinning = self.threads.iter().filter(|thread| thread.status == Status::Spinning);
        spinning
            .filter_map(|thread| thread.round.deadline)
            .filter(|deadline| *deadline > self.clocks.now())
            .min()
    }
}
