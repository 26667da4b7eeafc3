//! Events of the checker for `tracing`, behind the feature of that name. Without it all of this is
//! empty.
//!
//! A subscriber may take checked locks itself. So:
//!
//! - The event of a contended acquisition waits until its thread holds no checked lock. The thread
//!   may have acquired the very lock of the subscriber. It comes at the next release of a mutex or
//!   a reader-writer lock, also that of a wait for permits, which have no holder.
//! - While a thread runs a subscriber for the checker, it makes no events of the checker.

pub(crate) use imp::*;

#[cfg(not(feature = "tracing"))]
mod imp {
    use crate::seen::{report::Report, thread::Wait};

    pub fn wants_waits() -> bool {
        false
    }

    pub fn waited(_: &Wait, _: u64) {}

    #[inline(always)]
    pub fn released() {}

    pub fn reported(_: &Report) {}
}

#[cfg(feature = "tracing")]
mod imp {
    use crate::seen::report::{Report, Severity};
    use crate::seen::thread::{Wait, existing, is_in_handler};
    use core::cell::Cell;
    use tracing::{Level, event, field::display, level_filters::LevelFilter};

    /// How many events of a thread may be on their way. Further ones are only counted.
    const PENDING: usize = 16;

    std::thread_local! {
        /// The ended waits, with their nanoseconds.
        static WAITS: [Cell<Option<(Wait, u64)>>; PENDING] = const { [const { Cell::new(None) }; PENDING] };
        /// How many waits have ended, also those that had no room.
        static COUNT: Cell<usize> = const { Cell::new(0) };
        /// Whether this thread runs a subscriber.
        static EMITS: Cell<bool> = const { Cell::new(false) };
    }

    /// Whether events of contended acquisitions are wanted. Asks no subscriber.
    pub fn wants_waits() -> bool {
        LevelFilter::current() >= Level::DEBUG
    }

    /// A wait of this thread has ended.
    pub fn waited(wait: &Wait, nanos: u64) {
        if EMITS.get() || !wants_waits() {
            return;
        }
        let count = COUNT.replace(COUNT.get() + 1);
        WAITS.with(|waits| waits.get(count).map(|room| room.set(Some((*wait, nanos)))));
    }

    /// This thread has released a lock. Touches no lock.
    pub fn released() {
        let holds = || existing().is_some_and(|me| me.holds_any() || me.is_handler());
        if COUNT.get() == 0 || EMITS.get() || holds() || std::thread::panicking() {
            return;
        }
        let _emits = Emits(EMITS.replace(true));
        let missed = COUNT.take().saturating_sub(PENDING);
        WAITS.with(|waits| {
            for (wait, waited_ns) in waits.iter().filter_map(Cell::take) {
                let (lock, made, at) = (wait.class.name(), wait.class.place(), wait.place);
                event!(
                    target: "ulocks_debug", Level::DEBUG,
                    lock, %made, address = wait.lock, %at, waited_ns, "a contended acquisition"
                );
            }
        });
        if missed > 0 {
            event!(target: "ulocks_debug", Level::DEBUG, missed, "more contended acquisitions");
        }
    }

    /// A rule was broken.
    pub fn reported(report: &Report) {
        if EMITS.get() || is_in_handler() {
            return;
        }
        let _emits = Emits(EMITS.replace(true));
        let (rule, lock) = (report.rule, &report.lock);
        let [here, before] = [report.here, report.before].map(|place| place.map(display));
        macro_rules! at {
            ($level:ident) => {
                event!(target: "ulocks_debug", Level::$level, ?rule, %lock, here, before, "{report}")
            };
        }
        match report.severity {
            Severity::Fault => at!(ERROR),
            Severity::Warning => at!(WARN),
        }
    }

    /// The thread runs a subscriber until this is dropped, also by a panic of that.
    struct Emits(bool);

    impl Drop for Emits {
        fn drop(&mut self) {
            EMITS.set(self.0);
        }
    }
}
