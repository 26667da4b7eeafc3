//! The throughput mutex.

use std::mem::MaybeUninit;
use ulocks_core::meter::Counted;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::slice::Extended;
use ulocks_core::spin::{Adaptive, NoSpin};
use ulocks_core::{Policy, Private, Shared};
use ulocks_unfair::{
    After, Bound, ExtendedThroughputMutex, HandOff, RawThroughputMutex, ThroughputMutex, ThroughputMutexWith,
};

static IN_A_STATIC: ThroughputMutex<()> = ThroughputMutex::new(());
static STRICT: ThroughputMutexWith<u32, Shared, HandOff> = ThroughputMutexWith::new(1);
const _: () = assert!(size_of::<RawThroughputMutex>() == 8 && align_of::<RawThroughputMutex>() == 4);
const _: () = assert!(size_of::<RawThroughputMutex<Shared, After<50_000>>>() == 8);
const _: () = assert!(size_of::<Extended<RawThroughputMutex>>() == 8);
const _: () = assert!(size_of::<ExtendedThroughputMutex<u32>>() == 12);
const _: () = assert!(size_of::<ThroughputMutex<()>>() == 8 && size_of::<ThroughputMutex<u32>>() == 12);

#[test]
fn lives_in_a_static() {
    let held = IN_A_STATIC.lock();
    assert!(IN_A_STATIC.is_locked());
    drop(held);
    assert!(!IN_A_STATIC.is_locked());
    assert_eq!(*STRICT.lock(), 1);
}

#[test]
fn zeroed_memory_is_an_unlocked_mutex_and_new_is_all_zero() {
    fn check<P: Policy, B: Bound>(size: usize) {
        // SAFETY: that every field is valid when all zero is the promise this test is for; the type
        // has no niche.
        let mutex = unsafe { MaybeUninit::<RawThroughputMutex<P, B>>::zeroed().assume_init() };
        assert!(!mutex.is_locked());
        mutex.try_lock().expect("free");
        assert!(mutex.try_lock().is_none());
        // SAFETY: locked two lines above.
        unsafe { mutex.unlock(()) };
        assert!(!mutex.is_locked());

        let new = RawThroughputMutex::<P, B>::new();
        // SAFETY: the bytes of an initialised value without padding: two words, and counters of a
        // multiple of their size.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const new).cast::<u8>(), size_of_val(&new)) };
        assert_eq!(bytes, vec![0; size]);
    }
    check::<Private, After>(8);
    check::<Shared, HandOff>(8);
    check::<Private<NoSpin, Counted>, After>(8 + size_of::<Counted>());
}

#[test]
fn a_forgotten_guard_leaves_it_locked_and_it_may_be_moved() {
    let mutex = ThroughputMutex::new(String::from("kept"));
    std::mem::forget(mutex.lock());
    let moved = Box::new(mutex);
    assert!(moved.is_locked() && moved.try_lock().is_none());
    assert_eq!(moved.into_inner(), "kept");
}

#[test]
fn counts_what_happened() {
    let mutex = RawThroughputMutex::<Private<Adaptive, Counted>>::new();
    for _ in 0..3 {
        mutex.lock();
        // SAFETY: locked the line before.
        unsafe { mutex.unlock(()) };
    }
    mutex.try_lock().expect("free");
    assert!(mutex.try_lock().is_none());
    let counted = mutex.meter().snapshot();
    assert_eq!((counted.acquired, counted.fast(), counted.contended, counted.slept), (4, 4, 0, 0));
}
