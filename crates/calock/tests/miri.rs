//! The model's clients on real threads, small enough for Miri, which looks for undefined behaviour
//! and leaks on the schedules it tries.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::time::Duration;
use ulocks_calock::{Calock, CalockCondvar, Every, RawCalock};
use ulocks_core::raw::RawMutex as Raw;
use ulocks_core::spin::{NoSpin, Patience};
use ulocks_core::{Private, Shared};
use ulocks_testkit::model;

fn clients<L: Raw + Send + Sync + 'static>() {
    model::exclusion::<L>(3);
    model::no_lost_wake::<L>(3, 20);
    model::timeout_vs_unlock::<L>(3);
    model::last_unlocker_frees::<L>(3);
    model::try_lock_coherence::<L>(3);
}

#[test]
fn the_calock_serves_its_clients() {
    clients::<RawCalock>();
    clients::<RawCalock<Private<NoSpin>>>();
    clients::<RawCalock<Private<NoSpin>, Every<1_000>>>();
    clients::<RawCalock<Shared<Patience<1_000>>, Every<20_000>>>();
}

#[test]
fn the_typed_face_hands_data_over() {
    let slot = Calock::new(None::<Box<u32>>);
    let filled = CalockCondvar::new();
    let sum: u32 = std::thread::scope(|scope| {
        let taker = scope.spawn(|| {
            let mut sum = 0;
            let mut slot = slot.lock();
            for _ in 0..5 {
                while slot.is_none() {
                    filled.wait_for(&mut slot, Duration::from_secs(60));
                }
                sum += *slot.take().expect("the loop has ended");
                filled.notify_all();
            }
            sum
        });
        for number in 1..=5 {
            let mut slot = slot.lock();
            while slot.is_some() {
                filled.wait(&mut slot);
            }
            *slot = Some(Box::new(number));
            filled.notify_all();
        }
        taker.join().expect("the taker does not panic")
    });
    assert_eq!(sum, 15);
}
