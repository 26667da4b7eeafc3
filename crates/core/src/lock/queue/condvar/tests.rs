//! Notifications that their notifier does not give by itself, beside a waiter that came later.

use super::super::rule::HandOff;
use super::*;
use crate::Private;
use crate::lock::condvar::WaitsAsync;
use crate::lock::queue::Cpu;
use core::pin::pin;
use core::task::{Context, Waker};

type Mutex = QueueMutex<Private, HandOff>;
type Condvar = QueueCondvar<Private, HandOff>;

const PARKED: Status = Status(Kind::Parked as u32);

fn waiter(mutex: &Mutex, status: Status) -> Waiter<Private, HandOff> {
    let node = Node::new(Cpu::UNKNOWN, 1);
    node.status.store(status.0, Relaxed);
    Waiter { node, mutex }
}

fn enqueue(condvar: &Condvar, waiter: &Waiter<Private, HandOff>) {
    // SAFETY: the node is new. The tests answer each node, or use the queue no more when it goes.
    unsafe { condvar.enqueue(ptr::from_ref(waiter).cast()) };
}

/// The notifier waits next, for what the waiters do. It spins.
fn enqueue_spinner(condvar: &Condvar, waiter: &Waiter<Private, HandOff>) {
    condvar.spins.store(Spins(0).with_spinner(0).0.0, Relaxed);
    enqueue(condvar, waiter);
}

fn was_notified(waiter: &Waiter<Private, HandOff>) -> bool {
    is_notified(waiter.node.look())
}

/// It took its own notification, and the waiter that was there slept on.
#[test]
fn a_notification_that_is_owed_is_for_no_waiter_that_came_later() {
    let (mutex, condvar) = (Mutex::new(), Condvar::new());
    mutex.lock();
    let patient = waiter(&mutex, PARKED);
    let leaver = waiter(&mutex, PARKED.with(Kind::Leaving));
    let later = waiter(&mutex, Status::waiting(Cpu::UNKNOWN));
    enqueue(&condvar, &patient);
    enqueue(&condvar, &leaver);
    // (lock queue), by the leaver.
    let (seen, word) = (condvar.state(), condvar.state().queue_locked(LEAVERS));
    condvar.change(seen, word, Release).unwrap();
    assert!(condvar.notify_one(), "(owe)");
    enqueue_spinner(&condvar, &later);
    condvar.serve(Seen { condvar: &condvar, word }, 0, false, Departures::new());
    assert!(leaver.node.look().is(Kind::Removed));
    assert_eq!([&patient, &later].map(was_notified), [true, false]);
}

/// A task was notified, and is dropped.
#[test]
fn a_notification_that_is_passed_on_is_for_the_oldest_waiter() {
    let (mutex, condvar) = (Mutex::new(), Condvar::new());
    mutex.lock();
    let patient = waiter(&mutex, PARKED);
    let later = waiter(&mutex, Status::waiting(Cpu::UNKNOWN));
    {
        let mut task = pin!(condvar.notified());
        assert!(task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        enqueue(&condvar, &patient);
        assert!(condvar.notify_one());
        enqueue_spinner(&condvar, &later);
        assert_eq!([&patient, &later].map(was_notified), [false, false]);
    }
    assert_eq!([&patient, &later].map(was_notified), [true, false]);
}
