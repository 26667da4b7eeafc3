//! What is said of a panic that a model catches, and of one that comes up in another's way.

use crate::failure;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use ulocks_vm::explore::{Config, explore};
use ulocks_vm::sync::Ordering::{AcqRel, Acquire, Relaxed};
use ulocks_vm::sync::{Arc, AtomicPtr, AtomicU32, Mutex, Watch};
use ulocks_vm::thread;

/// The verdict on `model`, which has to say that.
#[track_caller]
fn says(text: &str, model: impl Fn() + 'static) {
    let verdict = failure(&Config::exhaustive(), model).verdict.to_string();
    assert!(verdict.starts_with("panic: ") && verdict.contains(text), "{verdict}");
}

/// The guard was due to unlock, and did nothing. So no thread waits for it for ever.
#[test]
fn a_panic_that_a_thread_catches_at_its_end_ends_the_run() {
    let panics = |lock: &Mutex<u32>| {
        let _ = catch_unwind(AssertUnwindSafe(|| {
            let _guard = lock.lock().unwrap();
            panic!("inside");
        }));
    };
    says("inside (crates", move || panics(&Mutex::new(0)));
    says("the model caught it", move || {
        let lock = Arc::new(Mutex::new(0));
        let other = Arc::clone(&lock);
        let other = thread::spawn(move || {
            panics(&other);
            std::mem::forget(other);
        });
        drop(lock.lock().unwrap());
        other.join().unwrap();
    });
}

/// Catches a panic as it is dropped.
struct Catches;

impl Drop for Catches {
    fn drop(&mut self) {
        let _ = catch_unwind(|| panic!("in the clean-up"));
    }
}

#[test]
fn the_panic_that_comes_out_is_the_one_that_is_told() {
    says("the first (", || {
        let _catches = Catches;
        panic!("the first");
    });
    says("the second", || {
        let _ = catch_unwind(|| panic!("the first"));
        resume_unwind(Box::new("the second"));
    });
    says("without a message (", || {
        let caught = catch_unwind(|| std::panic::panic_any(5)).unwrap_err();
        let _ = catch_unwind(|| panic!("the second"));
        resume_unwind(caught);
    });
}

#[test]
fn many_panics_may_be_caught() {
    let report = explore(Config::exhaustive(), || {
        for n in 0..100 {
            assert!(catch_unwind(|| panic!("{n}")).is_err());
        }
        AtomicU32::new(0).store(1, Relaxed);
    });
    assert!(report.complete, "{report}");
}

/// The payload goes with all that the model leaves.
#[test]
fn a_payload_whose_drop_panics_is_told_as_any_other() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("in the drop");
        }
    }
    says("without a message (", || std::panic::panic_any(Panics));
}

/// A list whose drop takes what is left, as those of stacks and queues do.
#[derive(Default)]
struct List(AtomicPtr<Node>);

struct Node {
    _value: Box<u32>,
    next: *mut Self,
}

impl List {
    fn push(&self, value: u32) {
        let node = Box::into_raw(Box::new(Node { _value: Box::new(value), next: self.0.load(Relaxed) }));
        self.0.store(node, Relaxed);
    }

    fn pop(&self) -> Option<Box<Node>> {
        let first = self.0.load(Acquire);
        // SAFETY: no other thread has the list.
        let next = unsafe { first.as_ref() }?.next;
        self.0.compare_exchange(first, next, AcqRel, Relaxed).unwrap();
        // SAFETY: from `push`, and out of the list now.
        Some(unsafe { Box::from_raw(first) })
    }
}

impl Drop for List {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

#[test]
fn a_drop_that_a_panic_runs_finds_what_it_has_done() {
    says("in the model", || {
        let list = List::default();
        [1, 2].into_iter().for_each(|value| list.push(value));
        panic!("in the model");
    });
}

/// The other thread is in the middle of its access, and does not go on.
#[test]
fn a_drop_that_a_panic_runs_may_access_what_another_thread_has() {
    struct Touches(Arc<Watch>);
    impl Drop for Touches {
        fn drop(&mut self) {
            self.0.open_write();
            self.0.end_write();
        }
    }
    says("in the model", || {
        let shared = Arc::new((Arc::new(Watch::new()), AtomicU32::new(0)));
        let other = Arc::clone(&shared);
        let _other = thread::spawn(move || {
            other.0.open_write();
            other.1.store(1, Relaxed);
            thread::park();
            other.0.close_write();
        });
        let _touches = Touches(Arc::clone(&shared.0));
        while shared.1.load(Relaxed) == 0 {}
        panic!("in the model");
    });
}
