//! The model's clients on real threads, small enough for Miri, which looks for undefined behaviour
//! and leaks on the schedules it tries.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use ulocks_calock::{Calock, CalockCondvar, Every, RawCalock};
use ulocks_core::Private;
use ulocks_core::spin::{NoSpin, Patience};

ulocks_testkit::miri_tests! {
    Calock, CalockCondvar;
    RawCalock<Private>,
    RawCalock<Private<NoSpin>>,
    RawCalock<Private<NoSpin>, Every<1_000>>,
    RawCalock<Private<Patience<1_000>>, Every<20_000>>,
}
