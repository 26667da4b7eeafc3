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
use super::*;
use crate::run::busy_work::Span;
use crate::run::pinning;
use crate::run::waits::Waits;
use crate::subjects::locks::{Locks, Scope, Type};
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
    pub fn carry_out(self, name: &str, kind: Type, on: &Conditions, patience: Duration) -> Result<Outcome> {
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
        let per_us = on.iterations_per_us;
        let role = |hold, pause| Role { hold, pause, think: Span::ZERO, steady: true, read_share: 0 };
        let hog = role(Span::new("a hold time", self.hold_ns, per_us)?, None);
        let victim = role(Span::new("a victim's hold time", VICTIM_HOLD_NS, per_us)?, Some(PAUSE));
        let locks = Locks::of(kind, Scope::Threads, 1)?;
        let workers = [self.hogs, self.victims];
        let job = Job::new(workers, [hog, victim], true, on.seed, false, locks)?;
        let drain = Duration::from_nanos(2 * self.hold_ns) * self.hogs;
        let threads = Workers::Threads(self.hogs + self.victims);
        let (job, seen) = job.run(name, threads, cpus, on, patience + drain)?;
        let hogs = self.hogs as usize;
        let held: u64 = job.slots[..hogs].iter().map(|slot| slot.counted.load(Relaxed)).sum();
        // None at all counts as one: less cannot be seen.
        let rate = held.max(1) as f64 / seen.elapsed.as_secs_f64();
        let mut outcome = Outcome::from([("hog-rate".to_owned(), rate)]);
        Waits::say(&job.waits[hogs..].iter().collect::<Vec<_>>(), &mut outcome);
        Ok(outcome)
    }
}
