//! A holder is killed while other processes sleep for its lock: how long until one of them has it.
//!
//! The lock of one trial is had by one holder after the other, each of which is killed. It must
//! come to all sleepers, so a lock that forgets one of them fails its trial.

use super::trial::arena::{Arena, announce};
use super::trial::children::Children;
use super::{Scenario, Spec};
use crate::run::threads::clock_time;
use crate::subjects::locks::{self, Entry, Lock, Scope, Visitor};
use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::{Duration, Instant};

/// A holder that is killed, and these processes that wait for its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// How many.
    pub sleepers: u32,
}

/// What came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecoveryResult {
    /// From each SIGKILL to the next acquisition, in nanoseconds.
    pub ns: Vec<u64>,
}

/// How long processes may take for a step that takes milliseconds.
const LIMIT: Duration = Duration::from_secs(10);

impl Scenario for Recovery {
    type Outcome = RecoveryResult;

    fn threads(self) -> u32 {
        self.sleepers + 1
    }

    fn carry_out(spec: &Spec<Self>) -> Result<RecoveryResult> {
        struct Trial<'a>(&'a Spec<Recovery>);
        impl Visitor for Trial<'_> {
            type Output = Result<RecoveryResult>;
            fn visit<L: Lock>(self, _: &'static Entry) -> Self::Output {
                run::<L>(self.0, LIMIT)
            }
        }
        locks::visit(Entry::find(&spec.subject)?, Scope::Processes, Trial(spec))?
    }
}

fn run<L: Lock>(spec: &Spec<Recovery>, limit: Duration) -> Result<RecoveryResult> {
    let arena = Arena::<L>::new(Scope::Processes, spec.run.sleepers as usize, 0, 1)?;
    let (start, mut ns) = (Instant::now(), Vec::new());
    while ns.is_empty() || start.elapsed() < Duration::from_millis(spec.window_ms) {
        ns.push(recovery(spec, &arena, limit)?);
    }
    Ok(RecoveryResult { ns })
}

/// One of them.
fn recovery<L: Lock>(spec: &Spec<Recovery>, arena: &Arena<L>, limit: Duration) -> Result<u64> {
    let (control, lock) = (arena.control(), &arena.cells()[0].lock);
    let (ready, started, finished) = (&control.ready, &control.started, &control.finished);
    for word in [ready, started, finished] {
        word.store(0, Relaxed);
    }
    // Dropping processes kills and reaps them.
    let mut holder = Children::fork(1, |_| {
        let _held = lock.acquire();
        announce(ready, count);
        loop {
            thread::park();
        }
    })?;
    until((spec, limit), &mut holder, "take a free lock", |_| ready.load(Acquire) == 1)?;
    let mut sleepers = Children::fork(spec.run.sleepers as usize, |index| {
        announce(started, count);
        let held = lock.acquire();
        arena.slots()[index].wait_max.store(now_ns(), Relaxed);
        drop(held);
        announce(finished, count);
    })?;
    let everybody = spec.run.sleepers;
    until((spec, limit), &mut sleepers, "fall asleep for the lock", |sleepers| {
        started.load(Acquire) == everybody && sleepers.are_asleep()
    })?;

    let killed_ns = now_ns();
    drop(holder);
    until((spec, limit), &mut sleepers, "have the lock after SIGKILL of its holder", |_| {
        finished.load(Acquire) == everybody
    })?;
    let had = arena.slots().iter().map(|slot| slot.wait_max.load(Relaxed)).min();
    Ok(had.unwrap_or_default().saturating_sub(killed_ns))
}

/// Waits until processes have done `what`, or says that they do not.
fn until(
    (spec, limit): (&Spec<Recovery>, Duration),
    processes: &mut Children,
    what: &str,
    done: impl Fn(&Children) -> bool,
) -> Result<()> {
    let start = Instant::now();
    while !done(processes) {
        // A process that has done all it has to do may have ended.
        if let Some(death) = processes.reap() {
            bail!("lock '{}': {death}", spec.subject);
        }
        let ms = limit.as_millis();
        ensure!(start.elapsed() < limit, "lock '{}': not all processes {what} within {ms} ms", spec.subject);
        thread::sleep(Duration::from_micros(200));
    }
    Ok(())
}

fn count(word: &AtomicU32) {
    word.fetch_add(1, Release);
}

/// The kernel's clock, which all processes have in common.
fn now_ns() -> u64 {
    clock_time(libc::CLOCK_MONOTONIC).as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(subject: &str) -> Spec<Recovery> {
        let run = Recovery { sleepers: 5 };
        Spec { subject: subject.into(), run, warmup_ms: 0, window_ms: 1, iterations_per_us: 1.0, seed: 0 }
    }

    #[test]
    fn all_sleepers_have_the_lock_of_a_dead_holder() {
        for lock in ["robust", "robust-fair", "robust-rw", "pthread-robust"] {
            let result = Recovery::carry_out(&spec(lock)).unwrap();
            assert!(!result.ns.is_empty() && result.ns.iter().all(|&ns| ns > 0), "{lock}: {result:?}");
        }
    }

    #[test]
    fn a_lock_that_is_lost_with_its_holder_is_an_error() {
        let error = run::<locks::Posix<{ locks::NORMAL }>>(&spec("pthread"), Duration::from_millis(50));
        let said = "lock 'pthread': not all processes have the lock after SIGKILL of its holder within 50 ms";
        assert_eq!(error.unwrap_err().to_string(), said);
    }
}
