//! Tests of waiters that are tasks, polled by hand.

use super::super::rule::{After, HandOff, InOrder};
use super::*;
use crate::lock::meter::Counted;
use crate::lock::policy::Private;
use crate::lock::spin::Patience;
use core::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::Wake;
use std::time::Instant;

/// Counts its wake-ups.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

impl Woken {
    fn take(&self) -> usize {
        self.0.swap(0, Relaxed)
    }
}

fn poll<F: Future>(future: Pin<&mut F>, woken: &Arc<Woken>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(&Arc::clone(woken).into()))
}

#[test]
fn a_task_is_overtaken_once() {
    let mutex = QueueMutex::<Private, HandOff>::new();
    let woken = Arc::new(Woken::default());
    mutex.lock();
    let mut task = pin!(mutex.lock_async());
    assert!(poll(task.as_mut(), &woken).is_pending() && woken.take() == 0);
    // SAFETY: locked above, each time; the token is nothing.
    let unlock = || unsafe { mutex.unlock(()) };
    unlock();
    assert_eq!(woken.take(), 1);
    assert!(mutex.try_lock().is_some() && !mutex.is_owed());
    assert!(poll(task.as_mut(), &woken).is_pending() && mutex.is_owed() && woken.take() == 0);
    unlock();
    assert!(woken.take() == 1 && mutex.try_lock().is_none());
    assert!(poll(task.as_mut(), &woken).is_ready());
    unlock();
    assert_eq!(mutex.try_lock(), Some(()));
}

/// Woken by each release, until the bound has passed since the first poll that was in vain.
#[test]
fn a_task_is_overtaken_for_the_bound() {
    const BOUND: Duration = Duration::from_millis(200);
    let mutex = QueueMutex::<Private, After<{ BOUND.as_nanos() as u64 }>>::new();
    let woken = Arc::new(Woken::default());
    mutex.lock();
    let mut task = pin!(mutex.lock_async());
    assert!(poll(task.as_mut(), &woken).is_pending());
    let overtake = || {
        // SAFETY: locked above, or by the overtaking before; the token is nothing.
        unsafe { mutex.unlock(()) };
        woken.take() == 1 && mutex.try_lock().is_some()
    };
    let began = Instant::now();
    for _ in 0..3 {
        assert!(overtake() && poll(task.as_mut(), &woken).is_pending());
        assert!(!mutex.is_owed() || began.elapsed() > BOUND);
    }
    std::thread::sleep(BOUND);
    assert!(mutex.is_owed() || overtake() && poll(task.as_mut(), &woken).is_pending());
    assert!(mutex.is_owed() && !overtake());
    assert!(poll(task.as_mut(), &woken).is_ready());
    // SAFETY: acquired by the future.
    unsafe { mutex.unlock(()) };
    assert_eq!(mutex.try_lock(), Some(()));
}

type Patient = Private<Patience<20_000_000>, Counted>;

/// Whether a poll of the task is ready that begins while the mutex is locked. A moment after it
/// `has_begun` another thread releases.
fn ready_in_time<'a, R: Rule>(
    mutex: &'a QueueMutex<Patient, R>,
    mut task: Pin<&mut LockAsync<'a, Patient, R>>,
    has_begun: impl Fn(u64) -> bool + Sync,
) -> bool {
    let woken = Arc::new(Woken::default());
    mutex.lock();
    let before = polls(mutex);
    std::thread::scope(|scope| {
        let holder = scope.spawn(|| {
            while !has_begun(before) {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(1));
            // SAFETY: locked above; the token is nothing.
            unsafe { mutex.unlock(()) };
        });
        let in_time = poll(task.as_mut(), &woken).is_ready();
        holder.join().unwrap();
        assert!(in_time || poll(task, &woken).is_ready());
        // SAFETY: acquired by the future.
        unsafe { mutex.unlock(()) };
        in_time
    })
}

/// The same of a task that was woken, and finds the mutex taken again.
fn woken_in_time<R: Rule>(mutex: &QueueMutex<Patient, R>, has_begun: impl Fn(u64) -> bool + Sync) -> bool {
    mutex.lock();
    let mut task = pin!(mutex.lock_async());
    assert!(poll(task.as_mut(), &Arc::new(Woken::default())).is_pending());
    // SAFETY: locked above; the token is nothing.
    unsafe { mutex.unlock(()) };
    ready_in_time(mutex, task, has_begun)
}

/// How often a task began to wait, or was told an answer.
fn polls<R: Rule>(mutex: &QueueMutex<Patient, R>) -> u64 {
    let counted = mutex.meter().snapshot();
    counted.contended + counted.woke
}

/// A thread may be kept from running for longer than a task looks.
const TRIES: u32 = 20;

#[test]
fn a_task_that_arrives_looks_for_a_moment() {
    fn check<R: Rule>() -> bool {
        let mutex = QueueMutex::<Patient, R>::new();
        let in_time = |before| polls(&mutex) != before;
        (0..TRIES).any(|_| ready_in_time(&mutex, pin!(mutex.lock_async()), in_time))
    }
    assert!(check::<After>(), "barging");
    assert!(check::<InOrder>(), "in order");
}

#[test]
fn a_task_that_was_woken_looks_for_a_moment() {
    let mutex = QueueMutex::<Patient, After<1_000_000_000_000>>::new();
    let mut tries = (0..TRIES).map(|_| woken_in_time(&mutex, |before| polls(&mutex) != before));
    assert!(tries.any(|in_time| in_time));
}

/// The holder releases once it sees that the mutex is owed, and the task still looks.
#[test]
fn a_task_that_is_due_claims_first() {
    let mutex = QueueMutex::<Patient, HandOff>::new();
    let mut tries = (0..TRIES).map(|_| woken_in_time(&mutex, |_| mutex.is_owed()));
    assert!(tries.any(|in_time| in_time));
}

#[test]
fn the_waker_of_the_last_poll_is_called() {
    let mutex = QueueMutex::<Private, InOrder>::new();
    let woken = [(); 3].map(|()| Arc::new(Woken::default()));
    mutex.lock();
    {
        let mut task = pin!(mutex.lock_async());
        for waker in &woken {
            assert!(poll(task.as_mut(), waker).is_pending());
        }
        // SAFETY: locked above; the token is nothing.
        unsafe { mutex.unlock(()) };
        assert_eq!(woken.each_ref().map(|woken| woken.take()), [0, 0, 1]);
        assert!(mutex.try_lock().is_none(), "it is the task's");
    }
    assert_eq!(woken.map(|woken| Arc::strong_count(&woken)), [1; 3], "a waker was kept");
    assert_eq!(mutex.try_lock(), Some(()), "the drop of a future that was granted releases");
}

#[test]
#[should_panic(expected = "polled after it was ready")]
fn a_future_is_ready_once() {
    let mutex = QueueMutex::<Private, InOrder>::new();
    let mut task = pin!(mutex.lock_async());
    let woken = Arc::new(Woken::default());
    assert!(poll(task.as_mut(), &woken).is_ready());
    _ = poll(task, &woken);
}

/// The newest waiter leaves, and another comes in its place: no node names the one that left.
#[test]
fn the_newest_waiter_may_leave() {
    let mutex = QueueMutex::<Private, InOrder>::new();
    let woken = [(); 3].map(|()| Arc::new(Woken::default()));
    mutex.lock();
    let (mut first, mut last) = (pin!(mutex.lock_async()), pin!(mutex.lock_async()));
    assert!(poll(first.as_mut(), &woken[0]).is_pending());
    // Its memory outlives its drop, so that a thread that names it is seen, and does no harm.
    let mut gone = mem::ManuallyDrop::new(mutex.lock_async());
    {
        // SAFETY: it is not moved until it is dropped in its place.
        let gone = unsafe { Pin::new_unchecked(&mut *gone) };
        assert!(poll(gone, &woken[1]).is_pending());
    }
    // SAFETY: dropped once, in its place.
    unsafe { mem::ManuallyDrop::drop(&mut gone) };
    assert!(poll(last.as_mut(), &woken[2]).is_pending());
    // SAFETY: locked above, or by the task that is ready; the token is nothing.
    let unlock = || unsafe { mutex.unlock(()) };
    unlock();
    assert!(poll(first, &woken[0]).is_ready());
    unlock();
    assert_eq!(woken.map(|woken| woken.take()), [1, 0, 1], "the wrong waiters were granted");
    assert!(poll(last, &Arc::new(Woken::default())).is_ready());
}

/// A waker that panics.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker of this test panics");
    }
}

#[test]
fn a_waker_that_panics_harms_nobody_else() {
    fn check<R: Rule>() {
        let mutex = QueueMutex::<Private, R>::new();
        mutex.lock();
        let (mut first, mut second) = (pin!(mutex.lock_async()), pin!(mutex.lock_async()));
        let (panics, woken) = (Waker::from(Arc::new(Panics)), Arc::new(Woken::default()));
        assert!(first.as_mut().poll(&mut Context::from_waker(&panics)).is_pending());
        assert!(poll(second.as_mut(), &woken).is_pending());
        // SAFETY: locked above, each time; the token is nothing.
        unsafe { mutex.unlock(()) };
        assert!(poll(first, &woken).is_ready() && woken.take() == 0);
        // SAFETY: as above.
        unsafe { mutex.unlock(()) };
        assert!(woken.take() == 1 && poll(second, &woken).is_ready());
        // SAFETY: as above.
        unsafe { mutex.unlock(()) };
        assert!(mutex.try_lock().is_some());
    }
    check::<InOrder>();
    check::<After>();
}
