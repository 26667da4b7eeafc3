//! The asymmetric mutex.

use ulocks_core::meter::Counted;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::spin::{Adaptive, NoSpin};
use ulocks_core::{Private, Shared};
use ulocks_testkit::suite;
use ulocks_unfair::{AsymMutex, RawAsymMutex};

ulocks_testkit::layout_tests! {
    AsymMutex;
    RawAsymMutex<Private<Adaptive, Counted>>;
    RawAsymMutex<Private>, RawAsymMutex<Shared>, RawAsymMutex<Private<NoSpin, Counted>>,
}

const _: () = assert!(size_of::<RawAsymMutex>() == 4 && align_of::<RawAsymMutex>() == 4);
const _: () = assert!(size_of::<RawAsymMutex<Shared>>() == 4);
const _: () = assert!(size_of::<AsymMutex<()>>() == 4 && size_of::<AsymMutex<u32>>() == 8);

#[test]
fn new_is_all_zero() {
    // SAFETY: a word.
    unsafe {
        suite::new_is_all_zero::<RawAsymMutex<Private>>(4);
        suite::new_is_all_zero::<RawAsymMutex<Shared>>(4);
    }
}

/// The word is all the state there is: a mutex that was moved while locked has another gate, and
/// that is no matter.
#[test]
fn a_mutex_moved_while_locked_is_released_where_it_is() {
    let mutex = RawAsymMutex::<Private>::new();
    for _ in 0..3 {
        let token = mutex.lock();
        // SAFETY: locked the line before.
        unsafe { mutex.unlock(token) };
    }
    let token = mutex.lock();
    let far = Box::new([RawAsymMutex::<Private>::new(), mutex]);
    // SAFETY: the token is of the mutex, which lies elsewhere now.
    unsafe { far[1].unlock(token) };
    assert!(!far[1].is_locked());
}
