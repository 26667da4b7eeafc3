//! The explorer as an engine: what each operation of the facade does to the machine, and when other
//! threads run.
//!
//! An operation announces itself, lets the scheduler choose the next thread, and is carried out
//! when its thread is chosen. So whenever a thread is chosen, the next operation of every thread is
//! known; the reduction of the exhaustive strategy needs that. What a thread does between two
//! operations belongs to the first of them.
//!
//! Nothing here unwinds. An operation that ends the run notes the verdict, marks the run as over,
//! and never returns: its coroutine is dropped without being resumed.

use super::explorer::Explorer;
use super::machine::Status;
use super::run::replay;
use super::story::Said;
use super::words::number;
use crate::choice::{Footprint, Kind};
use crate::clock::{Clock, Time};
use crate::engine::{At, Engine, Key, Steering, Until, Update, Width, Word};
use crate::futex::{Entry, Waited};
use core::alloc::Layout;
use core::mem::replace;
use core::panic::Location;
use core::sync::atomic::Ordering;
use core::time::Duration;

impl Engine for Explorer<'_, '_> {
    fn create(&self, value: u64, width: Width, at: At) -> u64 {
        self.machine.borrow_mut().create(value, width, at)
    }

    fn name(&self, word: Word, label: &str) {
        self.machine.borrow_mut().name(word, label);
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
        let loc = self.loc(word, at);
        let footprint = self.machine.borrow().reading(loc, Footprint::Read(number(loc)));
        self.look(footprint, at);
        self.demand(word, at);
        let read = self.machine.borrow_mut().load(loc, order, at);
        read.unwrap_or_else(|fault| self.fail(&fault, at))
    }

    fn store(&self, word: Word, value: u64, order: Ordering, at: At) {
        if self.is_inert() {
            return self.poke(word, value);
        }
        let loc = self.loc(word, at);
        self.step(Footprint::Write(number(loc)), at);
        self.demand(word, at);
        let done = self.machine.borrow_mut().store(loc, value, order, at);
        done.unwrap_or_else(|fault| self.fail(&fault, at));
    }

    fn update(&self, word: Word, update: &Update<'_>, at: At) -> Result<u64, u64> {
        if self.is_inert() {
            let before = self.peek(word);
            (update.change)(before).into_iter().for_each(|after| self.poke(word, after));
            return Ok(before);
        }
        let loc = self.loc(word, at);
        let footprint = self.machine.borrow().reading(loc, Footprint::Update(number(loc)));
        self.look(footprint, at);
        self.demand(word, at);
        let done = self.machine.borrow_mut().update(loc, update, at);
        done.unwrap_or_else(|fault| self.fail(&fault, at))
    }

    fn settle(&self, word: Word, until: Option<Until>, update: &Update<'_>, at: At) -> Result<u64, u64> {
        if self.is_inert() {
            return Ok(self.peek(word));
        }
        let loc = self.loc(word, at);
        let footprint = Footprint::Newest(number(loc));
        match until {
            Some(until) => self.announced(Status::Settling(loc, until), footprint, at),
            None => self.look(footprint, at),
        }
        self.demand(word, at);
        let done = self.machine.borrow_mut().settle(loc, update, at);
        done.unwrap_or_else(|fault| self.fail(&fault, at))
    }

    fn alone(&self, word: Word, writes: bool, at: At) -> u64 {
        if self.is_inert() {
            return self.peek(word);
        }
        let loc = self.loc(word, at);
        let read = self.machine.borrow_mut().alone(loc, writes, at);
        read.unwrap_or_else(|fault| self.fail(&fault, at))
    }

    fn peek(&self, word: Word) -> u64 {
        let mut machine = self.machine.borrow_mut();
        if !self.notes.get() {
            machine.moves_on();
        }
        machine.peek(word)
    }

    fn fence(&self, order: Ordering, at: At) {
        if self.is_inert() {
            return;
        }
        self.look(Footprint::Fence, at);
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
        if self.is_inert() {
            return;
        }
        let at = self.machine.borrow().last_place().unwrap_or(Location::caller());
        let done = self.machine.borrow_mut().forget_plain(address, size, at);
        done.unwrap_or_else(|fault| self.fail(&fault, at));
    }

    fn keep(&self, block: *mut u8, layout: Layout) -> bool {
        if self.over.get() {
            return false;
        }
        let done = self.machine.borrow_mut().keep(block.addr(), layout);
        match done {
            // A panic that unwinds is the verdict: what is given back twice by its drops is not.
            Err((fault, at)) if !self.is_inert() => self.fail(&fault, at),
            _ => true,
        }
    }

    unsafe fn allocate(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { self.machine.borrow_mut().allocate(layout) }
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
        let footprint = self.machine.borrow_mut().end_round(at);
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
            self.look(Footprint::Local, at);
        }
    }

    fn event(&self, at: At) {
        if !self.is_inert() {
            self.machine.borrow_mut().yielded();
            self.machine.borrow_mut().moves_on();
            self.step(Footprint::Everything, at);
        }
    }

    fn yield_now(&self, at: At) {
        if self.is_inert() {
            return;
        }
        if self.machine.borrow_mut().must_be_fair(at) {
            return self.make_way(at);
        }
        self.machine.borrow_mut().yielded();
        let footprint = self.machine.borrow().yielding();
        self.look(footprint, at);
    }

    fn work(&self, _: u64, _: At) {}

    fn wait(&self, key: Key, word: Word, expected: u32, bits: u32, deadline: Option<Time>, at: At) -> Waited {
        if self.is_inert() {
            return Waited::Woken;
        }
        let (key, loc) = (self.key(key), self.loc(word, at));
        loop {
            self.look(Footprint::futex(&[number(loc)]), at);
            self.demand(word, at);
            let queued = self.machine.borrow_mut().queue_up((key, loc, expected), bits, deadline, at);
            let queued = queued.unwrap_or_else(|fault| self.fail(&fault, at));
            match queued.and_then(|()| self.machine.borrow_mut().begin_sleep(deadline, at)) {
                Err(ended) => return ended.0,
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
        let loc = self.loc(word, at);
        self.step(Footprint::futex(&[number(loc)]), at);
        self.demand(word, at);
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
                (word, (self.key(key), self.loc(word, at), entry.expected))
            })
            .collect();
        // The kernel compares one word after the other, and queues the thread for each. Others may
        // go on in between.
        for (nth, (word, entry)) in entries.into_iter().enumerate() {
            let footprint = Footprint::futex(&[number(entry.1)]);
            if nth == 0 {
                self.look(footprint, at)
            } else {
                self.step_in_kernel(footprint, at)
            }
            self.demand(word, at);
            let queued = self.machine.borrow_mut().queue_up(entry, u32::MAX, deadline, at);
            if let Err(ended) = queued.unwrap_or_else(|fault| self.fail(&fault, at)) {
                return ended;
            }
        }
        let sleeps = self.machine.borrow_mut().begin_sleep(deadline, at);
        sleeps.map_or_else(|ended| ended, |()| self.sleep(&[], at))
    }

    #[cfg(feature = "linux")]
    fn linux(&self) -> Option<&dyn crate::engine::linux::Linux> {
        Some(self)
    }

    fn look_at_clock(&self, at: At) {
        if !self.is_inert() {
            self.look(Footprint::Clock, at);
        }
    }

    fn now(&self, clock: Clock) -> Duration {
        self.machine.borrow_mut().now(clock)
    }

    fn has_passed(&self, deadline: Time, at: At) -> bool {
        if self.is_inert() {
            return true;
        }
        self.look(Footprint::Clock, at);
        self.machine.borrow_mut().has_passed(deadline, at)
    }

    fn time_passes(&self) -> bool {
        self.machine.borrow().config.timeouts
    }

    fn spawn(&self, body: Box<dyn FnOnce()>, at: At) -> usize {
        self.start(body, false, at)
    }

    fn join(&self, thread: usize, at: At) {
        if self.is_inert() {
            return;
        }
        self.announced(Status::Joining(thread), Footprint::Local, at);
        self.machine.borrow_mut().joined(thread, at);
    }

    fn say_returned(&self, word: Word, started: At) {
        if self.is_inert() {
            return;
        }
        let at = self.machine.borrow().last_place().unwrap_or(started);
        let loc = self.loc(word, at);
        let done = self.machine.borrow_mut().say_returned(loc, at);
        done.unwrap_or_else(|fault| self.fail(&fault, at));
    }

    fn ask(&self, word: Word, may_be_old: bool, at: At) -> u64 {
        if self.is_inert() {
            return self.peek(word);
        }
        let loc = self.loc(word, at);
        // The answer comes with a step of another thread, whatever that touches.
        self.look(Footprint::Everything, at);
        self.demand(word, at);
        let read = self.machine.borrow_mut().ask(loc, may_be_old, at);
        read.unwrap_or_else(|fault| self.fail(&fault, at))
    }

    fn current_thread(&self) -> usize {
        let mut machine = self.machine.borrow_mut();
        let me = machine.current();
        if let Some(thread) = machine.threads.get_mut(me) {
            thread.linux.may_own();
        }
        me
    }

    fn running_thread(&self) -> usize {
        self.machine.borrow().current()
    }

    fn choose(&self, count: usize, at: At) -> usize {
        if self.is_inert() {
            return 0;
        }
        let mut machine = self.machine.borrow_mut();
        machine.changes_something();
        let chosen = machine.pick(Kind::User, count);
        machine.tell(at, || Said::Text(format!("chooses {chosen} of {count}")));
        chosen
    }

    fn steer(&self, steering: Steering) {
        self.machine.borrow_mut().steering.steer(steering);
    }

    fn note(&self, text: &dyn Fn() -> String, at: At) {
        if self.is_inert() || self.machine.borrow().story.is_none() {
            return;
        }
        // Only a told execution comes here, and it must be the one that is told.
        self.notes.set(true);
        let text = text();
        self.notes.set(false);
        self.machine.borrow_mut().tell(at, || Said::Text(text));
    }

    fn last_words(&self) -> String {
        let Ok(machine) = self.machine.try_borrow() else { return String::new() };
        match &machine.story {
            Some(story) => story.tale(),
            None => format!(
                "to repeat it, with its story: ULOCKS_VM_REPLAY={}",
                replay(machine.is_systematic, machine.choices.bytes())
            ),
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
