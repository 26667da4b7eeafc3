//! The engine: an operation of lock code, from its issue to its effect.
//!
//! An operation runs in the coroutine of its thread, in these steps: the thread leaves if its slice
//! is over; the request travels; the line serves it; the effect takes place, at that moment of
//! virtual time and before anything else happens. Between steps the coroutine is suspended, unless
//! nothing else happens before the next one.
//!
//! What happens outside of any thread, before time begins, costs nothing and leaves no trace in
//! caches. The same holds for what destructors do while a panic unwinds, which ends the run.

use super::events::Event;
use super::mesi::Access;
use super::state::{State, Status, Then};
use super::units::Ps;
use std::cell::{RefCell, RefMut};
use std::panic::resume_unwind;
use ulocks_vm::engine::{Fibers, Stopped, suspend};
use ulocks_vm::futex::Waited;

/// A run.
pub(super) struct World {
    state: RefCell<State>,
    pub(super) fibers: Fibers,
    pub(super) number: u64,
}

impl World {
    pub(super) fn new(state: State) -> Self {
        Self { state: RefCell::new(state), fibers: Fibers::default(), number: ulocks_vm::engine::next_run() }
    }

    pub(super) fn state(&self) -> RefMut<'_, State> {
        self.state.borrow_mut()
    }

    /// A thread that exists before time begins.
    pub(super) fn add_thread(&self, cpu: usize, body: Box<dyn FnOnce()>) {
        self.state().add_thread(cpu, 0);
        self.fibers.spawn(body);
    }

    /// Lets happen what happens, until time is up or nothing happens any more.
    pub(super) fn run(&self) {
        loop {
            let mut state = self.state();
            let Some((time, event)) = state.events.pop() else { break };
            if state.alive > 0 {
                // Time ends with the last thread, though slices and timeouts are still to come.
                state.records.now.set(time.min(state.end));
            }
            if time > state.end {
                break;
            }
            match event {
                Event::Go { thread, step } => {
                    if state.goes(thread, step) {
                        state.current = Some(thread);
                        drop(state);
                        self.resume(thread);
                    }
                }
                Event::Slice { cpu, slice } => state.slice_over(cpu, slice),
                Event::Timeout { thread, sleep } => state.timed_out(thread, sleep),
                Event::Measure => {
                    state.directory.traffic = Default::default();
                    state.kernel = Default::default();
                    state.records.restart();
                }
            }
        }
        let mut state = self.state();
        state.over = true;
        state.current = None;
    }

    fn resume(&self, thread: usize) {
        let stopped = self.fibers.resume(thread);
        let mut state = self.state();
        state.current = None;
        match stopped {
            Stopped::Suspended => {}
            Stopped::Finished(_) => {
                state.trace(1, thread as u64);
                state.thread(thread).status = Status::Ended;
                state.alive -= 1;
                for joiner in std::mem::take(&mut state.thread(thread).joiners) {
                    let sleep = state.thread(joiner).sleep;
                    state.rouse(joiner, (Waited::Woken, None));
                    state.deliver(joiner, sleep);
                }
                let cpu = state.thread(thread).cpu;
                state.vacate(cpu);
            }
            Stopped::Panicked(payload) => {
                state.over = true;
                drop(state);
                resume_unwind(payload);
            }
        }
    }

    // ---- Time, as the calling thread sees it.

    /// The calling thread, unless what it does takes no time.
    pub(super) fn caller(&self) -> Option<usize> {
        if std::thread::panicking() {
            return None;
        }
        let state = self.state();
        if state.over { None } else { state.current }
    }

    /// Lets `duration` pass while the thread is in an instruction or in the kernel.
    pub(super) fn pass(&self, me: usize, duration: Ps) {
        self.spend(me, duration, |_| Status::Busy);
    }

    /// Lets `duration` pass in which the thread can be taken off its CPU.
    pub(super) fn compute(&self, me: usize, duration: Ps) {
        self.spend(me, duration, |until| Status::Computing { until });
    }

    /// Lets `duration` pass, and more if the CPU is stolen meanwhile.
    fn spend(&self, me: usize, duration: Ps, status: fn(Ps) -> Status) {
        let mut state = self.state();
        let time = state.now() + duration;
        let time = state.delayed(me, time);
        if time <= state.end && state.events.none_until(time) {
            state.records.now.set(time);
            return;
        }
        state.thread(me).status = status(time);
        state.go(me, time);
        drop(state);
        suspend();
    }

    /// Before an operation: the thread pays what it owes, and leaves if its slice is over by then.
    pub(super) fn enter(&self, me: usize) {
        let debt = std::mem::take(&mut self.state().thread(me).debt);
        if debt > 0 {
            self.pass(me, debt);
        }
        let mut state = self.state();
        let cpu = state.thread(me).cpu;
        if state.cpus.get(cpu).switch_soon {
            state.cpus.get(cpu).switch_soon = false;
            if state.cpus.has_queue(cpu) {
                state.preempt(me, Then::Run);
                drop(state);
                suspend();
            }
        }
    }

    // ---- Memory.

    /// Brings the line of `address` to the caller's CPU, as far as `access` needs it, and executes
    /// for `extra` beyond a hit. What follows takes place at the moment of the effect. The number
    /// of the line, and how long it was on its way.
    pub(super) fn access(&self, me: usize, address: usize, access: Access, extra: Ps) -> (usize, Ps) {
        let mut state = self.state();
        let cpu = state.thread(me).cpu;
        let line = state.directory.line(address);
        let hold = state.costs.hit + extra;
        state.directory.traffic.accesses += 1;
        let (taken, way) = if state.directory.is_hit(line, cpu, access) {
            if access == Access::Write {
                // A store is served between any two requests; an update keeps the line.
                let done = state.now() + if extra > 0 { hold } else { 0 };
                state.directory.write_hit(line, done);
            }
            drop(state);
            self.pass(me, hold);
            (access == Access::Write, 0)
        } else {
            let request = state.directory.request(line, cpu, access);
            drop(state);
            self.pass(me, request);
            let mut state = self.state();
            let now = state.now();
            let (done, taken) = state.directory.fetch(line, cpu, access, hold, now);
            if taken {
                // Spinners notice that their copies are gone, and queue behind this access.
                state.taken(line);
            }
            drop(state);
            self.pass(me, done - now);
            (taken, request + (done - now) - hold)
        };
        let mut state = self.state();
        state.trace(16 + me as u64, line as u64);
        if taken {
            // Now for the threads that read the old value meanwhile.
            state.taken(line);
        }
        (line, way)
    }

    /// A load was done.
    pub(super) fn note_read(&self, me: usize, line: usize) {
        let mut state = self.state();
        state.thread(me).credit = 0;
        if state.thread(me).round.open {
            let version = state.directory.version(line);
            let lines = &mut state.thread(me).round.lines;
            // The first look counts: the round depends on what it saw then.
            if lines.iter().all(|(other, _)| *other != line) {
                lines.push((line, version));
            }
        }
    }

    /// The caller did something after which another round of its busy-wait may see something new by
    /// itself.
    pub(super) fn note_effect(&self, me: usize) {
        self.state().thread(me).round.restless = true;
    }

    /// A store, the effect of which is to be done at once: nothing happens in between.
    pub(super) fn store_to(&self, me: usize, address: usize) {
        let (_, way) = self.access(me, address, Access::Write, 0);
        let mut state = self.state();
        if state.costs.store_buffer {
            // What the thread computes next it has computed while the line was on its way. On a CPU
            // that was stolen it computed nothing.
            state.thread(me).credit += way;
        }
        drop(state);
        self.note_effect(me);
    }

    /// A read-modify-write, likewise.
    pub(super) fn update_at(&self, me: usize, address: usize) {
        let rmw = self.state().costs.rmw;
        self.access(me, address, Access::Write, rmw);
        self.state().thread(me).credit = 0;
        self.note_effect(me);
    }

    /// Lets the caller work, less what it has done while its stores were on their way.
    pub(super) fn compute_for(&self, duration: Ps) {
        let Some(me) = self.caller() else { return };
        self.enter(me);
        self.note_effect(me);
        let mut state = self.state();
        let overlapped = state.thread(me).credit.min(duration);
        state.thread(me).credit = 0;
        // What takes longer than the run does not end in it; a sum with it must not overflow.
        let left = state.end + 1 - state.now();
        drop(state);
        self.compute(me, (duration - overlapped).min(left));
    }
}
