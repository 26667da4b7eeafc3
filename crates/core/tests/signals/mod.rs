//! What the tests of masks and handlers share: signals one sends oneself, and the masks of a
//! thread.

#![allow(dead_code)] // Each test program uses its own part.

use super::support;
use std::sync::{Mutex, MutexGuard, PoisonError};
use ulocks_core::{signal, tid};

/// The class is the process's.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

pub fn alone() -> MutexGuard<'static, ()> {
    support::watchdog();
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends a signal to the calling thread; it has struck when this returns, unless it is blocked.
pub fn strike(signal: i32) {
    // SAFETY: sends a signal that has a handler.
    assert_eq!(unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid::current(), signal) }, 0);
}

/// Queues a signal with a value for a thread of this process.
pub fn queue(thread: u32, signal: i32, value: usize) -> bool {
    #[repr(C)]
    struct Info {
        signal: i32,
        errno: i32,
        code: i32,
        fields: Fields,
        rest: [usize; 12],
    }
    #[repr(C)]
    struct Fields {
        sender: i32,
        user: u32,
        value: usize,
    }
    const { assert!(size_of::<Info>() >= 128 || size_of::<usize>() < 8) };
    let fields = Fields { sender: std::process::id() as i32, user: 0, value };
    let info = Info { signal, errno: 0, code: libc::SI_QUEUE, fields, rest: [0; 12] };
    // SAFETY: `info` is laid out as the kernel's, and the signal has a handler.
    let sent = unsafe {
        libc::syscall(libc::SYS_rt_tgsigqueueinfo, libc::getpid(), thread as i32, signal, &raw const info)
    };
    sent == 0
}

/// Which signals the calling thread blocks.
pub fn blocked() -> u64 {
    // SAFETY: asks only.
    unsafe {
        let mut set = std::mem::zeroed();
        assert_eq!(libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut set), 0);
        members(&set)
    }
}

/// What the process does at a signal.
pub fn action(signal: i32) -> libc::sigaction {
    // SAFETY: asks only.
    unsafe {
        let mut action = std::mem::zeroed();
        assert_eq!(libc::sigaction(signal, std::ptr::null(), &raw mut action), 0);
        action
    }
}

/// What it blocks while that runs.
pub fn sa_mask(signal: i32) -> u64 {
    members(&action(signal).sa_mask)
}

pub fn members(set: &libc::sigset_t) -> u64 {
    // SAFETY: a set.
    (1..=64)
        .filter(|&signal| unsafe { libc::sigismember(set, signal) } == 1)
        .fold(0, |set, signal| set | signal::of(&[signal]))
}

pub fn set_blocked(signals: u64) {
    // SAFETY: sets the mask of the calling thread.
    unsafe {
        let mut set = std::mem::zeroed();
        for signal in (1..=64).filter(|&signal| signals & signal::of(&[signal]) != 0) {
            libc::sigaddset(&raw mut set, signal);
        }
        assert_eq!(libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()), 0);
    }
}

pub fn errno() -> &'static mut i32 {
    // SAFETY: of the calling thread, which uses it here only.
    unsafe { &mut *libc::__errno_location() }
}

pub fn realtime(nth: i32) -> i32 {
    libc::SIGRTMIN() + nth
}
