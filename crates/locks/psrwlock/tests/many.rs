//! Ten thousand threads that wait at once: they allocate nothing, and all get the lock.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_psrwlock::{BULK, Eager, NESTED, PhaseFair, RawPsRwLock, Sifted, URGENT};
use ulocks_testkit::rw;

#[global_allocator]
static COUNTING: ulocks_testkit::allocations::Counting = ulocks_testkit::allocations::Counting;

const THREE: u8 = BULK | URGENT | NESTED;

/// All wait for a writer, and sleep. A writer that waits for readers is not among them: it wakes by
/// itself, up to 185 times a second, to see whether they have left.
#[test]
fn ten_thousand_wait_and_allocate_nothing() {
    rw::crowd::ten_thousand_wait::<RawPsRwLock<Sifted<THREE, Private<NoSpin>>>>().check();
    rw::crowd::ten_thousand_wait::<RawPsRwLock<Sifted<BULK, Shared>>>().check();
    rw::crowd::wait_for_rw_lock::<RawPsRwLock<Sifted<THREE, Private, PhaseFair, Eager>>>(2_000).check();
}
