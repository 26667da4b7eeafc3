//! How long a waiter looks at a lock before it sleeps, in nanoseconds.
//!
//! A waiter that spins saves a sleep and a wake-up, microseconds each, and pays with its CPU and with the owner's
//! cache line: every look takes the line away from the owner's next store. So there are two gaits, both of loads only
//! and both with a budget in time:
//!
//! - [`backing_off`], for an arrival. It knows nothing of the owner, and there may be many of it: it pauses *before*
//!   it looks, [`FIRST_PAUSE_NS`] at first, then twice as long each time up to [`LONGEST_PAUSE_NS`]. The long first
//!   pause is what keeps two threads with empty critical sections from passing the line to and fro: the owner runs
//!   hundreds of critical sections meanwhile.
//! - [`closely`], for a waiter that was woken and found the lock taken again. There are few of these (whoever woke it
//!   woke nobody else), a wake-up has been paid for, and the moment in which the lock is free between two critical
//!   sections of the same thread is short: it looks after every pause.
//!
//! The pauses are the processor's (`pause`, `isb`), whose length differs by a factor of twenty between CPUs; the first
//! waiter of a process measures it. No gait ever yields to the scheduler: a yield while the owner waits for this CPU
//! costs time slices.
//!
//! Where the owner cannot run while the waiter does, spinning is pointless, and nobody spins: on a lock of one process,
//! until waiters of that process have been seen that may run on more than one CPU between them. A lock between
//! processes cannot know where the others run, and always spins.
//!
//! Budgets and pauses are the outcome of the measurements in `BENCHMARKS.md`, section "The waiting rule".

use crate::Policy;
use crate::futex::Scope;

/// The first pause of an arrival. Shorter ones lose throughput on empty critical sections (30 M/s at 13 ns, 40 to
/// 50 M/s at 140 ns on two CPUs), longer ones on critical sections of less than a microsecond, which they oversleep.
pub const FIRST_PAUSE_NS: u32 = 140;

/// The longest pause of an arrival: what it may oversleep a release by.
pub const LONGEST_PAUSE_NS: u32 = 800;

/// How a waiter of a lock spins. Zero-sized; chosen by type.
pub trait Spin: Send + Sync + 'static {
    /// The budget of an arrival, in nanoseconds.
    const ARRIVAL_NS: u32;
    /// The budget of an arrival that sees the lock saturated, in nanoseconds; at most [`ARRIVAL_NS`](Self::ARRIVAL_NS).
    const SATURATED_NS: u32;
    /// The budget of a waiter that was woken and found the lock taken again, in nanoseconds.
    const WOKEN_NS: u32;
}

/// Never spins: a waiter sleeps at once.
#[derive(Debug)]
pub enum NoSpin {}

/// Spins for `NS` nanoseconds before each sleep, whatever the lock looks like: Franke's patience.
#[derive(Debug)]
pub enum Patience<const NS: u32> {}

/// Spins long enough to cover critical sections of a few microseconds, and less on a saturated lock. The default.
#[derive(Debug)]
pub enum Adaptive {}

impl Spin for NoSpin {
    const ARRIVAL_NS: u32 = 0;
    const SATURATED_NS: u32 = 0;
    const WOKEN_NS: u32 = 0;
}

impl<const NS: u32> Spin for Patience<NS> {
    const ARRIVAL_NS: u32 = NS;
    const SATURATED_NS: u32 = NS;
    const WOKEN_NS: u32 = NS;
}

impl Spin for Adaptive {
    const ARRIVAL_NS: u32 = 6_000;
    const SATURATED_NS: u32 = 3_000;
    const WOKEN_NS: u32 = 2_000;
}

/// What a spinning waiter sees when it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The lock was free, and is the waiter's now.
    Acquired,
    /// The lock is taken.
    Taken,
    /// The lock is taken, by an owner who had to be woken itself or has sleepers to wake: on a busy lock now and then,
    /// on a saturated one always.
    Saturated,
}

/// An arrival of policy `P`: looks with growing pauses before each look. True if it acquired, false when its budget is
/// spent, at once if it has none.
pub fn backing_off<P: Policy>(mut look: impl FnMut() -> Look) -> bool {
    let budget = pause::budget(P::Scope::PRIVATE, P::Spin::ARRIVAL_NS);
    let if_saturated = pause::count(P::Spin::SATURATED_NS);
    let longest = pause::count(LONGEST_PAUSE_NS);
    let mut next = pause::count(FIRST_PAUSE_NS);
    let mut spent = 0;
    while spent < budget {
        let now = next.min(budget - spent);
        pause::times(now);
        spent += now;
        match look() {
            Look::Acquired => return true,
            Look::Saturated if spent >= if_saturated => return false,
            _ => next = (next * 2).min(longest),
        }
    }
    false
}

/// A woken waiter of policy `P`: looks after each single pause. True if it acquired; false when its budget is spent, at
/// once if it has none, or when it sees that another waiter is owed the next wake-up.
pub fn closely<P: Policy>(mut look: impl FnMut() -> Look) -> bool {
    for _ in 0..pause::budget(P::Scope::PRIVATE, P::Spin::WOKEN_NS) {
        pause::times(1);
        match look() {
            Look::Acquired => return true,
            Look::Saturated => return false,
            Look::Taken => {}
        }
    }
    false
}

/// The processor's pause as a unit of time.
#[cfg(not(all(ulocks_loom, feature = "loom")))]
mod pause {
    use crate::time::Clock;
    use crate::world::clock;
    use core::cell::Cell;
    use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

    /// How many pauses a waiter with a budget of `ns` has: none if it has no budget, or would spin in vain on a lock
    /// that is `private` to this process.
    #[inline]
    pub(super) fn budget(private: bool, ns: u32) -> u32 {
        if ns == 0 || (private && on_one_cpu()) { 0 } else { count(ns) }
    }

    #[inline]
    pub(super) fn times(count: u32) {
        for _ in 0..count {
            crate::world::pause();
        }
    }

    /// How many pauses take about `ns`; at least one.
    #[inline]
    pub(super) fn count(ns: u32) -> u32 {
        /// Pauses in a microsecond; zero until somebody has measured.
        static RATE: AtomicU32 = AtomicU32::new(0);

        let mut rate = RATE.load(Relaxed);
        if rate == 0 {
            rate = measure();
            RATE.store(rate, Relaxed);
        }
        u32::try_from((u64::from(ns) * u64::from(rate) / 1_000).max(1)).unwrap_or(u32::MAX)
    }

    /// How many pauses a microsecond holds, at least one: by the shortest of a few samples, for a preemption only ever
    /// makes one longer.
    #[cold]
    fn measure() -> u32 {
        const SAMPLES: u32 = 8;
        const PAUSES: u32 = 50;
        let shortest = (0..SAMPLES)
            .map(|_| {
                let start = clock::now(Clock::Monotonic);
                times(PAUSES);
                clock::now(Clock::Monotonic).saturating_sub(start).as_nanos()
            })
            .min()
            .unwrap_or(1);
        u32::try_from(u128::from(PAUSES) * 1_000 / shortest.max(1)).unwrap_or(u32::MAX).max(1)
    }

    /// Whether all waiters of this process so far, the caller included, may run on one and the same CPU only. Costs a
    /// system call at the first wait of a thread, as long as the answer is yes; widening the affinity of a thread after
    /// that goes unnoticed.
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
    fn only_cpu() -> Option<u32> {
        // SAFETY: a CPU set is a bit field, for which all-zero is a value.
        let mut cpus: libc::cpu_set_t = unsafe { core::mem::zeroed() };
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
}

/// In a model a budget is one look: further ones add executions and no behaviour. The pause is nothing at all: told
/// that a thread pauses, loom lets the others run to their end first, and the look would always find the lock free.
#[cfg(all(ulocks_loom, feature = "loom"))]
mod pause {
    pub(super) fn budget(_: bool, ns: u32) -> u32 {
        u32::from(ns > 0)
    }

    pub(super) fn count(_: u32) -> u32 {
        1
    }

    pub(super) fn times(_: u32) {}
}

#[cfg(all(test, not(all(ulocks_loom, feature = "loom"))))]
mod tests {
    use super::*;
    use crate::{Private, Shared};

    #[test]
    fn no_patience_never_looks() {
        assert!(!backing_off::<Shared<NoSpin>>(|| Look::Acquired));
        assert!(!closely::<Private<NoSpin>>(|| Look::Acquired));
    }

    #[test]
    fn what_is_acquired_ends_the_spin() {
        let mut looks = 0;
        assert!(backing_off::<Shared<Patience<1_000_000>>>(|| {
            looks += 1;
            if looks == 3 { Look::Acquired } else { Look::Taken }
        }));
        assert_eq!(looks, 3);
        assert!(closely::<Shared<Patience<1_000_000>>>(|| Look::Acquired));
    }

    /// How often a waiter looks that always sees `what`.
    fn looks(spin: impl Fn(&mut dyn FnMut() -> Look) -> bool, what: Look) -> u32 {
        let mut looks = 0;
        assert!(!spin(&mut || {
            looks += 1;
            what
        }));
        looks
    }

    #[test]
    fn a_spent_budget_ends_the_spin_and_arrivals_look_rarely() {
        type P = Shared<Patience<20_000>>;
        assert_eq!(looks(|look| closely::<P>(look), Look::Taken), pause::count(20_000));
        let arrival = looks(|look| backing_off::<P>(look), Look::Taken);
        // 140, 280, 560, then 800 ns each, and what is left; rounding down pauses may add one.
        assert!(arrival <= 3 + 20_000_u32.div_ceil(LONGEST_PAUSE_NS) + 1, "{arrival} looks");
    }

    #[test]
    fn a_saturated_lock_ends_the_spin_earlier() {
        assert_eq!(looks(|look| closely::<Shared>(look), Look::Saturated), 1);
        let (busy, saturated) = (
            looks(|look| backing_off::<Shared>(look), Look::Taken),
            looks(|look| backing_off::<Shared>(look), Look::Saturated),
        );
        assert!(
            1 < saturated && saturated < busy,
            "{saturated} looks, {busy} on a lock that is merely taken"
        );
    }
}
