//! The mutex.

use ulocks_core::meter::Counted;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_core::{Private, Shared};
use ulocks_testkit::suite;
use ulocks_unfair::{BargingMutex, RawBargingMutex};

ulocks_testkit::layout_tests! {
    BargingMutex;
    RawBargingMutex<Private<Adaptive, Counted>>;
    RawBargingMutex<Private>, RawBargingMutex<Shared>, RawBargingMutex<Private<NoSpin, Counted>>,
}

const _: () = assert!(size_of::<RawBargingMutex>() == 4 && align_of::<RawBargingMutex>() == 4);
const _: () = assert!(size_of::<RawBargingMutex<Shared>>() == 4);
const _: () = assert!(size_of::<RawBargingMutex<Private<Patience<3_000>>>>() == 4);
const _: () = assert!(size_of::<BargingMutex<()>>() == 4 && size_of::<BargingMutex<u32>>() == 8);

#[test]
fn new_is_all_zero() {
    // SAFETY: a word.
    unsafe {
        suite::new_is_all_zero::<RawBargingMutex<Private>>(4);
        suite::new_is_all_zero::<RawBargingMutex<Shared>>(4);
    }
}
