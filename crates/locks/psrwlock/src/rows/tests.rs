//! Hints, and what becomes of a row that a lock does not have any more.

use super::*;
use crate::class::BULK;
use crate::configuration::{PhaseFair, Sifted};
use crate::nesting::Unchecked;
use crate::readers::Eager;
use core::mem::MaybeUninit;
use core::task::{Context, Waker};
use std::sync::Mutex;
use ulocks_core::Private;
use ulocks_core::raw::{RawRwLock as _, RawRwLockAsync as _};
use ulocks_core::signal::Soft;

type Lock = RawPsRwLock<Sifted<BULK, Private, PhaseFair, Eager, Soft, Unchecked>>;

/// For tests that look at hints: locks share them.
static HINTED: Mutex<()> = Mutex::new(());

/// A row, and then a lock at the place of the one that has it. What the two are.
fn moved(place: &mut MaybeUninit<Lock>) -> (Lock, &Lock) {
    let lock = place.write(Lock::new());
    let token = lock.read();
    // SAFETY: it is read.
    unsafe { lock.unlock_read(token) };
    assert!(lock.row() != 0 && lock.hint_has_row());
    // SAFETY: written above, and written over before it is used there again.
    let moved = unsafe { place.assume_init_read() };
    (moved, place.write(Lock::new()))
}

#[test]
fn a_hint_of_a_lock_that_was_moved_is_taken_back() {
    let _alone = HINTED.lock();
    let mut place = MaybeUninit::uninit();
    let (_moved, reader) = moved(&mut place);
    assert!(reader.hinted() != 0);
    assert_eq!(reader.read_at_row(), None);
    assert_eq!(reader.hinted(), 0, "each read of this lock goes to the row of another");
    let (_moved, writer) = moved(&mut place);
    assert!(writer.hinted() != 0);
    assert!(writer.write_at_once(), "no write of this lock is at once");
    writer.unlock_write_at();
    assert_eq!(writer.hinted(), 0);
}

#[test]
fn a_lock_that_was_idle_for_an_hour_gets_a_row_again() {
    const HOUR: u64 = 3_600_000_000_000;
    let _alone = HINTED.lock();
    let lock = RawPsRwLock::<Sifted<BULK>>::new();
    lock.ask_for_row(State(RawPsRwLock::<Sifted<BULK>>::LAYOUT.one(0))); // it has met a reader
    let number = lock.row();
    assert!(number != 0);
    let row = Row::of(number);
    row.since.store(now().saturating_sub(HOUR), Relaxed);
    row.writes.store(WRITES - 1, Relaxed);
    // The sixteenth write, and no read.
    lock.judge_row(number, row.arrivals());
    assert_eq!(lock.row(), 0);
    let until = lock.hint().until.swap(0, Relaxed);
    assert!(until <= now() + LONGEST_WITHOUT, "it gets none until {until}");
}

/// By an attempt to write, to upgrade, to exclude: the first step of each timed write, too.
#[test]
fn a_lock_that_is_written_by_attempts_gives_its_row_back() {
    type Lock = RawPsRwLock<Sifted<BULK>>;
    let writes: [fn(&Lock); 3] = [
        |lock| {
            assert!(lock.try_write_at());
            lock.unlock_write_at();
        },
        |lock| {
            assert!(lock.try_own_to_read() && lock.try_upgrade_at());
            lock.unlock_write_at();
        },
        |lock| {
            assert!(lock.try_own_to_read() && lock.try_sift_to(1));
            lock.unlock_upgradable_at();
        },
    ];
    let _alone = HINTED.lock();
    for (nth, write) in writes.iter().enumerate() {
        let lock = Lock::new();
        lock.hint().until.store(0, Relaxed);
        lock.ask_for_row(State(Lock::LAYOUT.one(0))); // it has met a reader
        assert!(lock.row() != 0);
        (0..WRITES).for_each(|_| write(&lock));
        assert_eq!(lock.row(), 0, "way {nth}: it keeps a row in which nobody reads");
        lock.hint().until.store(0, Relaxed);
    }
}

/// The future of a write that waits for a reader at a slot is forgotten, and its lock dropped.
#[test]
fn a_task_that_was_forgotten_does_not_wait_in_a_row_of_another_lock() {
    let _alone = HINTED.lock();
    let lock = Lock::new();
    let (at_state, at_slot) = (lock.read(), lock.read());
    let slot = at_slot.slot.expect("the lock has a row");
    // SAFETY: both are read; the second reader leaves later.
    unsafe { lock.unlock_read(at_state) };
    let mut write = Box::pin(lock.write_async());
    assert!(write.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let waiting = || Row::of(slot.row).waiting.load(Relaxed);
    assert_eq!(waiting(), 1);
    core::mem::forget(write);
    // SAFETY: as above.
    unsafe { lock.unlock_read(at_slot) };
    drop(lock);
    assert_eq!(waiting(), 0, "each reader of the next lock wakes nobody by a system call");
}
