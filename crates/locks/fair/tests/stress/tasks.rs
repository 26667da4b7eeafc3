//! Futures that are dropped at random.

use std::cell::RefCell;
use std::mem::{self, ManuallyDrop};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};
use ulocks_core::Private;
use ulocks_core::queue::{After, Every, HandOff, InOrder, QueueMutex, Rule};
use ulocks_core::raw::{RawMutex, RawMutexAsync};
use ulocks_core::spin::NoSpin;
use ulocks_fair::{AcquireAsync, Closed, RawSemaphore, Semaphore};
use ulocks_testkit::limit::until;

/// How many futures are dropped before they are ready, in all: `ULOCKS_CANCELLATIONS`, or this.
const CANCELLATIONS: u64 = 200_000;

fn wanted() -> u64 {
    match std::env::var("ULOCKS_CANCELLATIONS") {
        Ok(number) => number.parse().expect("ULOCKS_CANCELLATIONS is a number"),
        Err(_) => CANCELLATIONS,
    }
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most as u64) as usize
    }
}

/// Four threads, each with sixteen futures by `acquire`, one of which it makes, polls or drops at a
/// time. What is acquired goes back by `release`. Returns how many it acquired.
fn cancel<'a, F: Future + Send + 'a>(
    acquire: impl Fn(u32) -> F + Sync + 'a,
    release: impl Fn(u32, F::Output) + Sync + 'a,
) -> u64 {
    let (dropped, acquired) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for me in 1..=4 {
            let (dropped, acquired, acquire, release) = (&dropped, &acquired, &acquire, &release);
            scope.spawn(move || {
                let mut random = Random(me * 0x9E37_79B9);
                let mut futures: [Option<(u32, Pin<Box<F>>)>; 16] = Default::default();
                let mut context = Context::from_waker(Waker::noop());
                while dropped.load(Relaxed) < wanted() {
                    let at = random.below(16);
                    let count = 1 + random.below(3) as u32;
                    let (count, future) =
                        futures[at].get_or_insert_with(|| (count, Box::pin(acquire(count))));
                    let count = *count;
                    if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                        acquired.fetch_add(1, Relaxed);
                        release(count, output);
                        futures[at] = None;
                    } else if random.below(2) == 0 {
                        dropped.fetch_add(1, Relaxed);
                        futures[at] = None;
                    }
                }
            });
        }
    });
    acquired.into_inner()
}

#[test]
fn permits_are_conserved_whatever_is_dropped() {
    let semaphore = RawSemaphore::<Private<NoSpin>>::new(5);
    let acquired = cancel(
        |count| semaphore.acquire_async(count),
        |count, output: Result<(), Closed>| {
            assert_eq!(output.map(|()| semaphore.release(count)), Ok(Ok(())));
        },
    );
    assert!(acquired > 0, "nothing was ever acquired");
    assert_eq!((semaphore.waiters(), semaphore.available()), (0, 5));
}

#[test]
fn the_mutex_is_free_whatever_is_dropped() {
    fn check<R: Rule>() {
        let (mutex, ends) = (QueueMutex::<Private<NoSpin>, R>::new(), AtomicU32::new(0));
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
    check::<InOrder>();
    check::<After>();
    check::<HandOff>();
    check::<Every>();
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
