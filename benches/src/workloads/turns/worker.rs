//! What one worker does around its loop: the work outside, and the book-keeping at the edges of the
//! window.

use super::arena::{Arena, Control, Tally, announce, wait_while};
use crate::run::busy_work::{self, Span};
use crate::run::threads::{time, usage};
use crate::run::{pinning, syscalls};
use crate::statistics::random::Rng;
use crate::subjects::locks::{Lane, Next, Worker, phase};
use crate::workloads::waits::Waits;
use anyhow::Result;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::Duration;

/// What all workers of a trial share.
#[derive(Debug)]
pub struct Plan {
    pub hold: Span,
    pub think: Span,
    pub read_share: u8,
    pub timed: bool,
    pub seed: u64,
    pub cpus: Vec<usize>,
    pub workers: u32,
    /// Whether there are more workers than CPUs.
    pub crowded: bool,
}

/// A worker beside its lock.
struct Turner<'a> {
    plan: &'a Plan,
    control: &'a Control,
    rng: Rng,
    waits: Option<&'a mut Waits>,
    tally: Tally,
    before_window: u64,
}

impl Worker for Turner<'_> {
    fn outside(&mut self) -> Next {
        let Plan { hold, think, read_share, .. } = *self.plan;
        let inside = if hold.is_zero() { 0 } else { hold.draw(&mut self.rng) };
        if !think.is_zero() {
            busy_work::burn(think.draw(&mut self.rng));
        }
        Next { inside, reads: read_share > 0 && self.rng.below(100) < u64::from(read_share) }
    }

    #[cold]
    fn changed(&mut self, seen: u32, now: u32, operations: u64) -> u32 {
        let control = self.control;
        if now == phase::RAMP_UP {
            if operations == 1 {
                control.started.fetch_add(1, Relaxed);
            }
            // For workers that have not run at all yet: a time slice for each of a thousand would
            // take seconds.
            if self.plan.crowded && control.started.load(Relaxed) < self.plan.workers {
                thread::yield_now();
            }
            return seen;
        }
        // A window that was opened and closed while this worker waited is one change for it, and
        // holds none of its operations.
        if seen < phase::MEASURE && now >= phase::MEASURE {
            (self.tally.system_ns, self.tally.switches) = used();
            self.before_window = operations - 1;
        }
        if now == phase::STOP {
            let (system_ns, switches) = used();
            self.tally.system_ns = system_ns.saturating_sub(self.tally.system_ns);
            self.tally.switches = switches - self.tally.switches;
            self.tally.counted = operations - 1 - self.before_window;
        }
        now
    }

    fn waited(&mut self, ns: u64) {
        if let Some(waits) = &mut self.waits {
            waits.record(ns);
        }
    }
}

/// System CPU time in nanoseconds and context switches of the calling thread.
fn used() -> (u64, u64) {
    let usage = usage(libc::RUSAGE_THREAD);
    (time(usage.ru_stime).as_nanos() as u64, (usage.ru_nvcsw + usage.ru_nivcsw) as u64)
}

/// Runs worker `index` to its end. Never unwinds: a panic becomes a failed slot.
pub fn work(arena: &Arena, plan: &Plan, index: usize) {
    let (control, slot) = (arena.control(), &arena.slots()[index]);
    let outcome = catch_unwind(AssertUnwindSafe(|| -> Result<Tally> {
        let bound = match plan.cpus.len() {
            0 => Ok(()),
            len => pinning::bind(plan.cpus[index % len]),
        };
        // Even a worker that failed goes through the barrier, so that no thread waits for it.
        announce(&control.ready, |ready| _ = ready.fetch_add(1, Release));
        while control.phase.load(Acquire) == phase::GATHER {
            wait_while(&control.phase, phase::GATHER, Duration::from_secs(1));
        }
        bound?;
        let at = index % arena.locks.count();
        let lane = Lane {
            phase: &control.phase,
            protected: &arena.protected()[at],
            bare: plan.hold.is_zero() && plan.think.is_zero() && plan.read_share == 0 && !plan.timed,
            timed: plan.timed,
        };
        let mut worker = Turner {
            plan,
            control,
            rng: Rng::new(plan.seed.wrapping_add(index as u64)),
            // SAFETY: this is the worker, and asks once.
            waits: unsafe { arena.waits(index) },
            tally: Tally::default(),
            before_window: 0,
        };
        let lock = arena.locks.get(at);
        let turned = syscalls::count(&slot.futexes, || lock.turns(lane, &mut worker));
        Ok(Tally { turned, ..worker.tally })
    }));
    let failure = match outcome {
        Ok(Ok(tally)) => {
            // SAFETY: this is the worker, which counts as finished below.
            unsafe { arena.put(index, tally) };
            None
        }
        Ok(Err(error)) => Some(error.to_string()),
        Err(panic) => Some(match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
            (Some(text), _) => text.clone(),
            (_, Some(text)) => (*text).to_owned(),
            _ => "panic".to_owned(),
        }),
    };
    if let Some(text) = failure {
        slot.fail(&text);
        announce(&control.failed, |failed| _ = failed.fetch_add(1, Release));
    }
    announce(&control.finished, |finished| _ = finished.fetch_add(1, Release));
}
