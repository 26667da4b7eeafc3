//! The mutex.

use ulocks_core::meter::Counted;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_core::{Private, Shared};
use ulocks_fair::{FairMutex, FairScope, RawFairMutex};

ulocks_testkit::layout_tests! {
    FairMutex;
    RawFairMutex<Private<Adaptive, Counted>>;
    RawFairMutex<Private>, RawFairMutex<Shared>, RawFairMutex<Private<NoSpin, Counted>>,
}

const _: () = assert!(size_of::<RawFairMutex>() == 8 && align_of::<RawFairMutex>() == 8);
const _: () = assert!(size_of::<RawFairMutex<Shared>>() == 8);
const _: () = assert!(size_of::<RawFairMutex<Private<Patience<3_000>>>>() == 8);
const _: () = assert!(size_of::<FairMutex<()>>() == 8 && size_of::<FairMutex<u64>>() == 16);

#[test]
fn new_is_all_zero() {
    fn bytes<P: ulocks_core::Policy<Scope: FairScope>>() -> Vec<u8> {
        let mutex = RawFairMutex::<P>::new();
        let size = size_of_val(&mutex);
        // SAFETY: the bytes of an initialised value without padding: a word, and counters of a
        // multiple of its size.
        unsafe { std::slice::from_raw_parts((&raw const mutex).cast::<u8>(), size) }.to_vec()
    }
    assert_eq!(bytes::<Private>(), [0; 8]);
    assert_eq!(bytes::<Shared>(), [0; 8]);
}
