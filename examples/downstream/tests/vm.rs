//! The event in the virtual machine.
#![cfg(all(ulocks_vm, feature = "vm"))]

use event::Event;
use std::sync::Arc;
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_vm::explore::{Config, explore};
use ulocks_vm::thread;

/// One thread writes a number and sets the event. The others wait, and then read the number.
fn published(readers: usize) {
    let (event, number) = (Arc::new(Event::new()), Arc::new(AtomicU32::new(0)));
    let readers: Vec<_> = (0..readers)
        .map(|_| {
            let (event, number) = (Arc::clone(&event), Arc::clone(&number));
            thread::spawn(move || {
                event.wait();
                assert_eq!(number.load(Relaxed), 7);
            })
        })
        .collect();
    number.store(7, Relaxed);
    event.set();
    for reader in readers {
        reader.join().unwrap();
    }
}

#[test]
fn every_execution_with_two_readers_is_right() {
    assert!(explore(Config::exhaustive(), || published(2)).complete);
}

#[test]
fn executions_with_four_readers_are_right() {
    explore(Config::sampled(10_000), || published(4));
}
