//! Checked locks as data, as lock_api has it for plain locks.

#![cfg(all(feature = "serde", not(any(ulocks_loom, ulocks_vm))))]

use std::panic::{AssertUnwindSafe, catch_unwind};
use ulocks_debug::{FairMutex, Mutex, ReentrantMutex, RwLock};
use ulocks_testkit as _;

#[test]
fn a_lock_is_its_data() {
    assert_eq!(serde_json::to_string(&Mutex::new(vec![1, 2])).unwrap(), "[1,2]");
    assert_eq!(serde_json::to_string(&RwLock::new("text")).unwrap(), "\"text\"");
    assert_eq!(serde_json::to_string(&ReentrantMutex::new(true)).unwrap(), "true");
    let locks: Vec<FairMutex<u32>> = serde_json::from_str("[3,4]").unwrap();
    assert_eq!(locks.into_iter().map(FairMutex::into_inner).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(*serde_json::from_str::<RwLock<u32>>("5").unwrap().read(), 5);
    assert_eq!(*serde_json::from_str::<ReentrantMutex<u32>>("6").unwrap().lock(), 6);
}

/// A lock of the data is not taken for one of the line that has read the data.
#[test]
fn the_class_of_a_lock_from_data_is_the_line_that_acquires_it_first() {
    let [first, second]: [Mutex<u32>; 2] = serde_json::from_str("[1,2]").unwrap();
    let other = Mutex::new(0);
    drop((first.lock(), other.lock()));
    drop((other.lock(), second.lock()));
    let panic = catch_unwind(AssertUnwindSafe(|| drop((other.lock(), first.lock())))).unwrap_err();
    assert!(panic.downcast_ref::<String>().unwrap().contains("inversion"));
}

#[test]
fn data_are_read_under_the_lock() {
    let held = Mutex::new(7);
    let _guard = held.lock();
    let panic = catch_unwind(AssertUnwindSafe(|| serde_json::to_string(&held))).unwrap_err();
    assert!(panic.downcast_ref::<String>().unwrap().contains("self-deadlock"));
}
