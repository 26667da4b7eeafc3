//! Timeouts: of a lock that is held too long, and of a condition that does not become true.

use std::thread;
use std::time::{Duration, Instant};
use ulocks::unfair::{Condvar, Mutex};

const PATIENCE: Duration = Duration::from_millis(20);

fn main() {
    let is_ready: Mutex<bool> = Mutex::new(false);
    let changed = Condvar::new();

    let held = is_ready.lock();
    let start = Instant::now();
    assert!(is_ready.try_lock_for(PATIENCE).is_none());
    let waited = start.elapsed();
    assert!(waited >= PATIENCE);
    println!("the lock was held: timed out after {waited:?}");
    drop(held);

    let mut ready = is_ready.lock();
    let deadline = Instant::now() + PATIENCE;
    assert!(changed.wait_while_until(&mut ready, |ready| !*ready, deadline).timed_out());
    println!("the flag was not set: timed out, and holds the lock again");

    thread::scope(|scope| {
        scope.spawn(|| {
            *is_ready.lock() = true;
            changed.notify_one();
        });
        let result = changed.wait_while_for(&mut ready, |ready| !*ready, Duration::from_secs(60));
        assert!(!result.timed_out() && *ready);
    });
    println!("the flag was set in time");
}
