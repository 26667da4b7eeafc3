//! What is said of an execution in which no thread can go.
//!
//! A wake-up is lost in one of two ways. Both are told from what the kernel sees: futexes, their
//! words, and calls. For whom a thread waits is not known.
//!
//! - **Forgotten.** The word of a sleeper holds another value than it fell asleep on. The sleeper
//!   would not sleep if it looked again: the thread that changed the word owed a wake-up.
//! - **Missed.** The wake-up came too early. A wake call on the sleeper's futex found fewer
//!   sleepers than it asked for, and announced the value that the sleeper fell asleep on later.
//!   That value is the word's newest, and was there when the call was made. The caller had written
//!   it, or no thread had.
//!
//! A sleeper that was forgotten is evidence enough. One that missed its wake-up may also wait for
//! the next one, from a thread that is stuck for another reason. So it counts only if every thread
//! that is stuck missed a wake-up, or waits for the end of one that did. All else is a deadlock.

use super::kernel::Vain;
use super::machine::{Machine, Status, Thread};
use super::story::place;
use super::verdict::{Stuck, Verdict};
use super::words::number;
use crate::memory::Loc;

impl Machine<'_, '_> {
    /// The verdict when no thread can go. There is none if all have ended.
    pub(super) fn nobody_can_go(&self) -> Option<Verdict> {
        if self.threads.iter().all(|thread| thread.status == Status::Done) {
            return None;
        }
        if self.may_be_blocked() {
            return None;
        }
        let stuck = self.stuck();
        let has_changed =
            |(_, loc, expected): &(_, Loc, u32)| self.memory.newest(*loc) != u64::from(*expected);
        let forgotten = self.queue.iter().any(|sleeper| {
            self.lock_forgets(sleeper).unwrap_or_else(|| sleeper.entries.iter().all(has_changed))
        });
        let lost = forgotten || self.all_missed_theirs();
        Some(if lost { Verdict::LostWakeUp(stuck) } else { Verdict::Deadlock(stuck) })
    }

    /// Whether every thread that is stuck missed a wake-up, or waits for the end of one that did.
    fn all_missed_theirs(&self) -> bool {
        let is_explained = |number: usize, status: Status| match status {
            Status::Done | Status::Joining(_) => true,
            Status::Asleep => self.missed(number).is_some(),
            _ => false,
        };
        let sleeps = |thread: &Thread| thread.status == Status::Asleep;
        self.threads.iter().any(sleeps)
            && self.threads.iter().enumerate().all(|(number, thread)| is_explained(number, thread.status))
    }

    /// The wake-up that came too early for a sleeper.
    fn missed(&self, thread: usize) -> Option<&Vain> {
        let sleeper = self.queue.iter().find(|sleeper| sleeper.thread == thread)?;
        let missed = |vain: &&Vain| {
            sleeper.entries.iter().any(|(key, loc, _)| {
                let (newest, writer) = self.memory.newest_message(*loc);
                *key == vain.key
                    && vain.bits & sleeper.bits != 0
                    && newest <= vain.announced
                    && writer.is_none_or(|writer| writer == vain.thread)
            })
        };
        self.vain.iter().find(missed).filter(|_| sleeper.inherits.is_none())
    }

    /// What each thread that has not ended is doing.
    pub(super) fn stuck(&self) -> Stuck {
        let describe = |(number, thread): (usize, &Thread)| {
            let at = thread.at.map_or_else(|| "its beginning".to_owned(), place);
            let what = match thread.status {
                Status::Done | Status::Exiting => return None,
                Status::Ready | Status::MakingWay => format!("thread {number} runs at {at}"),
                Status::Spinning => format!("thread {number} spins at {at}{}", self.looked_at(thread)),
                Status::Asleep => format!("thread {number} sleeps at {at}{}", self.sleeps_on(number)),
                Status::Settling(loc, _) => {
                    let (name, holds) = (self.word_name(loc), self.memory.newest(loc));
                    format!("thread {number} waits at {at} for {name}, which holds {holds:#x}")
                }
                Status::Joining(other) => format!("thread {number} waits at {at} for thread {other} to end"),
            };
            Some(what)
        };
        let mut stuck: Vec<String> = self.threads.iter().enumerate().filter_map(describe).collect();
        self.tell_the_dead(&mut stuck);
        Stuck(stuck)
    }

    fn looked_at(&self, thread: &Thread) -> String {
        let looks: Vec<_> = thread
            .round
            .looks
            .iter()
            .map(|look| format!("{} = {:#x}", self.word_name(look.loc), look.value))
            .collect();
        if looks.is_empty() { String::new() } else { format!(", having seen {}", looks.join(", ")) }
    }

    fn sleeps_on(&self, number: usize) -> String {
        let Some(sleeper) = self.queue.iter().find(|sleeper| sleeper.thread == number) else {
            return String::new();
        };
        let entries: Vec<_> = sleeper
            .entries
            .iter()
            .map(|(_, loc, expected)| {
                let name = self.word_name(*loc);
                format!("{name}, expecting {expected:#x}, which holds {:#x} now", self.memory.newest(*loc))
            })
            .collect();
        let early = self.missed(number).map_or_else(String::new, |vain| {
            format!("; thread {} woke at {}, before it slept", vain.thread, place(vain.at))
        });
        format!(" on {}{early}", entries.join(" and on "))
    }

    pub(super) fn word_name(&self, loc: Loc) -> String {
        self.story.as_ref().map_or_else(|| format!("word {}", number(loc)), |story| story.name_of(loc))
    }
}
