//! The mutex.

use ulocks_core::Private;
use ulocks_core::meter::Counted;
use ulocks_core::policy::InOneProcess;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_fair::{FairMutex, RawFairMutex};

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
    fn bytes<P: InOneProcess>() -> Vec<u8> {
        let mutex = RawFairMutex::<P>::new();
        let size = size_of_val(&mutex);
        // SAFETY: the bytes of an initialised value without padding: two words, and counters of a
        // multiple of its size.
        unsafe { std::slice::from_raw_parts((&raw const mutex).cast::<u8>(), size) }.to_vec()
    }
    assert_eq!(bytes::<Private>(), [0; 2 * WORD]);
    assert_eq!(bytes::<Private<NoSpin>>(), [0; 2 * WORD]);
}
