//! What is said of an execution in which no thread can go.

use super::Survivors;
use super::machine::{Machine, Status, Thread};
use super::pi::Inherits;
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
        if self.deaths > 0 && self.config.survivors == Survivors::MayBlock {
            return None;
        }
        let stuck = self.stuck();
        // A sleeper whose word no longer holds what it fell asleep on would not sleep if it looked
        // again: another thread changed the word and owed it a wake-up.
        let forgotten = self.queue.iter().any(|sleeper| match sleeper.inherits {
            Some(Inherits::Lock) => self.is_forgotten(sleeper),
            _ => sleeper
                .entries
                .iter()
                .all(|(_, loc, expected)| self.memory.newest(*loc) != u64::from(*expected)),
        });
        Some(if forgotten { Verdict::LostWakeUp(stuck) } else { Verdict::Deadlock(stuck) })
    }

    /// What each thread that has not ended is doing.
    pub(super) fn stuck(&self) -> Stuck {
        let describe = |(number, thread): (usize, &Thread)| {
            let at = thread.at.map_or_else(|| "its beginning".to_owned(), place);
            let what = match thread.status {
                Status::Done | Status::Exiting => return None,
                Status::Ready => format!("thread {number} runs at {at}"),
                Status::Spinning => format!("thread {number} spins at {at}{}", self.looked_at(thread)),
                Status::Asleep => format!("thread {number} sleeps at {at}{}", self.sleeps_on(number)),
                Status::Joining(other) => format!("thread {number} waits at {at} for thread {other} to end"),
            };
            Some(what)
        };
        let mut stuck: Vec<String> = self.threads.iter().enumerate().filter_map(describe).collect();
        for (number, _) in self.threads.iter().enumerate().filter(|(_, thread)| thread.died) {
            stuck.push(format!("thread {number} has died"));
        }
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
        format!(" on {}", entries.join(" and on "))
    }

    pub(super) fn word_name(&self, loc: Loc) -> String {
        self.story.as_ref().map_or_else(|| format!("word {}", number(loc)), |story| story.name_of(loc))
    }
}
