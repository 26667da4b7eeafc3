//! The detector of acquisitions that would wait for their own thread: what panics, with which
//! places, and what does not.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod allowed;
mod found;

use ulocks_core::Private;
use ulocks_core::signal::Soft;
use ulocks_psrwlock::{
    BULK, Central, Checked, Distributed, NESTED, PhaseFair, PsRwLockWith, Readers, Sifted, URGENT, Unchecked,
};
use ulocks_testkit as _;

/// A lock whose discipline checks, also without debug assertions.
type Lock<R = Central> =
    PsRwLockWith<u32, Sifted<{ BULK | URGENT | NESTED }, Private, PhaseFair, R, Soft, Checked>>;
/// One whose discipline does not, also with them.
type Careless =
    PsRwLockWith<u32, Sifted<{ BULK | URGENT | NESTED }, Private, PhaseFair, Central, Soft, Unchecked>>;

/// A lock with the slots of `R`.
fn new<R: Readers>() -> Lock<R> {
    Lock::new(0)
}

type AtSlots = Distributed<2>;
