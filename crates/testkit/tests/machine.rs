//! The machine clients pass on the plain lock. The mutants of the lock show that each can fail.
#![cfg(world = "machine")]

use std::os::unix::process::ExitStatusExt;
use std::process;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::{Arc, mpsc::channel};
use std::thread;
use std::time::Duration;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::time::Deadline;
use ulocks_testkit::plain::{Plain, PlainShared};
use ulocks_testkit::stress::{self, Load};
use ulocks_testkit::thread::with;
use ulocks_testkit::{Child, interrupt, limit, model, shared, task, watchdog};

#[test]
fn the_model_clients_run_on_the_machine() {
    for threads in 2..=3 {
        model::exclusion::<Plain>(threads);
        model::no_lost_wake::<Plain>(threads, 100);
        model::timeout_vs_unlock::<Plain>(threads);
        model::last_unlocker_frees::<Plain>(threads);
        model::try_lock_coherence::<Plain>(threads);
    }
}

#[test]
fn stress_passes_on_a_sound_lock() {
    let load = Load::default();
    stress::exclusion::<Plain>(load).check();
    stress::exclusion::<Plain>(Load { shuffle: true, ..load }).check();
    stress::timed::<Plain>(load).check();
    stress::cancel::<Plain>(load).check();
    stress::waits_for_the_release::<Plain>();
    stress::oversubscribed::<Plain>(1_000).check();
}

#[test]
fn signals_reach_the_waiters() {
    let load = Load { signals: true, ..Load::default() };
    let counts = stress::timed::<Plain>(load);
    counts.check();
    assert!(counts.signals > 0, "the storm passed without a signal");
}

#[test]
fn a_handler_ends_a_wait() {
    interrupt::mutex::<Plain>();
    interrupt::condvar::<Plain>();
    let load = Load { signals: true, ..Load::default() };
    let counts = stress::interrupted::<Plain>(load);
    counts.check();
    assert!(counts.signals > 0, "the storm passed without a signal");
}

#[test]
fn the_last_unlocker_may_unmap() {
    assert_eq!(stress::last_unlocker_unmaps::<Plain>(4, 200), 200);
}

#[test]
fn processes_exclude_one_another() {
    let load = Load::default();
    shared::exclusion::<PlainShared>(load).check();
    shared::timed::<PlainShared>(load).check();
}

/// A test that fails for one child ends the others, which may wait for it.
#[test]
fn a_child_that_fails_leaves_none_behind() {
    let mapping = shared::Mapping::shared();
    // SAFETY: a fresh page, zeroed, which is mapped to the end of the test.
    let other = unsafe { &*mapping.place::<AtomicI32>() };
    let failing = thread::scope(|scope| {
        let failing = scope.spawn(|| {
            shared::forked(2, |me| {
                if me == 1 {
                    other.store(process::id() as i32, Relaxed);
                    Child::pauses();
                }
                limit::until("the other child runs", || other.load(Relaxed) != 0);
                panic!("the child that fails");
            });
        });
        failing.join()
    });
    assert!(failing.is_err());
    let mut status = 0;
    limit::until("the other child has ended", || {
        // SAFETY: a child of this process that was not waited for; `status` is a place for the
        // result.
        unsafe { libc::waitpid(other.load(Relaxed), &raw mut status, libc::WNOHANG) != 0 }
    });
    assert_eq!(status, libc::SIGKILL);
}

/// A release while one thread sleeps, after another waited in vain.
#[test]
fn a_release_wakes_the_sleeper() {
    let lock = Arc::new(Plain::new());
    lock.lock();
    let (say, said) = channel();
    let sleeper = with(&lock, move |lock| {
        say.send(task::id()).unwrap();
        lock.lock();
    });
    task::until_asleep(&[said.recv().unwrap()]);
    let _watchdog = watchdog::watch_for(Duration::from_secs(20), "stranded", {
        let lock = Arc::clone(&lock);
        move || format!("locked {}", lock.is_locked())
    });
    assert!(lock.lock_until(Deadline::after(Duration::from_millis(10))).is_none());
    // SAFETY: locked above.
    unsafe { lock.unlock(()) };
    sleeper.join().unwrap();
}

/// A test in a process of its own: libtest keeps what it prints.
#[test]
fn the_watchdog_is_heard_although_libtest_keeps_what_a_test_prints() {
    const NAME: &str = "the_watchdog_is_heard_although_libtest_keeps_what_a_test_prints";
    let Some(mut command) = limit::again(NAME) else {
        let _watchdog = watchdog::watch_for(Duration::ZERO, "hung", String::new);
        loop {
            thread::park();
        }
    };
    let output = limit::output(command.env_remove("RUST_TEST_NOCAPTURE"));
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("hung: not finished after") && text.contains("thread "), "{text}");
}
