//! Condition variables: a crowd that waits for a notification.

use std::sync::Arc;
use ulocks_core::raw::RawMutex;
use ulocks_core::{Private, Shared, api};
use ulocks_testkit::crowd;
use ulocks_unfair::RawThroughputMutex;

fn wait<L: RawMutex + Send + Sync + 'static>() {
    let all = Arc::new((api::Mutex::<L, bool>::default(), api::Condvar::<L>::default()));
    let users = Arc::clone(&all);
    let pass = move || {
        let (open, opened) = &*users;
        let mut open = open.lock();
        while !*open {
            opened.wait(&mut open);
        }
    };
    let crowd = crowd::wait(2_000, pass, || {
        *all.0.lock() = true;
        all.1.notify_all();
    });
    crowd.check();
}

#[test]
fn thousands_wait_for_a_notification_and_allocate_nothing() {
    wait::<RawThroughputMutex<Private>>();
    wait::<ulocks_unfair::RawBargingMutex<Shared>>();
}
