//! A thread of a model that does not come back, or ends the process, is named.

use crate::with;
use std::os::unix::process::ExitStatusExt as _;
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
            let other = with(&shared, |shared| {
                let _guard = shared.0.lock();
                shared.1.fetch_add(1, Relaxed);
            });
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
        Ok("deep") => || {
            fn deep(n: u64) -> u64 {
                std::hint::black_box(if n == 0 { 0 } else { 1 + deep(n - 1) })
            }
            AtomicU32::new(0).store(1, Relaxed);
            let other = thread::spawn(|| _ = deep(10_000_000));
            other.join().unwrap();
        },
        Ok("large") => || {
            let zeros = [AtomicU32::new(0).load(Relaxed); 1 << 20];
            assert_eq!(std::hint::black_box(zeros)[5], 0);
        },
        Ok("fault") => || {
            AtomicU32::new(0).store(1, Relaxed);
            // SAFETY: none: the process is to end by the fault.
            unsafe { std::hint::black_box(std::ptr::without_provenance_mut::<u8>(8)).write(1) };
        },
        Ok("clean-up") => || {
            struct Panics;
            impl Drop for Panics {
                fn drop(&mut self) {
                    panic!("in the clean-up");
                }
            }
            AtomicU32::new(0).store(1, Relaxed);
            let _panics = Panics;
            panic!("the first");
        },
        Ok("waits") => || {
            struct Waits(AtomicU32);
            impl Drop for Waits {
                fn drop(&mut self) {
                    while self.0.load(Relaxed) == 1 {}
                }
            }
            let waits = Waits(AtomicU32::new(0));
            waits.0.store(1, Relaxed);
            panic!("while it waits");
        },
        Ok("cannot unwind") => || {
            extern "C" fn panics() {
                panic!("the only one");
            }
            let _ = std::panic::catch_unwind(|| panic!("caught before"));
            thread::spawn(|| {
                AtomicU32::new(0).store(1, Relaxed);
                panics();
            });
        },
        Ok("abort") => || {
            AtomicU32::new(0).store(1, Relaxed);
            std::process::abort();
        },
        _ => return,
    };
    crate::discard(explore(Config::exhaustive(), model));
}

fn command(model: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "watch::in_a_process_of_its_own"]);
    command.env("MODEL", model).env("ULOCKS_VM_PATIENCE", "1");
    command
}

/// What the run prints, though the test harness keeps what a test prints; it must not pass.
fn printed(model: &str) -> String {
    let output = command(model).output().unwrap();
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

/// A drop waits for another thread, which does not go on any more.
#[test]
fn a_panic_whose_clean_up_does_not_come_back_is_told() {
    let text = printed("waits");
    assert!(text.contains("has not come back for 1 s") && text.contains("panic: while it waits ("), "{text}");
    assert!(text.contains("ULOCKS_VM_REPLAY="), "{text}");
    assert!(!text.contains("a model aborts"), "{text}");
}

#[test]
fn a_model_that_ends_the_process_does_not_pass() {
    let text = printed("exit");
    assert!(
        text.contains("a model ends the process, in thread 0, since ") && text.contains("watch.rs:"),
        "{text}"
    );
}

/// What the replay prints that the run prints.
fn replayed(model: &str) -> String {
    let text = printed(model);
    let replay =
        text.lines().find_map(|line| line.strip_prefix("to repeat it, with its story: ULOCKS_VM_REPLAY="));
    let mut command = command(model);
    let output = command.env("ULOCKS_VM_REPLAY", replay.expect("a replay")).output().unwrap();
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_model_that_ends_the_process_is_told_by_its_replay() {
    for model in ["exit", "loop", "abort", "clean-up", "waits", "cannot unwind"] {
        let text = replayed(model);
        assert!(text.contains("store(0x1, Relaxed)"), "{model}: {text}");
    }
}

#[test]
fn a_stack_that_overflows_is_named_with_the_last_operation() {
    for (model, thread) in [("deep", "1, since it has started"), ("large", "0, since ")] {
        let text = printed(model);
        let says = format!("stack overflow of thread {thread}");
        assert!(text.contains(&says) && text.contains("`Config::stack` gives each thread more"), "{text}");
        assert!(!text.contains("a model aborts"), "{text}");
    }
}

#[test]
fn a_stack_may_have_more_bytes() {
    let large = || {
        let zeros = [AtomicU32::new(0).load(Relaxed); 1 << 20];
        assert_eq!(std::hint::black_box(zeros)[5], 0);
    };
    crate::discard(explore(Config { stack: 32 << 20, ..Config::exhaustive() }, large));
}

#[test]
fn another_fault_is_named_and_left_to_who_handled_it() {
    let output = command("fault").output().unwrap();
    assert_eq!(output.status.signal(), Some(11));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("an access of memory that is not there, in thread 0, since "), "{text}");
    assert!(text.contains("watch.rs:") && !text.contains("stack overflow"), "{text}");
}

#[test]
fn a_model_that_aborts_is_named() {
    let text = printed("abort");
    assert!(text.contains("a model aborts, in thread 0, since ") && text.contains("watch.rs:"), "{text}");
}

#[test]
fn a_panic_that_cannot_be_caught_is_told_with_those_before_it() {
    let text = printed("clean-up");
    assert!(text.contains("a model aborts, in thread 0, since ") && text.contains("watch.rs:"), "{text}");
    let (first, second) = (text.find("panic: the first ("), text.find("panic: in the clean-up ("));
    assert!(first.is_some() && first < second, "{text}");
    let text = printed("cannot unwind");
    assert!(text.contains("a model aborts, in thread 1, since "), "{text}");
    assert!(text.contains("panic: the only one (") && text.contains("cannot unwind"), "{text}");
    assert_eq!(text.matches("a model aborts").count(), 1, "{text}");
}
