//! The explorer as an engine: what each operation of the facade does to the machine, and when other
//! threads run.
//!
//! An operation announces itself, lets the scheduler choose who goes next, and is carried out when
//! its thread is chosen. So whenever somebody is chosen, the next operation of every thread is
//! known; the reduction of the exhaustive strategy needs that. What a thread does between two
//! operations belongs to the first of them.
//!
//! Nothing here unwinds. An operation that ends the run notes the verdict, marks the run as over,
//! and never returns: its coroutine is dropped without being resumed.

use super::machine::{Machine, Next, Status};
use super::pi::{Outcome, Place};
use super::rounds::Round;
use super::signals::Demand;
use super::story::{Said, place};
use super::verdict::Verdict;
use super::words::{Seen, number};
use crate::choice::{Footprint, Kind};
use crate::clock::{Clock, Time};
use crate::engine::{At, Engine, Key, Update, Width, Word};
use crate::fibers::{self, Fibers, Stopped};
use crate::futex::{Entry, Waited};
use crate::memory::{Fault, Loc};
use crate::pi::{Call, Refusal};
use crate::signal::Request;
use core::cell::{Cell, RefCell};
use core::mem::replace;
use core::panic::Location;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::thread::panicking;

/// The explorer, for one execution.
pub(super) struct Explorer<'a, 's> {
    fibers: Fibers,
    machine: RefCell<Machine<'a, 's>>,
    over: Cell<bool>,
    /// A panic has unwound through operations, which did nothing.
    unwound: Cell<bool>,
}

impl<'a, 's> Explorer<'a, 's> {
    pub(super) fn new(machine: Machine<'a, 's>) -> Self {
        Self {
            fibers: Fibers::default(),
            machine: RefCell::new(machine),
            over: Cell::new(false),
            unwound: Cell::new(false),
        }
    }

    /// Runs `model` as thread 0, and all threads it starts, to the end or to a verdict.
    pub(super) fn run(&self, model: Box<dyn FnOnce()>) -> Option<Verdict> {
        self.fibers.spawn(model);
        self.machine.borrow_mut().start_thread(None);
        loop {
            let thread = self.machine.borrow().current();
            match self.fibers.resume(thread) {
                Stopped::Suspended => {}
                Stopped::Finished(stack) => {
                    let mut machine = self.machine.borrow_mut();
                    machine.forget_stack(stack);
                    machine.finish(thread);
                    self.over.set(machine.schedule() == Next::Over);
                }
                Stopped::Panicked(payload) => {
                    let mut machine = self.machine.borrow_mut();
                    machine.panicked(thread, payload.as_ref());
                    self.over.set(true);
                }
            }
            if self.over.get() {
                return self.machine.borrow_mut().take_verdict();
            }
        }
    }

    pub(super) fn into_machine(self) -> Machine<'a, 's> {
        drop(self.fibers);
        self.machine.into_inner()
    }

    /// Whether what executes is clean-up: the run is over, or a panic unwinds, which ends it.
    fn is_inert(&self) -> bool {
        if panicking() {
            self.unwound.set(true);
        }
        self.over.get() || panicking()
    }

    /// Announces an operation and returns when this thread is chosen to carry it out.
    fn step(&self, footprint: Footprint, at: At) {
        self.announced(Status::Ready, footprint, at);
    }

    /// Announces an operation, and returns when this thread is chosen, is still alive, and has run
    /// the handlers of the signals that arrived.
    fn announced(&self, status: Status, footprint: Footprint, at: At) {
        if self.unwound.get() {
            self.machine.borrow_mut().caught();
            self.end();
        }
        loop {
            self.machine.borrow_mut().announce(status, footprint, at);
            self.wait_for_turn();
            self.live_or_die(at);
            let held_up = self.machine.borrow().goes_for_a_signal();
            if !self.deliver_signals(if held_up { Demand::One } else { Demand::Nothing }) {
                return;
            }
        }
    }

    /// Lets the scheduler choose until this thread is chosen.
    fn wait_for_turn(&self) {
        let me = self.machine.borrow().current();
        let next = self.machine.borrow_mut().schedule();
        match next {
            Next::Thread(thread) if thread == me => {}
            Next::Thread(_) => fibers::suspend(),
            Next::Over => self.end(),
        }
    }

    /// Ends the run.
    fn end(&self) -> ! {
        self.over.set(true);
        loop {
            fibers::suspend();
        }
    }

    /// Ends the run with `fault`.
    fn fail(&self, fault: &Fault, at: At) -> ! {
        self.machine.borrow_mut().fault(fault, at);
        self.end()
    }

    /// Lets the thread that has just been chosen die, before it does what it announced.
    fn live_or_die(&self, at: At) {
        if self.machine.borrow_mut().dies(at) {
            // The thread never runs again; the others go on.
            self.wait_for_turn();
            unreachable!("a dead thread was chosen");
        }
    }

    /// Runs the handlers of signals that arrive now, at least those that are demanded. Whether one
    /// ran.
    fn deliver_signals(&self, mut demand: Demand) -> bool {
        let mut any = false;
        loop {
            let delivery = self.machine.borrow_mut().next_signal(demand);
            let Some(delivery) = delivery else { return any };
            let round = self.machine.borrow_mut().set_round(Round::default());
            (delivery.handler)();
            let mut machine = self.machine.borrow_mut();
            machine.set_round(round);
            machine.return_from_handler(delivery.outer);
            any = true;
            if demand == Demand::One {
                demand = Demand::Nothing;
            }
        }
    }

    /// The history of `word`, made at its first use if its bytes are zero.
    fn loc(&self, word: Word) -> Loc {
        let loc = self.machine.borrow_mut().loc_of(word);
        loc.unwrap_or_else(|| {
            self.machine.borrow_mut().stale_word(word);
            self.end()
        })
    }

    /// Reads `key` as the kernel names it.
    fn key(&self, key: Key) -> Key {
        self.machine.borrow().canonical(key)
    }

    /// Sleeps in the queue until woken, expired or interrupted; the sleeper is already in the
    /// queue. The kernel reads `words` when it wakes.
    fn sleep(&self, words: &[u32], at: At) -> (Waited, Option<usize>) {
        let me = self.machine.borrow().current();
        self.machine.borrow_mut().announce(Status::Asleep, Footprint::futex(words), at);
        self.wait_for_turn();
        self.live_or_die(at);
        let ended = self.machine.borrow_mut().leave_queue(me);
        if ended.0 == Waited::Interrupted {
            self.deliver_signals(Demand::One);
        }
        ended
    }
}

impl Explorer<'_, '_> {
    fn start(&self, body: Box<dyn FnOnce()>, own_process: bool, at: At) -> usize {
        if self.is_inert() {
            return usize::MAX;
        }
        self.step(Footprint::Local, at);
        let number = self.fibers.spawn(body);
        let mut machine = self.machine.borrow_mut();
        let parent = machine.current();
        let thread = machine.start_thread(Some((parent, own_process)));
        let what = if own_process { "a process, thread" } else { "thread" };
        machine.tell(at, || Said::Text(format!("starts {what} {thread}")));
        debug_assert_eq!(number, thread);
        thread
    }
}

impl Engine for Explorer<'_, '_> {
    fn create(&self, value: u64, width: Width, at: At) -> u64 {
        self.machine.borrow_mut().create(value, width, at)
    }

    fn retire(&self, word: Word) {
        if self.is_inert() {
            return;
        }
        // A drop has no place of its own: that of the thread's last operation is the nearest there
        // is.
        let at = self.machine.borrow().last_place().unwrap_or(Location::caller());
        let fault = self.machine.borrow_mut().retire(word, at);
        if let Err(fault) = fault {
            self.fail(&fault, at);
        }
    }

    fn load(&self, word: Word, order: Ordering, at: At) -> u64 {
        if self.is_inert() {
            return self.peek(word);
        }
        let loc = self.loc(word);
        let footprint = self.machine.borrow().reading(loc, Footprint::Read(number(loc)));
        self.step(footprint, at);
        let read = self.machine.borrow_mut().load(loc, order, at);
        read.unwrap_or_else(|fault| self.fail(&fault, at))
    }

    fn store(&self, word: Word, value: u64, order: Ordering, at: At) {
        if self.is_inert() {
            return;
        }
        let loc = self.loc(word);
        self.step(Footprint::Write(number(loc)), at);
        let done = self.machine.borrow_mut().store(loc, value, order, at);
        done.unwrap_or_else(|fault| self.fail(&fault, at));
    }

    fn update(&self, word: Word, update: &Update<'_>, at: At) -> Result<u64, u64> {
        if self.is_inert() {
            return Ok(self.peek(word));
        }
        let loc = self.loc(word);
        let footprint = self.machine.borrow().reading(loc, Footprint::Update(number(loc)));
        self.step(footprint, at);
        let done = self.machine.borrow_mut().update(loc, update, at);
        done.unwrap_or_else(|fault| self.fail(&fault, at))
    }

    fn peek(&self, word: Word) -> u64 {
        self.machine.borrow_mut().peek(word)
    }

    fn fence(&self, order: Ordering, at: At) {
        if self.is_inert() {
            return;
        }
        self.step(Footprint::Fence, at);
        self.machine.borrow_mut().fence(order, at);
    }

    fn membarrier(&self, at: At) {
        if self.is_inert() {
            return;
        }
        self.step(Footprint::Everything, at);
        self.machine.borrow_mut().membarrier(at);
    }

    fn read_plain(&self, address: usize, size: usize, at: At) {
        if self.is_inert() {
            return;
        }
        let done = self.machine.borrow_mut().read_plain(address, size, at);
        done.unwrap_or_else(|fault| self.fail(&fault, at));
    }

    fn write_plain(&self, address: usize, size: usize, at: At) {
        if self.is_inert() {
            return;
        }
        let done = self.machine.borrow_mut().write_plain(address, size, at);
        done.unwrap_or_else(|fault| self.fail(&fault, at));
    }

    fn forget_plain(&self, address: usize, size: usize) {
        if !self.is_inert() {
            self.machine.borrow_mut().forget_plain(address, size);
        }
    }

    fn begin_round(&self) {
        self.machine.borrow_mut().begin_round();
    }

    fn leave_round(&self) {
        self.machine.borrow_mut().leave_round();
    }

    fn end_round(&self, at: At) {
        if self.is_inert() {
            return;
        }
        let footprint = self.machine.borrow_mut().end_round();
        self.announced(Status::Spinning, footprint, at);
        self.machine.borrow_mut().look_again(at);
    }

    fn pauses_in(&self, ns: u32) -> u32 {
        u32::from(ns > 0)
    }

    fn pause(&self, _: u32, _: At) {
        self.machine.borrow_mut().yielded();
    }

    fn point(&self, at: At) {
        if !self.is_inert() {
            self.step(Footprint::Local, at);
        }
    }

    fn yield_now(&self, at: At) {
        if !self.is_inert() {
            self.machine.borrow_mut().yielded();
            self.step(Footprint::Everything, at);
        }
    }

    fn work(&self, _: u64, _: At) {}

    fn wait(&self, key: Key, word: Word, expected: u32, bits: u32, deadline: Option<Time>, at: At) -> Waited {
        if self.is_inert() {
            return Waited::Woken;
        }
        let (key, loc) = (self.key(key), self.loc(word));
        loop {
            self.step(Footprint::futex(&[number(loc)]), at);
            let sleeps = self.machine.borrow_mut().begin_wait(&[(key, loc, expected)], bits, deadline, at);
            match sleeps.unwrap_or_else(|fault| self.fail(&fault, at)) {
                Err(ended) => return ended,
                Ok(()) => match self.sleep(&[], at).0 {
                    // A handler installed with SA_RESTART: an untimed wait is begun again.
                    Waited::Interrupted if deadline.is_none() => {}
                    ended => return ended,
                },
            }
        }
    }

    fn wake(&self, key: Key, count: u32, bits: u32, at: At) -> u32 {
        if self.is_inert() || count == 0 {
            return 0;
        }
        let key = self.key(key);
        self.step(Footprint::futex(&[]), at);
        self.machine.borrow_mut().wake(key, count, bits, at)
    }

    fn requeue(
        &self,
        from: Key,
        (word, expected): (Word, u32),
        wake: u32,
        requeue: u32,
        to: Key,
        at: At,
    ) -> Option<(u32, u32)> {
        if self.is_inert() {
            return None;
        }
        let (from, to) = (self.key(from), self.key(to));
        let loc = self.loc(word);
        self.step(Footprint::futex(&[number(loc)]), at);
        self.machine.borrow_mut().requeue(from, (loc, expected), wake, requeue, to, at)
    }

    fn wait_any(&self, entries: &[Entry<'_>], deadline: Option<Time>, at: At) -> (Waited, Option<usize>) {
        if self.is_inert() {
            return (Waited::Interrupted, None);
        }
        let entries: Vec<_> = entries
            .iter()
            .map(|entry| {
                let word = entry.word.word();
                let key = Key { address: word.address(), private: entry.private };
                (self.key(key), self.loc(word), entry.expected)
            })
            .collect();
        let words: Vec<u32> = entries.iter().map(|(_, loc, _)| number(*loc)).collect();
        self.step(Footprint::futex(&words), at);
        let sleeps = self.machine.borrow_mut().begin_wait(&entries, u32::MAX, deadline, at);
        match sleeps.unwrap_or_else(|fault| self.fail(&fault, at)) {
            Err(ended) => (ended, None),
            Ok(()) => self.sleep(&[], at),
        }
    }

    fn pi(&self, call: Call, at: At) -> Result<u32, Refusal> {
        if self.is_inert() {
            return Ok(1);
        }
        let mut words = Vec::new();
        let call = call.map(|futex| {
            let place = Place { key: self.key(futex.key), loc: self.loc(futex.word) };
            words.push(number(place.loc));
            place
        });
        loop {
            self.step(Footprint::futex(&words), at);
            let outcome = self.machine.borrow_mut().pi(call, at);
            match outcome.unwrap_or_else(|fault| self.fail(&fault, at)) {
                Outcome::Returns(answer) => return answer,
                Outcome::Sleeps => match (self.sleep(&words, at).0, call) {
                    (Waited::Woken, _) => {
                        let seen = self.machine.borrow_mut().return_as_owner(call, at);
                        seen.unwrap_or_else(|fault| self.fail(&fault, at));
                        return Ok(1);
                    }
                    (Waited::TimedOut, _) => return Err(Refusal::TimedOut),
                    // The wait for a lock is begun again.
                    (_, Call::Lock { .. }) => {}
                    _ => return Ok(0),
                },
            }
        }
    }

    fn look_at_clock(&self, at: At) {
        if !self.is_inert() {
            self.step(Footprint::Clock, at);
        }
    }

    fn now(&self, clock: Clock) -> Duration {
        self.machine.borrow_mut().now(clock)
    }

    fn has_passed(&self, deadline: Time, at: At) -> bool {
        if self.is_inert() {
            return true;
        }
        self.step(Footprint::Clock, at);
        self.machine.borrow_mut().has_passed(deadline, at)
    }

    fn spawn(&self, body: Box<dyn FnOnce()>, at: At) -> usize {
        self.start(body, false, at)
    }

    fn spawn_process(&self, body: Box<dyn FnOnce()>, at: At) -> usize {
        self.start(body, true, at)
    }

    fn join(&self, thread: usize, at: At) {
        if self.is_inert() {
            return;
        }
        self.announced(Status::Joining(thread), Footprint::Local, at);
        self.machine.borrow_mut().joined(thread, at);
    }

    fn current_thread(&self) -> usize {
        let mut machine = self.machine.borrow_mut();
        let me = machine.current();
        if let Some(thread) = machine.threads.get_mut(me) {
            thread.knows_itself = true;
        }
        me
    }

    fn current_process(&self) -> usize {
        self.machine.borrow().process()
    }

    fn choose(&self, count: usize, at: At) -> usize {
        if self.is_inert() {
            return 0;
        }
        let mut machine = self.machine.borrow_mut();
        let chosen = machine.pick(Kind::User, count);
        machine.tell(at, || Said::Text(format!("chooses {chosen} of {count}")));
        chosen
    }

    fn signals(&self, request: Request, at: At) -> u64 {
        if self.is_inert() {
            return 0;
        }
        self.step(
            match request {
                Request::Send { .. } | Request::Install { .. } => Footprint::Everything,
                Request::Arm { .. } | Request::Mask { .. } | Request::MaskOnReturn { .. } => Footprint::Local,
            },
            at,
        );
        let (answer, demand) = self.machine.borrow_mut().signals(request, at);
        if demand == Demand::Pending {
            self.deliver_signals(demand);
        }
        answer
    }

    fn map(&self, addresses: core::ops::Range<usize>, region: usize) {
        self.machine.borrow_mut().map(addresses, region);
    }

    fn set_robust_list(&self, head: usize) {
        self.machine.borrow_mut().set_robust_list(head);
    }

    fn note(&self, text: &dyn Fn() -> String, at: At) {
        if !self.is_inert() {
            self.machine.borrow_mut().tell(at, || Said::Text(text()));
        }
    }

    fn run(&self) -> u64 {
        self.machine.borrow().run()
    }

    fn before_all(&self, make: &mut dyn FnMut()) {
        let outer = replace(&mut self.machine.borrow_mut().before_all, true);
        make();
        self.machine.borrow_mut().before_all = outer;
    }
}

/// For reports: where a value that was read came from.
pub(super) fn describe(seen: &Seen) -> String {
    let Seen { value, newer, writer, written_at, why } = seen;
    if *newer == 0 {
        return format!("{value:#x}");
    }
    let writes = if *newer == 1 { "write" } else { "writes" };
    let from = match (writer, written_at) {
        (Some(thread), Some(at)) => format!(" of thread {thread} at {}", place(at)),
        _ => " of the beginning".to_owned(),
    };
    format!("{value:#x}{from}, {newer} {writes} behind: {why}")
}
