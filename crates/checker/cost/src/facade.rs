//! The operations of lock code, each made of the steps that it takes.

use super::engine::World;
use super::mesi::{Access, LINE};
use super::state::{State, Status, Then};
use super::syscalls::{REALTIME_ZERO, since_start};
use super::units::Ps;
use core::sync::atomic::Ordering;
use core::time::Duration;
use ulocks_vm::clock::{Clock, Time};
use ulocks_vm::engine::suspend;
use ulocks_vm::engine::{At, Engine, Key, Update, Width, Word};
use ulocks_vm::futex::{Entry, Waited};

impl Engine for World {
    fn create(&self, value: u64, _: Width, _: At) -> u64 {
        value
    }

    fn retire(&self, _: Word) {}

    fn load(&self, word: Word, _: Ordering, _: At) -> u64 {
        if let Some(me) = self.caller() {
            self.enter(me);
            let (line, _) = self.access(me, word.address(), Access::Read, 0);
            self.note_read(me, line);
        }
        word.bits()
    }

    fn store(&self, word: Word, value: u64, order: Ordering, _: At) {
        if let Some(me) = self.caller() {
            self.enter(me);
            if order == Ordering::SeqCst {
                // An exchange, on the machines this is about.
                self.update_at(me, word.address());
            } else {
                self.store_to(me, word.address());
            }
        }
        word.set_bits(value);
    }

    fn update(&self, word: Word, update: &Update<'_>, _: At) -> Result<u64, u64> {
        if let Some(me) = self.caller() {
            self.enter(me);
            self.update_at(me, word.address());
        }
        let before = word.bits();
        let Some(after) = (update.change)(before) else { return Err(before) };
        word.set_bits(after);
        Ok(before)
    }

    fn peek(&self, word: Word) -> u64 {
        word.bits()
    }

    fn fence(&self, order: Ordering, _: At) {
        if let Some(me) = self.caller() {
            self.enter(me);
            if order == Ordering::SeqCst {
                let mut state = self.state();
                state.thread(me).credit = 0;
                let fence = state.costs.fence;
                drop(state);
                self.pass(me, fence);
            }
        }
    }

    fn read_plain(&self, address: usize, size: usize, _: At) {
        if let Some(me) = self.caller() {
            self.enter(me);
            for line in lines(address, size) {
                let (line, _) = self.access(me, line, Access::Read, 0);
                self.note_read(me, line);
            }
        }
    }

    fn write_plain(&self, address: usize, size: usize, _: At) {
        if let Some(me) = self.caller() {
            self.enter(me);
            for line in lines(address, size) {
                self.store_to(me, line);
            }
        }
    }

    fn forget_plain(&self, _: usize, _: usize) {}

    fn begin_round(&self) {
        if let Some(me) = self.caller() {
            let mut state = self.state();
            let round = &mut state.thread(me).round;
            round.open = true;
            round.lines.clear();
            round.restless = false;
            round.deadline = None;
        }
    }

    fn end_round(&self, at: At) {
        let Some(me) = self.caller() else {
            panic!(
                "{at}: a busy-wait that nobody can end: before the threads start, or while a panic unwinds"
            )
        };
        let mut state = self.state();
        let State { threads, directory, .. } = &mut *state;
        let round = &mut threads[me].round;
        round.open = false;
        let fresh = round.lines.iter().all(|&(line, version)| directory.version(line) == version);
        if round.restless || round.lines.is_empty() || !fresh {
            let pause = state.costs.pause;
            drop(state);
            self.enter(me);
            return self.compute(me, pause);
        }
        // Nothing has happened since the versions were compared, and nothing happens until it
        // sleeps.
        let since = state.now();
        let thread = state.thread(me);
        let (sleep, lines, deadline) =
            (thread.sleep, std::mem::take(&mut thread.round.lines), thread.round.deadline);
        thread.status = Status::Spinning { since };
        thread.stirred_by = None;
        thread.deadline = deadline;
        thread.at = at;
        for &(line, _) in &lines {
            state.directory.watch(line, (me, sleep));
        }
        if let Some(deadline) = deadline {
            let time = deadline.max(since + state.costs.pause);
            let time = state.delayed(me, time);
            state.go(me, time);
        }
        let cpu = state.thread(me).cpu;
        if state.cpus.get(cpu).switch_soon {
            state.cpus.get(cpu).switch_soon = false;
            if state.cpus.has_queue(cpu) {
                state.preempt(me, Then::Spin);
            }
        }
        drop(state);
        suspend();
        let mut state = self.state();
        if state.thread(me).sleep == sleep {
            state.thread(me).sleep += 1;
        }
        state.thread(me).deadline = None;
        let stirred_by = state.thread(me).stirred_by;
        for &(line, _) in lines.iter().filter(|(line, _)| Some(*line) != stirred_by) {
            state.directory.unwatch(line, (me, sleep));
        }
        state.thread(me).round.lines = lines; // for its room
    }

    fn leave_round(&self) {
        if let Some(me) = self.caller() {
            self.state().thread(me).round.open = false;
        }
    }

    fn pauses_in(&self, ns: u32) -> u32 {
        let pause = self.state().costs.pause;
        (Ps::from(ns) * 1_000).div_ceil(pause).try_into().unwrap_or(u32::MAX)
    }

    fn pause(&self, count: u32, _: At) {
        let pause = self.state().costs.pause;
        self.compute_for(Ps::from(count) * pause);
    }

    /// A system call that interrupts every other CPU on which a thread runs, and waits for all of
    /// them.
    fn membarrier(&self, _: At) {
        let Some(me) = self.caller() else { return };
        self.enter(me);
        self.note_effect(me);
        let mut state = self.state();
        state.kernel.calls += 1;
        let others = state.cpus.busy().saturating_sub(1) as u64;
        let cost = state.costs.futex + others * state.costs.interrupt;
        drop(state);
        self.pass(me, cost);
    }

    fn point(&self, _: At) {
        if let Some(me) = self.caller() {
            self.enter(me);
        }
    }

    fn work(&self, ns: u64, _: At) {
        self.compute_for(ns.saturating_mul(1_000));
    }

    fn wait(&self, key: Key, word: Word, expected: u32, bits: u32, deadline: Option<Time>, at: At) -> Waited {
        let entries = [(key, word, expected, bits)];
        self.wait_for(&entries, deadline, at).0
    }

    fn wake(&self, key: Key, count: u32, bits: u32, _: At) -> u32 {
        let Some(me) = self.caller() else { return 0 };
        self.call(me, key);
        self.state().kernel.wakes += 1;
        let taken = self.take(me, key, count, bits);
        self.wake_all(me, taken)
    }

    fn requeue(
        &self,
        from: Key,
        (word, expected): (Word, u32),
        wake: u32,
        requeue: u32,
        to: Key,
        _: At,
    ) -> Option<(u32, u32)> {
        let Some(me) = self.caller() else { return Some((0, 0)) };
        self.call(me, from);
        if self.look(me, word) != expected {
            self.state().kernel.mismatches += 1;
            return None;
        }
        let (taken, _) = self.state().take_sleepers(from, wake, u32::MAX);
        let moved = self.state().move_sleepers(from, requeue, to).len();
        if taken.len() + moved > 0 {
            self.occupy(me, from, taken.len() + moved);
        }
        Some((self.wake_all(me, taken), moved as u32))
    }

    fn wait_any(&self, entries: &[Entry<'_>], deadline: Option<Time>, at: At) -> (Waited, Option<usize>) {
        let entries: Vec<_> = entries
            .iter()
            .map(|entry| {
                let word = entry.word.word();
                (Key { address: word.address(), private: entry.private }, word, entry.expected, u32::MAX)
            })
            .collect();
        let (waited, entry) = self.wait_for(&entries, deadline, at);
        (waited, entry.filter(|_| waited == Waited::Woken))
    }

    fn now(&self, clock: Clock) -> Duration {
        let me = self.caller();
        let mut state = self.state();
        let mut owed = 0;
        if let Some(me) = me {
            // Not a step, so the look is paid for later. Two looks in a row are apart all the same.
            let clock_read = state.costs.clock_read;
            let thread = state.thread(me);
            thread.debt += clock_read;
            thread.round.restless = true;
            owed = thread.debt;
        }
        let since_start = Duration::from_nanos((state.now() + owed) / 1_000);
        match clock {
            Clock::Monotonic => since_start,
            Clock::Realtime => REALTIME_ZERO + since_start,
        }
    }

    fn has_passed(&self, deadline: Time, _: At) -> bool {
        let deadline = since_start(deadline);
        if let Some(me) = self.caller() {
            self.enter(me);
            let clock_read = self.state().costs.clock_read;
            self.pass(me, clock_read);
            let mut state = self.state();
            let round = &mut state.thread(me).round;
            round.deadline = Some(round.deadline.map_or(deadline, |other| other.min(deadline)));
        }
        self.state().now() >= deadline
    }

    fn spawn(&self, body: Box<dyn FnOnce()>, at: At) -> usize {
        let Some(me) = self.caller() else { panic!("{at}: only a thread of the run can start another") };
        self.enter(me);
        self.note_effect(me);
        let spawn = self.state().costs.spawn;
        self.pass(me, spawn);
        let mut state = self.state();
        let (cpu, latency) = (state.thread(me).cpu, state.costs.wake_latency);
        state.records.add();
        state.add_thread(cpu, latency);
        drop(state);
        self.fibers.spawn(body)
    }

    fn join(&self, thread: usize, at: At) {
        let Some(me) = self.caller() else { return };
        self.enter(me);
        self.note_effect(me);
        let mut state = self.state();
        if state.thread(thread).status != Status::Ended {
            state.kernel.calls += 1;
            state.thread(me).credit = 0;
            state.thread(thread).joiners.push(me);
            drop(state);
            self.sleep(me, None, at);
        }
    }

    fn current_thread(&self) -> usize {
        self.state().current.unwrap_or(0)
    }

    /// A load from memory of the thread's own, as glibc does it.
    fn cpu(&self) -> Option<usize> {
        let me = self.caller()?;
        let mut state = self.state();
        let hit = state.costs.hit;
        let thread = state.thread(me);
        thread.debt += hit;
        Some(thread.cpu)
    }

    fn cpus(&self) -> Option<usize> {
        Some(self.state().cpus.count())
    }

    fn run(&self) -> u64 {
        self.number
    }
}

/// An address in each line that the bytes touch. Data of no size is on no line.
fn lines(address: usize, size: usize) -> impl Iterator<Item = usize> {
    let end = address + size;
    (address / LINE * LINE..end).step_by(LINE).take(if size == 0 { 0 } else { usize::MAX })
}
