//! Programs that use the condition variable, small enough for a model: each is the body of one
//! execution.
//!
//! The mutex is the test kit's three-state mutex, which takes requeued sleepers, or one with a
//! queue. The clients wait as users do: in a loop around a condition that the mutex protects.

use core::time::Duration;
use std::sync::Arc;
use ulocks_core::condvar::{RawCondvar, Sequence, Wakeup};
use ulocks_core::futex::{Futex, Local};
use ulocks_core::raw::RawMutex;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::time::Deadline;
use ulocks_testkit::new_lock;
use ulocks_testkit::plain::ThreeState;
use ulocks_testkit::thread::{JoinHandle, spawn, with};
use ulocks_testkit::tickets::Counter;

/// A mutex that a client can use.
pub trait Lock: RawMutex<Token = ()> + Send + Sync + 'static {}

impl<L: RawMutex<Token = ()> + Send + Sync + 'static> Lock for L {}

/// A condition variable with one counter, and another for those models that use two mutexes.
struct Shared<L: Lock> {
    condvar: RawCondvar<L>,
    counter: Counter<L>,
    other: Counter<L>,
}

/// The test kit's mutex. Waiters sleep at once.
pub type Sleeps = ThreeState<Local, 0>;
/// Waiters poll once before they sleep: a model has no time, and further polls add no behaviour.
#[allow(dead_code)] // Loom's models have enough to do with sleepers.
pub type Spins = ThreeState<Local, 1>;

type Handle<L> = Arc<Shared<L>>;

impl<L: Lock> Shared<L> {
    fn new() -> Handle<L> {
        Arc::new(Self { condvar: RawCondvar::new(), counter: Counter::default(), other: Counter::default() })
    }
}

pub fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(1))
}

fn waiter<L: Lock>(shared: &Handle<L>) -> JoinHandle<()> {
    with(shared, |shared| assert!(shared.counter.take(&shared.condvar, None)))
}

fn waiter_on_the_other_mutex<L: Lock>(shared: &Handle<L>) -> JoinHandle<()> {
    with(shared, |shared| assert!(shared.other.take(&shared.condvar, None)))
}

fn join(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// One waiter, one notification, sent after the mutex was released.
pub fn one_waiter<L: Lock>() {
    let shared = Shared::<L>::new();
    let waiter = waiter(&shared);
    shared.counter.put(1);
    shared.condvar.notify_one();
    waiter.join().unwrap();
    assert_nobody_waits(&shared);
}

/// No thread waits any more, and the condition variable knows it.
fn assert_nobody_waits<L: Lock>(shared: &Handle<L>) {
    assert!(!shared.condvar.notify_one(), "notify_one found a waiter where none is");
    assert_eq!(shared.condvar.notify_all(), 0, "notify_all found waiters where none are");
}

/// A stray notification, sent without the mutex, does not use up the one that
/// counts.
pub fn stray_notification<L: Lock>() {
    let shared = Shared::<L>::new();
    let waiter = waiter(&shared);
    shared.condvar.notify_one();
    shared.counter.put(1);
    shared.condvar.notify_one();
    waiter.join().unwrap();
}

/// The same with two waiters and a stray notification for all. The waiter that it moves to the
/// mutex need not be the one that was notified.
pub fn stray_requeue<L: Lock>() {
    let shared = Shared::<L>::new();
    let waiting = [waiter(&shared), waiter(&shared)];
    let notifier = with(&shared, |shared| {
        shared.condvar.notify_all();
        for _ in 0..2 {
            shared.counter.put(1);
            shared.condvar.notify_one();
        }
    });
    join(waiting);
    notifier.join().unwrap();
}

/// The same, where another thread holds the mutex at times, and another waiter may give up: a
/// notification that moves sleepers may find younger ones than those it has counted.
#[allow(dead_code)] // Four threads are too many for loom.
pub fn stray_requeue_beside_a_timeout<L: Lock>() {
    let shared = Shared::<L>::new();
    let timed = with(&shared, |shared| _ = shared.counter.take(&shared.condvar, Some(soon())));
    let notifier = with(&shared, |shared| _ = shared.condvar.notify_all());
    let waiting = [waiter(&shared), waiter(&shared)];
    shared.counter.put(1);
    for _ in 0..2 {
        shared.counter.put_and(1, || _ = shared.condvar.notify_one());
    }
    shared.condvar.notify_one();
    join(waiting);
    join([timed, notifier]);
}

/// Two waiters, two notifications.
pub fn one_by_one<L: Lock>() {
    let shared = Shared::<L>::new();
    let waiting = [waiter(&shared), waiter(&shared)];
    for _ in 0..2 {
        shared.counter.put(1);
        shared.condvar.notify_one();
    }
    join(waiting);
    assert_nobody_waits(&shared);
}

/// One notification for all waiters, which requeues if it finds them asleep.
pub fn all_at_once<L: Lock>(waiters: usize) {
    let shared = Shared::<L>::new();
    let waiting: Vec<_> = (0..waiters).map(|_| waiter(&shared)).collect();
    shared.counter.put(waiters);
    assert!(shared.condvar.notify_all() <= waiters, "more were notified than there are");
    join(waiting);
    assert_nobody_waits(&shared);
}

/// The same with the mutex held by the notifier: the sleepers are behind its release.
pub fn all_while_holding<L: Lock>() {
    let shared = Shared::<L>::new();
    let waiting = [waiter(&shared), waiter(&shared)];
    shared.counter.put_and(2, || {
        shared.condvar.notify_all();
    });
    join(waiting);
    assert_nobody_waits(&shared);
}

/// Two waiters, two notifications by a holder: each may move a sleeper to the mutex.
pub fn one_by_one_while_holding<L: Lock>() {
    let shared = Shared::<L>::new();
    let waiting = [waiter(&shared), waiter(&shared)];
    for _ in 0..2 {
        shared.counter.put_and(1, || {
            shared.condvar.notify_one();
        });
    }
    join(waiting);
    assert_nobody_waits(&shared);
}

/// The notifier holds the mutex, and another thread queues for it beside the waiter.
pub fn one_beside_a_locker<L: Lock>() {
    let shared = Shared::<L>::new();
    let waiter = waiter(&shared);
    let locker = locker(&shared);
    shared.counter.put_and(1, || {
        shared.condvar.notify_one();
    });
    join([waiter, locker]);
    assert_nobody_waits(&shared);
}

/// The notifier does not hold the mutex, and another thread does at times.
pub fn one_while_another_holds<L: Lock>() {
    let shared = Shared::<L>::new();
    let waiter = waiter(&shared);
    shared.counter.put(1);
    let locker = locker(&shared);
    shared.condvar.notify_one();
    join([waiter, locker]);
    assert_nobody_waits(&shared);
}

/// A thread that acquires the mutex and releases it.
fn locker<L: Lock>(shared: &Handle<L>) -> JoinHandle<()> {
    with(shared, |shared| shared.counter.put(0))
}

/// The mutex is freed as soon as its only waiter has returned, while notifications are under way.
#[allow(dead_code)] // Loom does not see that memory is freed.
pub fn a_mutex_that_is_freed<L: Lock>() {
    let condvar = Arc::new(RawCondvar::<L>::new());
    let waiter = with(&condvar, |condvar| {
        let mutex = new_lock::<L>();
        mutex.lock();
        // SAFETY: the mutex is held, and so it is when `wait` returns.
        unsafe {
            let _ = condvar.wait(&mutex, (), Some(soon()));
            mutex.unlock(());
        }
    });
    condvar.notify_one();
    condvar.notify_one();
    waiter.join().unwrap();
}

/// A notification for all against one for one, from two threads without the mutex.
pub fn two_notifiers<L: Lock>() {
    let shared = Shared::<L>::new();
    let waiting = [waiter(&shared), waiter(&shared)];
    shared.counter.put(2);
    let other = with(&shared, |shared| shared.condvar.notify_one());
    shared.condvar.notify_all();
    other.join().unwrap();
    join(waiting);
}

/// A waiter that may give up, two tickets and two notifications, and between the notifications a
/// waiter that does not give up. What the first leaves behind keeps no notification from the
/// second.
pub fn timed_and_untimed<L: Lock>(limit: fn() -> Deadline) {
    let shared = Shared::<L>::new();
    let arrived = Arc::new(Futex::<Local>::new(0));
    let timed = {
        let (shared, arrived) = (Arc::clone(&shared), Arc::clone(&arrived));
        spawn(move || {
            arrived.fetch_add(1, Relaxed);
            arrived.key().wake(1);
            shared.counter.take(&shared.condvar, Some(limit()))
        })
    };
    // The first waiter can go first without a preemption.
    wait_for_arrival(&arrived, 1);
    shared.counter.put(1);
    shared.condvar.notify_one();
    let untimed = waiter(&shared);
    shared.counter.put(1);
    shared.condvar.notify_one();
    untimed.join().unwrap();
    timed.join().unwrap();
    assert_nobody_waits(&shared);
}

/// Blocks until `nth` threads have arrived.
fn wait_for_arrival(arrived: &Futex<Local>, nth: u32) {
    loop {
        let count = arrived.load(Relaxed);
        if count == nth {
            return;
        }
        arrived.wait(count, None);
    }
}

/// Every notification given is taken by a waiter that says so, even if its `limit` comes.
pub fn somebody_says_so<L: Lock>(waiters: usize, limit: fn() -> Deadline) {
    let shared = Shared::<L>::new();
    let waiting: Vec<_> = (0..waiters)
        .map(|_| {
            with(&shared, move |shared| {
                let Counter { mutex, tickets } = &shared.counter;
                mutex.lock();
                // SAFETY: the mutex is held.
                let open = tickets.with(|tickets| unsafe { *tickets == 0 });
                // SAFETY: the mutex is held.
                let notified =
                    open && unsafe { shared.condvar.wait(mutex, (), Some(limit())) }.1 == Wakeup::Notified;
                // SAFETY: locked above, or held since `wait` returned.
                unsafe { mutex.unlock(()) };
                usize::from(notified)
            })
        })
        .collect();
    let one = usize::from(shared.condvar.notify_one());
    let mut all = 0;
    // No thread begins to wait after this.
    shared.counter.put_and(1, || all = shared.condvar.notify_all());
    let notified: usize = waiting.into_iter().map(|waiter| waiter.join().unwrap()).sum();
    assert!(notified >= one + all, "{one} + {all} notifications were given and only {notified} taken");
    assert!(notified == 0 || one + all > 0, "a waiter was notified and no notification was given");
}

/// Two waiters with a mutex each. The notifier holds the first mutex, so that a waiter that is
/// moved there waits in its queue.
pub fn two_mutexes<L: Lock>() {
    let shared = Shared::<L>::new();
    let waiting = [waiter(&shared), waiter_on_the_other_mutex(&shared)];
    shared.other.put(1);
    shared.counter.put_and(1, || {
        shared.condvar.notify_all();
    });
    join(waiting);
}

/// Two waiters with the first mutex, and while they are notified by a holder of it, one that brings
/// a second mutex. The third thread starts when the first two wait already, which spares the model
/// the orders before.
pub fn a_second_mutex_on_the_way<L: Lock>() {
    let shared = Shared::<L>::new();
    let arrived = Arc::new(Futex::<Local>::new(0));
    let waiting = [1, 2].map(|nth| {
        let (on_thread, arrives) = (Arc::clone(&shared), Arc::clone(&arrived));
        let waiter = spawn(move || {
            let mutex = &on_thread.counter.mutex;
            mutex.lock();
            arrives.fetch_add(1, Relaxed);
            arrives.key().wake(1);
            // SAFETY: the mutex is held, and so it is when `wait` returns.
            unsafe {
                let _ = on_thread.condvar.wait(mutex, (), None);
                mutex.unlock(());
            }
        });
        wait_for_arrival(&arrived, nth);
        waiter
    });
    // The holder of the mutex knows by now that both have released it, hence are registered.
    shared.counter.mutex.lock();
    let third = waiter_on_the_other_mutex(&shared);
    shared.condvar.notify_all();
    // SAFETY: locked above.
    unsafe { shared.counter.mutex.unlock(()) };
    shared.other.put(1);
    shared.condvar.notify_one();
    third.join().unwrap();
    join(waiting);
}

/// One waiter is cancelled after its sleep; the other gets the only ticket.
#[allow(dead_code)] // One world is enough.
pub fn one_is_cancelled<L: Lock + RawMutex<Condvar = Sequence<L>>>() {
    let shared = Shared::<L>::new();
    let cancelled = with(&shared, |shared| {
        let Shared { condvar, counter, .. } = shared;
        counter.mutex.lock();
        let deadline = Some(soon());
        // SAFETY: locked above; the wait is ended below.
        let waiting = unsafe { condvar.begin_wait(&counter.mutex, (), deadline) };
        let is_asleep = condvar.sleep_here(&waiting, deadline).is_some();
        let woken = if is_asleep { condvar.cancel_wait(waiting) } else { condvar.end_wait(waiting) };
        if woken.requeued {
            counter.mutex.lock_requeued();
        } else {
            counter.mutex.lock();
        }
        // SAFETY: locked above.
        unsafe { counter.mutex.unlock(()) };
        if !is_asleep {
            // It was notified in its spin, and does not use the ticket.
            condvar.notify_one();
        }
    });
    let waiter = waiter(&shared);
    shared.counter.put(1);
    shared.condvar.notify_one();
    join([cancelled, waiter]);
    assert_nobody_waits(&shared);
}
