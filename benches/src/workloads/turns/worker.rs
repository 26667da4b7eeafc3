//! What one worker does around its loop: the work outside, and the book-keeping at the edges of the
//! window.

use super::conductor::{Arena, Control, Slot, announce, wait_while};
use crate::run::busy_work::{self, Span};
use crate::run::threads::{time, usage};
use crate::run::{pinning, syscalls};
use crate::statistics::random::Rng;
use crate::statistics::waits::Waits;
use crate::subjects::locks::{Lane, Next, Worker, phase};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::Duration;

/// What all workers of a trial share.
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
    slot: &'a Slot,
    waits: Option<&'a Waits>,
    rng: Rng,
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
        let (control, slot) = (self.control, self.slot);
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
        let used = usage(libc::RUSAGE_THREAD);
        let used = [
            (&slot.system_ns, time(used.ru_stime).as_nanos() as u64),
            (&slot.switches, (used.ru_nvcsw + used.ru_nivcsw) as u64),
        ];
        // A window that was opened and closed while this worker waited is one change for it, and
        // holds none of its operations.
        if seen < phase::MEASURE && now >= phase::MEASURE {
            used.iter().for_each(|(place, value)| place.store(*value, Relaxed));
            self.before_window = operations - 1;
        }
        if now == phase::STOP {
            used.iter().for_each(|(place, value)| place.store(value - place.load(Relaxed), Relaxed));
            slot.counted.store(operations - 1 - self.before_window, Relaxed);
        }
        now
    }

    fn waited(&mut self, ns: u64) {
        if let Some(waits) = self.waits {
            waits.record(ns);
        }
    }
}

/// Says that a worker has come to its end, also by a panic, whose message is on its way to the
/// user.
struct Ending<'a>(&'a Control, bool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if !self.1 {
            announce(&self.0.failed, |failed| _ = failed.fetch_add(1, Release));
        }
        announce(&self.0.finished, |finished| _ = finished.fetch_add(1, Release));
    }
}

/// Runs worker `index` to its end.
pub fn work(arena: &Arena, plan: &Plan, index: usize) {
    let (control, slot) = (&arena.control[0], &arena.slots[index]);
    let mut ending = Ending(control, false);
    let bound = match plan.cpus.len() {
        0 => Ok(()),
        len => pinning::bind(plan.cpus[index % len]),
    };
    // Even a worker that failed goes through the barrier, so that no thread waits for it.
    announce(&control.ready, |ready| _ = ready.fetch_add(1, Release));
    while control.phase.load(Acquire) == phase::GATHER {
        wait_while(&control.phase, phase::GATHER, Duration::from_secs(1));
    }
    bound.unwrap_or_else(|error| panic!("{error}"));
    let at = index % arena.locks.count();
    let bare = plan.hold.is_zero() && plan.think.is_zero() && plan.read_share == 0 && !plan.timed;
    let lane = Lane { phase: &control.phase, protected: &arena.protected[at], bare, timed: plan.timed };
    let (rng, waits) = (Rng::new(plan.seed.wrapping_add(index as u64)), arena.waits.get(index));
    let mut worker = Turner { plan, control, slot, waits, rng, before_window: 0 };
    let turned = syscalls::count(&slot.futexes, || arena.locks.get(at).turns(lane, &mut worker));
    let put = |place: &AtomicU64, value| place.store(value, Relaxed);
    put(&slot.exclusive, turned.exclusive);
    put(&slot.torn, turned.torn);
    ending.1 = true;
}
