//! The mutex in two bits of a byte.

use std::sync::Barrier;
use ulocks_core::Private;
use ulocks_core::meter::Counted;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_core::sync::AtomicU8;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_testkit::stress;
use ulocks_testkit::suite::{self, Effort};
use ulocks_unfair::{ByteCondvar, ByteMutex, RawByteMutex};

// Each way of waiting: they leave by different doors.
ulocks_testkit::stress_tests! {
    Effort::FULL;
    RawByteMutex<Private>,
    RawByteMutex<Private<NoSpin>>,
    RawByteMutex<Private<Patience<20_000>>>,
    RawByteMutex<Private<Adaptive, Counted>>,
}

#[test]
fn counters_agree_with_one_another() {
    suite::counters_agree::<RawByteMutex<Private<NoSpin, Counted>>>();
}

#[test]
fn excludes_by_other_bits() {
    suite::excludes::<RawByteMutex<Private, 0x80, 0x04>>(Effort::FULL);
    suite::excludes::<RawByteMutex<Private<NoSpin>, 0x80, 0x04>>(Effort::FULL);
    suite::excludes::<RawByteMutex<Private<Patience<20_000>>, 0x80, 0x04>>(Effort::FULL);
    suite::excludes::<RawByteMutex<Private<Adaptive, Counted>, 0x80, 0x04>>(Effort::FULL);
}

/// Holders count in one bit of the byte each and in a plain counter, others count in the other bits
/// without the lock: no flip is lost, and no flip lets two in.
#[test]
fn the_other_bits_may_change_all_the_time() {
    const FLIPS: usize = 20_001;
    const HOLDERS_BIT: u8 = 0b0001_0000;
    const OTHERS_BITS: [u8; 2] = [0b0100_0000, 0b0000_0010];
    type Lock = RawByteMutex<Private, 0b1000_0000, 0b0000_1000>;

    let byte = AtomicU8::new(0b0000_0001);
    // SAFETY: nothing but the bits of the lock changes in the byte except by the lock's `bits`. It
    // is the only lock there.
    let lock = unsafe { Lock::from_byte(&byte) };
    let flipped = AtomicU8::new(0);
    let start = Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                start.wait();
                for _ in 0..FLIPS {
                    lock.lock();
                    // What was read is still true when it is written: no other thread flips this
                    // bit.
                    let seen = lock.bits().load(Relaxed) & HOLDERS_BIT;
                    assert_eq!(lock.bits().fetch_xor(HOLDERS_BIT, Relaxed) & HOLDERS_BIT, seen);
                    flipped.store(flipped.load(Relaxed) ^ HOLDERS_BIT, Relaxed);
                    // SAFETY: locked above.
                    unsafe { lock.unlock(()) };
                }
            });
        }
        for bit in OTHERS_BITS {
            let (lock, start) = (&lock, &start);
            scope.spawn(move || {
                start.wait();
                for nth in 0..FLIPS {
                    let before = if nth % 2 == 0 { 0 } else { bit };
                    let bits = lock.bits();
                    let seen = match nth % 3 {
                        0 => bits.fetch_xor(bit, Relaxed),
                        1 if before == 0 => bits.fetch_or(bit, Relaxed),
                        1 => bits.fetch_and(!bit, Relaxed),
                        _ => loop {
                            let seen = bits.load(Relaxed);
                            if let Ok(seen) = bits.compare_exchange(seen, seen ^ bit, Relaxed, Relaxed) {
                                break seen;
                            }
                        },
                    };
                    assert_eq!(seen & bit, before, "a flip was lost");
                }
            });
        }
    });
    assert!(!lock.is_locked());
    assert_eq!(flipped.load(Relaxed), 0, "an even number of flips");
    assert_eq!(
        byte.load(Relaxed),
        0b0000_0001 | OTHERS_BITS[0] | OTHERS_BITS[1],
        "the lock left nothing behind"
    );
}

/// What the type is for: many objects, few of them contended at a time, all of them over one table
/// of queues.
#[test]
fn many_small_objects_share_the_queues() {
    let objects: Vec<ByteMutex<[u8; 3]>> = (0..1_000).map(|_| ByteMutex::new([0; 3])).collect();
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let objects = &objects;
            scope.spawn(move || {
                let mut random = stress::Random::new(seed);
                for _ in 0..20_000 {
                    // Half of the time one of ten, so that neighbours in memory are waited for at
                    // the same time.
                    let bound = if random.below(2) == 0 { 10 } else { 1_000 };
                    let mut count = objects[random.below(bound) as usize].lock();
                    *count = (u32::from_le_bytes([count[0], count[1], count[2], 0]) + 1).to_le_bytes()[..3]
                        .try_into()
                        .expect("three bytes");
                }
            });
        }
    });
    let total: u32 =
        objects.iter().map(|object| *object.lock()).map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0])).sum();
    assert_eq!(total, 80_000);
}

#[test]
fn a_condition_variable_works_with_it() {
    let turn = ByteMutex::new(0_u32);
    let changed = ByteCondvar::new();
    std::thread::scope(|scope| {
        for me in 0..3 {
            let (turn, changed) = (&turn, &changed);
            scope.spawn(move || {
                for _ in 0..500 {
                    let mut turn = turn.lock();
                    while *turn % 3 != me {
                        changed.wait(&mut turn);
                    }
                    *turn += 1;
                    changed.notify_all();
                }
            });
        }
    });
    assert_eq!(*turn.lock(), 1_500);
}
