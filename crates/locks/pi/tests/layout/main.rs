//! What the types promise of their memory: size, alignment, all-zero, constness.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use ulocks_core::spin::Patience;
use ulocks_core::{Private, Shared};
use ulocks_pi::{PiCondvar, PiMutex, PiMutexWith, RawPiMutex};
use ulocks_testkit as _;

static IN_A_STATIC: PiMutex<()> = PiMutex::new(());
static CONDVAR: PiCondvar = PiCondvar::new();
const _: () = assert!(size_of::<RawPiMutex>() == 4 && align_of::<RawPiMutex>() == 4);
const _: () = assert!(size_of::<RawPiMutex<Shared>>() == 4);
const _: () = assert!(size_of::<RawPiMutex<Private<Patience<3_000>>>>() == 4);
const _: () = assert!(size_of::<PiMutex<()>>() == 4 && size_of::<PiMutex<u32>>() == 8);
const _: () = assert!(size_of::<PiCondvar>() == 8);

#[test]
fn lives_in_a_static() {
    let held = IN_A_STATIC.lock().unwrap();
    assert!(IN_A_STATIC.is_locked());
    drop(held);
    assert!(!IN_A_STATIC.is_locked());
    assert_eq!(CONDVAR.notify_all(&IN_A_STATIC), Ok(0));
}

#[test]
fn a_forgotten_guard_leaves_it_locked_and_it_may_be_moved() {
    let mutex = PiMutex::new(String::from("kept"));
    std::mem::forget(mutex.lock().unwrap());
    let moved = Box::new(mutex);
    assert!(moved.is_locked() && moved.try_lock().unwrap().is_none());
    assert_eq!(moved.into_inner(), "kept");
}

#[test]
fn shows_what_it_protects() {
    let mutex = PiMutexWith::<u32, Shared>::from(7);
    assert_eq!(format!("{mutex:?}"), "PiMutex { data: 7 }");
    let held = mutex.lock().unwrap();
    assert_eq!(format!("{mutex:?}"), "PiMutex { data: <locked> }");
    drop(held);
    assert_eq!(format!("{:?}", mutex.raw().state()), "UNLOCKED");
    let mut mutex = mutex;
    *mutex.get_mut() += 1;
    assert_eq!(*mutex.as_infallible().lock(), 8);
}
