//! What users of tokio's `Mutex` and `Semaphore` expect of these, by its documentation: behaviour
//! by behaviour, on one thread, poll by poll.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod rwlock;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Wake};
use ulocks::fair::{Closed, FairCondvar, FairMutex};
use ulocks::task::{AsyncCondvar, AsyncMutex, AsyncMutexGuard, MappedAsyncMutexGuard};
use ulocks::{Condvar, Mutex, Semaphore};

/// Counts its wake-ups.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A future that is polled by hand.
struct Task<F: Future> {
    future: Pin<Box<F>>,
    woken: Arc<Woken>,
}

fn task<F: Future>(future: F) -> Task<F> {
    Task { future: Box::pin(future), woken: Arc::default() }
}

impl<F: Future> Task<F> {
    fn poll(&mut self) -> Poll<F::Output> {
        self.future.as_mut().poll(&mut Context::from_waker(&Arc::clone(&self.woken).into()))
    }

    /// Polls it, and it is pending.
    fn waits(mut self) -> Self {
        assert!(self.poll().is_pending(), "it is ready");
        self
    }

    /// Polls it, and it is ready.
    fn ready(mut self) -> F::Output {
        match self.poll() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("it is pending"),
        }
    }

    /// How often it was woken since it was asked last.
    fn woken(&self) -> usize {
        self.woken.0.swap(0, Relaxed)
    }
}

fn is_send_and_sync<T: Send + Sync>(_: &T) {}

#[test]
fn a_free_mutex_is_had_at_once_and_a_guard_gives_it_back() {
    let mutex = Mutex::new(1);
    *task(mutex.lock_async()).ready() += 1;
    let guard = task(mutex.lock_async()).ready();
    assert!(*guard == 2 && mutex.try_lock().is_none() && mutex.is_locked());
    drop(guard);
    assert_eq!(mutex.into_inner(), 2);
}

#[test]
fn tasks_get_the_mutex_in_the_order_of_their_first_polls() {
    let mutex = FairMutex::new(());
    let held = mutex.lock();
    let third = task(mutex.lock_async());
    let (first, second) = (task(mutex.lock_async()).waits(), task(mutex.lock_async()).waits());
    let third = third.waits();
    drop(held);
    assert_eq!([first.woken(), second.woken(), third.woken()], [1, 0, 0]);
    let held = first.ready();
    assert!(mutex.try_lock().is_none(), "nobody passes those that wait");
    let second = second.waits();
    drop(held);
    assert_eq!([second.woken(), third.woken()], [1, 0]);
    drop(second.ready());
    assert_eq!(third.woken(), 1);
    drop(third.ready());
    assert!(mutex.try_lock().is_some());
}

#[test]
fn a_lock_that_is_cancelled_loses_its_place_and_nothing_else() {
    let mutex = FairMutex::new(());
    let held = mutex.lock();
    let (first, second, third) = (
        task(mutex.lock_async()).waits(),
        task(mutex.lock_async()).waits(),
        task(mutex.lock_async()).waits(),
    );
    drop(second); // in the middle
    drop(held);
    assert_eq!([first.woken(), third.woken()], [1, 0]);
    drop(first); // after it was granted
    assert_eq!(third.woken(), 1);
    drop(third.ready());
    assert!(mutex.try_lock().is_some());
    drop(task(mutex.lock_async())); // never polled
    assert!(mutex.try_lock().is_some());
}

#[test]
fn a_barging_mutex_is_passed_on_by_a_cancelled_lock_too() {
    let mutex = Mutex::new(());
    let held = mutex.lock();
    let (first, second) = (task(mutex.lock_async()).waits(), task(mutex.lock_async()).waits());
    drop(held);
    assert_eq!([first.woken(), second.woken()], [1, 0]);
    drop(first);
    // The drop leaves a free mutex, and wakes the next waiter.
    assert_eq!(second.woken(), 1);
    drop(second.ready());
    assert!(mutex.try_lock().is_some());
}

#[test]
fn an_owned_guard_outlives_the_borrow() {
    let mutex = Arc::new(Mutex::new(1));
    let mut guard = task(Arc::clone(&mutex).lock_owned_async()).ready();
    *guard += 1;
    let waits = task(Arc::clone(&mutex).lock_owned_async()).waits();
    std::thread::spawn(move || drop(guard)).join().expect("it was released on another thread");
    assert_eq!((waits.woken(), *waits.ready()), (1, 2));
    assert_eq!(Arc::strong_count(&mutex), 1);
}

#[test]
fn a_guard_is_narrowed_to_a_part_that_may_go_to_another_thread() {
    let mutex = Mutex::new((1, Some([2, 3])));
    let guard = task(mutex.lock_async()).ready();
    let pair = AsyncMutexGuard::try_map(guard, |data| data.1.as_mut()).expect("there is a pair");
    is_send_and_sync(&pair);
    let mut last = MappedAsyncMutexGuard::map(pair, |pair| &mut pair[1]);
    let waits = task(mutex.lock_async()).waits();
    std::thread::scope(|scope| scope.spawn(move || *last += 1).join()).expect("it was written elsewhere");
    assert_eq!(waits.woken(), 1);
    let mut guard = waits.ready();
    assert_eq!(guard.1.take(), Some([2, 4]));
    let guard = AsyncMutexGuard::try_map(guard, |data| data.1.as_mut()).map(drop).unwrap_err();
    assert!(guard.0 == 1 && mutex.try_lock().is_none(), "without a part the guard comes back");
}

#[test]
fn guards_show_their_data() {
    let mutex = Arc::new(Mutex::new("data"));
    let guard = task(mutex.lock_async()).ready();
    assert_eq!(format!("{guard} {guard:?}"), "data \"data\"");
    drop(guard);
    let guard = task(Arc::clone(&mutex).lock_owned_async()).ready();
    assert_eq!(format!("{guard} {guard:?}"), "data \"data\"");
}

#[test]
fn a_panic_unlocks_and_does_not_poison() {
    let mutex = Arc::new(Mutex::new(1));
    let holder = Arc::clone(&mutex);
    let panicked = std::thread::spawn(move || {
        let _guard = task(holder.lock_async()).ready();
        panic!("the holder panics in this test");
    });
    assert!(panicked.join().is_err());
    assert_eq!(*task(mutex.lock_async()).ready(), 1);
}

#[test]
fn futures_and_guards_may_go_to_other_threads() {
    let (mutex, semaphore) = (Mutex::new(1), Semaphore::new(1));
    is_send_and_sync(&mutex.lock_async());
    is_send_and_sync(&semaphore.acquire_async());
    let guard = task(mutex.lock_async()).ready();
    is_send_and_sync(&guard);
    is_send_and_sync(&task(semaphore.acquire_async()).ready());
}

#[test]
fn a_thread_and_a_task_wait_in_one_queue() {
    let mutex = Arc::new(FairMutex::new(Vec::new()));
    let held = mutex.lock();
    let first = task(mutex.lock_async()).waits();
    let other = Arc::clone(&mutex);
    let thread = std::thread::spawn(move || other.lock().push("thread"));
    drop(held);
    first.ready().push("task");
    thread.join().unwrap();
    assert_eq!(*mutex.lock(), ["task", "thread"]);
}

/// Waits on a condition variable of each kind.
macro_rules! waits {
    ($($name:ident: $Mutex:ident, $Condvar:ident;)*) => {$(
        mod $name {
            use super::*;

            /// A task that waits once.
            fn waits_once<'a>(
                mutex: &'a $Mutex<()>,
                changed: &'a $Condvar,
            ) -> Task<impl Future<Output = ()> + 'a> {
                task(async move {
                    let guard = mutex.lock_async().await;
                    drop(changed.wait_async(guard).await);
                })
                .waits()
            }

            #[test]
            fn a_wait_releases_the_mutex_and_holds_it_again() {
                let (mutex, changed) = ($Mutex::new(0), $Condvar::new());
                let mut wait = task(async {
                    let mut guard = mutex.lock_async().await;
                    while *guard == 0 {
                        guard = changed.wait_async(guard).await;
                    }
                    *guard
                })
                .waits();
                *mutex.try_lock().expect("the wait has released it") = 7;
                changed.notify_one();
                let held = mutex.lock();
                assert_eq!(wait.woken(), 1);
                wait = wait.waits(); // for the mutex
                drop(held);
                assert_eq!((wait.woken(), wait.ready()), (1, 7));
                assert!(mutex.try_lock().is_some());
            }

            #[test]
            fn a_wait_that_is_cancelled_passes_its_notification_on() {
                let (mutex, changed) = ($Mutex::new(()), $Condvar::new());
                let wait = || waits_once(&mutex, &changed);
                let (first, second, third) = (wait(), wait(), wait());
                changed.notify_one();
                assert_eq!([first.woken(), second.woken(), third.woken()], [1, 0, 0]);
                drop(first);
                assert_eq!(second.woken(), 1);
                second.ready();
                let fourth = wait();
                drop(third); // It may have been told, too, and then it tells the fourth.
                changed.notify_all();
                assert_eq!(fourth.woken(), 1);
                fourth.ready();
                assert!(mutex.try_lock().is_some());
            }

            /// It has been notified, and waits for the mutex.
            #[test]
            fn a_wait_that_is_cancelled_at_the_mutex_passes_its_notification_on() {
                let (mutex, changed) = ($Mutex::new(()), $Condvar::new());
                let wait = || waits_once(&mutex, &changed);
                let (first, second) = (wait(), wait());
                let held = mutex.lock();
                changed.notify_one();
                assert_eq!([first.woken(), second.woken()], [1, 0]);
                drop(first.waits());
                assert_eq!(second.woken(), 1, "the notification is lost");
                drop(held);
                second.ready();
                // One that has the mutex again has looked.
                let (first, second) = (wait(), wait());
                changed.notify_one();
                first.ready();
                assert_eq!(second.woken(), 0);
                drop(second);
                assert!(mutex.try_lock().is_some());
            }

            #[test]
            fn a_thread_and_a_task_wait_on_one_condition_variable() {
                let (mutex, changed) = ($Mutex::new(0), $Condvar::new());
                std::thread::scope(|scope| {
                    let thread = scope.spawn(|| {
                        let mut turns = mutex.lock();
                        while *turns == 0 {
                            changed.wait(&mut turns);
                        }
                        *turns += 1;
                    });
                    let wait = task(async {
                        let mut turns = mutex.lock_async().await;
                        while *turns == 0 {
                            turns = changed.wait_async(turns).await;
                        }
                        *turns += 1;
                    })
                    .waits();
                    *mutex.lock() = 1;
                    changed.notify_all();
                    thread.join().unwrap();
                    wait.ready();
                });
                assert_eq!(mutex.into_inner(), 3);
            }
        }
    )*};
}

waits! {
    barging: Mutex, Condvar;
    in_order: FairMutex, FairCondvar;
}

#[test]
fn permits_are_had_while_there_are_some() {
    let semaphore = Semaphore::new(2);
    let [one, other] = [(); 2].map(|()| task(semaphore.acquire_async()).ready().expect("it is open"));
    assert!(semaphore.try_acquire().is_none() && semaphore.available_permits() == 0);
    let third = task(semaphore.acquire_async()).waits();
    drop(one);
    assert_eq!((third.woken(), semaphore.available_permits()), (1, 0));
    let third = third.ready().expect("it is open");
    drop((other, third));
    assert_eq!(semaphore.available_permits(), 2);
}

#[test]
fn many_permits_come_together_and_hold_up_those_behind() {
    let semaphore = Semaphore::new(3);
    let many = task(semaphore.acquire_many_async(5)).waits();
    let one = task(semaphore.acquire_async()).waits();
    assert!(semaphore.try_acquire().is_none(), "they are for the first");
    semaphore.release(1).expect("there are few");
    assert_eq!([many.woken(), one.woken()], [0, 0]);
    semaphore.release(2).expect("there are few");
    assert_eq!([many.woken(), one.woken()], [1, 1]);
    assert_eq!((many.ready().expect("open").count(), one.ready().expect("open").count()), (5, 1));
    assert_eq!(semaphore.available_permits(), 6);
}

#[test]
fn an_acquisition_that_is_cancelled_lets_others_pass() {
    let semaphore = Semaphore::new(1);
    let many = task(semaphore.acquire_many_async(2)).waits();
    let one = task(semaphore.acquire_async()).waits();
    drop(many);
    assert_eq!(one.woken(), 1);
    drop(one); // with its permit
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn one_release_serves_as_many_as_it_can() {
    let semaphore = Semaphore::new(0);
    let tasks: Vec<_> = (0..100).map(|_| task(semaphore.acquire_async()).waits()).collect();
    semaphore.release(60).expect("there are few");
    assert_eq!(tasks.iter().map(Task::woken).collect::<Vec<_>>(), [[1; 60].as_slice(), &[0; 40]].concat());
    let mut late = tasks;
    late.drain(..60).for_each(|task| task.ready().expect("it is open").forget());
    drop(late);
    assert_eq!((semaphore.available_permits(), semaphore.raw().waiters()), (0, 0));
}

#[test]
fn a_close_ends_all_waits_and_leaves_permits_alone() {
    let semaphore = Semaphore::new(1);
    let held = task(semaphore.acquire_async()).ready().expect("it is open");
    let waits = task(semaphore.acquire_async()).waits();
    semaphore.close();
    assert_eq!(waits.woken(), 1);
    assert_eq!(waits.ready().map(drop), Err(Closed));
    assert_eq!(task(semaphore.acquire_async()).ready().map(drop), Err(Closed));
    assert_eq!(task(semaphore.acquire_many_async(0)).ready().map(drop), Err(Closed));
    drop(held);
    assert!(semaphore.available_permits() == 1 && semaphore.try_acquire().is_none());
}

#[test]
fn a_wait_that_was_answered_before_the_close_keeps_its_permit() {
    let semaphore = Semaphore::new(0);
    let waits = task(semaphore.acquire_async()).waits();
    semaphore.release(1).expect("there are few");
    semaphore.close();
    assert_eq!(waits.ready().map(|permit| permit.count()), Ok(1));
}

#[test]
fn permits_are_forgotten_split_and_merged() {
    let semaphore = Semaphore::new(5);
    let mut three = task(semaphore.acquire_many_async(3)).ready().expect("it is open");
    assert!(std::ptr::eq(three.semaphore(), &semaphore));
    let one = three.split(1).expect("there are three");
    task(semaphore.acquire_async()).ready().expect("it is open").forget();
    three.merge(one);
    assert_eq!((three.count(), semaphore.available_permits()), (3, 1));
    drop(three);
    assert_eq!(semaphore.available_permits(), 4);
}

#[test]
fn none_is_had_at_once_whoever_waits() {
    let semaphore = Semaphore::new(0);
    let _waits = task(semaphore.acquire_async()).waits();
    assert_eq!(task(semaphore.acquire_many_async(0)).ready().map(|permit| permit.count()), Ok(0));
}

#[test]
#[should_panic(expected = "1073741824 permits are more than a semaphore has")]
fn more_than_there_can_be_panics() {
    let semaphore = Semaphore::new(1);
    _ = task(semaphore.acquire_many_async(Semaphore::MAX_PERMITS + 1)).poll();
}

#[cfg(feature = "arc_lock")]
#[test]
fn an_owned_permit_outlives_the_borrow() {
    let semaphore = Arc::new(Semaphore::new(1));
    let permit = task(Arc::clone(&semaphore).acquire_owned_async()).ready().expect("it is open");
    let waits = task(Arc::clone(&semaphore).acquire_many_owned_async(1)).waits();
    std::thread::spawn(move || drop(permit)).join().expect("it went back on another thread");
    assert_eq!((waits.woken(), waits.ready().map(|permit| permit.count())), (1, Ok(1)));
    drop(task(Arc::clone(&semaphore).acquire_owned_async())); // never polled
    assert_eq!((Arc::strong_count(&semaphore), semaphore.available_permits()), (1, 1));
}
