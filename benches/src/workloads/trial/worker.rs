//! What one worker does: Franke's loop, and the book-keeping at the edges of the window.

use super::TrialSpec;
use super::arena::{Arena, Bucket, Cell, Control, announce, phase, put, wait_while};
use crate::run::busy_work::{self, Span};
use crate::run::{pinning, syscalls};
use crate::statistics::delays::empty_histogram;
use crate::statistics::random::Rng;
use crate::subjects::locks::Lock;
use anyhow::{Result, ensure};
use hdrhistogram::Histogram;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::{Duration, Instant};

/// What all workers of a trial share.
#[derive(Debug)]
pub struct Plan {
    hold: Span,
    non_hold: Span,
    read_share: u8,
    waits: bool,
    seed: u64,
    cpus: Vec<usize>,
    workers: u32,
    /// Whether there are more workers than CPUs.
    crowded: bool,
}

impl Plan {
    /// Checks what can be checked before anything runs.
    pub fn new<L: Lock>(spec: &TrialSpec) -> Result<Self> {
        ensure!(spec.workers.count() > 0, "zero workers cannot contend; allowed: at least 1");
        ensure!(spec.lock_count > 0, "zero locks cannot be contended; allowed: at least 1");
        ensure!(spec.window_ms > 0, "a window of 0 ms measures nothing; allowed: at least 1 ms");
        ensure!(spec.read_share <= 100, "a read share of {} %; allowed: 0 to 100", spec.read_share);
        ensure!(
            spec.read_share == 0 || L::SHARED_MODE,
            "lock '{}' has no shared mode: a read share of {} % is impossible; allowed: 0",
            spec.lock,
            spec.read_share
        );
        let hold = Span::new("a hold time", spec.hold_ns, spec.iterations_per_us)?;
        let non_hold = Span::new("a non-hold time", spec.non_hold_ns, spec.iterations_per_us)?;
        let loop_ns = spec.hold_ns + spec.non_hold_ns;
        ensure!(
            loop_ns <= spec.window_ms.saturating_mul(1_000_000),
            "one loop of {loop_ns} ns does not fit the window of {} ms; allowed: shorter times or a longer window",
            spec.window_ms
        );
        let cpus = pinning::order(spec.pin)?;
        let workers = spec.workers.count();
        Ok(Self {
            hold,
            non_hold,
            read_share: spec.read_share,
            waits: spec.waits,
            seed: spec.seed,
            cpus,
            workers,
            crowded: workers as usize > pinning::allowed()?.len(),
        })
    }

    /// An empty histogram of the right shape, if waits are recorded. Made before a fork: the child
    /// need not allocate.
    pub fn histogram(&self) -> Option<Histogram<u64>> {
        self.waits.then(empty_histogram)
    }
}

/// What the loop has counted.
#[derive(Default)]
struct Tally {
    counted: u64,
    exclusive: u64,
    torn: u64,
    wait_sum: u64,
    wait_max: u64,
    usage: Usage,
    histogram: Option<Histogram<u64>>,
}

/// Runs worker `index` to its end. Never unwinds: a panic becomes a failed slot.
pub fn work<L: Lock>(arena: &Arena<L>, plan: &Plan, index: usize, histogram: Option<Histogram<u64>>) {
    let control = arena.control();
    let slot = &arena.slots()[index];
    let cells = arena.cells();
    let outcome = catch_unwind(AssertUnwindSafe(|| -> Result<Tally> {
        let bound = match plan.cpus.len() {
            0 => Ok(()),
            len => pinning::bind(plan.cpus[index % len]),
        };
        // Even a worker that failed goes through the barrier, so that no thread waits for it.
        announce(&control.ready, |ready| {
            ready.fetch_add(1, Release);
        });
        while control.phase.load(Acquire) == phase::GATHER {
            wait_while(&control.phase, phase::GATHER, Duration::from_secs(1));
        }
        bound?;
        let cell = &cells[index % cells.len()];
        let rng = Rng::new(plan.seed.wrapping_add(index as u64));
        let idle = plan.hold.is_zero() && plan.non_hold.is_zero();
        Ok(syscalls::count(&slot.futexes, || match (idle, histogram.is_some()) {
            (true, false) => run::<L, false, false>(cell, control, plan, rng, None),
            (true, true) => run::<L, false, true>(cell, control, plan, rng, histogram),
            (false, false) => run::<L, true, false>(cell, control, plan, rng, None),
            (false, true) => run::<L, true, true>(cell, control, plan, rng, histogram),
        }))
    }));
    let failure = match outcome {
        Ok(Ok(tally)) => {
            put(&slot.counted, tally.counted);
            put(&slot.exclusive, tally.exclusive);
            put(&slot.torn, tally.torn);
            put(&slot.wait_sum, tally.wait_sum);
            put(&slot.wait_max, tally.wait_max);
            put(&slot.user_ns, tally.usage.user_ns);
            put(&slot.system_ns, tally.usage.system_ns);
            put(&slot.voluntary, tally.usage.voluntary);
            put(&slot.involuntary, tally.usage.involuntary);
            if let Some(histogram) = &tally.histogram {
                slot.buckets.store(write_buckets(histogram, arena.buckets(index)), Relaxed);
            }
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
        announce(&control.failed, |failed| {
            failed.fetch_add(1, Release);
        });
    }
    announce(&control.finished, |finished| {
        finished.fetch_add(1, Release);
    });
}

/// The loop: outside, lock, inside, unlock. Both times are drawn before the lock is asked for.
#[inline(never)]
fn run<L: Lock, const WORK: bool, const WAITS: bool>(
    cell: &Cell<L>,
    control: &Control,
    plan: &Plan,
    mut rng: Rng,
    mut histogram: Option<Histogram<u64>>,
) -> Tally {
    let (lock, protected, phase) = (&cell.lock, &cell.protected, &control.phase);
    let mut tally = Tally::default();
    let mut total = 0u64;
    let mut before_window = 0;
    let mut seen = phase::GATHER;
    loop {
        let mut inside = 0;
        if WORK {
            inside = plan.hold.draw(&mut rng);
            let outside = plan.non_hold.draw(&mut rng);
            busy_work::burn(outside);
        }
        let asked = WAITS.then(Instant::now);
        let had = if L::SHARED_MODE && plan.read_share > 0 && rng.below(100) < u64::from(plan.read_share) {
            lock.with_shared(|| {
                let had = WAITS.then(Instant::now);
                let first = protected.load(Relaxed);
                if WORK {
                    busy_work::burn(inside);
                }
                tally.torn += u64::from(protected.load(Relaxed) != first);
                had
            })
        } else {
            tally.exclusive += 1;
            lock.with(|| {
                let had = WAITS.then(Instant::now);
                let next = protected.load(Relaxed).wrapping_add(1);
                if WORK {
                    busy_work::burn(inside);
                }
                protected.store(next, Relaxed);
                had
            })
        };
        total += 1;

        let now = phase.load(Relaxed);
        if now != seen {
            if now == phase::RAMP_UP {
                if total == 1 {
                    control.started.fetch_add(1, Relaxed);
                }
                // For workers that have not run at all yet: a time slice for each of a thousand
                // would take seconds.
                if plan.crowded && control.started.load(Relaxed) < plan.workers {
                    thread::yield_now();
                }
                continue;
            }
            // A window that was opened and closed while this worker waited is one change for it,
            // and holds none of its operations.
            if seen < phase::MEASURE && now >= phase::MEASURE {
                tally.usage = Usage::now();
                before_window = total - 1;
            }
            if now == phase::STOP {
                tally.usage = Usage::now().since(&tally.usage);
                tally.counted = total - 1 - before_window;
            }
            seen = now;
        }
        if WAITS
            && seen >= phase::MEASURE
            && let (Some(asked), Some(had), Some(histogram)) = (asked, had, &mut histogram)
        {
            let wait = had.duration_since(asked).as_nanos() as u64;
            histogram.saturating_record(wait.max(1));
            tally.wait_sum += wait;
            tally.wait_max = tally.wait_max.max(wait);
        }
        if seen == phase::STOP {
            tally.histogram = histogram;
            return tally;
        }
    }
}

/// Writes the buckets in use to `to` and says how many.
fn write_buckets(histogram: &Histogram<u64>, to: &[Bucket]) -> u32 {
    let mut used = 0;
    for (from, to) in histogram.iter_recorded().zip(to) {
        put(&to.value, from.value_iterated_to());
        put(&to.count, from.count_at_value());
        used += 1;
    }
    used
}

/// What `getrusage` says about the calling thread. In integers, and here: the loop contains it.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    user_ns: u64,
    system_ns: u64,
    voluntary: u64,
    involuntary: u64,
}

impl Usage {
    fn now() -> Self {
        // SAFETY: all-zero is a valid rusage.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the structure is writable; the call cannot fail with these arguments.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
        let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        Self {
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
            voluntary: usage.ru_nvcsw as u64,
            involuntary: usage.ru_nivcsw as u64,
        }
    }

    fn since(&self, start: &Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(start.user_ns),
            system_ns: self.system_ns.saturating_sub(start.system_ns),
            voluntary: self.voluntary - start.voluntary,
            involuntary: self.involuntary - start.involuntary,
        }
    }
}
