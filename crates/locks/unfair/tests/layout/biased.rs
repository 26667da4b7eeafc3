//! The biased mutex.

use ulocks_core::meter::Counted;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::spin::{Adaptive, NoSpin};
use ulocks_core::{Private, Shared};
use ulocks_unfair::{BiasedMutex, RawBiasedMutex};

ulocks_testkit::layout_tests! {
    BiasedMutex;
    RawBiasedMutex<Private<Adaptive, Counted>>;
    RawBiasedMutex<Private>, RawBiasedMutex<Shared>, RawBiasedMutex<Private<NoSpin, Counted>>,
}

// The words of one mutex are on one cache line, so they have one gate.
const _: () = assert!(size_of::<RawBiasedMutex>() == 16 && align_of::<RawBiasedMutex>() == 16);

#[test]
fn a_mutex_moved_while_its_owner_is_inside_is_released_where_it_is() {
    let mutex = RawBiasedMutex::<Private>::new();
    for _ in 0..20_000 {
        let token = mutex.lock();
        // SAFETY: locked the line before.
        unsafe { mutex.unlock(token) };
    }
    let token = mutex.lock();
    let far = Box::new([RawBiasedMutex::<Private>::new(), mutex]);
    assert!(far[1].is_locked());
    // SAFETY: the token is of the mutex, which lies elsewhere now.
    unsafe { far[1].unlock(token) };
    assert!(!far[1].is_locked());
}
