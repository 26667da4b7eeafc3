//! Condition variables under test, each with its mutex: the family's and the peers'.

mod peers;

use anyhow::Result;
use peers::{Api, Pi, Std, Usync};
use std::ops::DerefMut;
use std::time::Duration;
use ulocks_core::api::RawCondvar;
use ulocks_core::policy::Private;

/// What every condition variable is compared with.
pub const PEERS: [&str; 2] = ["std", "parking_lot"];

/// A kind of mutex and a kind of condition variable that work together.
///
/// Guards go in and out of a wait by value: std and the PI mutex want it so, and the others do not
/// mind.
pub trait Monitor: 'static {
    /// The mutex over a value.
    type Mutex<T: Send + 'static>: Send + Sync + 'static;
    /// What holds the mutex.
    type Guard<'a, T: Send + 'static>: DerefMut<Target = T>;
    /// The condition variable.
    type Condvar: Send + Sync + 'static;

    /// A mutex that no thread holds.
    fn mutex<T: Send + 'static>(value: T) -> Result<Self::Mutex<T>>;

    /// A condition variable that no thread waits on.
    fn condvar() -> Result<Self::Condvar>;

    /// Acquires the mutex.
    fn lock<T: Send + 'static>(mutex: &Self::Mutex<T>) -> Self::Guard<'_, T>;

    /// Releases the mutex, sleeps until notified, and holds the mutex again.
    fn wait<'a, T: Send + 'static>(condvar: &Self::Condvar, guard: Self::Guard<'a, T>) -> Self::Guard<'a, T>;

    /// The same for a limited time; says whether the time ran out.
    fn wait_for<'a, T: Send + 'static>(
        condvar: &Self::Condvar,
        guard: Self::Guard<'a, T>,
        timeout: Duration,
    ) -> (Self::Guard<'a, T>, bool);

    /// Notifies one thread that waits with this mutex.
    fn notify_one<T: Send + 'static>(condvar: &Self::Condvar, mutex: &Self::Mutex<T>);

    /// Notifies all threads that wait with this mutex.
    fn notify_all<T: Send + 'static>(condvar: &Self::Condvar, mutex: &Self::Mutex<T>);
}

/// What is known of a condition variable.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// Its mutex in the registry of [`locks`](super::locks), for `--locks`.
    pub lock: &'static str,
}

impl Traits {
    #[expect(clippy::extra_unused_type_parameters, reason = "entries of all kinds are made alike")]
    fn of<M: Monitor>(lock: &'static str) -> Self {
        Self { lock }
    }
}

/// A mutex of the family with the condition variable of the family.
type Own<L> = Api<RawCondvar<L>>;

subjects! {
    Traits: Monitor, "condition variable";
    peers {
        "std" "std's" ["std"]: Std;
        "parking_lot" "parking_lot 0.13's" ["parking_lot"]: Api<parking_lot::RawCondvar>;
        "usync" "usync's" ["usync"]: Usync;
    }
    family {
        "unfair" "ulocks unfair BargingMutex" ["unfair"]: Own<ulocks_unfair::RawBargingMutex<Private>>;
        "throughput" "ulocks unfair ThroughputMutex" ["throughput"]: Own<ulocks_unfair::RawThroughputMutex<Private>>;
        "asym" "ulocks unfair AsymMutex" ["asym"]: Own<ulocks_unfair::RawAsymMutex<Private>>;
        "byte" "ulocks unfair ByteMutex" ["byte"]: Own<ulocks_unfair::RawByteMutex<Private>>;
        "calock" "ulocks Calock" ["calock"]: Own<ulocks_calock::RawCalock<Private>>;
        "fair" "ulocks fair FairMutex" ["fair"]: Own<ulocks_fair::RawFairMutex<Private>>;
        "pi" "ulocks PiMutex with PiCondvar, whose notification names the mutex" ["pi"]: Pi;
    }
}
