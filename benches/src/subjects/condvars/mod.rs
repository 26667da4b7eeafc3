//! Condition variables under test, each with its mutex: the family's and the peers'.
//!
//! A new one implements [`Monitor`], and has a line in the registry.

mod pair;
mod peers;
mod pthread;

use super::laps::Lap;
pub use pair::{Duty, Notify, Pair, State};
use peers::{Api, Pi, Std, Usync};
use pthread::Pthread;
use std::ops::DerefMut;
use ulocks_core::api::RawCondvar;
use ulocks_core::policy::Private;

/// A kind of mutex and a kind of condition variable that work together.
///
/// Guards go in and out of a wait by value: std and the PI mutex want it so, and the others do not
/// mind.
pub trait Monitor: 'static {
    /// Whether all its ways into the kernel lead through libc's `syscall`, where
    /// [`futexes`](crate::run::syscalls) counts them.
    const COUNTABLE: bool = true;

    /// The mutex; none holds it at first.
    type Mutex: Default + Send + Sync;
    /// What holds the mutex.
    type Guard<'a>: DerefMut<Target = State>;
    /// The condition variable.
    type Condvar: Default + Send + Sync;

    /// Acquires the mutex.
    fn lock(mutex: &Self::Mutex) -> Self::Guard<'_>;

    /// Releases the mutex, sleeps until notified, and holds the mutex again.
    fn wait<'a>(condvar: &Self::Condvar, guard: Self::Guard<'a>) -> Self::Guard<'a>;

    /// Notifies one thread that waits with this mutex.
    fn notify_one(condvar: &Self::Condvar, mutex: &Self::Mutex);

    /// Notifies all threads that wait with this mutex.
    fn notify_all(condvar: &Self::Condvar, mutex: &Self::Mutex);
}

/// A mutex and two condition variables, as they lie in a structure of a program, without their
/// types.
pub trait Monitored: Send + Sync {
    /// Does this turn after turn, until the run is closed.
    fn go_round(&self, duty: Duty, lap: &mut Lap<'_>);

    /// Closes the run and notifies all, once.
    fn close(&self);

    /// What is under the mutex.
    fn state(&self) -> State;
}

/// What is known of a condition variable.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// Makes one whose threads notify so.
    pub make: fn(Notify) -> Box<dyn Monitored>,
    /// Whether its calls to sleep and to wake can be counted.
    pub countable: bool,
}

/// A subject of this kind.
pub type Entry = super::Entry<Traits>;

impl super::Kind for Traits {
    const WHAT: &'static str = "condition variable";

    fn entries() -> &'static [Entry] {
        &ALL
    }
}

/// A mutex of the family with the condition variable of the family.
type Own<L> = Api<RawCondvar<L>>;

static ALL: [Entry; 11] = [
    peer::<Std>("std", "std's"),
    peer::<Api<parking_lot::RawCondvar>>("parking_lot", "parking_lot 0.13's"),
    peer::<Usync>("usync", "usync's"),
    peer::<Pthread>("pthread", "glibc's, with its normal mutex"),
    ours::<Own<ulocks_unfair::RawBargingMutex<Private>>>("unfair", "ulocks unfair BargingMutex"),
    ours::<Own<ulocks_unfair::RawThroughputMutex<Private>>>("throughput", "ulocks unfair ThroughputMutex"),
    ours::<Own<ulocks_unfair::RawAsymMutex<Private>>>("asym", "ulocks unfair AsymMutex"),
    ours::<Own<ulocks_unfair::RawByteMutex<Private>>>("byte", "ulocks unfair ByteMutex"),
    ours::<Own<ulocks_calock::RawCalock<Private>>>("calock", "ulocks Calock"),
    ours::<Own<ulocks_fair::RawFairMutex<Private>>>("fair", "ulocks fair FairMutex"),
    ours::<Pi>("pi", "ulocks PiMutex with PiCondvar, whose notification names the mutex"),
];

fn make<M: Monitor>(notify: Notify) -> Box<dyn Monitored> {
    Box::new(Pair::<M>::new(notify))
}

const fn peer<M: Monitor>(name: &'static str, about: &'static str) -> Entry {
    Entry { name, about, family: false, kind: Traits { make: make::<M>, countable: M::COUNTABLE } }
}

const fn ours<M: Monitor>(name: &'static str, about: &'static str) -> Entry {
    Entry { family: true, ..peer::<M>(name, about) }
}
