//! How many write phases pass a reader that waits in line.

use super::place::{Place, with};
use std::sync::{Mutex, MutexGuard, PoisonError};
use ulocks_core::Policy;
use ulocks_core::meter::sealed::Sealed;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::raw::RawRwLock;
use ulocks_psrwlock::{Configuration, ThreadClass};
use ulocks_testkit::thread::{Id, id};

/// A meter that knows the write phases, and when each reader joined the line.
///
/// A mutex of the system: nothing here is a step of the model.
pub struct Phases(Mutex<Log>);

#[derive(Default)]
struct Log {
    begun: usize,
    is_on: bool,
    /// For a thread in line: the first phase that passes it. The one that is on does.
    in_line: Vec<(Id, usize)>,
}

impl Phases {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The caller is the writer from now on.
    fn begin(&self) {
        let mut log = self.log();
        log.begun += 1;
        log.is_on = true;
    }

    /// The caller is about to release.
    fn end(&self) {
        self.log().is_on = false;
    }

    /// The calling reader is inside: how many phases have passed it since it joined the line, if it
    /// had to.
    fn passed(&self) -> usize {
        let log = self.log();
        log.in_line.iter().find(|(who, _)| *who == id()).map_or(0, |(_, first)| log.begun - first)
    }
}

// SAFETY: it notes what happens under a mutex that no thread poisons for it.
unsafe impl Sealed for Phases {}

impl Meter for Phases {
    const INIT: Self = Self(Mutex::new(Log { begun: 0, is_on: false, in_line: Vec::new() }));

    /// A thread that sleeps for the first time has just seen its class shut: by the phase that is
    /// on, or, if none is, by a writer that is about to begin one or has just ended one.
    fn count(&self, event: Event) {
        let mut log = self.log();
        if event == Event::Slept && log.in_line.iter().all(|(who, _)| *who != id()) {
            let first = log.begun - usize::from(log.is_on);
            log.in_line.push((id(), first));
        }
    }
}

impl<D: Configuration<Policy: Policy<Meter = Phases>>> Place<D> {
    /// A write phase.
    pub fn writes_a_phase(&self) -> usize {
        self.lock.write();
        self.phase()
    }

    /// Two write phases.
    pub fn writes_two_phases(&self) -> usize {
        self.writes_a_phase() + self.writes_a_phase()
    }

    /// A write phase, by attempt.
    pub fn tries_a_phase(&self) -> usize {
        self.lock.try_write().map_or(0, |()| self.phase())
    }

    fn phase(&self) -> usize {
        self.lock.meter().begin();
        self.count();
        self.lock.meter().end();
        self.unlock_write();
        1
    }
}

/// Of readers that have to wait in line, none is passed by more than `limit` write phases.
pub fn phases<D, C, const N: usize>(limit: usize, writers: [super::place::Role<D>; N], readers: usize)
where
    D: Configuration<Policy: Policy<Meter = Phases>>,
    C: ThreadClass,
{
    let place = Place::<D>::new();
    place.lock.write();
    place.lock.meter().begin();
    let writers: Vec<_> = writers.into_iter().map(|writer| with(&place, writer)).collect();
    let readers: Vec<_> = (0..readers)
        .map(|_| {
            with(&place, move |place| {
                let token = place.read::<C>();
                let passed = place.lock.meter().passed();
                place.look();
                place.unlock_read(token);
                assert!(
                    passed <= limit,
                    "a reader in line was passed by {passed} write phases, and {limit} may"
                );
                0
            })
        })
        .collect();
    place.count();
    // A step of the model, so that others join while the phase is on.
    assert!(place.lock.is_write_locked());
    place.lock.meter().end();
    place.unlock_write();
    let all = readers.into_iter().chain(writers);
    let counted: usize = all.map(|thread| thread.join().expect("a client panicked")).sum();
    place.check_at_rest(1 + counted);
}
