//! The caller's `errno` survives every call, whether it succeeds or fails.

#![cfg(world = "machine")]

use std::time::Duration;
use ulocks_core::Private;
use ulocks_core::capabilities::capabilities;
use ulocks_core::errno::Guard;
use ulocks_core::futex::{Futex, FutexKey, Global, Local, Waiter, waitv};
use ulocks_core::queue::{InOrder, QueueMutex};
use ulocks_core::raw::RawMutex;
use ulocks_core::tid;
use ulocks_core::time::Deadline;
use ulocks_testkit::refusal;

fn set(errno: i32) {
    // SAFETY: the address is this thread's own errno.
    unsafe { *libc::__errno_location() = errno };
}

fn get() -> i32 {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() }
}

/// Asserts that `call` leaves `errno` as it was.
fn keeps<T>(name: &str, call: impl FnOnce() -> T) {
    set(4321);
    let _ = call();
    assert_eq!(get(), 4321, "{name}");
}

#[test]
#[cfg_attr(miri, ignore = "Miri has few of these calls")]
fn no_call_changes_errno() {
    let futex = Futex::<Local>::new(1);
    let nowhere = FutexKey::<Global>::of(std::ptr::null());
    let past = Some(Deadline::new(ulocks_core::time::Clock::Monotonic, Default::default()));
    keeps("capabilities", capabilities);
    keeps("tid", tid::current);
    keeps("clock", || Deadline::NEVER.remaining());
    keeps("mismatch", || futex.wait(0, None));
    keeps("timeout", || futex.wait(1, past));
    keeps("wake", || assert_eq!(nowhere.wake(1), 0));
    keeps("cmp_requeue", || assert!(futex.cmp_requeue(0, 1, 1, futex.key()).is_err()));
    keeps("waitv", || waitv(&[Waiter::new(&futex, 0)], None));
    keeps("lock_pi", || assert!(Futex::<Local>::new(tid::current()).lock_pi(None).is_err()));
    keeps("try_lock_pi", || assert!(Futex::<Local>::new(tid::current()).try_lock_pi().is_err()));
    keeps("unlock_pi", || assert!(futex.unlock_pi().is_err()));
    keeps("wait_requeue_pi", || futex.wait_requeue_pi(0, &Futex::new(0), None));
    keeps("cmp_requeue_pi", || assert!(futex.cmp_requeue_pi(0, 1, &Futex::new(0)).is_err()));
}

/// A kernel with more CPUs than the set has bits refuses, too.
#[test]
#[cfg_attr(miri, ignore = "Miri has few of these calls")]
fn a_wait_keeps_errno_if_the_kernel_does_not_say_the_cpus() {
    let wait = || {
        refusal::refuse(libc::SYS_sched_getaffinity, libc::EINVAL);
        let mutex = QueueMutex::<Private, InOrder>::new();
        mutex.lock();
        keeps("lock_until", || mutex.lock_until(Deadline::after(Duration::from_millis(5))));
    };
    std::thread::spawn(wait).join().expect("a wait");
}

#[test]
fn a_guard_restores_errno_also_on_unwinding() {
    set(7);
    {
        let _errno = Guard::new();
        set(8);
    }
    assert_eq!(get(), 7);
    let unwound = std::panic::catch_unwind(|| {
        let _errno = Guard::new();
        set(8);
        std::panic::resume_unwind(Box::new(()));
    });
    assert!(unwound.is_err());
    assert_eq!(get(), 7);
}
