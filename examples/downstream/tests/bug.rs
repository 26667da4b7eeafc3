//! An event with a mistake, which the virtual machine finds.
#![cfg(all(ulocks_vm, feature = "vm"))]

use std::sync::Arc;
use ulocks_core::futex::{Futex, Local};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_vm::explore::{Config, finds_bug};
use ulocks_vm::thread;

const CLEAR: u32 = 0;
const AWAITED: u32 = 1;
const SET: u32 = 2;

struct Event(Futex<Local>);

impl Event {
    /// The mistake: it looks for waiters before it sets the event.
    fn set(&self) {
        let key = self.0.key();
        let before = self.0.load(Relaxed);
        self.0.store(SET, Release);
        if before == AWAITED {
            key.wake(u32::MAX);
        }
    }

    fn wait(&self) {
        while self.0.compare_exchange(CLEAR, AWAITED, Relaxed, Acquire) != Err(SET) {
            self.0.wait(AWAITED, None);
        }
    }
}

#[test]
fn a_wake_up_that_is_decided_too_early_is_missed() {
    let failure = finds_bug(Config::exhaustive(), || {
        let event = Arc::new(Event(Futex::new(CLEAR)));
        let waiter = {
            let event = Arc::clone(&event);
            thread::spawn(move || event.wait())
        };
        event.set();
        waiter.join().unwrap();
    });
    assert_eq!(failure.verdict.kind(), "lost wake-up");
}
