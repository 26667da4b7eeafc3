//! System calls, as their caller sees them: from the entry into the kernel to the way back.
//!
//! A call reaches the queue of its futex after `futex`, and has it to itself for `queue` and the
//! sleepers it passes. What it does to the queue happens at one moment, and so does the look at a
//! word with what follows from it. Threads are woken after the queue has been left, one after the
//! other; but from the moment they were taken from it, no deadline and no other wake-up finds them.

use super::engine::World;
use super::events::Event;
use super::kernel::Sleeper;
use super::mesi::Access;
use super::state::{Status, Woken};
use super::units::Ps;
use core::time::Duration;
use ulocks_vm::clock::{Clock, Time};
use ulocks_vm::engine::suspend;
use ulocks_vm::engine::{At, Key, Word};
use ulocks_vm::futex::Waited;

/// Between the zeros of the two clocks: a realtime clock is never small.
pub(super) const REALTIME_ZERO: Duration = Duration::from_secs(1_000_000_000);

/// A deadline in the time of the run.
pub(super) fn since_start(time: Time) -> Ps {
    let zero = if time.clock == Clock::Realtime { REALTIME_ZERO } else { Duration::ZERO };
    let ps = time.since_zero.saturating_sub(zero).as_nanos().saturating_mul(1_000);
    // Beyond every end; leaves room for latencies to be added.
    ps.min(u128::from(Ps::MAX / 4)) as Ps
}

impl World {
    /// A system call: how long the caller is in the kernel before it reaches the queue of `key`,
    /// and until it has it.
    pub(super) fn call(&self, me: usize, key: Key) {
        self.enter(me);
        self.note_effect(me);
        let mut state = self.state();
        state.kernel.calls += 1;
        state.thread(me).credit = 0;
        let futex = state.costs.futex;
        drop(state);
        self.pass(me, futex);
        self.occupy(me, key, 0);
    }

    /// Waits for the queue, and keeps it while `walked` sleepers are passed.
    pub(super) fn occupy(&self, me: usize, key: Key, walked: usize) {
        let mut state = self.state();
        let now = state.now();
        let hold = if walked == 0 { state.costs.queue } else { state.costs.walk * walked as Ps };
        let done = state.futexes.occupy(key, now, hold);
        drop(state);
        self.pass(me, done - now);
    }

    /// The kernel looks at a word.
    pub(super) fn look(&self, me: usize, word: Word) -> u32 {
        self.access(me, word.address(), Access::Read, 0);
        word.bits() as u32
    }

    /// Sleeps until roused. The thread stands in the queues already.
    pub(super) fn sleep(&self, me: usize, deadline: Option<Ps>, at: At) -> Woken {
        let mut state = self.state();
        let slack = state.costs.timer_slack;
        state.thread(me).at = at;
        state.thread(me).deadline = deadline;
        if let Some(deadline) = deadline {
            let (time, sleep) = ((deadline + slack).max(state.now()), state.thread(me).sleep);
            state.events.push(time, Event::Timeout { thread: me, sleep });
        }
        let block = state.costs.block;
        drop(state);
        self.pass(me, block);
        let mut state = self.state();
        if state.thread(me).woken.is_none() {
            state.kernel.sleeps += 1;
            state.thread(me).status = Status::Asleep;
            let cpu = state.thread(me).cpu;
            state.vacate(cpu);
            drop(state);
            suspend();
            state = self.state();
        }
        state.thread(me).sleep += 1;
        state.thread(me).deadline = None;
        state.thread(me).woken.take().expect("awake, but nobody woke it")
    }

    /// Wakes the threads that were taken from a queue, one after the other.
    pub(super) fn wake_all(&self, me: usize, taken: Vec<Sleeper>) -> u32 {
        self.state().kernel.woken += taken.len() as u64;
        for sleeper in &taken {
            let wake = self.state().costs.wake;
            self.pass(me, wake);
            let mut state = self.state();
            let interrupt =
                if state.deliver(sleeper.thread, sleeper.sleep) { state.costs.interrupt } else { 0 };
            drop(state);
            self.pass(me, interrupt);
        }
        taken.len() as u32
    }

    /// Picks sleepers and keeps the queue meanwhile.
    pub(super) fn take(&self, me: usize, key: Key, count: u32, bits: u32) -> Vec<Sleeper> {
        let (taken, looked) = self.state().take_sleepers(key, count, bits);
        if looked > 0 {
            self.occupy(me, key, looked);
        }
        taken
    }

    pub(super) fn wait_for(
        &self,
        entries: &[(Key, Word, u32, u32)],
        deadline: Option<Time>,
        at: At,
    ) -> Woken {
        let Some(me) = self.caller() else {
            panic!("{at}: a thread cannot sleep before the threads start, or while a panic unwinds")
        };
        self.call(me, entries[0].0);
        self.state().kernel.waits += 1;
        for (entry, &(key, word, expected, bits)) in entries.iter().enumerate() {
            if entry > 0 {
                self.occupy(me, key, 0);
            }
            let seen = self.look(me, word);
            // From here on at the moment of the look.
            let mut state = self.state();
            if let Some(woken) = state.thread(me).woken.take() {
                state.thread(me).sleep += 1;
                return woken; // by an earlier entry, while it was on its way to this one
            }
            if seen != expected {
                state.kernel.mismatches += 1;
                state.leave_queues(me);
                return (Waited::Mismatch, None);
            }
            let sleep = state.thread(me).sleep;
            state.futexes.enqueue(key, Sleeper { thread: me, sleep, bits, entry });
            state.thread(me).keys.push(key);
        }
        self.sleep(me, deadline.map(since_start), at)
    }
}
