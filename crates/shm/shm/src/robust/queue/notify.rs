//! Requests that wait for a notification: the waiters of a condition variable.

use super::watch::Watched;
use super::{GRANTED, Queue, REARM, Rule, Section};
use crate::robust::mutex::Refused;
use crate::slots::{Member, Request};
use core::array;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, futex};

/// How many waiters are told with the queue lock taken once.
const GROUP: usize = 16;

impl<P: Policy<Scope = futex::Global>> Queue<P> {
    /// Enqueues, calls `release`, and waits for a notification. `false` if the deadline has passed.
    pub(crate) fn wait<R: Rule>(
        &self,
        me: &Member<'_>,
        rule: &R,
        deadline: Option<Deadline>,
        release: impl FnOnce(),
    ) -> Result<bool, Refused> {
        let mut section = self.enter(me, rule)?;
        section.enqueue(0);
        let mut watched = section.arm_for_notification()?;
        drop(section);
        release();
        loop {
            let has_died = watched.sleep(me, deadline);
            let word = me.request().word.load(Relaxed);
            if word & GRANTED != 0 {
                return Ok(true);
            }
            let is_over = deadline.is_some_and(|deadline| deadline.has_passed());
            let is_told = has_died || word & REARM != 0;
            if !is_told && !is_over {
                continue;
            }
            let mut section = self.enter(me, rule).inspect_err(|_| me.request().word.store(0, Relaxed))?;
            if me.request().is_granted() {
                return Ok(true);
            }
            let next = if is_told { section.watch_next()? } else { Some(watched) };
            let Some(next) = next else {
                section.withdraw();
                return Ok(true);
            };
            if is_over {
                section.leave();
                return Ok(false);
            }
            watched = next;
        }
    }

    /// Grants the first requests, so many of them, and wakes their threads. How many there were.
    pub(crate) fn notify<R: Rule>(&self, me: &Member<'_>, rule: &R, most: usize) -> usize {
        let (mut most, mut told) = (most, 0);
        while told < most && self.may_have_waiters() {
            // No thread can be told by a queue that is corrupt.
            let Ok(section) = self.enter(me, rule) else { break };
            if told == 0 && most > 1 {
                // Those that come later wait for another notification.
                most = most.min(section.waiting(|_| true).count());
            }
            let group = section.tell_first(most - told);
            drop(section);
            let number = group.wake();
            told += number;
            if number < GROUP {
                break;
            }
        }
        told
    }

    /// Grants the first requests, at most `most` of them and at most [`GROUP`]. The caller wakes
    /// their threads. If it dies before, these look by themselves, or another thread calls
    /// [`wake_granted`](Section::wake_granted).
    #[cold]
    #[inline(never)]
    pub(crate) fn grant<'s, R: Rule>(&self, me: &Member<'s>, rule: &R, most: usize) -> Option<Granted<'s>> {
        // As in `notify`.
        self.enter(me, rule).ok().map(|section| section.tell_first(most))
    }
}

/// Waiters that were granted, and sleep until [`wake`](Self::wake): after the locks that they would
/// run into, for a waiter could take this thread's CPU.
#[must_use]
pub(crate) struct Granted<'s>([Option<&'s Request>; GROUP]);

impl Granted<'_> {
    /// Wakes them. How many they were.
    pub(crate) fn wake(self) -> usize {
        self.0.iter().flatten().inspect(|request| _ = request.word.key().wake(1)).count()
    }
}

impl<'s, P: Policy<Scope = futex::Global>, R: Rule> Section<'_, 's, P, R> {
    /// (grant) of the first requests.
    fn tell_first(&self, most: usize) -> Granted<'s> {
        Granted(array::from_fn(|nth| (nth < most).then(|| self.head()).flatten().map(|head| self.tell(head))))
    }

    /// Chooses the waiter that the calling thread watches.
    fn arm_for_notification(&mut self) -> Result<Watched<'s>, Refused> {
        loop {
            // Not if that one has died at this moment: then it is none the next time.
            if let Some(watched) = self.arm()? {
                return Ok(watched);
            }
        }
    }

    /// Chooses it again, when the one before has died or left. `None` if the thread is the head.
    /// Then nobody watches the one that was notified last, and the thread is to look itself.
    fn watch_next(&mut self) -> Result<Option<Watched<'s>>, Refused> {
        while !self.is_head() {
            if let watched @ Some(_) = self.arm()? {
                return Ok(watched);
            }
        }
        Ok(None)
    }
}
