//! Which threads die, and what the kernel does for a thread that has died.

use crate::choice::{Footprint, Kind};
use crate::engine::At;
use crate::explore::explorer::Explorer;
use crate::explore::machine::{Machine, Status};
use crate::explore::story::Said;
use crate::explore::{Config, Report};
use core::fmt;

/// Which threads may die, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deaths {
    /// None.
    None,
    /// Up to so many threads, each at any of its steps. Thread 0, which runs the model itself,
    /// never dies.
    Threads(u32),
    /// Up to so many processes, with all their threads; of process 0, threads by themselves.
    Processes(u32),
    /// This thread, in place of its step of this number, counted from 0.
    At {
        /// The thread.
        thread: usize,
        /// Its step.
        step: u32,
    },
}

impl Deaths {
    pub(super) fn is_none(self) -> bool {
        self == Self::None
    }

    fn max(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Threads(count) | Self::Processes(count) => count,
            Self::At { .. } => 1,
        }
    }

    fn point(self) -> Option<(usize, u32)> {
        match self {
            Self::At { thread, step } => Some((thread, step)),
            _ => None,
        }
    }

    fn takes_the_process(self) -> bool {
        matches!(self, Self::Processes(_) | Self::At { .. })
    }
}

/// What is demanded of the threads that survive a death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survivors {
    /// They come to their end.
    MustFinish,
    /// They may wait for the dead for ever; what they do until then has to be right.
    MayBlock,
}

/// The kernel whose rule for `list_op_pending` holds.
///
/// The rule says when the kernel passes a wake-up on for a dead thread whose pending lock is not
/// its own: [`set_robust_list`](crate::process::set_robust_list). A protocol that relies on the
/// robust list has to hold under each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Linux 6.18: only if the word names no owner.
    V6_18,
    /// Linux 7.2: also if the word names an owner, and `FUTEX_WAITERS` is not set.
    V7_2,
}

impl Kernel {
    /// Each of them.
    pub const ALL: [Self; 2] = [Self::V6_18, Self::V7_2];
}

impl Config {
    pub(in crate::explore) fn lets_die(&self) -> bool {
        !self.deaths.is_none()
    }

    pub(in crate::explore) fn tell_deaths(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.deaths {
            Deaths::None => Ok(()),
            deaths => write!(f, ", deaths: {deaths:?}, kernel {:?}", self.kernel),
        }
    }
}

impl Report {
    /// Counts what [`Machine::death`] says of an execution.
    pub(in crate::explore) fn count_death(&mut self, death: Option<(At, bool)>) {
        if let Some((_, blocked)) = death {
            self.deaths += 1;
            self.blocked += u64::from(blocked);
        }
    }

    pub(in crate::explore) fn add_deaths(&mut self, other: &Self) {
        self.deaths += other.deaths;
        self.blocked += other.blocked;
    }

    pub(in crate::explore) fn tell_deaths(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.deaths > 0 {
            write!(f, ", {} with a death, {} with survivors held up", self.deaths, self.blocked)?;
        }
        Ok(())
    }
}

impl Explorer<'_, '_> {
    /// Lets the thread that has just been chosen die, before it does what it announced.
    pub(in crate::explore) fn live_or_die(&self, at: At) {
        if self.machine.borrow_mut().dies(at) {
            // The thread never runs again; the others go on.
            self.wait_for_turn();
            unreachable!("a dead thread was chosen");
        }
    }
}

impl Machine<'_, '_> {
    /// Whether the thread that was just chosen dies instead.
    fn dies(&mut self, at: At) -> bool {
        let me = self.current();
        self.threads[me].linux.taken += 1;
        // Thread 0 is the model itself: it judges the others.
        if self.config.deaths.is_none() || me == 0 || self.linux.deaths >= self.config.deaths.max() {
            return false;
        }
        let dies = match self.config.deaths.point() {
            Some((thread, step)) => thread == me && step + 1 == self.threads[me].linux.taken,
            None => self.pick(Kind::Die, 2) == 1,
        };
        if dies {
            self.linux.deaths += 1;
            self.tell(at, || Said::Text("dies".into()));
            let process = self.threads[me].linux.process;
            let whole = self.config.deaths.takes_the_process() && process != 0;
            for (number, thread) in self.threads.iter_mut().enumerate() {
                if number == me || (whole && thread.linux.process == process && thread.status != Status::Done)
                {
                    thread.linux.died = true;
                    thread.status = Status::Exiting;
                    thread.footprint = Footprint::Everything;
                }
            }
            self.linux.died_at = Some(at);
        }
        dies
    }

    /// Whether the death of a thread in place of its next step would take other threads with it.
    pub(super) fn death_takes_others(&self, number: usize) -> bool {
        let thread = &self.threads[number];
        let deaths = self.config.deaths;
        if !deaths.takes_the_process() || thread.linux.process == 0 || self.linux.deaths >= deaths.max() {
            return false;
        }
        deaths.point().is_none_or(|point| point == (number, thread.linux.taken))
            && self.threads.iter().enumerate().any(|(other, of)| {
                other != number && of.linux.process == thread.linux.process && of.status != Status::Done
            })
    }

    /// The kernel cleans up after a thread that has died: it leaves the queue, its robust list is
    /// walked, one lock a step, and last come the priority-inheriting locks for which others wait.
    /// Of a thread that has come to its end only these are looked after.
    pub(in crate::explore) fn exit(&mut self, thread: usize) {
        if !self.threads[thread].linux.died {
            return self.end(thread);
        }
        let walk = match self.threads[thread].linux.walk.take() {
            Some(walk) => walk,
            None => {
                self.queue.retain(|sleeper| sleeper.thread != thread);
                match self.threads[thread].linux.robust_list {
                    Some(head) => self.begin_walk(head),
                    None => return self.end(thread),
                }
            }
        };
        match self.walk(thread, walk) {
            Some(rest) => self.threads[thread].linux.walk = Some(rest),
            None => self.end(thread),
        }
    }

    pub(in crate::explore) fn somebody_died(&self) -> bool {
        self.linux.deaths > 0
    }

    /// Whether it is right that no thread can go on.
    pub(in crate::explore) fn may_be_blocked(&self) -> bool {
        self.somebody_died() && self.config.survivors == Survivors::MayBlock
    }

    pub(in crate::explore) fn tell_the_dead(&self, stuck: &mut Vec<String>) {
        for (number, _) in self.threads.iter().enumerate().filter(|(_, thread)| thread.linux.died) {
            stuck.push(format!("thread {number} has died"));
        }
    }

    /// Where a thread died, and whether the survivors were held up by it.
    pub(in crate::explore) fn death(&self) -> Option<(At, bool)> {
        let blocked = self.threads.iter().any(|thread| thread.status != Status::Done);
        self.linux.died_at.map(|at| (at, blocked && self.config.survivors == Survivors::MayBlock))
    }
}
