//! Threads that are known to sleep, and waits for a state: for tests in which everything has its
//! order.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::thread::{Scope, ScopedJoinHandle};
use ulocks_psrwlock::{ByClass, State};
use ulocks_testkit::task;
use ulocks_testkit::watchdog::{Watchdog, watch};

/// Returns when `is_so`.
#[track_caller]
pub fn until(is_so: impl Fn() -> bool) {
    ulocks_testkit::limit::until("it is so as this line says", is_so);
}

/// Starts a thread that runs `body`, which is to wait for a lock, and returns when it sleeps in the
/// kernel.
pub fn asleep<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    body: impl FnOnce() -> R + Send + 'scope,
) -> ScopedJoinHandle<'scope, R> {
    let id = Arc::new(AtomicI32::new(0));
    let thread = scope.spawn({
        let id = Arc::clone(&id);
        move || {
            id.store(task::id(), Relaxed);
            body()
        }
    });
    until(|| id.load(Relaxed) != 0);
    task::until_asleep(&[id.load(Relaxed)]);
    thread
}

/// Runs `test` on a lock of its own, with an end if it hangs.
pub fn with<L: ByClass + Sync + 'static>(name: &str, lock: L, test: impl FnOnce(&'static L)) {
    // For the watchdog, which may outlive the test by a moment.
    let lock: &'static L = Box::leak(Box::new(lock));
    let _watchdog: Watchdog = watch(name, || format!("{:?}", lock.state()));
    test(lock);
    let state = lock.state();
    let left = State(state.0 & !(State::WRITERS | State::LOW | State::TOP));
    assert_eq!(left, State::UNLOCKED, "{name} leaves something behind: {state:?}");
}
