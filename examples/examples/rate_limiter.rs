//! A rate limiter: so many requests in each period, in the order in which they came.
//!
//! # Which lock, and why
//! A [`Semaphore`]: each request takes a permit for good, and each period puts new ones in. It is
//! strict, so a request for five is not overtaken by requests for one, and no request starves. A
//! request that is cancelled while it waits takes nothing.
//!
//! # What would go wrong with another
//! A counter under a mutex, with requests that sleep and look again, serves whoever looks first: a
//! large request never finds enough. A queue of one's own has to take out what is cancelled, also
//! what was served in the same moment.

use std::sync::Arc;
use std::time::Duration;
use ulocks::{Mutex, Permit, Semaphore};

struct RateLimiter {
    requests: Semaphore,
    each_period: u32,
}

impl RateLimiter {
    fn new(each_period: u32) -> Self {
        Self { requests: Semaphore::new(each_period), each_period }
    }

    /// Waits until `count` requests may be made.
    async fn wait(&self, count: u32) {
        self.requests.acquire_many_async(count).await.expect("nobody closes it").forget();
    }

    /// A period is over. What was not used is lost, and so is what was cancelled after it was
    /// served.
    fn refill(&self) {
        let left = self.requests.available_permits();
        match self.each_period.checked_sub(left) {
            Some(missing) => self.requests.release(missing).expect("there are no more than in a period"),
            None => self.requests.try_acquire_many(left - self.each_period).map_or((), Permit::forget),
        }
    }
}

fn main() {
    let limiter = Arc::new(RateLimiter::new(5));
    let served = Arc::new(Mutex::new(Vec::new()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");

    runtime.block_on(async {
        let mut requests = Vec::new();
        for (name, count) in [("a", 4), ("large", 5), ("b", 1), ("cancelled", 3), ("c", 1), ("d", 3)] {
            let (limiter, served) = (Arc::clone(&limiter), Arc::clone(&served));
            let waiting = limiter.requests.raw().waiters();
            let of = Arc::clone(&limiter);
            let request = tokio::spawn(async move {
                limiter.wait(count).await;
                served.lock().push(name);
            });
            // The next one comes after this one.
            while !request.is_finished() && of.requests.raw().waiters() == waiting {
                tokio::task::yield_now().await;
            }
            requests.push((name, request));
        }
        assert_eq!(*served.lock(), ["a"], "one permit is left, and all stand behind the large request");

        let (_, cancelled) = requests.remove(3);
        cancelled.abort();
        assert!(cancelled.await.expect_err("it was cancelled").is_cancelled());
        while requests.iter().any(|(_, request)| !request.is_finished()) {
            tokio::time::sleep(Duration::from_millis(1)).await;
            limiter.refill();
        }
    });
    let order = served.lock();
    assert_eq!(order[..2], ["a", "large"], "nobody overtook the large request");
    assert_eq!(order.len(), 5);
    println!("served: {}; nothing was taken for the one that was cancelled", order.join(", "));
}
