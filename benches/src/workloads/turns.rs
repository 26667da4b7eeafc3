//! The loop of 2002: outside, lock, inside, unlock; both times uniform in [0.5x, 1.5x].
//!
//! Workers start behind a barrier and run Franke's loop. Before the warm-up each of them has its
//! first turn, and where there are more of them than CPUs makes room for the next: a thousand
//! runnable threads would take a time slice each, seconds together, and until then there would be
//! fewer contenders than the trial says. The coordinator opens the window after the warm-up and
//! closes it; what is counted are the operations that *completed* in between, divided by the time
//! that really passed. The protected counter of each lock is raised by a load at the start of the
//! critical section and a store at its end: an operation lost by two holders at once shows in the
//! sum, and the trial is an error, not a result.
//!
//! Wait times cover every acquisition that ended in the window, however long before it began, and
//! for each worker the wait that was not over when the window closed, with the length it came
//! to. Otherwise a lock could hide its worst waits by not ending them.
//!
//! CPU time and [futex calls](crate::run::syscalls) are looked at from outside, by the coordinator
//! at both edges of the window, for all workers together. System time and context switches are each
//! worker's own, as it notices the window's start and end: a worker that waits as the window opens
//! takes its first sample when it gets in, so what it cost to wake up is in none of them.

pub(super) mod job;

use super::watched::Seen;
use super::*;
use crate::run::busy_work::Span;
use crate::run::pinning;
use crate::run::waits::Waits;
use crate::subjects::locks::{Form, Locks, Scope, Type};
use job::{Job, Role, Slot};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The loop of 2002: outside, lock, inside, unlock; both times uniform in [0.5x, 1.5x].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turns {
    /// Times inside and outside.
    pub times: Times,
    /// The contenders.
    pub workers: Workers,
    /// Percentage of acquisitions that are shared.
    pub read_share: u8,
    /// Lock instances; worker i uses lock i % locks.
    pub locks: u32,
    /// Whether each acquisition is timed: then the outcome has waits.
    pub timed: bool,
    /// The window lasts so long at least.
    pub least_ms: u64,
    /// Whether the subject counts its own events, if it can; then the outcome has contention and
    /// sleeps.
    pub counted: bool,
    /// How long the subject spins, instead of its own patience, if it can.
    pub patience_ns: Option<u32>,
}

impl Turns {
    /// In which form the lock is made.
    pub fn form(self) -> Form {
        let scope = match self.workers {
            Workers::Threads(_) => Scope::Threads,
            Workers::Processes(_) => Scope::Processes,
        };
        Form { scope, patience_ns: self.patience_ns, counted: self.counted }
    }

    /// Carries it out in this process.
    pub fn carry_out(self, name: &str, kind: Type, on: &Conditions, patience: Duration) -> Result<Outcome> {
        let outcome = self.run(name, kind, on, patience)?;
        if self.windows() == 1 {
            return Ok(outcome);
        }
        let mut untimed = Self { timed: false, ..self }.run(name, kind, on, patience)?;
        untimed.extend(outcome.into_iter().filter(|(name, _)| name.starts_with("wait-")));
        Ok(untimed)
    }

    /// How many windows it has. Two looks at the clock would cost as much as a loop of nothing: so
    /// that loop gives its waits in one window and all else in another.
    pub fn windows(self) -> u64 {
        if self.timed && self.times.is_bare() { 2 } else { 1 }
    }

    fn run(self, name: &str, kind: Type, conditions: &Conditions, patience: Duration) -> Result<Outcome> {
        let (role, workers) = (self.role(name, kind, conditions)?, self.workers.count());
        let crowded = workers as usize > pinning::allowed()?.len();
        let locks = Locks::of(kind, self.form().scope, self.locks as usize)?;
        let job = Job::new([workers, 0], [role; 2], self.timed, conditions.seed, crowded, locks)?;
        // Each worker may still hold its lock once, behind all the others.
        let drain = Duration::from_nanos(2 * (self.times.hold_ns + self.times.think_ns)) * workers;
        let grace = patience + drain;
        let (job, seen) = job.run(name, self.workers, pinning::order(conditions.pin)?, conditions, grace)?;
        let mut outcome = say(&job, seen);
        Waits::say(&job.waits.iter().collect::<Vec<_>>(), &mut outcome);
        Ok(outcome)
    }

    /// Checks what can be checked before anything runs.
    fn role(self, name: &str, kind: Type, conditions: &Conditions) -> Result<Role> {
        let (Times { hold_ns, think_ns }, window_ms) = (self.times, conditions.window_ms);
        let read_share = self.read_share;
        ensure!(self.workers.count() > 0, "zero workers cannot contend; allowed: at least 1");
        ensure!(self.locks > 0, "zero locks cannot be contended; allowed: at least 1");
        ensure!(read_share <= 100, "a read share of {read_share} %; allowed: 0 to 100");
        ensure!(
            read_share == 0 || kind.shared_mode,
            "lock '{name}' has no shared mode: a read share of {read_share} % is impossible; allowed: 0"
        );
        let hold = Span::new("a hold time", hold_ns, conditions.iterations_per_us)?;
        let think = Span::new("a non-hold time", think_ns, conditions.iterations_per_us)?;
        let loop_ns = hold_ns + think_ns;
        ensure!(
            loop_ns <= window_ms.saturating_mul(1_000_000),
            "one loop of {loop_ns} ns does not fit the window of {window_ms} ms; allowed: shorter times or a longer window"
        );
        Ok(Role { hold, think, pause: None, steady: false, read_share })
    }
}

/// The figures of a window. What a clock cannot see is left out.
fn say(job: &Job, seen: Seen) -> Outcome {
    let each = |of: fn(&Slot) -> &AtomicU64| job.slots.iter().map(move |slot| of(slot).load(Relaxed));
    let counts: Vec<u64> = each(|slot| &slot.counted).collect();
    let (workers, switches) = (counts.len(), Some(each(|slot| &slot.switches).sum()));
    let system = Duration::from_nanos(each(|slot| &slot.system_ns).sum());
    let meters = seen.meters;
    let mut outcome = Seen { counts, switches, system, ..seen }.figures(0..workers, job.kind().countable);
    if let Some(meters) = meters {
        // No lock that counts has a mode for readers.
        let [acquired, contended, spun, slept] = meters.map(|count| count as f64);
        let parts = [
            ("contended", contended / acquired),
            ("spun", spun / contended),
            ("reentries", slept / contended),
        ];
        outcome.extend(parts.into_iter().filter(|part| part.1.is_finite()).map(|(n, part)| (n.into(), part)));
    }
    outcome
}
