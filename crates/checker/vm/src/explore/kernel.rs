//! The kernel's part of an execution: the futex queue, and the clocks.
//!
//! Each method is one step for all other threads. Nothing here orders memory: a wake-up makes
//! nothing visible, and the kernel's own look at a word is a relaxed load of the newest value.

use super::coverage::{Event, Operation};
use super::linux::Inherits;
use super::machine::Machine;
use super::story::Said;
use crate::choice::Kind;
use crate::clock::{Clock, Time};
use crate::engine::{At, Key};
use crate::futex::Waited;
use crate::memory::{Fault, Loc, MsgId};
use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

/// A thread in the queue of one futex, or of several (`futex_waitv`).
pub(super) struct Sleeper {
    pub(super) thread: usize,
    /// The futex, its word, and what the word held.
    pub(super) entries: Vec<(Key, Loc, u32)>,
    pub(super) bits: u32,
    pub(super) deadline: Option<Time>,
    /// By which entry it was woken; by the last one, if by several.
    pub(super) woken: Option<usize>,
    /// The entries that are not in the kernel's queues any more, by bit.
    pub(super) taken: u128,
    pub(super) expired: bool,
    /// What it waits for, if that is a priority-inheriting futex. Plain wake-ups do not find it.
    pub(super) inherits: Option<Inherits>,
}

/// A wake call that found fewer sleepers than it asked for.
pub(super) struct Vain {
    pub(super) key: Key,
    pub(super) bits: u32,
    pub(super) thread: usize,
    pub(super) at: At,
    /// The newest message of any word at that time.
    pub(super) announced: MsgId,
}

/// The clocks of one execution. Both move together.
#[derive(Default)]
pub(super) struct Clocks {
    passed: Duration,
    /// Each reading is a nanosecond later than it would be, so that no two deadlines are the same
    /// moment.
    readings: Cell<u32>,
}

/// What lies further ahead than this never comes.
const NEVER: Duration = Duration::from_secs(1 << 33);

impl Clocks {
    fn zero(clock: Clock) -> Duration {
        match clock {
            Clock::Monotonic => Duration::from_secs(1_000),
            Clock::Realtime => Duration::from_secs(1_700_000_000),
        }
    }

    pub(super) fn now(&self) -> Duration {
        self.passed + Duration::from_nanos(self.readings.get().into())
    }

    /// How long after the beginning of the run `time` is; `None` if it never comes.
    pub(super) fn moment(time: Time) -> Option<Duration> {
        Some(time.since_zero.saturating_sub(Self::zero(time.clock))).filter(|moment| *moment < NEVER)
    }
}

impl Machine<'_, '_> {
    /// Puts the current thread into the queue of a futex, unless its word has changed. If the
    /// thread is in the queue of another one (`futex_waitv`), this is the next.
    pub(super) fn queue_up(
        &mut self,
        entry: (Key, Loc, u32),
        bits: u32,
        deadline: Option<Time>,
        at: At,
    ) -> Result<Result<(), (Waited, Option<usize>)>, Fault> {
        let (_, loc, expected) = entry;
        // The kernel reads the newest value, on the thread's behalf: the thread reads nothing older
        // after that. It is a relaxed load all the same, and orders nothing else.
        let read = self.memory.load(self.current(), loc, Relaxed, at, &mut |_, _| 0)?;
        let holds = read.value;
        self.looked(loc, read.message, holds, false);
        if holds != u64::from(expected) {
            self.tell(at, || Said::NoSleep { loc, expected, holds });
            return Ok(Err(self.sleeps_not(Waited::Mismatch, deadline, at)));
        }
        let thread = self.current();
        match self.queue.iter_mut().find(|sleeper| sleeper.thread == thread) {
            Some(sleeper) => sleeper.entries.push(entry),
            None => self.queue.push_back(Sleeper {
                thread,
                entries: vec![entry],
                bits,
                deadline,
                woken: None,
                taken: 0,
                expired: false,
                inherits: None,
            }),
        }
        Ok(Ok(()))
    }

    /// The current thread is in all queues. Whether it sleeps, or how the wait ends at once.
    pub(super) fn begin_sleep(
        &mut self,
        deadline: Option<Time>,
        at: At,
    ) -> Result<(), (Waited, Option<usize>)> {
        if deadline.is_some_and(|deadline| self.has_come(deadline)) {
            self.tell(at, || Said::Text("does not sleep: its deadline has passed".into()));
            return Err(self.sleeps_not(Waited::TimedOut, deadline, at));
        }
        self.moves_on();
        self.threads[self.current].round.changes_something();
        if self.spurious < self.config.spurious && self.pick(Kind::Spurious, 2) == 1 {
            self.spurious += 1;
            self.tell(at, || Said::Text("sleeps, and is woken spuriously".into()));
            return Err(self.sleeps_not(Waited::Woken, deadline, at));
        }
        let loc =
            self.sleeper(self.current()).and_then(|sleeper| sleeper.entries.first()).map(|entry| entry.1);
        self.cover(at, Operation::wait(deadline), &[Event::Slept]);
        self.tell(at, || Said::Sleeps { loc });
        Ok(())
    }

    /// The current thread leaves the queues that it is in. It has been woken if a wake-up came in
    /// between, and otherwise the wait ended as `ended` says.
    fn sleeps_not(&mut self, ended: Waited, deadline: Option<Time>, at: At) -> (Waited, Option<usize>) {
        let thread = self.current();
        let place = self.queue.iter().position(|sleeper| sleeper.thread == thread);
        let woken = place.and_then(|place| self.queue.remove(place)).and_then(|sleeper| sleeper.woken);
        let event = match (woken, ended) {
            (Some(_), _) => Event::Woken,
            (None, Waited::Mismatch) => Event::FoundChanged,
            (None, Waited::TimedOut) => Event::TimedOut,
            (None, _) => Event::WokenForNoReason,
        };
        self.cover(at, Operation::wait(deadline), &[event]);
        if woken.is_some() { (Waited::Woken, woken) } else { (ended, None) }
    }

    fn sleeper(&self, thread: usize) -> Option<&Sleeper> {
        self.queue.iter().find(|sleeper| sleeper.thread == thread)
    }

    pub(super) fn sleeper_can_go(&self, thread: usize) -> bool {
        self.sleeper(thread).is_some_and(|sleeper| sleeper.woken.is_some() || sleeper.expired)
    }

    /// How the sleep of `thread` ended.
    pub(super) fn leave_queue(&mut self, thread: usize) -> (Waited, Option<usize>) {
        let place = self.queue.iter().position(|sleeper| sleeper.thread == thread);
        let sleeper = place.and_then(|place| self.queue.remove(place)).expect("the thread is in the queue");
        let (ended, event) = match sleeper {
            Sleeper { woken: Some(entry), .. } => ((Waited::Woken, Some(entry)), Event::Woken),
            Sleeper { expired: true, .. } => ((Waited::TimedOut, None), Event::TimedOut),
            _ => ((Waited::Interrupted, None), Event::Interrupted),
        };
        if let Some(at) = self.threads[thread].at {
            if sleeper.inherits.is_none() {
                self.cover_end(at, Operation::wait(sleeper.deadline), event);
            }
            self.tell(at, || Said::Text(format!("returns from its sleep: {:?}", ended.0)));
        }
        ended
    }

    /// Wakes up to `count` sleepers of `key`, longest sleeper first.
    pub(super) fn take(&mut self, key: Key, count: u32, bits: u32) -> Vec<usize> {
        let mut woken = Vec::new();
        // A thread that was woken by one word, and has not run yet, is still in the queues of its
        // other words: it may take another wake-up.
        for sleeper in self.queue.iter_mut().filter(|sleeper| sleeper.inherits.is_none()) {
            if woken.len() as u32 == count {
                break;
            }
            let entries = &sleeper.entries;
            let is_hit = |&nth: &usize| entries[nth].0 == key && sleeper.taken & 1 << nth == 0;
            let hit = (0..entries.len()).find(is_hit);
            if let Some(entry) = hit.filter(|_| sleeper.bits & bits != 0) {
                sleeper.woken = sleeper.woken.max(Some(entry));
                sleeper.taken |= 1 << entry;
                woken.push(sleeper.thread);
            }
        }
        woken
    }

    pub(super) fn wake(&mut self, key: Key, count: u32, bits: u32, at: At) -> u32 {
        let woken = self.take(key, count, bits);
        let answer = woken.len() as u32;
        self.cover(at, Operation::Wake, if answer > 0 { &[Event::Woken] } else { &[] });
        if answer < count {
            self.woke_in_vain(key, bits, at);
        }
        self.tell(at, || Said::Woke { woken, moved: Vec::new() });
        answer
    }

    /// Only the last such call of a thread counts: it announces what the earlier ones did.
    fn woke_in_vain(&mut self, key: Key, bits: u32, at: At) {
        let thread = self.current();
        self.vain.retain(|vain| (vain.key, vain.bits, vain.thread) != (key, bits, thread));
        self.vain.push(Vain { key, bits, thread, at, announced: self.memory.last_message() });
    }

    pub(super) fn requeue(
        &mut self,
        from: Key,
        (loc, expected): (Loc, u32),
        wake: u32,
        requeue: u32,
        to: Key,
        at: At,
    ) -> Option<(u32, u32)> {
        let holds = self.memory.newest(loc);
        if holds != u64::from(expected) {
            self.cover(at, Operation::Wake, &[Event::FoundChanged]);
            self.tell(at, || Said::Text(format!("requeues nobody: the word holds {holds:#x}")));
            return None;
        }
        let woken = self.take(from, wake, u32::MAX);
        let mut moved = Vec::new();
        // A moved sleeper goes to the end of the other futex's queue, which is the end of the
        // common one.
        for _ in 0..self.queue.len() {
            let Some(mut sleeper) = self.queue.pop_front() else { break };
            let free =
                sleeper.woken.is_none() && sleeper.inherits.is_none() && (moved.len() as u32) < requeue;
            match sleeper.entries.iter_mut().find(|(of, _, _)| free && *of == from) {
                Some(entry) => {
                    entry.0 = to;
                    moved.push(sleeper);
                }
                None => self.queue.push_back(sleeper),
            }
        }
        let counts = (woken.len() as u32, moved.len() as u32);
        let names = moved.iter().map(|sleeper| sleeper.thread).collect();
        if counts.0 < wake {
            self.woke_in_vain(from, u32::MAX, at);
        }
        self.queue.extend(moved);
        self.cover(at, Operation::Wake, if counts == (0, 0) { &[] } else { &[Event::Woken] });
        self.tell(at, || Said::Woke { woken, moved: names });
        Some(counts)
    }

    // Time.

    pub(super) fn now(&mut self, clock: Clock) -> Duration {
        self.clocks.readings.set(self.clocks.readings.get() + 1);
        Clocks::zero(clock) + self.clocks.now()
    }

    pub(super) fn has_come(&self, deadline: Time) -> bool {
        Clocks::moment(deadline).is_some_and(|moment| moment <= self.clocks.now())
    }

    pub(super) fn has_passed(&mut self, deadline: Time, at: At) -> bool {
        if self.has_come(deadline) {
            self.cover(at, Operation::Deadline, &[Event::TimedOut]);
            return true;
        }
        let Some(moment) = Clocks::moment(deadline).filter(|_| self.config.timeouts) else { return false };
        if self.pick(Kind::Expire, 2) == 0 {
            self.cover(at, Operation::Deadline, &[Event::NotYet]);
            self.saw_deadline(moment);
            return false;
        }
        self.cover(at, Operation::Deadline, &[Event::TimedOut]);
        self.tell(at, || Said::Text("time passes: its deadline is over".into()));
        self.move_to(moment);
        true
    }

    /// The earliest moment until which a thread sleeps or spins.
    pub(super) fn next_deadline(&self) -> Option<Duration> {
        if !self.config.timeouts {
            return None;
        }
        let waiting = self.queue.iter().filter(|sleeper| sleeper.woken.is_none() && !sleeper.expired);
        let sleepers = waiting.filter_map(|sleeper| sleeper.deadline.and_then(Clocks::moment));
        sleepers.chain(self.next_spinners_deadline()).min()
    }

    pub(super) fn advance_clock(&mut self) {
        if let Some(moment) = self.next_deadline() {
            self.move_to(moment);
        }
    }

    fn move_to(&mut self, moment: Duration) {
        let ahead = moment.saturating_sub(self.clocks.now());
        self.clocks.passed += ahead;
        let now = self.clocks.now();
        for sleeper in &mut self.queue {
            let deadline = sleeper.deadline.and_then(Clocks::moment);
            // A thread that is woken before it runs has been woken: the kernel looks at the queue,
            // not at the timer.
            sleeper.expired |= sleeper.woken.is_none() && deadline.is_some_and(|deadline| deadline <= now);
        }
    }
}
