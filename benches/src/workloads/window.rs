//! Threads that begin together, the window in which they are counted, and what is said of it.

pub(super) use crate::subjects::locks::phase::{MEASURE, STOP, WARM_UP};

use super::Conditions;
use crate::engine::record::Outcome;
pub(super) use crate::run::crew::together;
use crate::run::threads::{Urgent, clock_time};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Release;
use std::thread;
use std::time::{Duration, Instant};

/// Below this a clock that goes by ticks has seen too few of them.
const LEAST_CPU: Duration = Duration::from_millis(1);

/// Opens and closes the window. Returns its length, and the CPU time of the process in it.
pub(super) fn open(conditions: &Conditions, phase: &AtomicU32) -> (Duration, Duration) {
    let _urgent = Urgent::new();
    let cpu_time = || clock_time(libc::CLOCK_PROCESS_CPUTIME_ID);
    thread::sleep(Duration::from_millis(conditions.warmup_ms));
    let (start, cpu) = (Instant::now(), cpu_time());
    phase.store(MEASURE, Release);
    thread::sleep(Duration::from_millis(conditions.window_ms));
    let seen = (start.elapsed(), cpu_time() - cpu);
    phase.store(STOP, Release);
    seen
}

/// CPU time and system time for an operation, where the clocks have seen enough. The kernel may
/// split the time of a process by ticks: then none in the kernel means that no tick fell there.
pub(super) fn cpu_figures(outcome: &mut Outcome, cpu: Duration, system: Duration, operations: f64) {
    if cpu < LEAST_CPU || operations == 0.0 {
        return;
    }
    outcome.insert("cpu".into(), cpu.as_nanos() as f64 / operations);
    if !system.is_zero() {
        outcome.insert("system".into(), system.as_nanos() as f64 / operations);
    }
}
