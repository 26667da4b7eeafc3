//! A holder is killed while other processes sleep for its lock: how long until one of them has it.
//!
//! The lock of one trial is had by one holder after the other, each of which is killed. It must
//! come to all sleepers, so a lock that forgets one of them fails its trial.

use super::children::Children;
use super::*;
use crate::run::clock::monotonic_ns;
use crate::statistics;
use crate::subjects::locks::{Locks, Mutex, Scope, Type, zeroed};
use anyhow::bail;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::thread;
use std::time::Instant;

/// A holder that is killed while other processes sleep for its lock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// How many sleep.
    pub sleepers: u32,
}

/// What the processes say.
#[repr(C)]
struct Said {
    /// Whether the holder has the lock.
    held: AtomicU32,
    /// Sleepers that are about to ask for it.
    began: AtomicU32,
    /// Sleepers that have had it.
    ended: AtomicU32,
    /// When the first of them had it; `u64::MAX` before.
    had_ns: AtomicU64,
}

impl Recovery {
    /// Carries it out in this process.
    pub fn carry_out(self, name: &str, kind: Type, on: &Conditions, limit: Duration) -> Result<Outcome> {
        ensure!(self.sleepers > 0, "nobody sleeps for the lock; allowed: at least 1 sleeper");
        let locks = Locks::of(kind, Scope::Processes, 1)?;
        let (start, mut ns) = (Instant::now(), Vec::new());
        while ns.is_empty() || start.elapsed() < Duration::from_millis(on.window_ms) {
            ns.push(self.once(name, locks.get(0), limit)? as f64);
        }
        let longest = ns.iter().copied().fold(0.0, f64::max);
        let figures = [("recovery", statistics::median(&ns)), ("recovery-max", longest)];
        Ok(figures.map(|(name, ns)| (name.to_owned(), ns)).into())
    }

    fn once(self, name: &str, lock: &dyn Mutex, limit: Duration) -> Result<u64> {
        // SAFETY: it consists of atomics, which may be zero.
        let said = unsafe { zeroed::<Said>(1)? };
        let Said { held, began, ended, had_ns } = &said[0];
        had_ns.store(u64::MAX, Relaxed);
        // Waits until processes have done `what`, or says that they do not.
        let until = |processes: &mut Children, what: &str, done: &dyn Fn(&Children) -> bool| {
            let (start, ms) = (Instant::now(), limit.as_millis());
            while !done(processes) {
                // A process that has done all it has to do may have ended.
                if let Some(death) = processes.reap() {
                    bail!("lock '{name}': {death}");
                }
                ensure!(start.elapsed() < limit, "lock '{name}': not all processes {what} within {ms} ms");
                thread::sleep(Duration::from_micros(200));
            }
            Ok(())
        };
        // Dropping processes kills and reaps them.
        let mut holder = Children::fork(1, &mut |_| {
            lock.with(&mut || {
                held.store(1, Release);
                loop {
                    thread::park();
                }
            });
        })?;
        until(&mut holder, "take a free lock", &|_| held.load(Acquire) == 1)?;
        let mut sleepers = Children::fork(self.sleepers as usize, &mut |_| {
            began.fetch_add(1, Release);
            lock.with(&mut || _ = had_ns.fetch_min(monotonic_ns(), Relaxed));
            ended.fetch_add(1, Release);
        })?;
        until(&mut sleepers, "fall asleep for the lock", &|sleepers| {
            began.load(Acquire) == self.sleepers && sleepers.are_asleep()
        })?;
        let killed_ns = monotonic_ns();
        drop(holder);
        let had = "have the lock after SIGKILL of its holder";
        until(&mut sleepers, had, &|_| ended.load(Acquire) == self.sleepers)?;
        Ok(had_ns.load(Relaxed).saturating_sub(killed_ns))
    }
}
