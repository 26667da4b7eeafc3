//! A kernel that refuses the futex calls of the lock: the process aborts, because other threads
//! depend on the waiter.
#![cfg(not(any(miri, ulocks_loom, ulocks_vm)))]

use std::sync::mpsc;
use std::task::{Context, Waker};
use std::thread;
use ulocks_core::Private;
use ulocks_core::raw::{RawRwLock, RawRwLockAsync, RawRwLockFair, RawRwLockUpgrade};
use ulocks_core::spin::NoSpin;
use ulocks_psrwlock::{BULK, RawPsRwLock, Sifted};
use ulocks_testkit::{new_lock, refusal, task};

type Lock = RawPsRwLock<Sifted<BULK, Private<NoSpin>>>;

/// The reader is in line, and an owner would wait for the line.
#[test]
fn a_reader_that_is_refused_does_not_stay_in_line() {
    refusal::aborts("a_reader_that_is_refused_does_not_stay_in_line", &refusal::WAIT, || {
        let lock: Lock = new_lock();
        lock.write();
        refusal::wait_refused(|| _ = lock.read());
    });
}

#[test]
fn a_writer_that_is_refused_does_not_stay_counted() {
    refusal::aborts("a_writer_that_is_refused_does_not_stay_counted", &refusal::WAIT, || {
        let lock: Lock = new_lock();
        lock.write();
        refusal::wait_refused(|| lock.write());
    });
}

/// The writer is the owner, and readers are shut out.
#[test]
fn an_owner_that_is_refused_does_not_leave_the_gate_shut() {
    refusal::aborts("an_owner_that_is_refused_does_not_leave_the_gate_shut", &refusal::WAIT, || {
        let lock: Lock = new_lock();
        let _inside = lock.read();
        refusal::wait_refused(|| lock.write());
    });
}

#[test]
fn an_upgrade_that_is_refused_does_not_leave_the_gate_shut() {
    refusal::aborts("an_upgrade_that_is_refused_does_not_leave_the_gate_shut", &refusal::WAIT, || {
        let lock: Lock = new_lock();
        let _inside = lock.read();
        refusal::wait_refused(|| {
            lock.upgradable();
            // SAFETY: acquired the line before, by this thread.
            unsafe { lock.upgrade(()) };
        });
    });
}

/// A task is dropped that a fair release has granted the write side. The releasing thread has not
/// left yet, and the drop waits for that.
#[test]
fn a_drop_that_is_refused_does_not_lose_what_was_granted() {
    refusal::aborts("a_drop_that_is_refused_does_not_lose_what_was_granted", &refusal::WAIT, || {
        let lock: &Lock = Box::leak(Box::new(new_lock()));
        lock.write();
        let mut write = Box::pin(lock.write_async());
        assert!(write.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            tell.send(task::id()).expect("the other thread listens");
            refusal::stop_at_futex(libc::FUTEX_WAKE_BITSET); // the wake-up of the granted writer
            // SAFETY: acquired above, and released here alone.
            unsafe { lock.unlock_write_fair(()) };
        });
        task::until_asleep(&[told.recv().expect("the thread tells its id")]);
        refusal::wait_refused(|| drop(write));
    });
}
