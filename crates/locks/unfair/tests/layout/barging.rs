//! The mutex.

use ulocks_core::meter::Counted;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_core::{Private, Shared};
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
    fn bytes<P: ulocks_core::Policy>() -> Vec<u8> {
        let mutex = RawBargingMutex::<P>::new();
        let size = size_of_val(&mutex);
        // SAFETY: the bytes of an initialised value without padding: a word, and counters of a
        // multiple of its size.
        unsafe { std::slice::from_raw_parts((&raw const mutex).cast::<u8>(), size) }.to_vec()
    }
    assert_eq!(bytes::<Private>(), [0; 4]);
    assert_eq!(bytes::<Shared>(), [0; 4]);
}
