//! The thread id, and what fork does to it.

#![cfg(all(world = "machine", not(miri)))]

mod support;

use std::thread;
use support::Child;
use ulocks_core::tid;
use ulocks_testkit::refusal;

fn kernels() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::gettid() as u32 }
}

/// 0 if the id is right, twice.
fn wrong() -> i32 {
    (tid::current() != kernels() || tid::current() != kernels()).into()
}

#[test]
fn it_is_the_kernels() {
    assert_eq!(wrong(), 0);
    assert_eq!(thread::spawn(wrong).join().unwrap(), 0);
}

#[test]
fn a_child_has_its_own() {
    let mine = tid::current();
    let child = Child::run(|| {
        let grandchild = Child::run(wrong);
        wrong() + grandchild.join()
    });
    assert_eq!(child.join(), 0);
    assert_eq!(tid::current(), mine);
}

#[test]
fn a_child_of_a_raw_call_has_its_own() {
    let mine = tid::current();
    // SAFETY: a fork that libc does not know of; the child makes futex-free system calls only, and
    // ends.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0usize, 0usize, 0usize, 0usize) };
    if child == 0 {
        // SAFETY: ends the child.
        unsafe { libc::_exit(wrong()) };
    }
    assert!(child > 0);
    assert_eq!(Child(child as u32).join(), 0);
    assert_eq!(tid::current(), mine);
}

/// The hard case: in the child, a new thread asks first and so makes the ids of the process valid
/// again. The copied thread must not take its own for valid.
#[test]
fn a_copied_cache_stays_invalid_when_another_thread_asks_first() {
    assert_eq!(wrong(), 0);
    let child = Child::run(|| {
        let other = thread::spawn(wrong).join().unwrap_or(1);
        other + wrong()
    });
    assert_eq!(child.join(), 0);
}

#[test]
fn a_child_of_a_thread_has_its_own() {
    let forked = thread::spawn(|| {
        let first = wrong();
        first + Child::run(wrong).join()
    });
    assert_eq!(forked.join().unwrap(), 0);
}

/// Some emulators of the kernel answer success to every advice, and wipe nothing. Here a filter
/// does.
#[test]
fn a_child_under_a_kernel_that_accepts_any_advice_has_its_own() {
    refusal::survives("a_child_under_a_kernel_that_accepts_any_advice_has_its_own", || {
        refusal::refuse(libc::SYS_madvise, 0);
        assert_eq!(wrong(), 0);
        assert_eq!(Child::run(wrong).join(), 0);
    });
}
