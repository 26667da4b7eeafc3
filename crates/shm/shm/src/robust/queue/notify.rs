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
        let watched = section.arm_for_notification()?;
        drop(section);
        release();
        loop {
            let has_died = watched.sleep(me, deadline);
            let word = me.request().word.load(Relaxed);
            if word & GRANTED != 0 {
                return Ok(true);
            }
            // If a thread has died that this one watched, a notification may have died with it.
            let returns = has_died || word & REARM != 0;
            if !returns && deadline.is_none_or(|deadline| !deadline.has_passed()) {
                continue;
            }
            let mut section = self.enter(me, rule).inspect_err(|_| me.request().word.store(0, Relaxed))?;
            if me.request().is_granted() {
                return Ok(true);
            }
            section.leave();
            return Ok(returns);
        }
    }

    /// Grants the first request. The caller wakes it after it has released the mutex. If it dies
    /// before, the waiter looks by itself, or another thread calls
    /// [`wake_granted`](Section::wake_granted).
    pub(crate) fn grant_first<'s, R: Rule>(&self, me: &Member<'s>, rule: &R) -> Option<Granted<'s>> {
        // If the queue is corrupt, no thread waits in it for long.
        let section = self.enter(me, rule).ok()?;
        section.head().map(|head| Granted(section.tell(head)))
    }

    /// Grants the first requests, so many of them. How many there were.
    pub(crate) fn notify<R: Rule>(&self, me: &Member<'_>, rule: &R, most: usize) -> usize {
        if !self.may_have_waiters() {
            return 0;
        }
        let (mut most, mut told) = (most, 0);
        while told < most {
            // If the queue is corrupt, no thread waits in it for long.
            let Ok(section) = self.enter(me, rule) else { break };
            if told == 0 && most > 1 {
                // Those that come later wait for another notification.
                most = most.min(section.waiting(|_| true).count());
            }
            let group = GROUP.min(most - told);
            let heads: [_; GROUP] = array::from_fn(|nth| {
                (nth < group).then(|| section.head()).flatten().map(|head| section.tell(head))
            });
            drop(section);
            // After the queue lock: a waiter could take this thread's CPU, and find it held.
            let number = heads.iter().flatten().inspect(|request| _ = request.word.key().wake(1)).count();
            told += number;
            if number < group {
                break;
            }
        }
        told
    }
}

/// A waiter that was granted, and sleeps until [`wake`](Self::wake).
#[must_use]
pub(crate) struct Granted<'s>(&'s Request);

impl Granted<'_> {
    pub(crate) fn wake(self) {
        self.0.word.key().wake(1);
    }
}

impl<'s, P: Policy<Scope = futex::Global>, R: Rule> Section<'_, 's, P, R> {
    /// Chooses the waiter that the calling thread watches.
    fn arm_for_notification(&mut self) -> Result<Watched<'s>, Refused> {
        loop {
            // Not if that one has died at this moment: then it is none the next time.
            if let Some(watched) = self.arm()? {
                return Ok(watched);
            }
        }
    }
}
