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

use super::turns::job::{Job, Role};
use super::watched::{GRACE, Watch};
use super::*;
use crate::run::busy_work::Span;
use crate::run::pinning;
use crate::statistics::waits::Waits;
use crate::subjects::locks::{Entry, Form, Locks, Scope, Type};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

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
        let per_us = conditions.iterations_per_us;
        let role = |hold, pause| Role { hold, pause, think: Span::ZERO, steady: true, read_share: 0 };
        let hog = role(Span::new("a hold time", self.hold_ns, per_us)?, None);
        let victim = role(Span::new("a victim's hold time", VICTIM_HOLD_NS, per_us)?, Some(PAUSE));
        let locks = Locks::of(kind, Scope::Threads, 1)?;
        let workers = [self.hogs, self.victims];
        let job = Arc::new(Job::new(workers, [hog, victim], true, conditions.seed, false, locks)?);
        let watch = Watch {
            who: format!("lock '{name}'"),
            workers: Workers::Threads(self.hogs + self.victims),
            cpus,
            last_is_free: false,
            conditions,
            grace: GRACE + Duration::from_nanos(2 * self.hold_ns) * self.hogs,
        };
        let seen = watch.run(job.clone())?;
        job.check(name)?;
        let hogs = self.hogs as usize;
        let held: u64 = job.slots[..hogs].iter().map(|slot| slot.counted.load(Relaxed)).sum();
        let mut outcome = Outcome::new();
        if held > 0 {
            outcome.insert("hog-rate".into(), held as f64 / seen.elapsed.as_secs_f64());
        }
        Waits::say(&job.waits[hogs..].iter().collect::<Vec<_>>(), &mut outcome);
        Ok(outcome)
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
