//! Events of the checker for `tracing`, behind the feature of that name. Without it all of this is
//! empty.
//!
//! A subscriber may take checked locks itself. So:
//!
//! - The event of a contended acquisition waits until its thread holds no checked lock. The thread
//!   may have acquired the very lock of the subscriber. It comes at the next release of a
//!   checked lock, also that of a wait for permits, which have no holder.
//! - While a thread runs a subscriber for the checker, it makes no events of the checker.

use crate::Report;
use crate::thread::Wait;

/// Whether events of contended acquisitions are wanted. Asks no subscriber.
#[inline]
pub(crate) fn wants_waits() -> bool {
    #[cfg(feature = "tracing")]
    return imp::wants_waits();
    #[cfg(not(feature = "tracing"))]
    false
}

/// A wait of this thread has ended.
pub(crate) fn waited(wait: &Wait, nanos: u64) {
    #[cfg(feature = "tracing")]
    imp::waited(wait, nanos);
    #[cfg(not(feature = "tracing"))]
    let _ = (wait, nanos);
}

/// This thread has released a lock. Touches no lock.
#[inline(always)]
pub(crate) fn released() {
    #[cfg(feature = "tracing")]
    imp::released();
}

/// A rule was broken.
pub(crate) fn reported(report: &Report) {
    #[cfg(feature = "tracing")]
    imp::reported(report);
    #[cfg(not(feature = "tracing"))]
    let _ = report;
}

#[cfg(feature = "tracing")]
mod imp {
    use crate::report::{Place, Report, Severity};
    use crate::thread::{Wait, existing, is_in_handler};
    use core::cell::Cell;
    use tracing::{Level, level_filters::LevelFilter};

    /// How many events of a thread may be on their way. Further ones are only counted.
    const PENDING: usize = 16;

    #[derive(Clone, Copy)]
    struct Waited {
        name: &'static str,
        made: Place,
        at: Place,
        lock: usize,
        nanos: u64,
    }

    struct Events {
        pending: [Cell<Option<Waited>>; PENDING],
        count: Cell<usize>,
        missed: Cell<u64>,
        /// Whether this thread runs a subscriber.
        emits: Cell<bool>,
    }

    std::thread_local! {
        static EVENTS: Events = const {
            Events {
                pending: [const { Cell::new(None) }; PENDING],
                count: Cell::new(0),
                missed: Cell::new(0),
                emits: Cell::new(false),
            }
        };
    }

    pub fn wants_waits() -> bool {
        LevelFilter::current() >= Level::DEBUG
    }

    pub fn waited(wait: &Wait, nanos: u64) {
        EVENTS.with(|events| {
            if events.emits.get() || !wants_waits() {
                return;
            }
            let (name, made, at, lock) = (wait.class.name(), wait.class.place(), wait.place, wait.lock);
            match events.pending.get(events.count.get()) {
                Some(place) => {
                    place.set(Some(Waited { name, made, at, lock, nanos }));
                    events.count.set(events.count.get() + 1);
                }
                None => events.missed.set(events.missed.get() + 1),
            }
        });
    }

    #[inline(always)]
    pub fn released() {
        EVENTS.with(|events| {
            if events.count.get() > 0 {
                flush(events);
            }
        });
    }

    #[cold]
    fn flush(events: &Events) {
        let holds = existing().is_some_and(|me| me.holds_any() || me.is_handler());
        if holds || events.emits.get() || std::thread::panicking() {
            return;
        }
        let _emits = Emits::begin(events);
        let missed = events.missed.take();
        for place in &events.pending[..events.count.replace(0)] {
            if let Some(Waited { name, made, at, lock, nanos }) = place.take() {
                tracing::event!(
                    target: "ulocks_debug",
                    Level::DEBUG,
                    lock = name,
                    made = %made,
                    address = lock,
                    at = %at,
                    waited_ns = nanos,
                    "a contended acquisition"
                );
            }
        }
        if missed > 0 {
            tracing::event!(target: "ulocks_debug", Level::DEBUG, missed, "more contended acquisitions");
        }
    }

    pub fn reported(report: &Report) {
        EVENTS.with(|events| {
            if events.emits.get() || is_in_handler() {
                return;
            }
            let _emits = Emits::begin(events);
            let (rule, lock) = (report.rule(), report.lock());
            let here = report.here().map(tracing::field::display);
            let before = report.before().map(tracing::field::display);
            match report.severity() {
                Severity::Fault => tracing::event!(
                    target: "ulocks_debug", Level::ERROR, ?rule, %lock, here, before, "{report}"
                ),
                Severity::Warning => tracing::event!(
                    target: "ulocks_debug", Level::WARN, ?rule, %lock, here, before, "{report}"
                ),
            }
        });
    }

    /// The thread runs a subscriber until this is dropped, also by a panic of that.
    struct Emits<'a>(&'a Events);

    impl<'a> Emits<'a> {
        fn begin(events: &'a Events) -> Self {
            events.emits.set(true);
            Self(events)
        }
    }

    impl Drop for Emits<'_> {
        fn drop(&mut self) {
            self.0.emits.set(false);
        }
    }
}
