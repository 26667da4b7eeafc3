//! The kernel's part of an execution: the futex queue, the clocks, and what it does for a thread
//! that has died.
//!
//! Each method is one step for all other threads. Nothing here orders memory: a wake-up makes
//! nothing visible, and the kernel's own look at a word is a relaxed load of the newest value.

use super::coverage::{Event, Operation};
use super::machine::{Machine, Status};
use super::pi::Inherits;
use super::story::Said;
use super::{Kernel, Survivors};
use crate::choice::{Footprint, Kind};
use crate::clock::{Clock, Time};
use crate::engine::{At, Key, Update, Width, Word};
use crate::futex::Waited;
use crate::memory::{Fault, Loc, MsgId};
use crate::pi::{OWNER_DIED, TID_MASK, WAITERS};
use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::Ordering::{AcqRel, Relaxed};
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

/// The kernel follows a robust list no further (`ROBUST_LIST_LIMIT`).
const ROBUST_LIST_LIMIT: usize = 2_048;
/// The mark of a priority-inheriting lock in the address of an entry.
const PI: usize = 1;

/// How far the walk along a robust list has come.
pub(super) struct Walk {
    head: usize,
    offset: usize,
    pending: usize,
    entry: usize,
    count: usize,
}

impl Machine<'_, '_> {
    pub(super) fn canonical(&self, key: Key) -> Key {
        match key.private {
            true => Key { address: key.address ^ (self.process() << 48), ..key },
            false => Key { address: self.canonical_address(key.address), ..key },
        }
    }

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
    fn take(&mut self, key: Key, count: u32, bits: u32) -> Vec<usize> {
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

    // Death.

    /// Whether the thread that was just chosen dies instead.
    pub(super) fn dies(&mut self, at: At) -> bool {
        let me = self.current();
        self.threads[me].taken += 1;
        // Thread 0 is the model itself: it judges the others.
        if self.config.deaths.is_none() || me == 0 || self.deaths >= self.config.deaths.max() {
            return false;
        }
        let dies = match self.config.deaths.point() {
            Some((thread, step)) => thread == me && step + 1 == self.threads[me].taken,
            None => self.pick(Kind::Die, 2) == 1,
        };
        if dies {
            self.deaths += 1;
            self.tell(at, || Said::Text("dies".into()));
            let process = self.threads[me].process;
            let whole = self.config.deaths.takes_the_process() && process != 0;
            for (number, thread) in self.threads.iter_mut().enumerate() {
                if number == me || (whole && thread.process == process && thread.status != Status::Done) {
                    thread.died = true;
                    thread.status = Status::Exiting;
                    thread.footprint = Footprint::Everything;
                }
            }
            self.died_at = Some(at);
        }
        dies
    }

    /// Whether the death of a thread in place of its next step would take other threads with it.
    pub(super) fn death_takes_others(&self, number: usize) -> bool {
        let thread = &self.threads[number];
        let deaths = self.config.deaths;
        if !deaths.takes_the_process() || thread.process == 0 || self.deaths >= deaths.max() {
            return false;
        }
        deaths.point().is_none_or(|point| point == (number, thread.taken))
            && self.threads.iter().enumerate().any(|(other, of)| {
                other != number && of.process == thread.process && of.status != Status::Done
            })
    }

    /// The kernel cleans up after a thread that has died: it leaves the queue, its robust list is
    /// walked, one lock a step, and last come the priority-inheriting locks for which others wait.
    /// Of a thread that has come to its end only these are looked after.
    pub(super) fn exit(&mut self, thread: usize) {
        if !self.threads[thread].died {
            return self.end(thread);
        }
        let walk = match self.threads[thread].walk.take() {
            Some(walk) => walk,
            None => {
                self.queue.retain(|sleeper| sleeper.thread != thread);
                match self.threads[thread].robust_list {
                    Some(head) => self.begin_walk(head),
                    None => return self.end(thread),
                }
            }
        };
        match self.walk(thread, walk) {
            Some(rest) => self.threads[thread].walk = Some(rest),
            None => self.end(thread),
        }
    }

    pub(super) fn set_robust_list(&mut self, head: usize) {
        let me = self.current();
        self.threads[me].robust_list = Some(head);
    }

    /// The head is three words: the first entry, the distance from an entry to its futex word, and
    /// the pending entry. An entry begins with the address of the next; the last one's is the
    /// head's.
    fn begin_walk(&mut self, head: usize) -> Walk {
        let offset = self.read_user(head + 8) as usize;
        let pending = self.read_user(head + 16) as usize & !PI;
        Walk { head, offset, pending, entry: self.read_user(head) as usize & !PI, count: 0 }
    }

    /// `exit_robust_list`: every lock on the list, then the one in `list_op_pending`. Comes to one
    /// of them, and returns the rest of the way.
    fn walk(&mut self, thread: usize, mut walk: Walk) -> Option<Walk> {
        let Walk { head, offset, pending, .. } = walk;
        while walk.entry != head && walk.entry != 0 && walk.count < ROBUST_LIST_LIMIT {
            let entry = walk.entry;
            // The next one is read before this one's lock is given away.
            walk.entry = self.read_user(entry) as usize & !PI;
            walk.count += 1;
            if entry != pending {
                self.owner_died(thread, entry.wrapping_add(offset), false);
                return Some(walk);
            }
        }
        if pending != 0 {
            self.owner_died(thread, pending.wrapping_add(offset), true);
        }
        None
    }

    /// `handle_futex_death`.
    fn owner_died(&mut self, thread: usize, address: usize, pending: bool) {
        let word = user_word(address, Width::W32);
        let Some(loc) = self.loc_of(word) else { return };
        let holds = self.memory.newest(loc) as u32;
        let key = Key { address: self.canonical_address(address), private: false };
        if holds & TID_MASK == thread as u32 + 1 {
            // The kernel exchanges it with a full barrier: what the dead thread did is visible to
            // a thread that acquires.
            let change = |value: u64| Some(value & u64::from(WAITERS) | u64::from(OWNER_DIED));
            let update =
                Update { name: "exit", success: AcqRel, failure: Relaxed, weak: false, change: &change };
            let at = self.died_at.expect("somebody has died");
            // A word that ended is no lock any more.
            let _ = self.memory.update(thread, loc, &update, at, &mut |_, _| 0);
            let woken = if holds & WAITERS != 0 { self.take(key, 1, u32::MAX) } else { Vec::new() };
            self.tell_kernel(thread, loc, "marks it OWNER_DIED", &woken);
        } else if pending && self.passes_on(holds) {
            // It died between its release and its wake-up, or between being woken and acquiring.
            let woken = self.take(key, 1, u32::MAX);
            self.tell_kernel(thread, loc, "passes its wake-up on", &woken);
        }
    }

    /// Whether the kernel wakes a waiter for a dead thread whose pending lock holds `holds`, which
    /// does not name that thread.
    fn passes_on(&self, holds: u32) -> bool {
        let is_free = holds & TID_MASK == 0;
        match self.config.kernel {
            Kernel::V6_18 => is_free,
            Kernel::V7_2 => is_free || holds & WAITERS == 0,
        }
    }

    fn tell_kernel(&mut self, thread: usize, loc: Loc, what: &str, woken: &[usize]) {
        let name = self.word_name(loc);
        let steps = self.steps();
        if let Some(story) = &mut self.story {
            let text =
                format!("is dead; the kernel finds {name} on its robust list, {what}, wakes {woken:?}");
            story.tell_without_place(steps, thread, text);
        }
    }

    /// What the kernel reads at `address`: the newest value of the atomic that is there.
    fn read_user(&mut self, address: usize) -> u64 {
        self.peek(user_word(address, Width::W64))
    }

    /// Where a thread died, and whether the survivors were held up by it.
    pub(super) fn death(&self) -> Option<(At, bool)> {
        let blocked = self.threads.iter().any(|thread| thread.status != Status::Done);
        self.died_at.map(|at| (at, blocked && self.config.survivors == Survivors::MayBlock))
    }
}

/// The word at an address that a thread gave to the kernel.
fn user_word(address: usize, width: Width) -> Word {
    let bytes = NonNull::new(core::ptr::with_exposed_provenance_mut(address));
    Word::new(bytes.expect("a robust list contains the null pointer"), width)
}
