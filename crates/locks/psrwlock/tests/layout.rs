//! What the types promise of their memory: size, alignment, all-zero, constness; and which threads
//! they may go to.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::cell::Cell;
use ulocks_core::meter::Counted;
use ulocks_core::raw::RawRwLock as _;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_core::task::AsyncRwLockUpgradableReadGuard;
use ulocks_core::{Private, Shared};
use ulocks_psrwlock::signal::{Hard, Unmasked};
use ulocks_psrwlock::{
    BULK, ByClass as _, Central, Checked, Configuration, Eager, HANDLER, MappedPsRwLockReadGuard, NESTED,
    Nested, PhaseFair, PsRwLock, PsRwLockReadGuard, PsRwLockWith, PsRwLockWriteGuard, RawPsRwLock, ReadToken,
    Sifted, State, URGENT, Urgent,
};
use ulocks_testkit as _;

const THREE: u8 = BULK | URGENT | NESTED;
type InRows = Sifted<THREE, Private, PhaseFair, Eager>;

static IN_A_STATIC: PsRwLock<()> = PsRwLock::new(());
static WITH_HANDLERS: PsRwLockWith<u32, Sifted<{ THREE | HANDLER }>> = PsRwLockWith::new(1);
static BETWEEN_PROCESSES: PsRwLockWith<u32, Shared> = PsRwLockWith::new(2);
static IN_ROWS: PsRwLockWith<u32, InRows> = PsRwLockWith::new(3);
static UNMASKED: PsRwLockWith<u32, Sifted<BULK, Private<NoSpin>, PhaseFair, Central, Unmasked, Checked>> =
    PsRwLockWith::new(4);
static MASKED_BY_THE_KERNEL: PsRwLockWith<
    u32,
    Sifted<{ BULK | HANDLER }, Private, PhaseFair, Central, Hard>,
> = PsRwLockWith::new(5);

const _: () = assert!(size_of::<RawPsRwLock>() == 16 && align_of::<RawPsRwLock>() == 8);
const _: () = assert!(size_of::<RawPsRwLock<Sifted<BULK, Shared>>>() == 16);
const _: () = assert!(size_of::<RawPsRwLock<Sifted<{ THREE | HANDLER }, Private<Patience<3_000>>>>>() == 16);
const _: () = assert!(
    size_of::<RawPsRwLock<Sifted<THREE, Private<Adaptive, Counted>>>>()
        == (16 + size_of::<Counted>()).next_multiple_of(8)
);
const _: () = assert!(size_of::<PsRwLock<()>>() == 16 && size_of::<PsRwLock<u64>>() == 24);
const _: () = assert!(size_of::<RawPsRwLock<InRows>>() == 16);
const _: () = assert!(size_of::<State>() == 8 && size_of::<ReadToken>() <= 4);
const _: () = assert!(
    size_of::<AsyncRwLockUpgradableReadGuard<'_, RawPsRwLock, u8>>() == size_of::<&PsRwLock<u8>>(),
    "the token that a task's guard keeps for its upgrade is nothing"
);

#[test]
fn lives_in_a_static() {
    drop(IN_A_STATIC.write());
    assert!(!IN_A_STATIC.is_locked());
    let held = WITH_HANDLERS.read_in::<Nested>();
    assert!(WITH_HANDLERS.is_locked() && !WITH_HANDLERS.is_locked_exclusive());
    let sum = *held + *BETWEEN_PROCESSES.read_in::<Urgent>() + *IN_ROWS.read() + *UNMASKED.read();
    assert_eq!(sum + *MASKED_BY_THE_KERNEL.read(), 1 + 2 + 3 + 4 + 5);
    *IN_ROWS.write() += 1;
    *MASKED_BY_THE_KERNEL.write() += 1;
}

#[test]
fn new_is_all_zero() {
    /// A lock with counters of so many bytes.
    fn check<D: Configuration>(counters: usize) {
        let new = RawPsRwLock::<D>::new();
        let words = (&raw const new).cast::<u32>();
        let counters_at = size_of_val(&new) / 4 - counters / 4;
        for word in (0..4).chain(counters_at..counters_at + counters / 4) {
            // SAFETY: this word is none of those between the parts: it is initialised, and inside
            // of `new`.
            assert_eq!(unsafe { words.add(word).read() }, 0);
        }
    }
    check::<Sifted>(0);
    check::<Sifted<{ THREE | HANDLER }, Private<Adaptive, Counted>>>(size_of::<Counted>());
    check::<Sifted<{ BULK | URGENT }, Shared<NoSpin>>>(0);
}

#[test]
fn a_forgotten_guard_leaves_it_locked_and_it_may_be_moved() {
    let lock = PsRwLock::new(String::from("kept"));
    std::mem::forget(lock.read());
    let moved = Box::new(lock);
    assert!(moved.is_locked() && moved.try_write().is_none() && moved.try_read().is_some());
    std::mem::forget(moved.try_read_in::<Urgent>());
    assert_eq!(moved.into_inner(), "kept");
    let lock = PsRwLock::new(String::from("kept"));
    std::mem::forget(lock.write());
    let moved = Box::new(lock);
    assert!(moved.try_read().is_none() && moved.try_read_in::<Nested>().is_none());
    assert_eq!(moved.into_inner(), "kept");
}

/// Also a reader that is counted in a row: the lock takes its row along.
#[test]
fn a_forgotten_guard_in_a_row_leaves_it_locked_and_it_may_be_moved() {
    let lock = PsRwLockWith::<u32, InRows>::new(3);
    drop(lock.read()); // gets the row
    std::mem::forget(lock.read());
    assert!(lock.is_locked() && lock.try_write().is_none());
    let moved = Box::new(lock);
    assert!(moved.is_locked() && moved.try_write().is_none());
    assert!(moved.try_write_for(std::time::Duration::from_millis(1)).is_none());
    assert_eq!(*moved.try_read().unwrap(), 3);
    // Another one at the old place is another lock.
    let other = PsRwLockWith::<u32, InRows>::new(4);
    drop(other.read());
    drop(other.read());
    *other.write() += 1;
    assert_eq!(moved.into_inner() + other.into_inner(), 8);
}

/// Rows come back: there are fewer than these locks.
#[test]
fn a_lock_that_is_dropped_gives_its_row_back() {
    for _ in 0..1_000 {
        let lock = PsRwLockWith::<u32, InRows>::new(0);
        drop(lock.read());
        let at_slot = lock.read();
        assert_eq!(lock.state(), State::UNLOCKED, "the reader is in a row");
        drop(at_slot);
    }
}

/// As with std's: a lock goes to other threads if its data may, is shared if readers there may see
/// that, and guards stay where they are, which the documentation of the crate shows.
#[test]
fn who_may_go_to_other_threads() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<PsRwLock<Cell<u32>>>();
    sync::<PsRwLock<Vec<u32>>>();
    sync::<PsRwLockWith<u32, InRows>>();
    sync::<PsRwLockReadGuard<'_, u32>>();
    sync::<PsRwLockWriteGuard<'_, u32, InRows>>();
    sync::<MappedPsRwLockReadGuard<'_, u32>>();
}

#[test]
fn it_says_what_it_is() {
    let lock = RawPsRwLock::<Sifted<THREE, Private<NoSpin, Counted>>>::new();
    lock.write();
    assert!(
        format!("{lock:?}")
            .starts_with("RawPsRwLock { state: level=3|OWNED counts=0x0, meter: Snapshot { acquired: 1, ")
    );
    let lock = PsRwLock::new(7);
    assert_eq!(format!("{lock:?}"), "RwLock { data: 7 }");
    assert_eq!(format!("{:?}", *lock.read()), "7");
}
