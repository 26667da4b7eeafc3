//! Signals for the tests: handlers that are closures, and signals that are blocked for a while.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use ulocks_debug::SignalContext;

type Handler = Box<dyn Fn() + Send + Sync>;

static HANDLERS: [AtomicPtr<Handler>; 65] = [const { AtomicPtr::new(ptr::null_mut()) }; 65];

extern "C" fn handle(signal: i32) {
    let _context = SignalContext::enter(signal);
    // SAFETY: `install` has stored it, and it is never freed.
    let handler = unsafe { &*HANDLERS[signal as usize].load(Relaxed) };
    handler();
}

/// A value for ever, as what handlers use must be.
#[allow(dead_code)] // Not each target uses it.
pub fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// A signal for one test.
pub fn own_signal(number: i32) -> i32 {
    libc::SIGRTMIN() + number
}

/// All signals of tests.
pub fn signals() -> Vec<i32> {
    (0..12).map(own_signal).chain([libc::SIGUSR1, libc::SIGUSR2]).collect()
}

/// Has `signal` handled by `handler`, with all signals of tests blocked. Two handlers that may
/// interrupt each other would have no order of locks.
pub fn install(signal: i32, handler: impl Fn() + Send + Sync + 'static) {
    let handler: Handler = Box::new(handler);
    HANDLERS[signal as usize].store(Box::leak(Box::new(handler)), Relaxed);
    // SAFETY: all zero is a valid action, and the handler is there.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        for blocked in signals() {
            libc::sigaddset(&raw mut action.sa_mask, blocked);
        }
        action.sa_sigaction = handle as *const () as libc::sighandler_t;
        assert_eq!(libc::sigaction(signal, &raw const action, ptr::null_mut()), 0);
    }
}

/// Interrupts this thread by `signal`, whose handler is `handler`.
pub fn interrupt(signal: i32, handler: impl Fn() + Send + Sync + 'static) {
    install(signal, handler);
    // SAFETY: the signal has a handler.
    assert_eq!(unsafe { libc::raise(signal) }, 0);
}

/// Runs `work` with `signals` blocked.
pub fn blocked<T>(signals: &[i32], work: impl FnOnce() -> T) -> T {
    with_mask(libc::SIG_BLOCK, signals, work)
}

/// Runs `work` with `signals` open.
#[allow(dead_code)] // Not each target uses it.
pub fn opened<T>(signals: &[i32], work: impl FnOnce() -> T) -> T {
    with_mask(libc::SIG_UNBLOCK, signals, work)
}

fn with_mask<T>(how: i32, signals: &[i32], work: impl FnOnce() -> T) -> T {
    struct Restore(libc::sigset_t);
    impl Drop for Restore {
        fn drop(&mut self) {
            // SAFETY: the set is a mask of this thread.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
        }
    }
    // SAFETY: all zero is a valid set, and all pointers are to sets.
    let _restore = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        signals.iter().for_each(|&signal| assert_eq!(libc::sigaddset(&raw mut set, signal), 0));
        libc::pthread_sigmask(how, &raw const set, &raw mut before);
        Restore(before)
    };
    work()
}
