//! The mutex in two bits of a byte.

use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;
use ulocks_core::Private;
use ulocks_core::meter::Counted;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::spin::{Adaptive, NoSpin};
use ulocks_unfair::{ByteBits as _, ByteMutex, ByteMutexGuard, ByteState, RawByteMutex};

ulocks_testkit::layout_tests! {
    ByteMutex;
    RawByteMutex<Private<Adaptive, Counted>>;
    RawByteMutex<Private>, RawByteMutex<Private<NoSpin>>, RawByteMutex<Private<Adaptive, Counted>>,
}

static WITH_BITS: RawByteMutex<Private, 1, 128> = RawByteMutex::with_bits(0b0111_1110);
const _: () = assert!(size_of::<RawByteMutex>() == 1 && align_of::<RawByteMutex>() == 1);
const _: () = assert!(size_of::<RawByteMutex<Private<NoSpin>, 64, 128>>() == 1);
const _: () = assert!(size_of::<ByteMutex<()>>() == 1 && size_of::<ByteMutex<u8>>() == 2);
const _: () = assert!(size_of::<ByteMutex<[u8; 7]>>() == 8 && size_of::<ByteMutex<u32>>() == 8);

#[test]
fn new_is_all_zero_and_a_lock_is_two_bits() {
    // SAFETY: the value is one initialised byte.
    assert_eq!(unsafe { std::mem::transmute::<RawByteMutex, u8>(RawByteMutex::new()) }, 0);
    for (bits, locked) in [(0, 0b01), (0b1111_1100, 0b1111_1101), (0b1010_0000, 0b1010_0001)] {
        let byte = AtomicU8::new(bits);
        // SAFETY: no other code knows the byte.
        let lock: &RawByteMutex = unsafe { RawByteMutex::from_byte(&byte) };
        lock.lock();
        assert_eq!(byte.load(Relaxed), locked);
        // SAFETY: locked above.
        unsafe { lock.unlock(()) };
        assert_eq!(byte.load(Relaxed), bits);
    }
}

#[test]
fn the_bits_of_a_static() {
    WITH_BITS.lock();
    assert!(WITH_BITS.is_locked());
    assert_eq!(WITH_BITS.bits().fetch_and(0b0000_0110, Relaxed), 0b0111_1110);
    assert!(WITH_BITS.is_locked(), "the lock's bits are not cleared with the others");
    // SAFETY: locked above.
    unsafe { WITH_BITS.unlock(()) };
    assert_eq!(WITH_BITS.bits().load(Relaxed), 0b0000_0110);
}

#[test]
fn a_guard_reaches_the_bits_and_may_be_forgotten() {
    let mutex = ByteMutex::new(String::from("kept"));
    let guard = mutex.lock();
    ByteMutexGuard::mutex(&guard).bits().fetch_or(0b100, Relaxed);
    std::mem::forget(guard);
    let moved = Box::new(mutex);
    assert!(moved.is_locked() && moved.try_lock().is_none());
    assert_eq!(moved.bits().load(Relaxed), 0b100);
    assert_eq!(moved.into_inner(), "kept");
}

#[test]
fn foreign_bits_are_refused_with_what_is_allowed() {
    let lock: RawByteMutex = RawByteMutex::new();
    let refusal = std::panic::catch_unwind(|| lock.bits().fetch_or(0b101, Relaxed)).unwrap_err();
    let said = refusal.downcast_ref::<String>().expect("a message");
    assert_eq!(said, "0b00000101 includes bits of the lock's: those in 0b11111100 are the user's");
    assert!(std::panic::catch_unwind(|| RawByteMutex::<Private>::with_bits(0b10)).is_err());
    assert!(!lock.is_locked() && lock.bits().load(Relaxed) == 0);
}

#[test]
fn exchanges_fail_for_the_users_bits_only() {
    let lock: RawByteMutex = RawByteMutex::with_bits(0b0100);
    lock.lock();
    assert_eq!(lock.bits().compare_exchange(0b1000, 0, Relaxed, Relaxed), Err(0b0100));
    assert_eq!(lock.bits().compare_exchange(0b0100, 0b1000, Relaxed, Relaxed), Ok(0b0100));
    assert_eq!(lock.bits().swap(0b1_0000, Relaxed), 0b1000);
    // SAFETY: locked above.
    unsafe { lock.unlock(()) };
    assert_eq!(lock.bits().load(Relaxed), 0b1_0000);
}

#[test]
fn it_says_what_it_is() {
    let lock: RawByteMutex = RawByteMutex::with_bits(0b0100);
    assert_eq!(
        format!("{lock:?} {:?}", lock.bits()),
        "RawByteMutex(UNLOCKED bits=0b00000100) UserBits(0b00000100)"
    );
    lock.lock();
    assert_eq!(format!("{lock:?}"), "RawByteMutex(LOCKED bits=0b00000100)");
    let states = [0b00, 0b01, 0b11, 0b10].map(|bits| format!("{:?}", ByteState::<0b01, 0b10>(bits)));
    assert_eq!(states, ["UNLOCKED", "LOCKED", "LOCKED|PARKED", "invalid(PARKED)"]);
}
