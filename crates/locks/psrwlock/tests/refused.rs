//! A kernel that refuses the futex calls of the lock: the process aborts, because other threads
//! depend on the waiter.
#![cfg(not(any(miri, ulocks_loom, ulocks_vm)))]

use ulocks_core::Private;
use ulocks_core::raw::{RawRwLock, RawRwLockUpgrade};
use ulocks_core::spin::NoSpin;
use ulocks_psrwlock::{BULK, RawPsRwLock, Sifted};
use ulocks_testkit::{new_lock, refusal};

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
