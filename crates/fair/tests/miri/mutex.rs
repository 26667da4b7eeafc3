//! The mutex.

use std::time::Duration;
use ulocks_core::spin::{NoSpin, Patience};
use ulocks_core::{Policy, Private, Shared};
use ulocks_fair::{FairCondvar, FairMutex, Line, RawFairMutex};
use ulocks_testkit::model;

fn clients<P: Policy<Scope: Line>>() {
    model::exclusion::<RawFairMutex<P>>(3);
    model::no_lost_wake::<RawFairMutex<P>>(3, 20);
    model::timeout_vs_unlock::<RawFairMutex<P>>(3);
    model::last_unlocker_frees::<RawFairMutex<P>>(3);
    model::try_lock_coherence::<RawFairMutex<P>>(3);
}

#[test]
fn the_mutex_serves_its_clients() {
    clients::<Private>();
    clients::<Private<NoSpin>>();
    clients::<Shared<Patience<1_000>>>();
    clients::<Shared<NoSpin>>();
}

#[test]
fn the_typed_face_hands_data_over() {
    let slot = FairMutex::new(None::<Box<u32>>);
    let filled = FairCondvar::new();
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
