//! The mutex.

use ulocks_core::Private;
use ulocks_core::meter::Counted;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_fair::{FairMutex, RawFairMutex};
use ulocks_testkit::suite;

ulocks_testkit::layout_tests! {
    FairMutex;
    RawFairMutex<Private<Adaptive, Counted>>;
    RawFairMutex<Private>, RawFairMutex<Private<NoSpin, Counted>>,
}

/// A pointer with bits in it.
const WORD: usize = size_of::<usize>();

const _: () = assert!(size_of::<RawFairMutex>() == 2 * WORD && align_of::<RawFairMutex>() == WORD);
const _: () = assert!(size_of::<RawFairMutex<Private<Patience<3_000>>>>() == 2 * WORD);
const _: () = assert!(size_of::<FairMutex<()>>() == 2 * WORD && size_of::<FairMutex<u64>>() == 2 * WORD + 8);

#[test]
fn new_is_all_zero() {
    // SAFETY: two words.
    unsafe {
        suite::new_is_all_zero::<RawFairMutex<Private>>(2 * WORD);
        suite::new_is_all_zero::<RawFairMutex<Private<NoSpin>>>(2 * WORD);
    }
}
