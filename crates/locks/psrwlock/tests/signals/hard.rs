//! Handlers that are not wrapped, kept off by the kernel's mask.

use crate::ByAll;
use crate::strikes::{Struck, keeping_errno, real_time, strike_me};
use std::sync::OnceLock;
use std::time::Duration;
use ulocks_core::errno;
use ulocks_psrwlock::signal::{Context, Hard};
use ulocks_psrwlock::{PsRwLockUpgradableReadGuard as UpgradableGuard, PsRwLockWriteGuard as WriteGuard};

/// By the number of a signal: what its handler reads.
static STRUCK: [OnceLock<Struck<ByAll<Hard>>>; 65] = [const { OnceLock::new() }; 65];

extern "C" fn handle(signal: libc::c_int) {
    let _errno = errno::Guard::new();
    // SAFETY: this is a handler of that signal; the lock's mask contains it, and its action's mask
    // everything.
    let context = unsafe { Context::assume(signal) };
    if let Some(struck) = STRUCK[signal as usize].get() {
        struck.seen.look(struck.lock, &context);
    }
}

/// Gives these signals plain handlers that read a lock.
pub fn struck_plainly(signals: &[i32]) -> Struck<ByAll<Hard>> {
    let struck = Struck::new();
    for &signal in signals {
        STRUCK[signal as usize].set(struck).ok().expect("a signal of one test only");
        // SAFETY: all zero is an action; the handler is async-signal-safe.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handle as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigfillset(&raw mut action.sa_mask);
            assert_eq!(libc::sigaction(signal, &raw const action, std::ptr::null_mut()), 0);
        }
    }
    struck
}

fn is_blocked(signal: i32) -> bool {
    // SAFETY: asks only; all zero is a set, and there is room for the answer.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        assert_eq!(libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut set), 0);
        libc::sigismember(&raw const set, signal) == 1
    }
}

#[test]
fn the_kernel_keeps_them_off_the_write_and_no_longer() {
    let signal = real_time(1);
    let Struck { lock, seen } = struck_plainly(&[signal]);
    let reads_at_once = || {
        let before = seen.counts();
        keeping_errno(|| strike_me(signal));
        assert_eq!(seen.counts(), [before[0] + 1, before[1] + 1, before[2]]);
        assert!(!is_blocked(signal));
    };
    let waits = || {
        let before = seen.counts();
        strike_me(signal);
        strike_me(signal);
        assert_eq!(seen.counts(), before);
        assert!(is_blocked(signal));
        [before[0] + 2, before[1] + 2, before[2]]
    };
    reads_at_once();
    let held = lock.write();
    let after = waits();
    let held = keeping_errno(|| WriteGuard::downgrade(held));
    assert_eq!(seen.counts(), after, "they were delivered, and could read");
    reads_at_once();
    assert!(lock.try_write().is_none() && lock.try_write_for(Duration::from_millis(2)).is_none());
    reads_at_once();
    drop(held);
    let held = UpgradableGuard::upgrade(lock.upgradable_read());
    let after = waits();
    drop(held);
    assert_eq!(seen.counts(), after);
    reads_at_once();
    seen.check();
}
