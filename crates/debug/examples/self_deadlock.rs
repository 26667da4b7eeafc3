//! A thread that asks for a lock that it holds: the program of the guide. It panics.

// Model worlds have no checked locks.
#![cfg_attr(any(ulocks_loom, ulocks_vm), no_main)]
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use ulocks_debug::Mutex;

static CACHE: Mutex<Vec<u32>> = Mutex::new(Vec::new());

fn insert(value: u32) {
    let mut cache = CACHE.lock();
    if !contains(value) {
        cache.push(value);
    }
}

fn contains(value: u32) -> bool {
    CACHE.lock().contains(&value)
}

fn main() {
    let result = std::thread::spawn(|| insert(7)).join();
    let panic = result.expect_err("a self-deadlock is reported");
    let report = panic.downcast_ref::<String>().expect("the report is the message");
    println!("{report}");
    assert!(report.contains("self-deadlock"));
}
