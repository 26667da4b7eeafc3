#![doc = include_str!("../README.md")]
#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

mod choice;
mod condvar;
mod fork;
mod glibc;
mod holds;
mod mutex;
mod old;
mod rwlock;
mod spin;
mod stats;
mod time;

use choice::{Algorithm, Choice};
use ulocks_core::cpu;
use ulocks_core::sync::AtomicU64;
use ulocks_core::sync::Ordering::Relaxed;

/// Runs when the library is loaded. What a function needs that is called before, it prepares
/// itself.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = {
    extern "C" fn at_start() {
        let choice = Choice::get();
        glibc::resolve();
        // The program may forbid itself to open files, and does not expect a lock to open one.
        if choice.mutex() != Algorithm::Glibc {
            cpu::keep_quota();
        }
        fork::register();
        stats::register();
    }
    at_start
};

/// The thread pointer: tells threads apart, is never zero, and is the same in the child of a fork.
#[inline(always)]
fn myself() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let pointer;
        // SAFETY: the word at `fs:0` is its own address, by the ABI of thread-local storage; a load
        // of it changes nothing.
        unsafe {
            core::arch::asm!("mov {}, fs:[0]", out(reg) pointer, options(nostack, readonly, preserves_flags));
        }
        pointer
    }
    // SAFETY: it has no preconditions.
    #[cfg(not(target_arch = "x86_64"))]
    unsafe {
        libc::pthread_self() as u64
    }
}

/// A load of a word that only its own thread changes to this value.
#[inline]
fn is_mine(owner: &AtomicU64) -> bool {
    owner.load(Relaxed) == myself()
}
