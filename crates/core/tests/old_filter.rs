//! A seccomp filter that is older than a system call, and answers `EPERM` to it as old ones of
//! containers do.
#![cfg(all(world = "machine", not(miri)))]

use std::thread;
use std::time::Duration;
use ulocks_core::futex::{Futex, Local, Waited, Waiter, WaitvError, waitv};
use ulocks_core::time::Deadline;
use ulocks_testkit::refusal::{refuse, refuse_futex, survives};

fn forbid(number: libc::c_long) {
    refuse(number, libc::EPERM);
}

/// A filter is a thread's own and cannot be taken off, so each test has a thread for it.
fn in_a_thread(test: impl FnOnce() + Send) {
    thread::scope(|scope| scope.spawn(test).join().unwrap());
}

#[test]
fn a_waitv_that_is_forbidden_is_not_supported() {
    in_a_thread(|| {
        forbid(libc::SYS_futex_waitv);
        let futex = Futex::<Local>::new(0);
        assert_eq!(waitv(&[Waiter::new(&futex, 1)], None), Err(WaitvError::Unsupported));
    });
}

/// On 32-bit machines the call with 64-bit seconds is forbidden, and the old one takes its place.
/// Elsewhere there is one call only, and the other is not asked for.
#[test]
fn a_wait_does_without_the_call_of_64_bit_time() {
    survives("a_wait_does_without_the_call_of_64_bit_time", || {
        const SYS_FUTEX_TIME64: libc::c_long = 422;
        forbid(SYS_FUTEX_TIME64);
        let futex = Futex::<Local>::new(0);
        assert_eq!(futex.wait(1, None), Waited::Mismatch);
        let soon = || Some(Deadline::after(Duration::from_millis(1)));
        assert_eq!(futex.wait(0, soon()), Waited::TimedOut);
        let far = Some(Deadline::after(Duration::from_secs(1 << 40)));
        assert_eq!(futex.wait(1, far), Waited::Mismatch);
        // An answer of the kernel itself is not mistaken for the filter's.
        assert_eq!(futex.lock_pi(soon()), Ok(()));
        // SAFETY: the call takes nothing.
        assert_eq!(futex.load(std::sync::atomic::Ordering::Relaxed), unsafe { libc::gettid() } as u32);
    });
}

/// The `EPERM` is about this operation, and a wake-up says so.
#[test]
fn a_refusal_of_one_operation_is_no_sign_of_an_old_filter() {
    survives("a_refusal_of_one_operation_is_no_sign_of_an_old_filter", || {
        use ulocks_core::capabilities::{Capability, capabilities};
        use ulocks_core::futex::PiError;

        refuse_futex(libc::FUTEX_LOCK_PI2);
        let futex = Futex::<Local>::new(0);
        assert_eq!(futex.lock_pi(None), Err(PiError::NotPermitted));
        assert!(capabilities().has(Capability::Time64));
    });
}
