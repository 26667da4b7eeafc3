//! The throughput mutex.

use ulocks_core::Private;
use ulocks_core::meter::Counted;
use ulocks_core::spin::{Adaptive, NoSpin};
use ulocks_testkit::suite;
use ulocks_unfair::{After, HandOff, RawThroughputMutex, ThroughputMutex, ThroughputMutexWith};

ulocks_testkit::layout_tests! {
    ThroughputMutex;
    RawThroughputMutex<Private<Adaptive, Counted>>;
    RawThroughputMutex<Private>,
    RawThroughputMutex<Private, HandOff>,
    RawThroughputMutex<Private<NoSpin, Counted>>,
}

static STRICT: ThroughputMutexWith<u32, Private, HandOff> = ThroughputMutexWith::new(1);
const _: () = assert!(size_of::<RawThroughputMutex>() == 8 && align_of::<RawThroughputMutex>() == 8);
const _: () = assert!(size_of::<RawThroughputMutex<Private, After<50_000>>>() == 8);
const _: () = assert!(size_of::<ThroughputMutex<()>>() == 8 && size_of::<ThroughputMutex<u32>>() == 16);

#[test]
fn a_strict_one_lives_in_a_static() {
    assert_eq!(*STRICT.lock(), 1);
}

#[test]
fn new_is_all_zero() {
    // SAFETY: a word of eight bytes, and counters of a multiple of their size.
    unsafe {
        suite::new_is_all_zero::<RawThroughputMutex<Private>>(8);
        suite::new_is_all_zero::<RawThroughputMutex<Private, HandOff>>(8);
        suite::new_is_all_zero::<RawThroughputMutex<Private<NoSpin, Counted>>>(8 + size_of::<Counted>());
    }
}
