//! What happens once in a process, beside forks.

#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::thread;
use ulocks_profile::counting::Once;
use ulocks_testkit::Child;

/// A thread of the parent is inside for ever; the child must not wait for it.
#[test]
#[cfg_attr(miri, ignore = "forks")]
fn a_child_of_a_fork_does_not_wait_for_a_thread_that_it_does_not_have() {
    static ONCE: Once = Once::new();
    let (inside, is_inside) = std::sync::mpsc::channel();
    thread::spawn(move || {
        ONCE.call_once(|| {
            inside.send(()).unwrap();
            loop {
                thread::park();
            }
        });
    });
    is_inside.recv().unwrap();
    Child::runs(|| {
        let mut is_called = false;
        ONCE.call_once(|| is_called = true);
        assert!(is_called);
    })
    .ends();
}
