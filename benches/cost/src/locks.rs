//! The locks that can be costed, by name.

use super::spinning::{mcs, test_and_set, ticket};
use anyhow::{Context, Result};
use ulocks_calock::RawCalock;
use ulocks_core::raw::{RawMutex, RawRwLock};
use ulocks_core::signal::Soft;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_fair::{RawFairMutex as Fair, RawSemaphore};
use ulocks_psrwlock::{BULK, Biased, Central, NESTED, PhaseFair, RawPsRwLock, Sifted, URGENT, Unchecked};
use ulocks_semarray::{Op, SemArray, Set};
use ulocks_unfair::{
    RawAsymMutex as Asym, RawBargingMutex as Unfair, RawByteMutex as Byte, RawThroughputMutex as Throughput,
};
use ulocks_vm_cost::{CostError, Outcome, Run};

/// A lock that can be costed.
#[derive(Clone, Copy, Debug)]
pub struct Lock {
    /// How it is asked for.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Runs it. The number is the share of operations that write, if it has readers.
    pub run: fn(&Run, f64) -> Result<Outcome, CostError>,
}

const LOCKS: &[Lock] = &[
    lock("unfair", "unfair::BargingMutex, default patience", family::<Unfair<Private>>),
    lock("unfair-nospin", "unfair, but waiters sleep at once", family::<Unfair<Private<NoSpin>>>),
    lock("unfair-shared", "unfair::BargingMutex between processes", family::<Unfair<Shared>>),
    lock("asym", "unfair::AsymMutex, default patience", family::<Asym<Private>>),
    lock("asym-nospin", "asym, but waiters sleep at once", family::<Asym<Private<NoSpin>>>),
    lock("byte", "unfair::ByteMutex over a lot of one queue", family::<Byte<Private>>),
    lock("throughput", "unfair::ThroughputMutex, default patience", family::<Throughput<Private>>),
    lock("calock", "calock::Calock, default patience", family::<RawCalock<Private>>),
    lock("calock-nospin", "calock, but waiters sleep at once", family::<RawCalock<Private<NoSpin>>>),
    lock("fair", "fair::FairMutex, default patience", family::<Fair<Private>>),
    lock("semaphore", "fair::Semaphore of one permit", one_permit),
    lock("psrw", "psrwlock::PsRwLock, some of whose operations write", reads_and_writes::<Ps<Biased>>),
    lock("psrw-central", "psrw, without rows of slots", reads_and_writes::<Ps<Central>>),
    lock("semarray", "one semaphore of a semarray::SemArray", |run, _| sets(run, 1, |_, _| vec![0])),
    lock("semarray-own", "a semaphore for each thread, all in one SemArray", |run, _| {
        sets(run, run.threads, |me, _| vec![me])
    }),
    lock("semarray-two", "two neighbours of such a row at once: philosophers", |run, _| {
        sets(run, run.threads.max(2), |me, count| vec![me, (me + 1) % count])
    }),
    lock("tas", "test-and-set, no back-off", test_and_set::<false>),
    lock("ttas", "test-and-test-and-set", test_and_set::<true>),
    lock("ticket", "ticket lock, global spinning", ticket),
    lock("mcs", "queue lock, local spinning", mcs),
];

const fn lock(
    name: &'static str,
    about: &'static str,
    run: fn(&Run, f64) -> Result<Outcome, CostError>,
) -> Lock {
    Lock { name, about, run }
}

type Ps<R> = RawPsRwLock<Sifted<{ BULK | URGENT | NESTED }, Private, PhaseFair, R, Soft, Unchecked>>;

/// Every lock there is.
#[must_use]
pub fn all() -> &'static [Lock] {
    LOCKS
}

/// The lock of this name.
pub(super) fn named(name: &str) -> Result<Lock> {
    let known = || LOCKS.iter().map(|lock| lock.name).collect::<Vec<_>>().join(", ");
    let lock = LOCKS.iter().find(|lock| lock.name == name).copied();
    lock.with_context(|| format!("there is no lock `{name}`; there are {}", known()))
}

fn family<L: RawMutex + 'static>(run: &Run, _: f64) -> Result<Outcome, CostError> {
    run.contend(
        || L::init(),
        |lock, worker| {
            let token = worker.acquire(|| lock.lock());
            worker.hold();
            // SAFETY: the token is from the acquisition above, in this thread.
            unsafe { lock.unlock(token) };
        },
    )
}

fn one_permit(run: &Run, _: f64) -> Result<Outcome, CostError> {
    run.contend(
        || RawSemaphore::<Private>::new(1),
        |semaphore, worker| {
            worker.acquire(|| semaphore.acquire(1));
            worker.hold();
            semaphore.release(1).expect("a permit that was acquired");
        },
    )
}

fn reads_and_writes<L: RawRwLock + 'static>(run: &Run, writes: f64) -> Result<Outcome, CostError> {
    run.contend(
        || L::init(),
        move |lock, worker| {
            if worker.random() < writes {
                let token = worker.acquire(|| lock.write());
                worker.hold();
                // SAFETY: the token is from the acquisition above, in this thread.
                unsafe { lock.unlock_write(token) };
            } else {
                let token = worker.acquire(|| lock.read());
                worker.hold_shared();
                // SAFETY: as above.
                unsafe { lock.unlock_read(token) };
            }
        },
    )
}

/// An array of `count` semaphores, of which each thread takes `mine` at once.
fn sets(run: &Run, count: usize, mine: fn(usize, usize) -> Vec<usize>) -> Result<Outcome, CostError> {
    let hold = run.hold_ns;
    run.contend(
        move || SemArray::with_values(vec![1; count]),
        move |array, worker| {
            let mine = mine(worker.index(), count);
            let take: Set = mine.iter().map(|&index| Op::sub(index, 1)).collect();
            let give: Set = mine.iter().map(|&index| Op::add(index, 1)).collect();
            worker.acquire(|| array.apply(&take)).expect("semaphores that can be had");
            match count {
                1 => worker.hold(),
                // Several are in at once: what one does there is its own.
                _ => worker.work_about(hold),
            }
            array.apply(&give).expect("semaphores that can be given back");
        },
    )
}
