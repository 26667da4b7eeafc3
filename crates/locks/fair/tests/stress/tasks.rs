//! Futures that are dropped at random.

use std::cell::RefCell;
use std::mem::{self, ManuallyDrop};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};
use ulocks_core::Private;
use ulocks_core::policy::InOneProcess;
use ulocks_core::queue::{After, Every, HandOff, InOrder, QueueMutex, Rule};
use ulocks_core::raw::{RawMutex, RawMutexAsync};
use ulocks_core::spin::NoSpin;
use ulocks_core::task::AsyncMutex as _;
use ulocks_fair::{AcquireAsync, Closed, FairMutex, RawSemaphore, Semaphore};
use ulocks_testkit::cancel::cancel;
use ulocks_testkit::limit::until;
use ulocks_testkit::task::asleep;

#[test]
fn permits_are_conserved_whatever_is_dropped() {
    fn check<P: InOneProcess>() {
        let semaphore = RawSemaphore::<P>::new(5);
        let acquired = cancel(
            |count| semaphore.acquire_async(count),
            |count, output: Result<(), Closed>| {
                assert_eq!(output.map(|()| semaphore.release(count)), Ok(Ok(())));
            },
        );
        assert!(acquired > 0, "nothing was ever acquired");
        assert_eq!((semaphore.waiters(), semaphore.available()), (0, 5));
    }
    check::<Private<NoSpin>>();
    check::<Private>();
}

#[test]
fn the_mutex_is_free_whatever_is_dropped() {
    fn check<P: InOneProcess, R: Rule>() {
        let (mutex, ends) = (QueueMutex::<P, R>::new(), AtomicU32::new(0));
        std::thread::scope(|scope| {
            // A thread that sleeps in the queue is woken by drops as by releases.
            let thread = scope.spawn(|| {
                let mut acquired = 0;
                while ends.load(Relaxed) == 0 || acquired == 0 {
                    mutex.lock();
                    acquired += 1;
                    // SAFETY: locked above; the token is nothing.
                    unsafe { mutex.unlock(()) };
                }
            });
            // SAFETY: a future that is ready holds the mutex; the token is nothing.
            let acquired = cancel(|_| mutex.lock_async(), |_, ()| unsafe { mutex.unlock(()) });
            ends.store(1, Relaxed);
            assert!(acquired > 0, "nothing was ever acquired");
            thread.join().expect("the thread panicked");
        });
        assert_eq!(mutex.try_lock(), Some(()));
    }
    check::<Private<NoSpin>, InOrder>();
    check::<Private<NoSpin>, After>();
    check::<Private<NoSpin>, HandOff>();
    check::<Private<NoSpin>, Every>();
    check::<Private, InOrder>();
    check::<Private, After>();
}

/// A thousand waiters, of which every fourth is a thread, and of the other tasks two of three are
/// dropped: half of all.
#[test]
fn threads_and_tasks_are_served_in_the_order_in_which_they_came() {
    const WAITERS: usize = 1_000;
    let mutex = FairMutex::new(Vec::new());
    let guard = mutex.lock();
    std::thread::scope(|scope| {
        let mut tasks: Vec<Option<Pin<Box<_>>>> = Vec::new();
        let mut context = Context::from_waker(Waker::noop());
        for number in 0..WAITERS {
            if number % 4 == 0 {
                let mutex = &mutex;
                asleep(scope, move || mutex.lock().push(number));
                tasks.push(None);
            } else {
                let mut task = Box::pin(mutex.lock_async());
                assert!(task.as_mut().poll(&mut context).is_pending());
                tasks.push(Some(task));
            }
        }
        for (number, task) in tasks.iter_mut().enumerate().rev() {
            if number % 4 > 1 {
                *task = None;
            }
        }
        drop(guard);
        for (number, mut task) in tasks.into_iter().enumerate().filter_map(|(n, task)| Some((n, task?))) {
            let mut guard = None;
            until("the task is served", || {
                if let Poll::Ready(served) = task.as_mut().poll(&mut context) {
                    guard = Some(served);
                }
                guard.is_some()
            });
            guard.expect("it was served").push(number);
        }
    });
    let order = mutex.into_inner();
    assert_eq!(order, Vec::from_iter((0..WAITERS).filter(|number| number % 4 < 2)));
}

thread_local! {
    /// What a waker of this thread drops.
    static FUTURES: RefCell<Vec<Pin<Box<AcquireAsync<'static, Private>>>>> = const { RefCell::new(Vec::new()) };
}

/// Drops the futures of its thread.
struct Cancels;

impl Wake for Cancels {
    fn wake(self: Arc<Self>) {
        drop(FUTURES.with_borrow_mut(mem::take));
    }
}

/// One release serves more tasks than there is room for without memory of the heap, and the first
/// waker drops all of their futures.
#[test]
fn the_first_waker_may_drop_all_futures_that_are_served() {
    static SEMAPHORE: Semaphore = Semaphore::new(0);
    let waker = Arc::new(Cancels).into();
    for count in [1, 32, 33, 65, 200] {
        for _ in 0..count {
            let mut future = Box::pin(SEMAPHORE.acquire_async());
            assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            FUTURES.with_borrow_mut(|futures| futures.push(future));
        }
        SEMAPHORE.release(count).expect("there are few");
        assert_eq!((SEMAPHORE.raw().waiters(), SEMAPHORE.available_permits()), (0, count));
        SEMAPHORE.try_acquire_many(count).expect("they are free").forget();
    }
}

/// A waker that panics when it is dropped, or cloned, if the number is one, or two.
fn panics(number: usize) -> ManuallyDrop<Waker> {
    static TABLE: RawWakerVTable = RawWakerVTable::new(
        |number| {
            if number.addr() == 2 {
                resume_unwind(Box::new(()));
            }
            RawWaker::new(number, &TABLE)
        },
        |_| {},
        |_| {},
        |number| {
            if number.addr() == 1 {
                resume_unwind(Box::new(()));
            }
        },
    );
    // SAFETY: the data is a number, and nothing is freed.
    let waker = unsafe { Waker::from_raw(RawWaker::new(std::ptr::without_provenance(number), &TABLE)) };
    ManuallyDrop::new(waker)
}

/// A poll unwinds at any moment, and the next one is told the answer.
#[test]
fn a_poll_may_unwind_from_a_waker() {
    const ROUNDS: u32 = 2_000;
    let (semaphore, turn) = (Semaphore::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                until("the task waits", || turn.load(Acquire) >= round);
                semaphore.release(1).expect("there are few");
            }
        });
        let [plain, drops, clones] = [panics(0), panics(1), panics(2)];
        for round in 1..=ROUNDS {
            let mut future = Box::pin(semaphore.acquire_async());
            let mut poll = |waker: &Waker| {
                catch_unwind(AssertUnwindSafe(|| {
                    future.as_mut().poll(&mut Context::from_waker(waker)).map(drop)
                }))
            };
            assert!(poll(&clones).is_err(), "a waker was not cloned");
            if poll(&drops).is_ok_and(|polled| polled.is_pending()) {
                turn.store(round, Release);
                (0..round % 64).for_each(|_| std::hint::spin_loop());
                until("the task is ready", || matches!(poll(&plain), Ok(Poll::Ready(()))));
            }
            turn.store(round, Release);
            until("the permit is back", || semaphore.available_permits() > 0);
            semaphore.try_acquire().expect("it is free").forget();
        }
    });
    assert_eq!((semaphore.raw().waiters(), semaphore.available_permits()), (0, 0));
}
