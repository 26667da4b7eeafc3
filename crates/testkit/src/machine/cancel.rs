//! Futures that are dropped at random.

use super::stress::Random;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};

/// How many futures are dropped before they are ready, in all: `ULOCKS_CANCELLATIONS`, or this.
const CANCELLATIONS: u64 = 200_000;

fn wanted() -> u64 {
    match std::env::var("ULOCKS_CANCELLATIONS") {
        Ok(number) => number.parse().expect("ULOCKS_CANCELLATIONS is a number"),
        Err(_) => CANCELLATIONS,
    }
}

/// Four threads, each with sixteen futures by `acquire`, one of which it makes, polls or drops at a
/// time. What is acquired goes back by `release`. Both get a number from one to three, the same for
/// one acquisition. Returns how many it acquired.
///
/// # Panics
/// If `ULOCKS_CANCELLATIONS` is set and no number.
pub fn cancel<'a, F: Future + Send + 'a>(
    acquire: impl Fn(u32) -> F + Sync + 'a,
    release: impl Fn(u32, F::Output) + Sync + 'a,
) -> u64 {
    let (wanted, dropped, acquired) = (wanted(), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for me in 0..4 {
            let (dropped, acquired, acquire, release) = (&dropped, &acquired, &acquire, &release);
            scope.spawn(move || {
                let mut random = Random::new(me);
                let mut futures: [Option<(u32, Pin<Box<F>>)>; 16] = Default::default();
                let mut context = Context::from_waker(Waker::noop());
                while dropped.load(Relaxed) < wanted {
                    let place = &mut futures[random.below(16) as usize];
                    let count = 1 + random.below(3);
                    let (count, future) = place.get_or_insert_with(|| (count, Box::pin(acquire(count))));
                    let count = *count;
                    if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                        acquired.fetch_add(1, Relaxed);
                        release(count, output);
                        *place = None;
                    } else if random.below(2) == 0 {
                        dropped.fetch_add(1, Relaxed);
                        *place = None;
                    }
                }
            });
        }
    });
    acquired.into_inner()
}
