//! The thread id, and what fork does to it.

#![cfg(all(world = "machine", not(miri)))]

use std::thread;
use ulocks_core::tid;
use ulocks_testkit::{Child, refusal};

fn kernels() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::gettid() as u32 }
}

/// The id is right, twice.
fn is_right() {
    assert_eq!([tid::current(), tid::current()], [kernels(); 2]);
}

#[test]
fn it_is_the_kernels() {
    is_right();
    thread::spawn(is_right).join().unwrap();
}

#[test]
fn a_child_has_its_own() {
    let mine = tid::current();
    let child = Child::runs(|| {
        let grandchild = Child::runs(is_right);
        is_right();
        grandchild.ends();
    });
    child.ends();
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
        unsafe { libc::_exit((tid::current() != kernels()).into()) };
    }
    let mut status = 0;
    // SAFETY: our child, and `status` is writable.
    assert_eq!(unsafe { libc::waitpid(child as i32, &raw mut status, 0) }, child as i32);
    assert_eq!(status, 0);
    assert_eq!(tid::current(), mine);
}

/// The hard case: in the child, a new thread asks first and so makes the ids of the process valid
/// again. The copied thread must not take its own for valid.
#[test]
fn a_copied_cache_stays_invalid_when_another_thread_asks_first() {
    is_right();
    let child = Child::runs(|| {
        thread::spawn(is_right).join().unwrap();
        is_right();
    });
    child.ends();
}

#[test]
fn a_child_of_a_thread_has_its_own() {
    let forked = thread::spawn(|| {
        is_right();
        Child::runs(is_right).ends();
    });
    forked.join().unwrap();
}

/// Some emulators of the kernel answer success to every advice, and wipe nothing. Here a filter
/// does.
#[test]
fn a_child_under_a_kernel_that_accepts_any_advice_has_its_own() {
    refusal::survives("a_child_under_a_kernel_that_accepts_any_advice_has_its_own", || {
        refusal::refuse(libc::SYS_madvise, 0);
        is_right();
        Child::runs(is_right).ends();
    });
}
