//! The asymmetric mutex.

use std::mem::MaybeUninit;
use ulocks_core::meter::Counted;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::spin::{Adaptive, NoSpin};
use ulocks_core::{Policy, Private, Shared};
use ulocks_unfair::{AsymMutex, RawAsymMutex};

static IN_A_STATIC: AsymMutex<()> = AsymMutex::new(());
const _: () = assert!(size_of::<RawAsymMutex>() == 4 && align_of::<RawAsymMutex>() == 4);
const _: () = assert!(size_of::<RawAsymMutex<Shared>>() == 4);
const _: () = assert!(size_of::<AsymMutex<()>>() == 4 && size_of::<AsymMutex<u32>>() == 8);

#[test]
fn lives_in_a_static() {
    let held = IN_A_STATIC.lock();
    assert!(IN_A_STATIC.is_locked());
    drop(held);
    assert!(!IN_A_STATIC.is_locked());
}

#[test]
fn zeroed_memory_is_an_unlocked_mutex() {
    fn check<P: Policy>() {
        // SAFETY: that every field is valid when all zero is the promise this test is for; the type
        // has no niche.
        let mutex = unsafe { MaybeUninit::<RawAsymMutex<P>>::zeroed().assume_init() };
        assert!(!mutex.is_locked());
        let token = mutex.try_lock().expect("free");
        assert!(mutex.try_lock().is_none());
        // SAFETY: locked two lines above.
        unsafe { mutex.unlock(token) };
        assert!(!mutex.is_locked());
    }
    check::<Private>();
    check::<Shared>();
    check::<Private<NoSpin, Counted>>();
}

#[test]
fn new_is_all_zero() {
    fn bytes<P: Policy>() -> Vec<u8> {
        let mutex = RawAsymMutex::<P>::new();
        let size = size_of_val(&mutex);
        // SAFETY: the bytes of an initialised value without padding: a word, and counters of a
        // multiple of its size.
        unsafe { std::slice::from_raw_parts((&raw const mutex).cast::<u8>(), size) }.to_vec()
    }
    assert_eq!(bytes::<Private>(), [0; 4]);
    assert_eq!(bytes::<Shared>(), [0; 4]);
}

#[test]
fn a_forgotten_guard_leaves_it_locked_and_it_may_be_moved() {
    let mutex = AsymMutex::new(String::from("kept"));
    std::mem::forget(mutex.lock());
    let moved = Box::new(mutex);
    assert!(moved.is_locked() && moved.try_lock().is_none());
    assert_eq!(moved.into_inner(), "kept");
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

#[test]
fn counts_what_happened() {
    let mutex = RawAsymMutex::<Private<Adaptive, Counted>>::new();
    for _ in 0..3 {
        let token = mutex.lock();
        // SAFETY: locked the line before.
        unsafe { mutex.unlock(token) };
    }
    mutex.try_lock().expect("free");
    assert!(mutex.try_lock().is_none());
    let counted = mutex.meter().snapshot();
    assert_eq!((counted.acquired, counted.contended, counted.slept, counted.woke), (4, 0, 0, 0));
    assert_eq!(mutex.meter().reset(), counted);
}
