//! The limit of the counts, which no test reaches with threads, and a waiter that is cancelled.

use super::*;
use crate::Private;
use crate::lock::condvar::RawCondvar;
use crate::lock::queue::{InOrder, QueueMutex};
use crate::lock::spin::NoSpin;
use core::time::Duration;

/// It was told of a notification each time, also when its deadline had passed: so its loop went
/// on for as long as the others waited.
#[test]
fn a_wait_that_cannot_be_counted_ends_at_its_deadline() {
    type Mutex = QueueMutex<Private, InOrder>;
    let (mutex, condvar) = (Mutex::new(), Sequence::<Mutex>::new());
    let wait = |timeout| {
        mutex.lock();
        // SAFETY: locked above; the token is nothing.
        let ((), wakeup) = unsafe { condvar.wait(&mutex, (), Some(Deadline::after(timeout))) };
        // SAFETY: the wait has returned with it.
        unsafe { mutex.unlock(()) };
        wakeup
    };
    assert_eq!(wait(Duration::ZERO), Wakeup::TimedOut, "the counts are this process's now");
    condvar.counts.fetch_add(Counts::MAX.into(), Relaxed);
    assert_eq!(wait(Duration::ZERO), Wakeup::TimedOut);
    assert_eq!(wait(Duration::MAX), Wakeup::Notified, "it does not sleep");
}

/// The notifier waits next, for what the waiters do, and spins: it took what was passed on.
#[test]
fn what_a_cancelled_waiter_passes_on_reaches_those_that_came_before_it() {
    type Mutex = QueueMutex<Private<NoSpin>, InOrder>;
    let (mutex, condvar) = (Mutex::new(), RawCondvar::<Mutex>::new());
    let begin = || {
        mutex.lock();
        // SAFETY: locked above; the token is nothing. Each wait goes to `cancel_wait`.
        unsafe { condvar.begin_wait(&mutex, (), None) }
    };
    let (cancelled, patient) = (begin(), begin());
    assert!(condvar.notify_one());
    let Some((_, true)) = condvar.0.register(1) else {
        return eprintln!("not tested: the kernel cannot tell processes apart");
    };
    _ = condvar.cancel_wait(cancelled);
    let counts = Counts(condvar.0.counts.load(Relaxed));
    assert_eq!((counts.waiting(), counts.granted()), (2, 2), "only one of two was told");
    _ = condvar.cancel_wait(patient);
}
