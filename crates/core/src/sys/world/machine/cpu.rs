//! The CPU on which the caller runs, and those on which it may run.

#[cfg(not(miri))]
use crate::sys::errno::Guard;
use crate::sys::types::releases::Releases;
#[cfg(not(miri))]
use core::cell::Cell;
#[cfg(not(miri))]
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

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
    let _errno = Guard::new();
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

/// How many CPUs the threads that wait may use between them.
#[cfg(not(miri))]
pub(crate) fn count() -> u32 {
    match COUNT.load(Relaxed) {
        0 => ask_count(period()),
        count => count,
    }
}

/// Counts the CPUs of the caller too, if it has not done so in this period. For a caller that is
/// about to sleep.
#[cfg(not(miri))]
pub(crate) fn recount() {
    std::thread_local! {
        static ASKED: Cell<u32> = const { Cell::new(u32::MAX) };
    }
    let period = period();
    if ASKED.replace(period) != period {
        ask_count(period);
    }
}

#[cfg(not(miri))]
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The present period: 16 seconds. A thread that polls tells nothing, and is forgotten after two of
/// them if others sleep.
#[cfg(not(miri))]
fn period() -> u32 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable. It fails for an unknown clock only, and then leaves zero.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut now) };
    (now.tv_sec >> 4) as u32
}

/// What the quota of the process was when the last period began; zero without one.
#[cfg(not(miri))]
static QUOTA: AtomicU32 = AtomicU32::new(0);

/// Whether the quota stays what it was.
#[cfg(not(miri))]
static QUOTA_IS_KEPT: AtomicBool = AtomicBool::new(false);

/// Reads the quota now, and no more from here on.
#[cfg(not(miri))]
pub(crate) fn keep_quota() {
    QUOTA.store(super::quota::cpus().unwrap_or(0), Relaxed);
    QUOTA_IS_KEPT.store(true, Relaxed);
}

#[cfg(not(miri))]
#[cold]
fn ask_count(period: u32) -> u32 {
    let mut mine = [0; FEW_WORDS];
    if affinity(&mut mine) { count_with(period, &mine) } else { ask_count_of_many(period) }
}

/// The same on a machine that may have more CPUs. It has a frame of its own, since the stack of the
/// caller may be a small one.
#[cfg(not(miri))]
#[cold]
#[inline(never)]
fn ask_count_of_many(period: u32) -> u32 {
    let mut mine = [0; WORDS];
    if !affinity(&mut mine) {
        mine[0] = u64::MAX;
    }
    count_with(period, &mine)
}

/// The CPUs of the calling thread. False if there may be more.
#[cfg(not(miri))]
fn affinity(mine: &mut [u64]) -> bool {
    let _errno = Guard::new();
    // SAFETY: the size is that of `mine`, which is writable; 0 names the calling thread.
    unsafe { libc::sched_getaffinity(0, size_of_val(mine), mine.as_mut_ptr().cast()) == 0 }
}

#[cfg(not(miri))]
fn count_with(period: u32, mine: &[u64]) -> u32 {
    static UNION: Union = Union::new();

    let begins = UNION.begins(period);
    if begins && !QUOTA_IS_KEPT.load(Relaxed) {
        QUOTA.store(super::quota::cpus().unwrap_or(0), Relaxed);
    }
    let allowed = UNION.add(mine);
    let count = match QUOTA.load(Relaxed) {
        0 => allowed,
        quota => quota.min(allowed),
    };
    if begins {
        COUNT.store(count, Relaxed);
    } else {
        COUNT.fetch_max(count, Relaxed); // another thread may have counted more meanwhile
    }
    count
}

/// Words of an affinity: room for 8,192 CPUs, of which the kernel writes those that the machine may
/// have.
#[cfg(not(miri))]
const WORDS: usize = 128;

/// Words that are enough on most machines: 1,024 CPUs.
#[cfg(not(miri))]
const FEW_WORDS: usize = 16;

/// The CPUs of all threads that have asked in the last two periods in which one did. A thread that
/// asks as a period begins may be forgotten until it asks again, or be counted with those of the
/// period before the last.
#[cfg(not(miri))]
struct Union {
    /// The period, and in the lowest bit which half is its own.
    now: AtomicU32,
    halves: [[AtomicU64; WORDS]; 2],
}

#[cfg(not(miri))]
impl Union {
    const fn new() -> Self {
        Self { now: AtomicU32::new(u32::MAX), halves: [const { [const { AtomicU64::new(0) }; WORDS] }; 2] }
    }

    /// Begins `period`, unless that was done.
    fn begins(&self, period: u32) -> bool {
        let was = self.now.load(Relaxed);
        let now = period << 1 | !was & 1;
        let begins = was >> 1 != now >> 1 && self.now.compare_exchange(was, now, Relaxed, Relaxed).is_ok();
        if begins {
            self.halves[now as usize & 1].iter().for_each(|word| word.store(0, Relaxed));
        }
        begins
    }

    /// Adds the CPUs of one thread, and counts all. In words that `mine` has not, it has none.
    fn add(&self, mine: &[u64]) -> u32 {
        let half = self.now.load(Relaxed) as usize & 1;
        let words = mine.iter().zip(&self.halves[half]).zip(&self.halves[1 - half]);
        words
            .map(|((mine, word), before)| {
                let all = if *mine == 0 { word.load(Relaxed) } else { word.fetch_or(*mine, Relaxed) | mine };
                (all | before.load(Relaxed)).count_ones()
            })
            .sum()
    }
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

#[cfg(miri)]
pub(crate) fn keep_quota() {}

#[cfg(all(test, not(miri), not(ulocks_vm), not(ulocks_loom)))]
mod tests {
    use super::*;

    fn cpu(number: usize) -> [u64; WORDS] {
        let mut mine = [0; WORDS];
        mine[number / 64] = 1 << (number % 64);
        mine
    }

    #[test]
    fn cpus_are_those_of_all_threads_of_two_periods() {
        let union = Union::new();
        assert!(union.begins(7) && !union.begins(7));
        assert_eq!([3, 3, 8_191, 70].map(|number| union.add(&cpu(number))), [1, 1, 2, 3]);
        assert!(union.begins(9) && !union.begins(9));
        assert_eq!(union.add(&cpu(3)), 3, "the period before counts");
        assert!(union.begins(10));
        assert_eq!(union.add(&cpu(4)), 2, "the one before that does not");
    }
}
