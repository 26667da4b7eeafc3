//! The CPU on which the caller runs, and those on which it may run.

use crate::sys::types::releases::Releases;
#[cfg(not(miri))]
use core::cell::Cell;
#[cfg(not(miri))]
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

#[cfg(not(miri))]
#[inline]
pub(crate) fn current() -> Option<u32> {
    // SAFETY: takes nothing. It fails by returning -1.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).ok()
}

#[cfg(miri)]
pub(crate) fn current() -> Option<u32> {
    None
}

/// The CPUs on which the calling thread may run, modulo 64: what it was when the thread asked
/// first.
#[cfg(not(miri))]
pub(crate) fn usable() -> u64 {
    std::thread_local! {
        static USABLE: Cell<u64> = const { Cell::new(0) };
    }
    let mut usable = USABLE.get();
    if usable == 0 {
        usable = ask();
        USABLE.set(usable);
    }
    usable
}

#[cfg(not(miri))]
#[cold]
fn ask() -> u64 {
    // SAFETY: a CPU set is a bit field, for which all-zero is a value.
    let mut cpus: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    // SAFETY: the size is that of `cpus`, which is writable; 0 names the calling thread.
    let failed = unsafe { libc::sched_getaffinity(0, size_of_val(&cpus), &raw mut cpus) };
    if failed != 0 {
        return u64::MAX; // it fails where the machine has more CPUs than the set has bits
    }
    // SAFETY: every index is below the size of the set.
    let mine = |&cpu: &usize| unsafe { libc::CPU_ISSET(cpu, &cpus) };
    (0..libc::CPU_SETSIZE as usize).filter(mine).fold(0, |usable, cpu| usable | 1 << (cpu % 64))
}

#[cfg(miri)]
pub(crate) fn usable() -> u64 {
    u64::MAX
}

/// How many CPUs the caller may use, as some thread has found within the last second of waiting.
#[cfg(not(miri))]
pub(crate) fn count() -> u32 {
    match COUNT.load(Relaxed) {
        0 => ask_count(),
        count => count,
    }
}

/// Asks again, if no thread has in this second. For a caller that is about to sleep.
#[cfg(not(miri))]
pub(crate) fn recount() {
    /// The second in which a thread has asked.
    static ASKED: AtomicU32 = AtomicU32::new(0);

    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable. It fails for an unknown clock only, and then leaves zero.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut now) };
    let now = now.tv_sec as u32;
    if ASKED.load(Relaxed) != now {
        ASKED.store(now, Relaxed);
        ask_count();
    }
}

#[cfg(not(miri))]
static COUNT: AtomicU32 = AtomicU32::new(0);

#[cfg(not(miri))]
#[cold]
fn ask_count() -> u32 {
    /// Room for 8,192 CPUs, of which the kernel writes those that the machine may have.
    const WORDS: usize = 128;
    let mut cpus = [0_u64; WORDS];
    // SAFETY: the size is that of `cpus`, which is writable; 0 names the calling thread.
    let failed = unsafe { libc::sched_getaffinity(0, size_of_val(&cpus), cpus.as_mut_ptr().cast()) };
    let found = cpus.iter().map(|word| word.count_ones()).sum();
    let allowed = if failed == 0 && found > 0 { found } else { u64::BITS };
    let count = super::quota::cpus().map_or(allowed, |quota| quota.min(allowed));
    COUNT.store(count, Relaxed);
    count
}

/// Whether it takes time to run, so that one way of waiting is faster than another.
#[inline(always)]
pub(crate) fn has_rates() -> bool {
    !cfg!(miri)
}

#[inline(always)]
pub(crate) fn with_releases<R>(f: impl FnOnce(&Releases) -> R) -> R {
    std::thread_local! {
        static RELEASES: Releases = const { Releases::new() };
    }
    RELEASES.with(f)
}

#[cfg(miri)]
pub(crate) fn count() -> u32 {
    u64::BITS
}

#[cfg(miri)]
pub(crate) fn recount() {}
