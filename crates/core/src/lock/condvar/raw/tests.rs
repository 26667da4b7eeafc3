//! The limit of the counts, which no test reaches with threads.

use super::*;
use crate::Private;
use crate::lock::queue::{InOrder, QueueMutex};
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
