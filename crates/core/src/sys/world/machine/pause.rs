//! The processor's pause as a unit of time.

use crate::sys::types::time::Clock;
use crate::sys::world::{PollCost, clock};
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// How many pauses a waiter with a budget of `ns` has. It has none if `ns` is 0, or if the lock is
/// `private` to this process and all its waiters run on one CPU.
#[inline]
pub(crate) fn budget(private: bool, ns: u32) -> u32 {
    if ns == 0 || (private && on_one_cpu()) { 0 } else { count(ns) }
}

#[inline]
pub(crate) fn times(count: u32) {
    for _ in 0..count {
        crate::sys::world::pause();
    }
}

/// How many pauses take about `ns`; at least one.
#[inline]
pub(crate) fn count(ns: u32) -> u32 {
    Scale::here().pauses(ns)
}

/// Runs `look`, and returns its cost. The end of a look that `succeeds` is not timed, so it has no
/// cost.
#[inline]
pub(crate) fn timed<R>(look: impl FnOnce() -> R, succeeds: impl FnOnce(&R) -> bool) -> (R, PollCost) {
    let scale = Scale::here();
    if scale.reading > SLOW_READING_NS {
        let miss = scale.pauses(GUESSED_MISS_NS);
        return (look(), PollCost { total: miss, miss });
    }
    let before = clock::now(Clock::Monotonic);
    let seen = look();
    if succeeds(&seen) {
        return (seen, PollCost::default());
    }
    let took = clock::now(Clock::Monotonic).saturating_sub(before);
    (seen, PollCost::of(took.as_nanos() as u64, scale.reading.into(), |ns| scale.pauses(ns)))
}

/// A clock that takes longer cannot tell a hit from a miss; on some machines each reading is a
/// system call. Then each poll counts as a miss that takes [`GUESSED_MISS_NS`].
const SLOW_READING_NS: u32 = 200;
const GUESSED_MISS_NS: u32 = 25;

/// How long a pause and a reading of the clock take on this machine.
#[derive(Clone, Copy)]
struct Scale {
    /// Pauses in a microsecond.
    per_us: u32,
    /// A reading of the clock, in nanoseconds.
    reading: u32,
}

impl Scale {
    /// As the first waiter of the process has measured it.
    #[inline]
    fn here() -> Self {
        /// Both numbers, neither of which is ever zero.
        static SCALE: AtomicU64 = AtomicU64::new(0);

        let mut scale = SCALE.load(Relaxed);
        if scale == 0 {
            let Self { per_us, reading } = Self::measure();
            scale = u64::from(per_us) << 32 | u64::from(reading);
            SCALE.store(scale, Relaxed);
        }
        Self { per_us: (scale >> 32) as u32, reading: scale as u32 }
    }

    #[cold]
    fn measure() -> Self {
        let pause = shortest(|| times(1));
        let reading = shortest(|| _ = core::hint::black_box(clock::now(Clock::Monotonic)));
        let per_us = u32::try_from(1_000 * u128::from(RUNS) / pause).unwrap_or(u32::MAX).max(1);
        let reading = u32::try_from(reading / u128::from(RUNS)).unwrap_or(u32::MAX).max(1);
        Self { per_us, reading }
    }

    #[inline]
    fn pauses(self, ns: u32) -> u32 {
        u32::try_from((u64::from(ns) * u64::from(self.per_us) / 1_000).max(1)).unwrap_or(u32::MAX)
    }
}

const RUNS: u32 = 50;

/// How many nanoseconds [`RUNS`] runs of `what` take: the shortest of a few samples, since a
/// preemption makes a sample longer.
fn shortest(what: impl Fn()) -> u128 {
    const SAMPLES: u32 = 8;
    let sample = || {
        let start = clock::now(Clock::Monotonic);
        (0..RUNS).for_each(|_| what());
        clock::now(Clock::Monotonic).saturating_sub(start).as_nanos()
    };
    (0..SAMPLES).map(|_| sample()).min().unwrap_or(1).max(1)
}

/// Whether all waiters of this process so far, the caller included, are bound to one and the same
/// CPU. While the answer is yes, the first wait of each thread makes a system call for it. A thread
/// whose affinity is widened later goes unnoticed.
fn on_one_cpu() -> bool {
    /// No waiter yet, or a CPU plus one, or `MANY`.
    static SEEN: AtomicU32 = AtomicU32::new(0);
    const MANY: u32 = u32::MAX;
    std::thread_local! {
        static LOOKED: Cell<bool> = const { Cell::new(false) };
    }

    if SEEN.load(Relaxed) != MANY && !LOOKED.replace(true) {
        let mine = only_cpu().map_or(MANY, |cpu| cpu + 1);
        let before = SEEN.compare_exchange(0, mine, Relaxed, Relaxed).unwrap_or_else(|seen| seen);
        if before != 0 && before != mine {
            SEEN.store(MANY, Relaxed);
        }
    }
    SEEN.load(Relaxed) != MANY
}

/// The CPU that the calling thread is bound to, if it is bound to one.
pub(crate) fn only_cpu() -> Option<u32> {
    // SAFETY: a CPU set is a bit field, for which all-zero is a value.
    let mut cpus: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    let _errno = crate::sys::errno::Guard::new();
    // SAFETY: the size is that of `cpus`, which is writable; 0 names the calling thread.
    let failed = unsafe { libc::sched_getaffinity(0, size_of_val(&cpus), &raw mut cpus) };
    // SAFETY: counts the bits of a set that is borrowed for the call.
    if failed != 0 || unsafe { libc::CPU_COUNT(&cpus) } != 1 {
        return None; // it fails where the machine has more CPUs than the set has bits
    }
    // SAFETY: every index is below the size of the set.
    (0..libc::CPU_SETSIZE as u32).find(|&cpu| unsafe { libc::CPU_ISSET(cpu as usize, &cpus) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_count_follows_the_time() {
        let (short, long) = (count(1_000), count(100_000));
        assert!(short >= 1, "a microsecond holds at least one pause");
        assert!(long >= 90 * short && long <= 200 * short, "{short} and {long}");
        assert!(count(u32::MAX) > long);
        assert_eq!(budget(false, 0), 0);
    }

    fn bind_to(cpu: u32) {
        // SAFETY: a CPU set is a bit field, for which all-zero is a value.
        let mut cpus: libc::cpu_set_t = unsafe { core::mem::zeroed() };
        // SAFETY: the index is below the size of the set.
        unsafe { libc::CPU_SET(cpu as usize, &mut cpus) };
        // SAFETY: the size is that of `cpus`, which is read only; 0 names the calling thread.
        assert_eq!(unsafe { libc::sched_setaffinity(0, size_of_val(&cpus), &raw const cpus) }, 0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel where it runs")]
    fn a_thread_bound_to_one_cpu_is_recognised() {
        let here = std::thread::spawn(|| {
            // SAFETY: takes nothing and cannot fail.
            let cpu = unsafe { libc::sched_getcpu() } as u32;
            bind_to(cpu);
            (cpu, only_cpu())
        });
        let (cpu, only) = here.join().expect("binding to the CPU one runs on is allowed");
        assert_eq!(only, Some(cpu));
    }
}
