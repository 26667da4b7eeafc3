//! A thread of a model that does not come back, or ends the process, is named.

use std::process::Command;
use std::sync::{Arc, Mutex};
use ulocks_vm::explore::{Config, explore};
use ulocks_vm::sync::AtomicU32;
use ulocks_vm::sync::Ordering::Relaxed;
use ulocks_vm::thread;

/// What the tests run in a process of their own.
#[test]
fn in_a_process_of_its_own() {
    let model: fn() = match std::env::var("MODEL").as_deref() {
        Ok("std") => || {
            let shared = Arc::new((Mutex::new(()), AtomicU32::new(0)));
            let other = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let _guard = shared.0.lock();
                    shared.1.fetch_add(1, Relaxed);
                })
            };
            let guard = shared.0.lock();
            shared.1.fetch_add(1, Relaxed);
            drop(guard);
            other.join().unwrap();
        },
        Ok("loop") => || {
            AtomicU32::new(0).store(1, Relaxed);
            loop {
                std::hint::spin_loop();
            }
        },
        Ok("exit") => || {
            AtomicU32::new(0).store(1, Relaxed);
            std::process::exit(0);
        },
        Ok("abort") => || {
            AtomicU32::new(0).store(1, Relaxed);
            std::process::abort();
        },
        _ => return,
    };
    crate::discard(explore(Config::exhaustive(), model));
}

/// What the run prints; it must not pass.
fn printed(model: &str) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "watch::in_a_process_of_its_own", "--nocapture"]);
    let output = command.env("MODEL", model).env("ULOCKS_VM_PATIENCE", "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{text}");
    text
}

#[test]
fn a_thread_that_blocks_in_std_is_named_with_its_last_operation() {
    let text = printed("std");
    assert!(text.contains("has not come back for 1 s: does it block in std"), "{text}");
    assert!(text.contains("thread 1, since it has started"), "{text}");
}

#[test]
fn a_thread_that_loops_without_an_operation_is_named_with_its_last_one() {
    let text = printed("loop");
    assert!(text.contains("thread 0, since ") && text.contains("watch.rs:"), "{text}");
}

#[test]
fn a_model_that_ends_the_process_does_not_pass() {
    let text = printed("exit");
    assert!(
        text.contains("a model ends the process, in thread 0, since ") && text.contains("watch.rs:"),
        "{text}"
    );
}

#[test]
fn a_model_that_aborts_is_named() {
    let text = printed("abort");
    assert!(text.contains("a model aborts, in thread 0, since ") && text.contains("watch.rs:"), "{text}");
}
