//! Clients of a lock in two bits of a byte: the other six are not its own.

use ulocks_core::Private;
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::sync::UnsafeCell;
use ulocks_testkit::thread::{Arc, with};
use ulocks_unfair::RawByteMutex;

/// The lock's bits are the second and the last.
type Lock = RawByteMutex<Private<NoSpin>, 0b0000_0010, 0b1000_0000>;

/// What the user writes into the byte: first, by a flip, and by a holder.
const FIRST: u8 = 0b0100_0000;
const FLIPPED: u8 = 0b0000_0001;
const BY_A_HOLDER: [u8; 2] = [0b0000_0100, 0b0000_1000];

struct Object {
    header: Lock,
    count: UnsafeCell<usize>,
}

// SAFETY: `count` is accessed under the lock only.
unsafe impl Sync for Object {}

/// Threads that lock an object and set a bit of its header each, beside one that flips a bit
/// without the lock: no bit is lost, and holders exclude one another although the byte changes
/// under them.
pub fn bits_survive(holders: usize) {
    assert!(holders <= BY_A_HOLDER.len());
    let object = Arc::new(Object { header: Lock::with_bits(FIRST), count: UnsafeCell::new(0) });
    let holders: Vec<_> = (0..holders)
        .map(|me| {
            with(&object, move |object| {
                object.header.lock();
                // SAFETY: the lock is held.
                object.count.with_mut(|count| unsafe { *count += 1 });
                object.header.bits().fetch_or(BY_A_HOLDER[me], Relaxed);
                // SAFETY: locked above.
                unsafe { object.header.unlock(()) };
            })
        })
        .collect();
    assert_eq!(object.header.bits().fetch_xor(FLIPPED, Relaxed) & FLIPPED, 0);
    let mut expected = FIRST | FLIPPED;
    for (holder, bit) in holders.into_iter().zip(BY_A_HOLDER) {
        holder.join().expect("a holder panicked");
        expected |= bit;
    }
    assert!(!object.header.is_locked(), "the lock is locked although its last holder released it");
    assert_eq!(object.header.bits().load(Relaxed), expected, "the user's bits were lost");
}

/// Threads without the lock that replace all bits, each as it finds them, while another takes the
/// lock and releases it: every replacement is based on the one before.
pub fn replacements_succeed_one_another(writers: usize) {
    let object = Arc::new(Object { header: Lock::with_bits(0), count: UnsafeCell::new(0) });
    let writers: Vec<_> = (0..writers)
        .map(|me| {
            with(&object, move |object| {
                let bits = object.header.bits();
                let mut seen = bits.load(Relaxed);
                while let Err(now) = bits.compare_exchange(seen, seen | BY_A_HOLDER[me], Relaxed, Relaxed) {
                    assert_ne!(now, seen, "it failed although the bits are those expected");
                    seen = now;
                }
                BY_A_HOLDER[me]
            })
        })
        .collect();
    object.header.lock();
    // SAFETY: locked above.
    unsafe { object.header.unlock(()) };
    let written = writers.into_iter().fold(0, |all, writer| all | writer.join().expect("a writer panicked"));
    assert_eq!(object.header.bits().swap(FIRST, Relaxed), written);
    assert_eq!(object.header.bits().load(Relaxed), FIRST);
}
