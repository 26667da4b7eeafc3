//! What the operations of the explorer have in common: they announce themselves, let the scheduler
//! choose, and go on when their thread is chosen.

use super::machine::{Machine, Next, Status};
use super::story::Said;
use super::verdict::Verdict;
use super::watchdog;
use crate::choice::Footprint;
use crate::engine::{At, Key, Word};
use crate::fibers::{self, Fibers, Stopped};
use crate::futex::Waited;
use crate::memory::{Fault, Loc, What};
use core::cell::{Cell, RefCell};
use std::thread::panicking;

/// The explorer, for one execution.
pub(super) struct Explorer<'a, 's> {
    pub(super) fibers: Fibers,
    pub(super) machine: RefCell<Machine<'a, 's>>,
    pub(super) over: Cell<bool>,
    /// A panic has unwound through operations, which were no steps.
    pub(super) unwound: Cell<bool>,
    /// A line of the story is being written.
    pub(super) notes: Cell<bool>,
}

impl<'a, 's> Explorer<'a, 's> {
    pub(super) fn new(machine: Machine<'a, 's>) -> Self {
        Self {
            fibers: Fibers::with_stacks(machine.config.stack),
            machine: RefCell::new(machine),
            over: Cell::new(false),
            unwound: Cell::new(false),
            notes: Cell::new(false),
        }
    }

    /// Runs `model` as thread 0, and all threads it starts, to the end or to a verdict.
    pub(super) fn run(&self, model: Box<dyn FnOnce()>) -> Option<Verdict> {
        self.fibers.spawn(model);
        self.machine.borrow_mut().start_thread(None);
        loop {
            let thread = self.machine.borrow().current();
            watchdog::runs(thread, None);
            let stopped = self.fibers.resume(thread);
            watchdog::rests();
            match stopped {
                Stopped::Suspended => {}
                Stopped::Finished(stack) => {
                    let mut machine = self.machine.borrow_mut();
                    machine.forget_stack(stack);
                    machine.finish(thread);
                    if self.unwound.get() {
                        machine.caught();
                    }
                    self.over.set(self.unwound.get() || machine.schedule() == Next::Over);
                }
                Stopped::Panicked(payload) => {
                    let mut machine = self.machine.borrow_mut();
                    machine.panicked(thread, payload.as_ref());
                    self.over.set(true);
                    // It is the model's, and its drop may panic.
                    core::mem::forget(payload);
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

    /// Whether what executes is no step, and waits for nothing: the run is over, or a panic
    /// unwinds, which ends it, or a line of the story looks at words.
    pub(super) fn is_inert(&self) -> bool {
        if panicking() {
            self.unwound.set(true);
            watchdog::unwinds();
        }
        self.over.get() || panicking() || self.notes.get()
    }

    /// What a panic's drops write, they read: one that pops until nothing is left comes to its end.
    pub(super) fn poke(&self, word: Word, value: u64) {
        if !self.notes.get() {
            self.machine.borrow_mut().poke(word, value);
        }
    }

    /// Announces an operation and returns when this thread is chosen to carry it out.
    pub(super) fn step(&self, footprint: Footprint, at: At) {
        self.machine.borrow_mut().changes_something();
        self.announced(Status::Ready, footprint, at);
    }

    /// As `step`, for an operation that may change nothing and be repeated. A thread that has done
    /// a fruitless round waits for something new first.
    pub(super) fn look(&self, footprint: Footprint, at: At) {
        let waits = self.machine.borrow_mut().visit(at);
        if let Some((wait, outer)) = waits {
            self.announced(Status::Spinning, wait, at);
            self.machine.borrow_mut().go_on_from(outer, at);
        }
        self.announced(Status::Ready, footprint, at);
    }

    /// A yield after which others go first.
    pub(super) fn make_way(&self, at: At) {
        self.step(Footprint::Everything, at);
        let waits = self.machine.borrow_mut().makes_way(at);
        if waits {
            self.announced(Status::MakingWay, Footprint::Everything, at);
        }
    }

    /// Announces an operation, and returns when this thread is chosen, is still alive, and has run
    /// the handlers of the signals that arrived.
    pub(super) fn announced(&self, status: Status, footprint: Footprint, at: At) {
        watchdog::rests();
        if self.unwound.get() {
            self.machine.borrow_mut().caught();
            self.end();
        }
        loop {
            self.machine.borrow_mut().announce(status, footprint, at);
            self.wait_for_turn();
            self.live_or_die(at);
            if !self.run_handlers() {
                watchdog::runs(self.machine.borrow().current(), Some(at));
                return;
            }
        }
    }

    /// Announces a step inside of a system call, where no signal is handled.
    pub(super) fn step_in_kernel(&self, footprint: Footprint, at: At) {
        watchdog::rests();
        self.machine.borrow_mut().announce(Status::Ready, footprint, at);
        self.wait_for_turn();
        self.live_or_die(at);
        watchdog::runs(self.machine.borrow().current(), Some(at));
    }

    /// Lets the scheduler choose until this thread is chosen.
    pub(super) fn wait_for_turn(&self) {
        let me = self.machine.borrow().current();
        let next = self.machine.borrow_mut().schedule();
        match next {
            Next::Thread(thread) if thread == me => {}
            Next::Thread(_) => fibers::suspend(),
            Next::Over => self.end(),
        }
    }

    /// Ends the run.
    pub(super) fn end(&self) -> ! {
        self.over.set(true);
        loop {
            fibers::suspend();
        }
    }

    /// Ends the run with `fault`.
    pub(super) fn fail(&self, fault: &Fault, at: At) -> ! {
        self.machine.borrow_mut().fault(fault, at);
        self.end()
    }

    /// The history of `word`, made at its first use if its bytes are zero.
    pub(super) fn loc(&self, word: Word, at: At) -> Loc {
        self.demand(word, at);
        let loc = self.machine.borrow_mut().loc_of(word);
        loc.unwrap_or_else(|| {
            self.machine.borrow_mut().stale_word(word);
            self.end()
        })
    }

    /// Demands that the memory of `word` was not given back: when an operation is announced, since
    /// the bytes of the word say which it is, and again when it is carried out.
    pub(super) fn demand(&self, word: Word, at: At) {
        let there = self.machine.borrow().demand_memory(word.address(), What::Atomic, at);
        there.unwrap_or_else(|fault| self.fail(&fault, at));
    }

    /// Reads `key` as the kernel names it.
    pub(super) fn key(&self, key: Key) -> Key {
        self.machine.borrow().canonical(key)
    }

    /// Sleeps in the queue until woken, expired or interrupted; the sleeper is already in the
    /// queue. The kernel reads `words` when it wakes.
    pub(super) fn sleep(&self, words: &[u32], at: At) -> (Waited, Option<usize>) {
        let me = self.machine.borrow().current();
        self.machine.borrow_mut().announce(Status::Asleep, Footprint::futex(words), at);
        self.wait_for_turn();
        self.live_or_die(at);
        let ended = self.machine.borrow_mut().leave_queue(me);
        if ended.0 == Waited::Interrupted {
            self.run_one_handler();
        }
        ended
    }

    pub(super) fn start(&self, body: Box<dyn FnOnce()>, own_process: bool, at: At) -> usize {
        if self.is_inert() {
            return usize::MAX;
        }
        self.step(Footprint::Local, at);
        let number = self.fibers.spawn(body);
        let mut machine = self.machine.borrow_mut();
        let parent = machine.current();
        let thread = machine.start_thread(Some((parent, own_process)));
        machine.tell(at, || Said::Starts { thread, own_process });
        debug_assert_eq!(number, thread);
        thread
    }
}
