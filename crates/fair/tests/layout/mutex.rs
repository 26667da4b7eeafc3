//! The mutex.

use std::mem::MaybeUninit;
use ulocks_core::meter::Counted;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_core::{Private, Shared};
use ulocks_fair::{FairMutex, Line, RawFairMutex};

static IN_A_STATIC: FairMutex<()> = FairMutex::new(());
const _: () = assert!(size_of::<RawFairMutex>() == 8 && align_of::<RawFairMutex>() == 8);
const _: () = assert!(size_of::<RawFairMutex<Shared>>() == 8);
const _: () = assert!(size_of::<RawFairMutex<Private<Patience<3_000>>>>() == 8);
const _: () = assert!(size_of::<FairMutex<()>>() == 8 && size_of::<FairMutex<u64>>() == 16);

#[test]
fn lives_in_a_static() {
    let held = IN_A_STATIC.lock();
    assert!(IN_A_STATIC.is_locked());
    drop(held);
    assert!(!IN_A_STATIC.is_locked());
}

#[test]
fn zeroed_memory_is_an_unlocked_mutex() {
    fn check<P: ulocks_core::Policy<Scope: Line>>() {
        // SAFETY: that every field is valid when all zero is the promise this test is for; the type
        // has no niche.
        let mutex = unsafe { MaybeUninit::<RawFairMutex<P>>::zeroed().assume_init() };
        assert!(!mutex.is_locked());
        mutex.try_lock().expect("free");
        assert!(mutex.try_lock().is_none());
        // SAFETY: locked two lines above.
        unsafe { mutex.unlock(()) };
        assert!(!mutex.is_locked());
    }
    check::<Private>();
    check::<Shared>();
    check::<Private<NoSpin, Counted>>();
}

#[test]
fn new_is_all_zero() {
    fn bytes<P: ulocks_core::Policy<Scope: Line>>() -> Vec<u8> {
        let mutex = RawFairMutex::<P>::new();
        let size = size_of_val(&mutex);
        // SAFETY: the bytes of an initialised value without padding: a word, and counters of a
        // multiple of its size.
        unsafe { std::slice::from_raw_parts((&raw const mutex).cast::<u8>(), size) }.to_vec()
    }
    assert_eq!(bytes::<Private>(), [0; 8]);
    assert_eq!(bytes::<Shared>(), [0; 8]);
}

#[test]
fn a_forgotten_guard_leaves_it_locked_and_it_may_be_moved() {
    let mutex = FairMutex::new(String::from("kept"));
    std::mem::forget(mutex.lock());
    let moved = Box::new(mutex);
    assert!(moved.is_locked() && moved.try_lock().is_none());
    assert_eq!(moved.into_inner(), "kept");
}

#[test]
fn counts_what_happened() {
    let mutex = RawFairMutex::<Private<Adaptive, Counted>>::new();
    for _ in 0..3 {
        mutex.lock();
        // SAFETY: locked the line before.
        unsafe { mutex.unlock(()) };
    }
    mutex.try_lock().expect("free");
    assert!(mutex.try_lock().is_none());
    let counted = mutex.meter().snapshot();
    assert_eq!((counted.acquired, counted.contended, counted.slept, counted.woke), (4, 0, 0, 0));
    assert_eq!(mutex.meter().reset(), counted);
}
