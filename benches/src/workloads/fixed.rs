//! The program of 2016: each thread does a number of operations, and it ends when all have done
//! theirs. What is said is when the first and the last were done, and how the kernel was asked.
//!
//! Each acquisition is timed, for the distribution that was asked for in that thread: two clock
//! reads an operation, the same for all locks. Threads run wherever the scheduler likes.

use super::window::{cpu_figures, together};
use super::*;
use crate::run::clock::monotonic_ns;
use crate::run::syscalls::{self, Calls, Counters};
use crate::run::threads::{time, usage};
use crate::run::waits::Waits;
use crate::statistics;
use crate::subjects::locks::{Locks, Scope, Type};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

/// The program of 2016: each thread does a number of operations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fixed {
    /// How many threads.
    pub threads: u32,
    /// Operations of each.
    pub operations: u64,
    /// What is done inside, beside adding one to a number.
    pub inside: Inside,
}

/// What is done inside the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inside {
    /// A short section: so many pauses.
    Pauses(u32),
    /// A sleep of so many nanoseconds, which the kernel's timer slack makes some 50 us longer.
    Sleep(u64),
}

/// What a thread has seen.
struct Seen {
    began_ns: u64,
    done_ns: u64,
    calls: Calls,
    waits: Box<Waits>,
}

impl Fixed {
    /// How long it takes, about: a hand-over between idle CPUs takes some microseconds.
    pub fn takes_ms(self) -> u64 {
        let each_ns = match self.inside {
            Inside::Pauses(pauses) => 4_000 + 10 * u64::from(pauses),
            Inside::Sleep(ns) => 60_000 + ns,
        };
        let all = self.operations.saturating_mul(u64::from(self.threads));
        (all.saturating_mul(each_ns) / 1_000_000).max(1)
    }

    /// Carries it out in this process.
    pub fn carry_out(self, name: &str, kind: Type) -> Result<Outcome> {
        ensure!(
            self.threads > 0 && self.operations > 0,
            "no operation is measured; allowed: at least 1 thread, and 1 operation of each"
        );
        let locks = Locks::of(kind, Scope::Threads, 1)?;
        let (lock, number) = (locks.get(0), AtomicU64::new(0));
        let work = |_| {
            let (waits, counters) = (Waits::new(), Counters::default());
            let began_ns = monotonic_ns();
            syscalls::count(&counters, || {
                for _ in 0..self.operations {
                    let asked = monotonic_ns();
                    let mut had = 0;
                    lock.with(&mut || {
                        had = monotonic_ns();
                        let next = number.load(Relaxed) + 1;
                        match self.inside {
                            Inside::Pauses(pauses) => (0..pauses).for_each(|_| std::hint::spin_loop()),
                            Inside::Sleep(ns) => thread::sleep(Duration::from_nanos(ns)),
                        }
                        number.store(next, Relaxed);
                    });
                    waits.record(had - asked);
                }
            });
            Ok(Seen { began_ns, done_ns: monotonic_ns(), calls: counters.read(), waits })
        };
        let before = usage(libc::RUSAGE_SELF);
        let (seen, ()) = together(self.threads as usize, &[], &work, || ())?;
        let after = usage(libc::RUSAGE_SELF);
        let (wanted, found) = (self.operations * u64::from(self.threads), number.into_inner());
        kind.check(name, wanted, found)?;

        let began_ns = seen.iter().map(|seen| seen.began_ns).min().unwrap_or(0);
        let done: Vec<f64> = seen.iter().map(|seen| (seen.done_ns - began_ns) as f64).collect();
        let mut figures = vec![
            ("first", done.iter().copied().fold(f64::INFINITY, f64::min)),
            ("last", done.iter().copied().fold(0.0, f64::max)),
            ("mean-done", statistics::mean(&done)),
        ];
        if kind.countable && syscalls::countable() {
            let calls = seen.iter().map(|seen| seen.calls).fold(Calls::default(), Calls::plus);
            let each = |calls: u64| calls as f64 / wanted as f64;
            figures.extend([("sleep-calls", each(calls.waits)), ("wake-calls", each(calls.wakes))]);
            if calls.waits > 0 {
                figures.push(("refused", calls.refused as f64 / calls.waits as f64));
            }
        }
        let mut outcome: Outcome =
            figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let system = time(after.ru_stime).saturating_sub(time(before.ru_stime));
        let user = time(after.ru_utime).saturating_sub(time(before.ru_utime));
        cpu_figures(&mut outcome, user + system, system, wanted as f64);
        Waits::say(&seen.iter().map(|seen| &*seen.waits).collect::<Vec<_>>(), &mut outcome);
        Ok(outcome)
    }
}
