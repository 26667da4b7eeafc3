//! Which thread came when, and which was served when.

use crate::thread::{Id, id};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use ulocks_core::meter::sealed::Sealed;
use ulocks_core::meter::{Event, Meter};

/// A meter that knows the order of arrivals at a fair lock, and checks that it is the order of
/// acquisitions.
///
/// An arrival is the very step by which a lock is acquired or a place in its line is taken. On the
/// machine arrivals pass through here one at a time, so that their numbers are exact; everything
/// else the lock does is as concurrent as ever.
pub struct Recorder(Mutex<Log>);

struct Log {
    arrivals: u64,
    /// The latest arrival of each thread.
    latest: Vec<(Id, u64)>,
    /// The arrival that was served last.
    served: u64,
}

impl Recorder {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calling thread holds the lock: it came after every thread that has held it before.
    /// Returns its number among the arrivals, from one.
    ///
    /// # Panics
    /// If it was overtaken by a thread that came later.
    pub fn served(&self) -> u64 {
        let mut log = self.log();
        let me = id();
        let (_, mine) = *log.latest.iter().find(|(id, _)| *id == me).expect("served without an arrival");
        assert!(
            mine > log.served,
            "arrival {mine} is served after arrival {}: not in the order of arrivals",
            log.served
        );
        log.served = mine;
        mine
    }

    /// All arrivals so far.
    pub fn arrivals(&self) -> u64 {
        self.log().arrivals
    }
}

impl Log {
    fn arrived(&mut self) {
        self.arrivals += 1;
        let me = id();
        match self.latest.iter_mut().find(|(id, _)| *id == me) {
            Some((_, latest)) => *latest = self.arrivals,
            None => self.latest.push((me, self.arrivals)),
        }
    }
}

// SAFETY: it notes what happens under a mutex that no thread poisons for it.
unsafe impl Sealed for Recorder {}

impl Meter for Recorder {
    const INIT: Self = Self(Mutex::new(Log { arrivals: 0, latest: Vec::new(), served: 0 }));

    fn count(&self, _: Event) {}

    fn arrive<T, E>(&self, attempt: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        // In a model no other thread runs between the step and the next one, and a lock must not be
        // held across it.
        #[cfg(not(world = "machine"))]
        let (arrived, mut log) = (attempt()?, self.log());
        #[cfg(world = "machine")]
        let (mut log, arrived) = {
            let log = self.log();
            (log, attempt()?)
        };
        log.arrived();
        Ok(arrived)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let log = self.log();
        write!(f, "Recorder({} arrivals, {} served last)", log.arrivals, log.served)
    }
}
