//! The model's clients on real threads, small enough for Miri, which looks for undefined behaviour
//! and leaks on the schedules it tries.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use ulocks_core::spin::{NoSpin, Patience};
use ulocks_core::{Private, Shared};
use ulocks_testkit::suite::clients;
use ulocks_testkit::tasks::{Mixed, Restless};
use ulocks_unfair::{
    BargingCondvar, BargingMutex, HandOff, RawAsymMutex, RawBargingMutex, RawThroughputMutex,
};

ulocks_testkit::miri_tests! {
    BargingMutex, BargingCondvar;
    RawBargingMutex<Private>, RawBargingMutex<Private<NoSpin>>, RawBargingMutex<Shared<Patience<1_000>>>,
}

#[test]
fn the_throughput_mutex_serves_its_clients() {
    clients::<RawThroughputMutex>();
    clients::<RawThroughputMutex<Private<NoSpin>, HandOff>>();
    clients::<RawThroughputMutex<Private<Patience<1_000>>, HandOff>>();
    clients::<Restless<RawThroughputMutex<Private<NoSpin>>>>();
    clients::<Mixed<RawThroughputMutex>>();
}

#[cfg(feature = "parking_lot")]
#[test]
fn the_mutex_in_a_byte_serves_its_clients() {
    clients::<ulocks_unfair::RawByteMutex>();
    clients::<ulocks_unfair::RawByteMutex<Private<NoSpin>, 0b0100_0000, 0b0010_0000>>();
}

#[cfg(feature = "parking_lot")]
#[test]
fn two_bits_of_a_byte_are_a_lock() {
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
    use ulocks_core::raw::RawMutex as _;

    let byte = AtomicU8::new(0b1000_0000);
    let mut count = 0;
    let counted = std::sync::atomic::AtomicPtr::new(&raw mut count);
    std::thread::scope(|scope| {
        for bit in [0b0100_0000, 0b0010_0000] {
            let (byte, counted) = (&byte, &counted);
            scope.spawn(move || {
                // SAFETY: the byte is changed by this one lock and by its `bits` only.
                let lock: &ulocks_unfair::RawByteMutex =
                    unsafe { ulocks_unfair::RawByteMutex::from_byte(byte) };
                for _ in 0..10 {
                    lock.lock();
                    // SAFETY: the count is accessed under the lock, until the threads are joined.
                    unsafe { *counted.load(Relaxed) += 1 };
                    lock.bits().fetch_xor(bit, Relaxed);
                    // SAFETY: locked above.
                    unsafe { lock.unlock(()) };
                }
                lock.bits().fetch_or(bit, Relaxed);
            });
        }
    });
    assert_eq!((count, byte.into_inner()), (20, 0b1110_0000));
}

#[test]
fn the_asymmetric_mutex_serves_its_clients() {
    clients::<RawAsymMutex>();
    clients::<RawAsymMutex<Private<NoSpin>>>();
}
