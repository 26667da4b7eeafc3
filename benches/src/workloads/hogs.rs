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
//! Waits are those of the victims, as in a [trial](crate::workloads::trial): every acquisition that
//! ended in the window, however long before it began, and the ones still waiting when the window
//! closes, with the length they come to. A wait begins when the victim asks, not when it should
//! have woken up.

use super::trial::Waits;
use super::window::{self, MEASURE, STOP, WARM_UP};
use super::{Scenario, Spec};
use crate::run::busy_work::{self, Span};
use crate::run::pinning::{self, Pin};
use crate::run::threads::{keep_a_thread_asleep, wake_on_time};
use crate::statistics::delays::empty_histogram;
use crate::subjects::locks::{self, Entry, Lock, LockArray, Scope, Visitor};
use anyhow::{Result, ensure};
use crossbeam_utils::CachePadded;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

/// Where they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// Dealt to all CPUs in turn, hogs first: one hog and one victim are on different ones.
    Apart,
    /// All on one CPU.
    Together,
}

/// Hogs and victims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hogs {
    /// Threads that always hold it or want it.
    pub hogs: u32,
    /// Threads that want it now and then.
    pub victims: u32,
    /// How long a hog holds it, in nanoseconds.
    pub hold_ns: u64,
    /// Where they run.
    pub place: Place,
}

/// How long victims sleep before they ask again, in nanoseconds.
const PAUSE_NS: u64 = 1_000_000;
/// How long a victim holds the lock, in nanoseconds.
pub const VICTIM_HOLD_NS: u64 = 1_000;

/// What came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HogsResult {
    /// Holds of each hog that ended in the window.
    pub hogs: Vec<u64>,
    /// Acquisitions of each victim that ended in the window.
    pub victims: Vec<u64>,
    /// Waits of all victims.
    pub waits: Waits,
    /// Length of the window as it really was, in seconds.
    pub elapsed_s: f64,
}

impl Scenario for Hogs {
    type Outcome = HogsResult;

    fn threads(self) -> u32 {
        self.hogs + self.victims
    }

    fn carry_out(spec: &Spec<Self>) -> Result<HogsResult> {
        struct Trial<'a>(&'a Spec<Hogs>);
        impl Visitor for Trial<'_> {
            type Output = Result<HogsResult>;
            fn visit<L: Lock>(self, _: &'static Entry) -> Self::Output {
                run::<L>(self.0)
            }
        }
        locks::visit(Entry::find(&spec.subject)?, Scope::Threads, Trial(spec))?
    }
}

/// What all threads share.
struct Shared<'a, L> {
    lock: &'a L,
    phase: CachePadded<AtomicU64>,
    /// Raised by a load and a store in each critical section.
    protected: CachePadded<AtomicU64>,
}

/// What a thread has done.
#[derive(Default)]
struct Tally {
    /// In the window.
    counted: u64,
    /// From first to last.
    all: u64,
    wait_sum: u64,
    wait_max: u64,
}

/// Runs hogs and victims over lock type `L`, which need not be registered.
pub fn run<L: Lock>(spec: &Spec<Hogs>) -> Result<HogsResult> {
    ensure!(
        spec.run.hogs > 0 && spec.run.victims > 0,
        "hogs and victims are both needed; allowed: at least 1 of each"
    );
    let cpus = pinning::order(Pin::Scatter)?;
    ensure!(
        spec.run.place == Place::Together || cpus.len() > 1,
        "hog and victim cannot be on different CPUs: this process may use one; allowed: the same CPU"
    );
    let hold = Span::new("a hold time", spec.run.hold_ns, spec.iterations_per_us)?;
    let moment = Span::new("a victim's hold time", VICTIM_HOLD_NS, spec.iterations_per_us)?;
    keep_a_thread_asleep();
    let row = LockArray::<L>::new(Scope::Threads, 1)?;
    let (hogs, victims) = (spec.run.hogs as usize, spec.run.victims as usize);
    let shared = Shared {
        lock: row.get(0),
        phase: CachePadded::new(AtomicU64::new(WARM_UP)),
        protected: CachePadded::new(AtomicU64::new(0)),
    };
    let cpu_of = |index: usize| match spec.run.place {
        Place::Apart => cpus[index % cpus.len()],
        Place::Together => cpus[0],
    };
    let pause = Duration::from_nanos(PAUSE_NS);
    let body = |index: usize| {
        Ok(if index < hogs {
            (shared.hog(hold), None)
        } else {
            let mut histogram = empty_histogram();
            (shared.victim(moment, pause, &mut histogram), Some(histogram))
        })
    };
    let (tallies, (elapsed_s, _)) =
        window::together(hogs + victims, cpu_of, body, || window::open(spec, &shared.phase))?;
    shared.collect::<L>(spec, tallies, elapsed_s)
}

impl<L: Lock> Shared<'_, L> {
    /// Holds the lock for `span`; returns when it was had.
    fn hold(&self, span: Span) -> Instant {
        self.lock.with(|| {
            let had = Instant::now();
            let next = self.protected.load(Relaxed).wrapping_add(1);
            busy_work::burn(span.mean());
            self.protected.store(next, Relaxed);
            had
        })
    }

    #[inline(never)]
    fn hog(&self, hold: Span) -> Tally {
        let mut tally = Tally::default();
        loop {
            self.hold(hold);
            tally.all += 1;
            match self.phase.load(Relaxed) {
                WARM_UP => {}
                MEASURE => tally.counted += 1,
                _ => return tally,
            }
        }
    }

    #[inline(never)]
    fn victim(&self, hold: Span, pause: Duration, histogram: &mut Histogram<u64>) -> Tally {
        let mut tally = Tally::default();
        wake_on_time();
        loop {
            thread::sleep(pause);
            if self.phase.load(Relaxed) == STOP {
                return tally;
            }
            let asked = Instant::now();
            let had = self.hold(hold);
            tally.all += 1;
            let phase = self.phase.load(Relaxed);
            if phase != WARM_UP {
                let wait = had.duration_since(asked).as_nanos() as u64;
                histogram.saturating_record(wait.max(1));
                tally.wait_sum += wait;
                tally.wait_max = tally.wait_max.max(wait);
            }
            match phase {
                WARM_UP => {}
                MEASURE => tally.counted += 1,
                _ => return tally,
            }
        }
    }

    /// Checks the counter, and puts the pieces together: hogs come first.
    fn collect<T: Lock>(
        &self,
        spec: &Spec<Hogs>,
        tallies: Vec<(Tally, Option<Histogram<u64>>)>,
        elapsed_s: f64,
    ) -> Result<HogsResult> {
        let done: u64 = tallies.iter().map(|(tally, _)| tally.all).sum();
        let kept = self.protected.load(Relaxed);
        ensure!(
            done == kept || !T::EXCLUDES,
            "lost updates: lock '{}' was held {done} times, but the counter it protects says {kept}",
            spec.subject
        );
        let mut waits = empty_histogram();
        for histogram in tallies.iter().filter_map(|(_, histogram)| histogram.as_ref()) {
            waits.add(histogram)?;
        }
        let sum = tallies.iter().map(|(tally, _)| tally.wait_sum).sum();
        let max = tallies.iter().map(|(tally, _)| tally.wait_max).max().unwrap_or(0);
        let counted: Vec<u64> = tallies.iter().map(|(tally, _)| tally.counted).collect();
        let (hogs, victims) = counted.split_at(spec.run.hogs as usize);
        Ok(HogsResult {
            hogs: hogs.to_vec(),
            victims: victims.to_vec(),
            waits: Waits::of(&waits, sum, max),
            elapsed_s,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::child::Task;

    fn spec(subject: &str, place: Place) -> Spec<Hogs> {
        Spec {
            subject: subject.into(),
            run: Hogs { hogs: 1, victims: 1, hold_ns: 100_000, place },
            warmup_ms: 5,
            window_ms: 50,
            iterations_per_us: busy_work::calibrate(),
            seed: 1,
        }
    }

    #[test]
    fn every_lock_serves_hogs_and_victims() {
        for entry in locks::Entry::all().iter().filter(|entry| entry.excludes) {
            let result = spec(entry.name, Place::Together).carry_out().unwrap();
            assert_eq!((result.hogs.len(), result.victims.len()), (1, 1), "{}", entry.name);
            let waits = result.waits;
            assert!(waits.p50 <= waits.p99 && waits.p99 <= waits.max, "{}: {waits:?}", entry.name);
            assert!(result.elapsed_s >= 0.05, "{}", entry.name);
        }
    }

    #[test]
    fn many_of_both() {
        let mut spec = spec("sysv", Place::Together);
        spec.run = Hogs { hogs: 3, victims: 5, hold_ns: 10_000, ..spec.run };
        let result = spec.carry_out().unwrap();
        assert_eq!((result.hogs.len(), result.victims.len()), (3, 5));
    }

    #[test]
    fn a_wait_that_outlives_the_window_is_recorded() {
        // The hog's first hold is longer than warm-up and window: the victim asks during it and
        // waits for its end.
        let mut spec = spec("mcs-park", Place::Together);
        spec.run.hold_ns = 200_000_000;
        let result = spec.carry_out().unwrap();
        // Unless the victim was first, which a sleep of a millisecond makes unlikely and not
        // impossible.
        assert!(result.waits.max > 50_000_000 || result.victims[0] > 0, "{result:?}");
    }

    #[test]
    fn a_lock_that_does_not_exclude_is_found_out() {
        struct Open;
        impl Lock for Open {
            fn unlocked(_: Scope) -> Result<Self> {
                Ok(Self)
            }
            type Held<'a> = ();
            fn acquire(&self) {}
            fn try_acquire(&self) -> Option<()> {
                Some(())
            }
        }
        let mut spec = Spec { window_ms: 200, ..spec("open", Place::Together) };
        spec.run = Hogs { hogs: 4, hold_ns: 1_000_000, ..spec.run };
        let error = run::<Open>(&spec).unwrap_err().to_string();
        assert!(error.starts_with("lost updates: lock 'open' was held "), "{error}");
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        type Case = (fn(&mut Spec<Hogs>), &'static str);
        let cases: [Case; 4] = [
            (|spec| spec.run.hogs = 0, "hogs and victims are both needed; allowed: "),
            (|spec| spec.window_ms = 0, "a window of 0 ms measures nothing; allowed: "),
            (|spec| spec.run.hold_ns = 1, "a hold time of 1 ns cannot be measured; allowed: "),
            (|spec| spec.subject = "mutex".into(), "unknown lock 'mutex'; allowed: "),
        ];
        for (spoil, expected) in cases {
            let mut spec = spec("std", Place::Together);
            spoil(&mut spec);
            let error = spec.carry_out().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
