//! The mutex.

use ulocks_core::meter::Counted;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_core::{Private, Shared};
use ulocks_unfair::{Mutex, RawMutex};

ulocks_testkit::layout_tests! {
    Mutex;
    RawMutex<Private<Adaptive, Counted>>;
    RawMutex<Private>, RawMutex<Shared>, RawMutex<Private<NoSpin, Counted>>,
}

const _: () = assert!(size_of::<RawMutex>() == 4 && align_of::<RawMutex>() == 4);
const _: () = assert!(size_of::<RawMutex<Shared>>() == 4);
const _: () = assert!(size_of::<RawMutex<Private<Patience<3_000>>>>() == 4);
const _: () = assert!(size_of::<Mutex<()>>() == 4 && size_of::<Mutex<u32>>() == 8);

#[test]
fn new_is_all_zero() {
    fn bytes<P: ulocks_core::Policy>() -> Vec<u8> {
        let mutex = RawMutex::<P>::new();
        let size = size_of_val(&mutex);
        // SAFETY: the bytes of an initialised value without padding: a word, and counters of a
        // multiple of its size.
        unsafe { std::slice::from_raw_parts((&raw const mutex).cast::<u8>(), size) }.to_vec()
    }
    assert_eq!(bytes::<Private>(), [0; 4]);
    assert_eq!(bytes::<Shared>(), [0; 4]);
}
