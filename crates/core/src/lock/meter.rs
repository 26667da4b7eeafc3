//! What a lock counts about itself: nothing, which takes no room, or every event, at one relaxed
//! increment each.
//!
//! Franke built the counters into his locks because "in most cases a single atomic increment or
//! simple increment" does not show at the application level; the columns WC, RC and R of his table
//! come from them.

use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// An event a lock counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Event {
    /// The lock was acquired.
    Acquired,
    /// An acquisition found the lock taken.
    Contended,
    /// A contended acquisition succeeded without a sleep. If the lock counts
    /// [`Stolen`](Self::Stolen) too, no other thread was waiting.
    Spun,
    /// A waiter sleeps: a thread enters the kernel, or a task begins to wait.
    Slept,
    /// A waiter is woken: a release enters the kernel, or wakes a task. Counted when the wake-up
    /// becomes owed, where the release itself must not touch the lock any more.
    Woke,
    /// A shared acquisition found the lock taken.
    ReaderContended,
    /// A contended acquisition without a sleep, past others that wait.
    Stolen,
    /// A contended acquisition by a waiter that had slept.
    Woken,
    /// A contended acquisition by a waiter that the lock was kept for, or handed over to.
    Reserved,
    /// A lock that restricts how many threads contend put an acquisition to sleep, for the first
    /// time.
    Culled,
    /// A waiter that was culled has the lock kept for it.
    Promoted,
}

const EVENTS: usize = 11;

/// What keeps [`Meter`] to the meters of this family, and to those of its tests.
#[doc(hidden)]
pub mod sealed {
    /// A type that may be a meter.
    ///
    /// # Safety
    /// A lock calls its meter in the middle of its protocol, between any two steps. So the methods
    /// of a meter return and do not unwind. A panic would leave the lock held, or abort the process
    /// if a queue names a node of the caller. A meter of a test may panic to fail that test.
    pub unsafe trait Sealed {}
}

/// What a lock counts: [`Off`], [`Counted`], or what a profile needs. Chosen by type.
///
/// Sealed: a lock calls its meter in the middle of its protocol, where a panic would do harm.
/// ```compile_fail,E0277
/// use ulocks_core::meter::{Event, Meter};
///
/// struct Mine;
/// impl Meter for Mine {
///     const INIT: Self = Self;
///     fn count(&self, _: Event) {}
/// }
/// ```
pub trait Meter: sealed::Sealed + Sized + Send + Sync + 'static {
    /// A meter that has counted nothing; its bytes are all zero.
    const INIT: Self;
    /// Counts one `event`.
    fn count(&self, event: Event);
    /// The holder is about to release the lock. Not called by semaphores, nor for a reader in a
    /// signal handler.
    #[inline(always)]
    fn released(&self) {}
    /// Permits of a semaphore were acquired. No release of the same thread need follow.
    #[inline(always)]
    fn permitted(&self) {
        self.count(Event::Acquired);
    }
    /// An acquisition gives up. It may have been contended.
    #[inline(always)]
    fn gave_up(&self) {}
    /// An acquisition that may give up has ended.
    #[inline(always)]
    fn ended(&self, acquired: bool) {
        if acquired { self.count(Event::Acquired) } else { self.gave_up() }
    }
    /// The same of permits.
    #[inline(always)]
    fn ended_with(&self, permits: bool) {
        if permits { self.permitted() } else { self.gave_up() }
    }
    /// Runs `attempt` once. If that succeeds, it is the one atomic step that acquires a fair lock
    /// or enqueues the caller. A meter of a test overrides this to record the order of arrivals.
    #[inline(always)]
    fn arrive<T, E>(&self, attempt: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        attempt()
    }
}

/// Counts nothing and takes no room. The default.
#[derive(Debug, Default)]
pub struct Off;

// SAFETY: it does nothing.
unsafe impl sealed::Sealed for Off {}

impl Meter for Off {
    const INIT: Self = Self;

    #[inline(always)]
    fn count(&self, _: Event) {}
}

/// Counts every event, in the lock itself.
///
/// The counters are as wide as a pointer and wrap around. They are relaxed: a
/// [`snapshot`](Self::snapshot) taken while the lock is in use may show an acquisition and not yet
/// the sleep it took.
#[derive(Default)]
#[repr(C)]
pub struct Counted {
    counters: [AtomicUsize; EVENTS],
}

// SAFETY: an addition that wraps around; the number of an event is an index, by its type.
unsafe impl sealed::Sealed for Counted {}

impl Meter for Counted {
    const INIT: Self = Self { counters: [const { AtomicUsize::new(0) }; EVENTS] };

    #[inline]
    fn count(&self, event: Event) {
        self.counters[event as usize].fetch_add(1, Relaxed);
    }
}

impl Counted {
    /// The counters as they stand.
    pub fn snapshot(&self) -> Snapshot {
        self.read(|counter| counter.load(Relaxed))
    }

    /// The counters as they stand, set back to zero one after the other.
    pub fn reset(&self) -> Snapshot {
        self.read(|counter| counter.swap(0, Relaxed))
    }

    fn read(&self, read: impl Fn(&AtomicUsize) -> usize) -> Snapshot {
        let of = |event: Event| read(&self.counters[event as usize]) as u64;
        Snapshot {
            acquired: of(Event::Acquired),
            contended: of(Event::Contended),
            spun: of(Event::Spun),
            slept: of(Event::Slept),
            woke: of(Event::Woke),
            reader_contended: of(Event::ReaderContended),
            stolen: of(Event::Stolen),
            woken: of(Event::Woken),
            reserved: of(Event::Reserved),
            culled: of(Event::Culled),
            promoted: of(Event::Promoted),
        }
    }
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.snapshot(), f)
    }
}

/// The counters of a [`Counted`] lock at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Acquisitions, shared ones included.
    pub acquired: u64,
    /// Acquisitions that found the lock taken.
    pub contended: u64,
    /// Contended acquisitions that succeeded without a sleep.
    pub spun: u64,
    /// Sleeps: a thread enters the kernel, where it may find the word changed and return at once,
    /// or a task begins to wait.
    pub slept: u64,
    /// Wake-ups by the kernel or by a task's waker, those included that are owed and not yet made.
    pub woke: u64,
    /// Shared acquisitions that found the lock taken.
    pub reader_contended: u64,
    /// Contended acquisitions without a sleep, past others that waited; counted by locks that know
    /// of the others.
    pub stolen: u64,
    /// Contended acquisitions by waiters that had slept; counted by locks that tell them from the
    /// reserved ones.
    pub woken: u64,
    /// Contended acquisitions by waiters for which the lock was kept; counted by locks that do so.
    pub reserved: u64,
    /// Contended acquisitions that were put to sleep, each once; counted by locks that restrict how
    /// many contend.
    pub culled: u64,
    /// Waiters for which the lock was kept because they had slept for long; counted by the same
    /// locks.
    pub promoted: u64,
}

impl Snapshot {
    /// The share of acquisitions that found the lock taken, 0 to 1: Franke's WC. `None` if there
    /// were none.
    pub fn contention(&self) -> Option<f64> {
        (self.acquired > 0).then(|| self.contended as f64 / self.acquired as f64)
    }

    /// Acquisitions by the first instruction, of a mutex found free without waiters; for a lock
    /// that counts all the other ways to obtain it.
    pub fn fast(&self) -> u64 {
        self.acquired.saturating_sub(self.spun + self.stolen + self.woken + self.reserved)
    }

    /// Sleeps for each contended acquisition: Franke's R. `None` if there were
    /// none.
    pub fn reentries(&self) -> Option<f64> {
        (self.contended > 0).then(|| self.slept as f64 / self.contended as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_takes_no_room() {
        assert_eq!(size_of::<Off>(), 0);
    }

    #[test]
    fn counts_each_event_by_itself() {
        let meter = Counted::INIT;
        let events = [
            Event::Acquired,
            Event::Contended,
            Event::Spun,
            Event::Slept,
            Event::Woke,
            Event::ReaderContended,
            Event::Stolen,
            Event::Woken,
            Event::Reserved,
            Event::Culled,
            Event::Promoted,
        ];
        for (times, event) in (1..).zip(events) {
            for _ in 0..times {
                meter.count(event);
            }
        }
        let expected = Snapshot {
            acquired: 1,
            contended: 2,
            spun: 3,
            slept: 4,
            woke: 5,
            reader_contended: 6,
            stolen: 7,
            woken: 8,
            reserved: 9,
            culled: 10,
            promoted: 11,
        };
        assert_eq!(meter.snapshot(), expected);
        assert_eq!(meter.reset(), expected);
        assert_eq!(meter.snapshot(), Snapshot::default());
    }

    #[test]
    fn ratios_of_nothing_are_none() {
        assert_eq!(Snapshot::default().contention(), None);
        assert_eq!(Snapshot::default().reentries(), None);
        let some = Snapshot { acquired: 8, contended: 2, slept: 3, ..Snapshot::default() };
        assert_eq!((some.contention(), some.reentries()), (Some(0.25), Some(1.5)));
    }
}
