//! The kernel's part of priority-inheriting futexes: the owner, the waiters, and the next owner.
//!
//! The word names the owner; the waiters are in the kernel's queue. Each method is one step for
//! all other threads. So is the end of an owner, for which Linux takes two: it wakes the next
//! owner, and that one writes the word when it runs. What comes between the two is tested on a real
//! kernel only, by `ulocks-pi`.

use crate::choice::Kind;
use crate::clock::Time;
use crate::engine::{At, Key, Update};
use crate::explore::kernel::Sleeper;
use crate::explore::machine::{Machine, Status};
use crate::explore::story::Said;
use crate::memory::{Fault, Loc};
use crate::pi::{Call, OWNER_DIED, Refusal, TID_MASK, WAITERS};
use core::sync::atomic::Ordering::{AcqRel, Relaxed};

/// What a sleeper of a priority-inheriting futex waits for.
#[derive(Clone, Copy)]
pub(in crate::explore) enum Inherits {
    /// The lock of its entry.
    Lock,
    /// To be moved from its entry to this lock.
    Requeue(Place),
}

/// A futex as the machine names it.
#[derive(Clone, Copy)]
pub(in crate::explore) struct Place {
    pub(super) key: Key,
    pub(super) loc: Loc,
}

/// What became of a call.
pub(super) enum Outcome {
    /// It returns.
    Returns(Result<u32, Refusal>),
    /// The caller is in the queue.
    Sleeps,
}

fn tid(thread: usize) -> u32 {
    thread as u32 + 1
}

/// The thread whose id is in a word that has one.
fn owner(word: u32) -> usize {
    (word & TID_MASK) as usize - 1
}

impl Machine<'_, '_> {
    /// Carries out a call of the current thread.
    pub(super) fn pi(&mut self, call: Call<Place>, at: At) -> Result<Outcome, Fault> {
        self.threads[self.current].linux.may_own();
        let returned = match call {
            Call::Lock { lock, deadline } => return self.lock_pi(lock, deadline, at),
            Call::TryLock { lock } => self.try_lock_pi(lock, at)?,
            Call::Unlock { lock } => self.unlock_pi(lock, at)?,
            Call::WaitRequeue { from, expected, to, deadline } => {
                return self.wait_requeue_pi(from, expected, to, deadline, at);
            }
            Call::CmpRequeue { from, expected, requeue, to } => {
                self.cmp_requeue_pi(from, expected, requeue, to, at)?
            }
            Call::SetPriority(priority) => {
                self.threads[self.current].linux.priority = priority;
                self.tell(at, || Said::Text(format!("has priority {priority} from here on")));
                Ok(0)
            }
        };
        if let Err(refusal) = returned {
            self.tell(at, || Said::Text(format!("is refused: {refusal:?}")));
        }
        Ok(Outcome::Returns(returned))
    }

    fn holds(&self, loc: Loc) -> u32 {
        self.memory.newest(loc) as u32
    }

    /// The kernel exchanges the newest value, with a full barrier, on behalf of `thread`.
    fn write_pi(&mut self, thread: usize, place: Place, value: u32, at: At) -> Result<(), Fault> {
        let change = |_| Some(u64::from(value));
        let update =
            Update { name: "the kernel", success: AcqRel, failure: Relaxed, weak: false, change: &change };
        self.memory.update(thread, place.loc, &update, at, &mut |_, _| 0)?;
        let name = self.word_name(place.loc);
        self.tell(at, || Said::Text(format!("the kernel sets {name} to {value:#x}")));
        Ok(())
    }

    /// Takes the lock for `thread` if it has no owner and no waiters.
    fn take_pi(&mut self, thread: usize, lock: Place, marks: u32, at: At) -> Result<bool, Fault> {
        let holds = self.holds(lock.loc);
        let free = holds & TID_MASK == 0 && self.best_waiter(lock.key).is_none();
        if free {
            self.write_pi(thread, lock, holds & OWNER_DIED | tid(thread) | marks, at)?;
        }
        Ok(free)
    }

    /// Marks the lock for a waiter to come, which is `thread`, and looks whether it may wait.
    fn attach(&mut self, thread: usize, lock: Place, at: At) -> Result<Result<(), Refusal>, Fault> {
        let holds = self.holds(lock.loc);
        if holds & TID_MASK == tid(thread) {
            return Ok(Err(Refusal::Deadlock));
        }
        if holds & TID_MASK == 0 {
            return Ok(Err(Refusal::Inconsistent));
        }
        // The mark stays, whatever is answered.
        self.write_pi(self.current, lock, holds | WAITERS, at)?;
        let owner = owner(holds);
        Ok(match self.threads.get(owner) {
            None => Err(Refusal::OwnerGone),
            Some(thread) if thread.status == Status::Done => Err(Refusal::OwnerGone),
            _ if self.closes_circle(thread, owner) => Err(Refusal::Deadlock),
            _ => Ok(()),
        })
    }

    /// Whether `owner` waits, through any number of locks, for what `thread` owns.
    fn closes_circle(&self, thread: usize, mut owner: usize) -> bool {
        for _ in 0..=self.threads.len() {
            if owner == thread {
                return true;
            }
            let blocked = self.waiting_for_locks().find(|sleeper| sleeper.thread == owner);
            match blocked.map(|sleeper| self.holds(sleeper.entries[0].1)) {
                Some(word) if word & TID_MASK != 0 => owner = self::owner(word),
                _ => return false,
            }
        }
        true
    }

    fn waiting_for_locks(&self) -> impl Iterator<Item = &Sleeper> {
        let waits =
            |sleeper: &&Sleeper| sleeper.woken.is_none() && matches!(sleeper.inherits, Some(Inherits::Lock));
        self.queue.iter().filter(waits)
    }

    /// The priority of a thread, with what it inherits from the threads that wait for it.
    fn priority(&self, thread: usize, depth: usize) -> u8 {
        let own = self.threads[thread].linux.priority;
        let waiting = self
            .waiting_for_locks()
            .filter(|sleeper| depth > 0 && self.holds(sleeper.entries[0].1) & TID_MASK == tid(thread));
        waiting.map(|sleeper| self.priority(sleeper.thread, depth - 1)).fold(own, u8::max)
    }

    /// The waiter for the lock `key` with the highest priority, and longest among equals.
    fn best_waiter(&self, key: Key) -> Option<usize> {
        let waiting = self.waiting_for_locks().filter(|sleeper| sleeper.entries[0].0 == key);
        self.best(waiting.map(|sleeper| sleeper.thread))
    }

    fn best(&self, threads: impl Iterator<Item = usize>) -> Option<usize> {
        let depth = self.threads.len();
        threads.fold(None, |best, next| match best {
            Some(best) if self.priority(best, depth) >= self.priority(next, depth) => Some(best),
            _ => Some(next),
        })
    }

    fn sleeper_mut(&mut self, thread: usize) -> &mut Sleeper {
        let sleeper = self.queue.iter_mut().find(|sleeper| sleeper.thread == thread);
        sleeper.expect("the thread is in the queue")
    }

    fn enqueue_pi(
        &mut self,
        place: Place,
        expected: u32,
        deadline: Option<Time>,
        inherits: Inherits,
        at: At,
    ) {
        self.queue.push_back(Sleeper {
            thread: self.current,
            entries: vec![(place.key, place.loc, expected)],
            bits: u32::MAX,
            deadline,
            woken: None,
            taken: 0,
            expired: false,
            inherits: Some(inherits),
        });
        self.tell(at, || Said::Sleeps { loc: Some(place.loc) });
    }

    fn lock_pi(&mut self, lock: Place, deadline: Option<Time>, at: At) -> Result<Outcome, Fault> {
        if self.take_pi(self.current, lock, 0, at)? {
            return Ok(Outcome::Returns(Ok(0)));
        }
        let mut allowed = self.attach(self.current, lock, at)?;
        if allowed.is_ok() && deadline.is_some_and(|deadline| self.has_come(deadline)) {
            allowed = Err(Refusal::TimedOut);
        }
        if let Err(refusal) = allowed {
            self.tell(at, || Said::Text(format!("is refused: {refusal:?}")));
            return Ok(Outcome::Returns(Err(refusal)));
        }
        self.enqueue_pi(lock, 0, deadline, Inherits::Lock, at);
        Ok(Outcome::Sleeps)
    }

    /// The current thread returns with the lock that was handed to it. The kernel knows by now that
    /// the word is its own, so the thread reads nothing older after that; but nothing else is
    /// ordered by this.
    pub(super) fn return_as_owner(&mut self, call: Call<Place>, at: At) -> Result<(), Fault> {
        if let Call::Lock { lock, .. } | Call::WaitRequeue { to: lock, .. } = call {
            self.memory.load(self.current, lock.loc, Relaxed, at, &mut |_, _| 0)?;
        }
        Ok(())
    }

    fn try_lock_pi(&mut self, lock: Place, at: At) -> Result<Result<u32, Refusal>, Fault> {
        if self.take_pi(self.current, lock, 0, at)? {
            return Ok(Ok(1));
        }
        Ok(self.attach(self.current, lock, at)?.map(|()| 0))
    }

    fn unlock_pi(&mut self, lock: Place, at: At) -> Result<Result<u32, Refusal>, Fault> {
        let me = self.current;
        if self.holds(lock.loc) & TID_MASK != tid(me) {
            return Ok(Err(Refusal::NotOwner));
        }
        self.hand_over(me, lock, 0, at)?;
        Ok(Ok(0))
    }

    /// Gives the lock of `thread` to the best waiter, or to no thread.
    fn hand_over(&mut self, thread: usize, lock: Place, marks: u32, at: At) -> Result<(), Fault> {
        let next = self.best_waiter(lock.key);
        self.write_pi(thread, lock, next.map_or(0, |next| WAITERS | marks | tid(next)), at)?;
        if let Some(next) = next {
            self.sleeper_mut(next).woken = Some(0);
            self.tell(at, || Said::Text(format!("the lock goes to thread {next}")));
        }
        Ok(())
    }

    fn wait_requeue_pi(
        &mut self,
        from: Place,
        expected: u32,
        to: Place,
        deadline: Option<Time>,
        at: At,
    ) -> Result<Outcome, Fault> {
        if from.key == to.key {
            return Ok(Outcome::Returns(Err(Refusal::Inconsistent)));
        }
        // As for a plain wait.
        let holds = self.memory.load(self.current, from.loc, Relaxed, at, &mut |_, _| 0)?.value;
        if holds != u64::from(expected) {
            self.tell(at, || Said::NoSleep { loc: from.loc, expected, holds });
            return Ok(Outcome::Returns(Ok(0)));
        }
        if deadline.is_some_and(|deadline| self.has_come(deadline)) {
            return Ok(Outcome::Returns(Err(Refusal::TimedOut)));
        }
        if self.spurious < self.config.spurious && self.pick(Kind::Spurious, 2) == 1 {
            self.spurious += 1;
            self.tell(at, || Said::Text("sleeps, and is woken spuriously".into()));
            return Ok(Outcome::Returns(Ok(0)));
        }
        self.enqueue_pi(from, expected, deadline, Inherits::Requeue(to), at);
        Ok(Outcome::Sleeps)
    }

    fn cmp_requeue_pi(
        &mut self,
        from: Place,
        expected: u32,
        requeue: u32,
        to: Place,
        at: At,
    ) -> Result<Result<u32, Refusal>, Fault> {
        if from.key == to.key {
            return Ok(Err(Refusal::Inconsistent));
        }
        if self.holds(from.loc) != expected {
            return Ok(Err(Refusal::Mismatch));
        }
        let mut done = 0;
        while done <= requeue {
            let here = |sleeper: &&Sleeper| {
                sleeper.woken.is_none() && sleeper.entries.iter().any(|entry| entry.0 == from.key)
            };
            let Some(next) = self.best(self.queue.iter().filter(here).map(|sleeper| sleeper.thread)) else {
                break;
            };
            match self.sleeper_mut(next).inherits {
                Some(Inherits::Requeue(aim)) if aim.key == to.key => {}
                _ => return Ok(Err(Refusal::Inconsistent)),
            }
            let marks = if requeue > 0 { WAITERS } else { 0 };
            if done == 0 && self.take_pi(next, to, marks, at)? {
                self.sleeper_mut(next).woken = Some(0);
                self.tell(at, || Said::Text(format!("the lock goes to thread {next}")));
            } else {
                if let Err(refusal) = self.attach(next, to, at)? {
                    return Ok(Err(refusal));
                }
                // To the end of the other queue, which is the end of the common one.
                let at_queue = self.queue.iter().position(|sleeper| sleeper.thread == next);
                let mut sleeper = at_queue.and_then(|place| self.queue.remove(place)).expect("just found");
                sleeper.entries = vec![(to.key, to.loc, 0)];
                sleeper.inherits = Some(Inherits::Lock);
                self.queue.push_back(sleeper);
                self.tell(at, || Said::Text(format!("moves thread {next} to the lock")));
            }
            done += 1;
        }
        Ok(Ok(done))
    }

    /// Of a sleeper that waits for a lock: whether a thread has overwritten the mark of the lock.
    pub(in crate::explore) fn lock_forgets(&self, sleeper: &Sleeper) -> Option<bool> {
        let waits_for_a_lock = matches!(sleeper.inherits, Some(Inherits::Lock));
        waits_for_a_lock.then(|| self.holds(sleeper.entries[0].1) & WAITERS == 0)
    }

    /// Whether some word holds the id of a thread.
    pub(super) fn may_own_a_lock(&self, thread: usize) -> bool {
        self.words.iter().any(|&loc| self.holds(loc) & TID_MASK == tid(thread))
    }

    /// The last step of a thread in the kernel: the locks for which others wait go to them
    /// (`exit_pi_state_list`).
    pub(super) fn end(&mut self, thread: usize) {
        self.threads[thread].status = Status::Done;
        let at = self.threads[thread].at;
        loop {
            let left: Vec<_> = self.waiting_for_locks().map(|sleeper| sleeper.entries[0]).collect();
            let mine = left.into_iter().find(|(_, loc, _)| self.holds(*loc) & TID_MASK == tid(thread));
            let (Some((key, loc, _)), Some(at)) = (mine, at) else { break };
            // A word that ended is no lock any more.
            if self.hand_over(thread, Place { key, loc }, OWNER_DIED, at).is_err() {
                break;
            }
        }
    }
}
