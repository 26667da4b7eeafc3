//! Every history of a few operations is one of a sequential reader-writer lock's.

use crate::place::soon;
use crate::{FOUR, Sleeps, SleepsShared, THREE, TWO, sampled};
use core::panic::Location;
use ulocks_core::Private;
use ulocks_core::model::linear::Recorder;
use ulocks_core::model::linear::specs::{self, RwLockCall};
use ulocks_core::model::signal::{self, Signal};
use ulocks_core::model::{Config, choose, explore};
use ulocks_core::raw::{RawRwLock, RawRwLockDowngrade, RawRwLockFair, RawRwLockUpgrade};
use ulocks_core::signal::{Soft, dispatch};
use ulocks_psrwlock::{
    Central, Configuration, Eager, PhaseFair, RawPsRwLock, ReadToken, Sifted, Unchecked, Urgent,
};
use ulocks_testkit::thread::{Arc, together};

type Calls = Recorder<RwLockCall, bool>;

/// A lock whose operations are recorded.
struct Recorded<D: Configuration> {
    lock: RawPsRwLock<D>,
    calls: Calls,
}

impl<D: Configuration> Recorded<D> {
    fn acquire<T>(&self, call: RwLockCall, acquire: impl FnOnce() -> Option<T>) -> Option<T> {
        let mut token = None;
        self.calls.record(call, || {
            token = acquire();
            token.is_some()
        });
        token
    }

    fn unlock_read(&self, token: Option<ReadToken>) {
        let Some(token) = token else { return };
        self.calls.record(RwLockCall::ReadUnlock, || {
            // SAFETY: acquired by the caller.
            unsafe { self.lock.unlock_read(token) };
            true
        });
    }

    /// One of the operations, by the execution's choice, and what ends it.
    fn operate(&self) {
        let (lock, at) = (&self.lock, Location::caller());
        let written = match choose(9) {
            0 => return self.unlock_read(self.acquire(RwLockCall::Read, || Some(lock.read()))),
            1 => {
                return self.unlock_read(self.acquire(RwLockCall::Read, || Some(lock.read_in::<Urgent>(at))));
            }
            2 => return self.unlock_read(self.acquire(RwLockCall::AttemptRead, || lock.try_read())),
            3 => {
                let timed = || lock.read_in_until::<Urgent>(soon(), at);
                return self.unlock_read(self.acquire(RwLockCall::AttemptRead, timed));
            }
            4 => self.acquire(RwLockCall::AttemptWrite, || lock.try_write()),
            5 => self.acquire(RwLockCall::AttemptWrite, || lock.write_until(soon())),
            6 => self.acquire(RwLockCall::AttemptWrite, || self.upgrade()),
            _ => self.acquire(RwLockCall::Write, || {
                lock.write();
                Some(())
            }),
        };
        if written.is_none() {
            return;
        }
        if choose(2) == 1 {
            // SAFETY: acquired above.
            return self
                .unlock_read(self.acquire(RwLockCall::Downgrade, || Some(unsafe { lock.downgrade(()) })));
        }
        let fairly = choose(2) == 1;
        self.calls.record(RwLockCall::WriteUnlock, || {
            // SAFETY: acquired above.
            unsafe { if fairly { lock.unlock_write_fair(()) } else { lock.unlock_write(()) } };
            true
        });
    }

    /// An upgradable reader is beside readers, so for this specification it holds nothing until it
    /// has upgraded.
    fn upgrade(&self) -> Option<()> {
        let lock = &self.lock;
        lock.try_upgradable()?;
        // SAFETY: acquired the line before.
        unsafe {
            let upgraded = lock.try_upgrade(()).ok();
            if upgraded.is_none() {
                lock.unlock_upgradable(());
            }
            upgraded
        }
    }
}

fn histories<D: Configuration>(threads: usize) {
    let recorded = Arc::new(Recorded::<D> { lock: RawPsRwLock::new(), calls: Recorder::new() });
    let shared = Arc::clone(&recorded);
    together(threads, move |_| {
        shared.operate();
        shared.operate();
    });
    recorded.calls.check(&specs::RwLock).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn histories_are_those_of_a_reader_writer_lock() {
    fn check<D: Configuration>(seed: u64) {
        for threads in [3, 4, 5] {
            explore(Config { executions: 1_000, ..sampled(threads, seed) }, move || histories::<D>(threads));
        }
    }
    check::<Sifted<TWO, Sleeps, PhaseFair, Central, Soft, Unchecked>>(1);
    check::<Sifted<THREE, Private, PhaseFair, Central, Soft, Unchecked>>(2);
    check::<Sifted<FOUR, Sleeps, PhaseFair, Central, Soft, Unchecked>>(3);
    check::<Sifted<TWO, Sleeps, PhaseFair, Eager, Soft, Unchecked>>(4);
    check::<Sifted<THREE, SleepsShared, PhaseFair, Eager, Soft, Unchecked>>(5);
}

/// The reads of handlers are among them.
#[test]
fn histories_with_handlers_are_those_of_a_reader_writer_lock() {
    type D = Sifted<FOUR, Sleeps, PhaseFair, Central, Soft, Unchecked>;
    const USR1: Signal = Signal::new(10);
    explore(Config { executions: 2_000, ..sampled(3, 1) }, || {
        let recorded = Arc::new(Recorded::<D> { lock: RawPsRwLock::new(), calls: Recorder::new() });
        let handled = Arc::clone(&recorded);
        signal::install(USR1, u32::MAX, move || {
            let recorded = Arc::clone(&handled);
            dispatch(10, move |context| {
                let read = || recorded.lock.read_in_handler(context);
                recorded.unlock_read(recorded.acquire(RwLockCall::AttemptRead, read));
            });
        });
        let shared = Arc::clone(&recorded);
        together(3, move |_| {
            signal::arm(USR1, 1);
            shared.operate();
            shared.operate();
            signal::mask(u32::MAX);
        });
        recorded.calls.check(&specs::RwLock).unwrap_or_else(|error| panic!("{error}"));
    });
}
