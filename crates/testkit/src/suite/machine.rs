//! What the tests on the machine do with one type of lock.

use crate::interrupt;
use crate::model;
use crate::new_lock;
use crate::stress::{self, Load};
use ulocks_core::meter::{Counted, Snapshot};
use ulocks_core::raw::{Metered, RawInterruptible, RawMutex};

/// How often a stress test does what it does.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Operations of each thread.
    pub operations: usize,
    /// The same under signals.
    pub in_storm: usize,
    /// The same of each of many threads.
    pub oversubscribed: usize,
    /// Pages that the last user unmaps.
    pub pages: usize,
}

impl Effort {
    /// For most locks.
    pub const FULL: Self = Self { operations: 10_000, in_storm: 10_000, oversubscribed: 1_000, pages: 500 };
    /// For a lock of more types, or of slower hand-overs.
    pub const LESS: Self = Self { operations: 4_000, in_storm: 10_000, oversubscribed: 300, pages: 300 };

    fn load(self) -> Load {
        Load { operations: self.operations, ..Load::default() }
    }
}

/// At most one thread is inside, also if the threads move from CPU to CPU.
///
/// # Panics
/// If the property fails, as all of these do.
pub fn excludes<L: RawMutex + Send + Sync + 'static>(effort: Effort) {
    for load in [effort.load(), Load { shuffle: true, ..effort.load() }] {
        stress::exclusion::<L>(load).check();
    }
}

/// Waiters that give up, late or at once, strand no other waiter, and none gives up before its
/// deadline.
pub fn waiters_give_up<L: RawMutex + Send + Sync + 'static>(effort: Effort) {
    let load = effort.load();
    stress::timed::<L>(load).check();
    stress::cancel::<L>(load).check();
    stress::waits_for_the_release::<L>();
}

/// Signals that end waits in the kernel disturb nothing.
pub fn storm_of_signals<L: RawMutex + Send + Sync + 'static>(effort: Effort) {
    let load = Load { signals: true, operations: effort.in_storm, ..Load::default() };
    for counts in [stress::exclusion::<L>(load), stress::timed::<L>(load)] {
        counts.check();
        assert!(counts.signals > 0, "the storm passed without a signal");
    }
}

/// A signal handler ends a wait that asks for it, and strands no other waiter.
pub fn handlers_end_waits<L: RawMutex<Token: Sync> + RawInterruptible + Send + Sync + 'static>(
    effort: Effort,
) {
    interrupt::mutex::<L>();
    interrupt::condvar::<L>();
    let load = Load { signals: true, operations: effort.in_storm, ..Load::default() };
    let counts = stress::interrupted::<L>(load);
    counts.check();
    assert!(counts.signals > 0, "the storm passed without a signal");
}

/// Many more threads than CPUs all get the lock.
pub fn oversubscribed<L: RawMutex + Send + Sync + 'static>(effort: Effort) {
    stress::oversubscribed::<L>(effort.oversubscribed).check();
}

/// The last user may unmap the lock as soon as its release has returned.
pub fn last_unlocker_unmaps<L: RawMutex + Send + Sync + 'static>(effort: Effort) {
    assert_eq!(stress::last_unlocker_unmaps::<L>(4, effort.pages), effort.pages);
}

/// What a lock counted while four threads acquired it `rounds` times each.
pub fn contended<L: RawMutex + Metered<Meter = Counted> + Sync>(rounds: u64) -> Snapshot {
    let mutex = new_lock::<L>();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..rounds).for_each(|_| lock_and_unlock(&mutex)));
        }
    });
    let counted = mutex.meter().snapshot();
    assert_eq!(counted.acquired, 4 * rounds);
    counted
}

/// The counters of a barging lock without patience, whose releases wake only if the lock is marked.
pub fn counters_agree<L: RawMutex + Metered<Meter = Counted> + Sync>() {
    let counted = contended::<L>(20_000);
    assert_eq!(counted.spun, 0, "without patience nobody spins");
    assert!(counted.contended <= counted.acquired, "{counted:?}");
    // A waiter that slept had set the mark, or found it set. Every mark ends in a wake-up.
    assert!(counted.slept == 0 || counted.woke > 0, "{counted:?}");
    assert!(counted.contended == 0 || counted.slept + counted.woke > 0, "{counted:?}");
}

/// Uncontended acquisitions are counted as such, and a failed attempt is not.
pub fn counts_what_happened<L: RawMutex + Metered<Meter = Counted>>() {
    let mutex = new_lock::<L>();
    (0..3).for_each(|_| lock_and_unlock(&mutex));
    let _held = mutex.try_lock().expect("free");
    assert!(mutex.try_lock().is_none());
    let counted = mutex.meter().snapshot();
    assert_eq!((counted.acquired, counted.fast(), counted.contended), (4, 4, 0));
    assert_eq!((counted.slept, counted.woke), (0, 0));
    assert_eq!(mutex.meter().reset(), counted);
}

fn lock_and_unlock<L: RawMutex>(mutex: &L) {
    let token = mutex.lock();
    // SAFETY: locked the line before.
    unsafe { mutex.unlock(token) };
}

/// A new lock is all zero, and has no more bytes than these.
///
/// # Safety
/// An `L` has no padding.
pub unsafe fn new_is_all_zero<L: RawMutex>(size: usize) {
    let new = new_lock::<L>();
    // SAFETY: the bytes of an initialised value, which have no padding among them.
    let bytes = unsafe { std::slice::from_raw_parts((&raw const new).cast::<u8>(), size_of::<L>()) };
    assert_eq!(bytes, vec![0; size]);
}

/// The clients of the models, once each, on threads of the system.
pub fn clients<L: RawMutex + Send + Sync + 'static>() {
    model::exclusion::<L>(3);
    model::no_lost_wake::<L>(3, 20);
    model::timeout_vs_unlock::<L>(3);
    model::last_unlocker_frees::<L>(3);
    model::try_lock_coherence::<L>(3);
}
