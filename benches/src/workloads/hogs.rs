//! Hogs and victims: threads that hold a lock nearly always, and threads that want it now and then.
//!
//! A hog holds the lock for a time and asks for it again at once, with nothing in between. A victim
//! sleeps for a while, asks, holds the lock for a moment, and sleeps again. What matters is how
//! long victims wait, and what their being served costs the hogs. A closed loop of equal threads
//! shows neither: there each thread is a hog.
//!
//! Sleeping, not working, is what makes a victim wake up while the hog is at work: on the hog's own
//! CPU it then finds the lock taken by a thread that cannot run as long as it looks. A lock that
//! yields there pays with time slices.
//!
//! Waits are those of the victims, as in [`turns`]: every acquisition that ended in the window,
//! however long before it began, and the ones still waiting when the window closes, with the length
//! they come to. A wait begins when the victim asks, not when it should have woken up.

use super::window::{self, MEASURE, STOP, WARM_UP};
use super::*;
use crate::run::busy_work::{self, Span};
use crate::run::clock::monotonic_ns;
use crate::run::pinning;
use crate::run::threads::{keep_a_thread_asleep, wake_on_time};
use crate::statistics::waits::Waits;
use crate::subjects::locks::{Entry, Form, Locks, Mutex, Scope, Type};
use crossbeam_utils::CachePadded;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::thread;

/// Threads that hold a lock nearly always, and threads that want it now and then.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hogs {
    /// Threads that always hold it or want it.
    pub hogs: u32,
    /// Threads that want it now and then.
    pub victims: u32,
    /// How long a hog holds it, in nanoseconds.
    pub hold_ns: u64,
    /// Whether all run on one CPU, instead of being dealt to all in turn, hogs first.
    pub together: bool,
}

/// How long victims sleep before they ask again.
const PAUSE: Duration = Duration::from_millis(1);
/// How long a victim holds the lock, in nanoseconds.
pub const VICTIM_HOLD_NS: u64 = 1_000;

/// What all threads share.
struct Shared<'a> {
    lock: &'a dyn Mutex,
    phase: CachePadded<AtomicU32>,
    /// Raised by a load and a store in each critical section.
    protected: CachePadded<AtomicU64>,
}

/// What a thread has done.
struct Tally {
    /// In the window.
    counted: u64,
    /// From first to last.
    all: u64,
    waits: Box<Waits>,
}

impl Hogs {
    /// Carries it out in this process.
    pub fn carry_out(self, subject: &str, conditions: &Conditions) -> Result<Outcome> {
        self.run(subject, Entry::find(subject)?.make(Form::plain(Scope::Threads))?, conditions)
    }

    fn run(self, name: &str, kind: Type, conditions: &Conditions) -> Result<Outcome> {
        ensure!(
            self.hogs > 0 && self.victims > 0,
            "hogs and victims are both needed; allowed: at least 1 of each"
        );
        let mut cpus = pinning::order(Pin::Scatter)?;
        ensure!(
            self.together || cpus.len() > 1,
            "hog and victim cannot be on different CPUs: this process may use one; allowed: the same CPU"
        );
        if self.together {
            cpus.truncate(1);
        }
        let hold = Span::new("a hold time", self.hold_ns, conditions.iterations_per_us)?;
        let moment = Span::new("a victim's hold time", VICTIM_HOLD_NS, conditions.iterations_per_us)?;
        keep_a_thread_asleep();
        let locks = Locks::of(kind, Scope::Threads, 1)?;
        let shared = Shared {
            lock: locks.get(0),
            phase: CachePadded::new(AtomicU32::new(WARM_UP)),
            protected: CachePadded::new(AtomicU64::new(0)),
        };
        let hogs = self.hogs as usize;
        let body =
            |index| Ok(if index < hogs { shared.work(hold, None) } else { shared.work(moment, Some(PAUSE)) });
        let open = || window::open(conditions, &shared.phase);
        let (tallies, (elapsed, _)) = window::together(hogs + self.victims as usize, &cpus, &body, open)?;

        let done: u64 = tallies.iter().map(|tally| tally.all).sum();
        let kept = shared.protected.load(Relaxed);
        kind.check(name, done, kept)?;
        let held: u64 = tallies.iter().take(hogs).map(|tally| tally.counted).sum();
        let mut outcome = Outcome::from([("hog-rate".to_owned(), held as f64 / elapsed.as_secs_f64())]);
        outcome.retain(|_, rate| *rate > 0.0);
        let waits: Vec<&Waits> = tallies[hogs..].iter().map(|tally| &*tally.waits).collect();
        Waits::say(&waits, &mut outcome);
        Ok(outcome)
    }
}

impl Shared<'_> {
    /// Holds the lock for so long, over and over; a victim sleeps before.
    fn work(&self, hold: Span, pause: Option<Duration>) -> Tally {
        let mut tally = Tally { counted: 0, all: 0, waits: Waits::new() };
        if pause.is_some() {
            wake_on_time();
        }
        loop {
            if let Some(pause) = pause {
                thread::sleep(pause);
                if self.phase.load(Relaxed) == STOP {
                    return tally;
                }
            }
            let (asked, mut had) = (monotonic_ns(), 0);
            self.lock.with(&mut || {
                had = monotonic_ns();
                let next = self.protected.load(Relaxed).wrapping_add(1);
                busy_work::burn(hold.mean());
                self.protected.store(next, Relaxed);
            });
            tally.all += 1;
            let phase = self.phase.load(Relaxed);
            tally.counted += u64::from(phase == MEASURE);
            if phase != WARM_UP {
                tally.waits.record(had - asked);
            }
            if phase == STOP {
                return tally;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::turns::tests::{Open, conditions, waits_are_sorted};

    const HOGS: Hogs = Hogs { hogs: 1, victims: 1, hold_ns: 100_000, together: true };

    fn carry_out(hogs: Hogs, lock: &str, window_ms: u64) -> Result<Outcome> {
        let conditions = Conditions { window_ms, ..conditions() };
        Ok(Trial::new(Scenario::Hogs(hogs), vec![lock.into()], conditions).carry_out()?.remove(0))
    }

    #[test]
    fn locks_serve_hogs_and_victims() {
        for lock in ["std", "throughput", "mcs-park"] {
            let figures = carry_out(HOGS, lock, 50).unwrap();
            assert!(waits_are_sorted(&figures) && !figures.is_empty(), "{lock}: {figures:?}");
        }
        carry_out(Hogs { hogs: 3, victims: 5, hold_ns: 10_000, ..HOGS }, "sysv", 50).unwrap();
    }

    #[test]
    fn a_wait_that_outlives_the_window_is_recorded() {
        // The hog's first hold is longer than warm-up and window: the victim asks during it and
        // waits for its end. Unless the victim was first, which a sleep of a millisecond makes
        // unlikely and not impossible.
        let figures = carry_out(Hogs { hold_ns: 200_000_000, ..HOGS }, "mcs-park", 50).unwrap();
        assert!(figures["wait-max"] > 50e6 || figures["wait-p50"] < 50e6, "{figures:?}");
    }

    #[test]
    fn a_lock_that_does_not_exclude_is_found_out() {
        let conditions = Conditions { window_ms: 200, ..conditions() };
        let hogs = Hogs { hogs: 4, hold_ns: 1_000_000, ..HOGS };
        let error = hogs.run("open", Type::of::<Open>(), &conditions).unwrap_err().to_string();
        assert!(error.starts_with("lost updates: lock 'open' was held "), "{error}");
        let error = carry_out(Hogs { hogs: 0, ..HOGS }, "std", 50).unwrap_err().to_string();
        assert_eq!(error, "hogs and victims are both needed; allowed: at least 1 of each");
    }
}
