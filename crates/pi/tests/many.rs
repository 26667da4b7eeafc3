//! Ten thousand threads that wait at once: they allocate nothing, and all get the lock.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use ulocks_core::{Private, Shared};
use ulocks_pi::RawPiMutex;
use ulocks_testkit::crowd;

#[global_allocator]
static WATCHED: ulocks_testkit::crowd::Watched = ulocks_testkit::crowd::Watched;

#[test]
fn ten_thousand_wait_and_allocate_nothing() {
    crowd::ten_thousand_wait::<RawPiMutex<Private>>().check();
    crowd::ten_thousand_wait::<RawPiMutex<Shared>>().check();
}
