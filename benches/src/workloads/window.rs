//! Threads that begin together, and the window in which they are counted.

use super::Spec;
use crate::run::crew::Crew;
use crate::run::pinning;
use crate::run::threads::{Urgent, clock_time};
use anyhow::Result;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Release;
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

/// The first phase of a run: nothing counts yet.
pub(super) const WARM_UP: u64 = 0;
/// The second: the window.
pub(super) const MEASURE: u64 = 1;
/// The last: threads end.
pub(super) const STOP: u64 = 2;

/// Runs `body(index)` on so many threads, each bound to its CPU, which begin together, and
/// `meanwhile` on the calling thread. Returns what all of them return.
pub(super) fn together<T: Send, R>(
    threads: usize,
    cpu: impl Fn(usize) -> usize + Sync,
    body: impl Fn(usize) -> Result<T> + Sync,
    meanwhile: impl FnOnce() -> R,
) -> Result<(Vec<T>, R)> {
    let bind = |index: usize| pinning::bind(cpu(index));
    let work = |index: usize, bound: Result<()>| bound.and_then(|()| body(index));
    thread::scope(|scope| {
        let small = |_| Builder::new().stack_size(256 * 1024);
        let crew = Crew::start(scope, threads, small, &bind, &work)?;
        let seen = meanwhile();
        Ok((crew.join().into_iter().collect::<Result<Vec<T>>>()?, seen))
    })
}

/// Opens and closes the window. Returns its length and the CPU time of the process in it, in
/// seconds.
pub(super) fn open<S>(spec: &Spec<S>, phase: &AtomicU64) -> (f64, f64) {
    let _urgent = Urgent::new();
    let cpu_time = || clock_time(libc::CLOCK_PROCESS_CPUTIME_ID);
    thread::sleep(Duration::from_millis(spec.warmup_ms));
    let (start, cpu) = (Instant::now(), cpu_time());
    phase.store(MEASURE, Release);
    thread::sleep(Duration::from_millis(spec.window_ms));
    let (elapsed, cpu) = (start.elapsed(), cpu_time() - cpu);
    phase.store(STOP, Release);
    (elapsed.as_secs_f64(), cpu.as_secs_f64())
}
