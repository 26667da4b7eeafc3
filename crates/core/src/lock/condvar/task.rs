//! A task that waits on a sequence. The steps and numbers are those of [`raw`](super::raw).

use super::WaitsAsync;
use super::raw::{MOVABLE, Sequence};
use super::steps::{Left, Place};
use super::word::Counts;
use crate::lock::queue::Wakers;
use crate::lock::sleep::{self, Slept, TaskSleep};
use crate::lock::traits::{RawMutex, RawMutexAsync};
use crate::sys::futex::{Bits, FutexKey, Scope, Waited};
use crate::sys::sync::Ordering::Relaxed;
use crate::sys::sync::{is_abandoned, without_unwinding};
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};

/// Wakes up to `count` sleepers, and tasks among them: step 4 of a notification. The condition
/// variable may be gone.
pub(super) fn wake<S: Scope>(key: FutexKey<S>, count: u32, has_tasks: bool) {
    if !has_tasks {
        key.wake(count);
        return;
    }
    let mut wakers = Wakers::new();
    sleep::wake(key, count, Bits::ANY, &mut wakers);
    wakers.wake();
}

/// The future of a notification of a [`Sequence`].
pub struct Notified<'a, L: RawMutex> {
    condvar: &'a Sequence<L>,
    stage: Stage,
    sleep: TaskSleep,
}

enum Stage {
    New,
    /// As many wait as can be counted, so it does not. Other tasks of its thread run before it goes
    /// on: what it waits for may be theirs to do.
    Full,
    /// It is registered, and has read `seq`.
    Waits {
        read: u32,
        place: Place,
    },
    Done,
}

// SAFETY: `Notified` registers a waiter, and nothing else; its drop passes a notification on.
unsafe impl<L: RawMutexAsync + Sync> WaitsAsync<L> for Sequence<L> {
    type Notified<'a>
        = Notified<'a, L>
    where
        L: 'a;

    fn notified(&self) -> Notified<'_, L> {
        Notified { condvar: self, stage: Stage::New, sleep: TaskSleep::new() }
    }
}

impl<L: RawMutex> Notified<'_, L> {
    /// Leaves, if `waited` ends the wait.
    fn slept(&mut self, waited: Waited) -> Option<Left> {
        let Stage::Waits { read, place } = &mut self.stage else { unreachable!("it waits") };
        let left = without_unwinding(|| self.condvar.slept(read, *place, waited))?;
        self.stage = Stage::Done;
        if left.requeuing {
            self.condvar.outlast_requeuing();
        }
        Some(left)
    }
}

impl<L: RawMutex> Future for Notified<'_, L> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // SAFETY: the sleep is not moved.
        let this = unsafe { self.get_unchecked_mut() };
        let condvar = this.condvar;
        match this.stage {
            Stage::New => {
                condvar.expect_tasks();
                let read = condvar.seq.load(Relaxed);
                let Some((place, _)) = condvar.register(0) else {
                    this.stage = Stage::Full;
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                };
                this.stage = Stage::Waits { read, place };
            }
            Stage::Waits { .. } => {
                // SAFETY: the future is pinned.
                match unsafe { Pin::new_unchecked(&mut this.sleep) }.sleeps_on(context.waker()) {
                    Slept::On => return Poll::Pending,
                    Slept::UntilWoken if this.slept(Waited::Woken).is_some() => return Poll::Ready(()),
                    Slept::UntilWoken | Slept::Not => {}
                }
            }
            Stage::Full => {
                this.stage = Stage::Done;
                return Poll::Ready(());
            }
            Stage::Done => panic!("the future of a notification was polled after it was ready"),
        }
        loop {
            let Stage::Waits { read, .. } = this.stage else { unreachable!("it waits") };
            // SAFETY: the future is pinned.
            let sleep = unsafe { Pin::new_unchecked(&mut this.sleep) };
            if sleep.fall_asleep(&condvar.seq, read, MOVABLE, context.waker().clone()) {
                return Poll::Pending;
            }
            if this.slept(Waited::Mismatch).is_some() {
                return Poll::Ready(());
            }
        }
    }
}

impl<L: RawMutex> Drop for Notified<'_, L> {
    fn drop(&mut self) {
        if !matches!(self.stage, Stage::Waits { .. }) || is_abandoned() {
            return;
        }
        // SAFETY: it is dropped where it was pinned.
        let waker = unsafe { Pin::new_unchecked(&mut self.sleep) }.wake_up();
        // A wake-up that it has got may be meant for another.
        let waited = if waker.is_some() { Waited::TimedOut } else { Waited::Woken };
        if self.slept(waited).is_some_and(|left| left.takes_grant) {
            self.condvar.notify(Counts::MAX);
        }
    }
}

impl<L: RawMutex> fmt::Debug for Notified<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notified { .. }")
    }
}

#[cfg(all(test, world = "machine"))]
mod tests {
    use super::*;
    use crate::Private;
    use crate::lock::queue::{HandOff, QueueMutex};
    use core::task::Waker;
    use std::boxed::Box;
    use std::vec::Vec;

    type Condvar = Sequence<QueueMutex<Private, HandOff>>;

    fn poll(waits: &mut Pin<Box<Notified<'_, QueueMutex<Private, HandOff>>>>) -> Poll<()> {
        waits.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    fn waits(condvar: &Condvar) -> Pin<Box<Notified<'_, QueueMutex<Private, HandOff>>>> {
        let mut waits = Box::pin(condvar.notified());
        assert!(poll(&mut waits).is_pending());
        waits
    }

    /// Of no waiter, but of this process and of tasks.
    fn used() -> Condvar {
        let condvar = Condvar::new();
        drop(waits(&condvar));
        condvar
    }

    /// Section "Wrap-around" of `raw.rs`.
    #[test]
    fn a_grant_that_a_late_task_left_behind_costs_no_notification() {
        for waiters in 1..4 {
            let condvar = used();
            let counts = Counts(condvar.counts.load(Relaxed));
            condvar.counts.store(counts.with_grants(1).0, Relaxed);
            let mut tasks: Vec<_> = (0..waiters).map(|_| waits(&condvar)).collect();
            for _ in 0..waiters {
                condvar.notify(1);
            }
            assert!(tasks.iter_mut().all(|task| poll(task).is_ready()), "one of {waiters} was not notified");
        }
    }

    /// The notifier waits next, for what the tasks do, and spins: it took what was passed on.
    #[test]
    fn what_a_dropped_task_passes_on_reaches_those_that_came_before_it() {
        let condvar = used();
        let (first, mut second) = (waits(&condvar), waits(&condvar));
        condvar.notify(1);
        let Some((_, true)) = condvar.register(1) else {
            return eprintln!("not tested: the kernel cannot tell processes apart");
        };
        drop(first);
        assert!(poll(&mut second).is_ready(), "it sleeps on");
    }

    #[test]
    fn a_task_that_cannot_be_counted_lets_others_run() {
        let condvar = used();
        condvar.counts.fetch_add(Counts::MAX.into(), Relaxed);
        let mut task = waits(&condvar);
        assert!(poll(&mut task).is_ready(), "it does not wait");
    }
}
