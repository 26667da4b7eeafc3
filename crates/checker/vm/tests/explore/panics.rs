//! A panic that the model catches is a part of it, and one that it does not catch is the verdict.

use crate::failure;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use ulocks_vm::explore::{Config, run};
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicU32, UnsafeCell, yield_now};
use ulocks_vm::thread;

struct Data(UnsafeCell<u32>);
unsafe impl Sync for Data {}

/// Unlocks when it goes.
struct Unlocks<'a>(&'a AtomicU32);

impl Drop for Unlocks<'_> {
    fn drop(&mut self) {
        self.0.store(0, Release);
    }
}

#[test]
fn a_panic_that_the_model_catches_has_its_clean_up_and_ends_nothing() {
    let report = run(&Config::exhaustive(), || {
        let lock = Arc::new(AtomicU32::new(0));
        let data = Arc::new(Data(UnsafeCell::new(0)));
        let add = |lock: &AtomicU32, data: &Data, panics: bool| {
            while lock.swap(1, Acquire) == 1 {
                yield_now();
            }
            let _guard = Unlocks(lock);
            data.0.with_mut(|data| unsafe { *data += 1 });
            assert!(!panics, "inside");
        };
        let other = {
            let (lock, data) = (Arc::clone(&lock), Arc::clone(&data));
            thread::spawn(move || {
                let caught = catch_unwind(AssertUnwindSafe(|| add(&lock, &data, true)));
                assert!(caught.is_err());
                add(&lock, &data, false);
            })
        };
        add(&lock, &data, false);
        other.join().unwrap();
        data.0.with(|data| unsafe { assert_eq!(*data, 3) });
    });
    let report = report.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(report.finished && report.executions > 2, "{report}");
    // What the drop does is not varied.
    assert!(report.bounds.stopped.is_some(), "{report}");
    assert!(!std::thread::panicking());
}

#[test]
fn the_story_of_a_panic_ends_where_it_begins() {
    let failure = run(&Config::exhaustive(), || {
        let word = AtomicU32::new(0);
        word.store(1, Relaxed);
        let _guard = Unlocks(&word);
        panic!("inside");
    });
    let failure = failure.expect_err("the model panics");
    assert_eq!(failure.verdict.kind(), "panic");
    assert!(failure.story.contains("panics: inside") && !failure.story.contains("Release"), "{failure}");
}

#[test]
fn what_goes_wrong_while_a_panic_unwinds_is_told_behind_it() {
    struct Waits(Arc<AtomicU32>);
    impl Drop for Waits {
        fn drop(&mut self) {
            while self.0.load(Acquire) == 0 {
                yield_now();
            }
        }
    }
    let failure = failure(&Config::exhaustive(), || {
        let _waits = Waits(Arc::new(AtomicU32::new(0)));
        panic!("inside");
    });
    let text = failure.verdict.to_string();
    assert_eq!(failure.verdict.kind(), "panic", "{text}");
    assert!(text.contains("inside") && text.contains("while it unwinds, deadlock"), "{text}");
}
