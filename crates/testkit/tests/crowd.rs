//! The crowd passes on the sound lock, and an allocation or a wake-up of one that waits is seen.
#![cfg(world = "machine")]

use std::hint::black_box;
use std::time::Duration;
use ulocks_core::raw::RawMutex;
use ulocks_core::time::Deadline;
use ulocks_testkit::plain::Plain;
use ulocks_testkit::plain::rw::PlainRw;
use ulocks_testkit::{crowd, rw};

#[global_allocator]
static COUNTING: ulocks_testkit::allocations::Counting = ulocks_testkit::allocations::Counting;

/// A lock that allocates when it is taken already.
struct Greedy(Plain);

ulocks_core::initial!([] Greedy = Self(Plain::new()));

// SAFETY: all is passed on to a sound lock.
unsafe impl RawMutex for Greedy {
    type Scope = <Plain as RawMutex>::Scope;
    type Token = ();
    type Condvar = ulocks_core::condvar::Sequence<Self>;
    ulocks_testkit::passes_on! { 0: try_lock, lock_until, unlock, is_locked }

    fn lock(&self) {
        if self.0.try_lock().is_none() {
            drop(black_box(vec![0_u8; 100]));
            self.0.lock();
        }
    }
}

/// A lock whose sleepers look at it twice a second.
struct Restless(Plain);

ulocks_core::initial!([] Restless = Self(Plain::new()));

// SAFETY: all is passed on to a sound lock.
unsafe impl RawMutex for Restless {
    type Scope = <Plain as RawMutex>::Scope;
    type Token = ();
    type Condvar = ulocks_core::condvar::Sequence<Self>;
    ulocks_testkit::passes_on! { 0: try_lock, lock_until, unlock, is_locked }

    fn lock(&self) {
        while self.0.lock_until(Deadline::after(Duration::from_millis(500))).is_none() {}
    }
}

#[test]
fn a_sound_lock_bears_ten_thousand() {
    crowd::ten_thousand_wait::<Plain>().check();
}

#[test]
fn a_sound_reader_writer_lock_bears_ten_thousand() {
    rw::crowd::ten_thousand_wait::<PlainRw>().check();
}

#[test]
fn allocations_of_those_who_wait_are_counted() {
    let found = crowd::wait_for_lock::<Greedy>(200);
    assert_eq!((found.wanted, found.waited, found.allocations), (200, 200, 200));
}

#[test]
#[should_panic(expected = "sleepers of a held lock wake by themselves")]
fn a_lock_whose_sleepers_poll_is_found() {
    crowd::wait_for_lock::<Restless>(200).check();
}
