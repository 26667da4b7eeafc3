//! Threads that begin together, and the window in which they are counted.

use super::Spec;
use crate::run::pinning;
use crate::run::threads::{Urgent, clock_time};
use anyhow::Result;
use std::sync::Barrier;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Release;
use std::thread;
use std::time::{Duration, Instant};

/// The first phase of a run: nothing counts yet.
pub(super) const WARM_UP: u64 = 0;
/// The second: the window.
pub(super) const MEASURE: u64 = 1;
/// The last: threads end.
pub(super) const STOP: u64 = 2;

/// A value on lines of its own.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Line<T>(pub T);

/// Runs `body(index)` on so many threads, each bound to its CPU, which begin together, and
/// `meanwhile` on the calling thread. Returns what all of them return.
pub(super) fn together<T: Send, R>(
    threads: usize,
    cpu: impl Fn(usize) -> usize,
    body: impl Fn(usize) -> Result<T> + Sync,
    meanwhile: impl FnOnce() -> R,
) -> Result<(Vec<T>, R)> {
    let gate = Barrier::new(threads + 1);
    thread::scope(|s| {
        let start = |index: usize| {
            let (gate, body, cpu) = (&gate, &body, cpu(index));
            let build = thread::Builder::new().stack_size(256 * 1024);
            build.spawn_scoped(s, move || {
                let bound = pinning::bind(cpu);
                gate.wait();
                bound?;
                body(index)
            })
        };
        // All of them, or the gate never opens: a thread that cannot be had ends the process.
        let started: Vec<_> = (0..threads).map(|index| start(index).expect("a thread can be had")).collect();
        gate.wait();
        let seen = meanwhile();
        let ended = started.into_iter().map(|thread| thread.join().expect("a thread does not panic"));
        Ok((ended.collect::<Result<Vec<T>>>()?, seen))
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
