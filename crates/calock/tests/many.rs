//! Ten thousand threads that wait at once: they allocate nothing, and all get the lock.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use ulocks_calock::{Every, RawCalock};
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_testkit::crowd;

#[global_allocator]
static WATCHED: crowd::Watched = crowd::Watched;

#[test]
fn ten_thousand_wait_and_allocate_nothing() {
    crowd::ten_thousand_wait::<RawCalock<Private>>().check();
    crowd::ten_thousand_wait::<RawCalock<Private<NoSpin>, Every<1_000_000>>>().check();
    crowd::ten_thousand_wait::<RawCalock<Shared>>().check();
}
