//! Futures that are dropped at random.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use ulocks_core::raw::{RawMutex, RawMutexAsync};
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, queue::InOrder, queue::QueueMutex};
use ulocks_fair::{Closed, RawSemaphore};

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
    let mutex = QueueMutex::<Private<NoSpin>, InOrder>::new();
    // SAFETY: a future that is ready holds the mutex; the token is nothing.
    let acquired = cancel(|_| mutex.lock_async(), |_, ()| unsafe { mutex.unlock(()) });
    assert!(acquired > 0, "nothing was ever acquired");
    assert_eq!(mutex.try_lock(), Some(()));
}
