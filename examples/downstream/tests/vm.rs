//! The event in the virtual machine:
//! `RUSTFLAGS="--cfg ulocks_vm" cargo test --features vm --target-dir target/vm`
#![cfg(all(ulocks_vm, feature = "vm"))]

use downstream::{Event, LOOKS_TOO_EARLY, RELAXED_SET};
use std::sync::Arc;
use std::time::Duration;
use ulocks_core::sync::UnsafeCell;
use ulocks_core::time::Deadline;
use ulocks_vm::explore::{Config, Verdict, explore, finds_bug};
use ulocks_vm::thread;

/// An event, and what it announces.
struct Letter<const BUG: u8> {
    event: Event<BUG>,
    text: UnsafeCell<u32>,
}

// SAFETY: `text` is written before the event is set and read after it was seen set; the machine
// reports it if not.
unsafe impl<const BUG: u8> Sync for Letter<BUG> {}
// SAFETY: as above.
unsafe impl<const BUG: u8> Send for Letter<BUG> {}

/// One thread writes and sets, `readers` wait and read, the last of them with a deadline.
fn letter<const BUG: u8>(readers: usize) -> impl Fn() {
    move || {
        let letter = Arc::new(Letter::<BUG> { event: Event::new(), text: UnsafeCell::new(0) });
        let readers: Vec<_> = (0..readers)
            .map(|reader| {
                let letter = Arc::clone(&letter);
                let timed = reader > 0;
                thread::spawn(move || {
                    let deadline = timed.then(|| Deadline::after(Duration::from_millis(1)));
                    if letter.event.wait(deadline) {
                        // SAFETY: the event was seen set.
                        assert_eq!(letter.text.with(|text| unsafe { *text }), 7);
                    } else {
                        assert!(timed);
                    }
                })
            })
            .collect();
        // SAFETY: the event is not set, so no thread reads.
        letter.text.with_mut(|text| unsafe { *text = 7 });
        letter.event.set();
        for reader in readers {
            reader.join().unwrap();
        }
    }
}

#[test]
fn every_execution_of_two_threads_is_right() {
    assert!(explore(Config::exhaustive(), letter::<0>(1)).complete);
}

#[test]
fn executions_of_five_threads_are_right() {
    explore(Config::sampled(10_000), letter::<0>(4));
}

#[test]
fn a_wake_up_that_is_decided_too_early_is_missed() {
    let failure = finds_bug(Config::exhaustive(), letter::<LOOKS_TOO_EARLY>(1));
    assert!(matches!(failure.verdict, Verdict::LostWakeUp(_)), "{failure}");
}

#[test]
fn an_event_that_publishes_nothing_is_a_race() {
    let failure = finds_bug(Config::exhaustive(), letter::<RELAXED_SET>(1));
    assert!(matches!(failure.verdict, Verdict::Race(_)), "{failure}");
}
