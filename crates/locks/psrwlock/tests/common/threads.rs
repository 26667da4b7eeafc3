//! Waits for a state, and locks with an end if a test hangs.

use ulocks_psrwlock::{ByClass, State};
use ulocks_testkit::watchdog::{Watchdog, watch};

/// Returns when `is_so`.
#[track_caller]
pub fn until(is_so: impl Fn() -> bool) {
    ulocks_testkit::limit::until("it is so as this line says", is_so);
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
