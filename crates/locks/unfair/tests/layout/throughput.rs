//! The throughput mutex.

use ulocks_core::Private;
use ulocks_core::meter::Counted;
use ulocks_core::policy::InOneProcess;
use ulocks_core::queue::Rule;
use ulocks_core::spin::{Adaptive, NoSpin};
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
    fn check<P: InOneProcess, B: Rule>(size: usize) {
        let new = RawThroughputMutex::<P, B>::new();
        // SAFETY: the bytes of an initialised value without padding: a word, and counters of a
        // multiple of their size.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const new).cast::<u8>(), size_of_val(&new)) };
        assert_eq!(bytes, vec![0; size]);
    }
    check::<Private, After>(8);
    check::<Private, HandOff>(8);
    check::<Private<NoSpin, Counted>, After>(8 + size_of::<Counted>());
}
