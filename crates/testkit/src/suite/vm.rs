//! What the models on the virtual machine do with one type of lock, for several numbers of threads.

use crate::model;
use ulocks_core::model::{Config, Deaths, Survivors, explore};
use ulocks_core::raw::{RawInterruptible, RawMutex};

/// The numbers of threads of a sampled model. What eight do, sixteen do too.
pub const MANY: [usize; 3] = [3, 4, 16];

/// The bounds for a number of threads and a seed.
type Sampled = fn(usize, u64) -> Config;

/// Explores [`model::exclusion`].
pub fn exclusion<L: RawMutex + Send + Sync + 'static>(sampled: Sampled, seed: u64) {
    for threads in MANY {
        explore(sampled(threads, seed), move || model::exclusion::<L>(threads));
    }
}

/// Explores [`model::try_lock_coherence`], and with two threads all of it.
pub fn try_lock_coherence<L: RawMutex + Send + Sync + 'static>(sampled: Sampled) {
    explore(Config::exhaustive(), || model::try_lock_coherence::<L>(2));
    for threads in MANY {
        explore(sampled(threads, 1), move || model::try_lock_coherence::<L>(threads));
    }
}

/// Explores [`model::no_lost_wake`].
pub fn no_lost_wake<L: RawMutex + Send + Sync + 'static>(sampled: Sampled, seed: u64) {
    for threads in MANY {
        explore(sampled(threads, seed), move || model::no_lost_wake::<L>(threads, 2));
    }
}

/// Explores [`model::timeout_vs_unlock`].
pub fn timeout_vs_unlock<L: RawMutex + Send + Sync + 'static>(sampled: Sampled, seed: u64) {
    for threads in [2].into_iter().chain(MANY) {
        explore(sampled(threads, seed), move || model::timeout_vs_unlock::<L>(threads));
    }
}

/// Explores [`model::interrupt_vs_unlock`].
pub fn interrupt_vs_unlock<L: RawMutex + RawInterruptible + Send + Sync + 'static>(
    sampled: Sampled,
    seed: u64,
) {
    for threads in [2].into_iter().chain(MANY) {
        explore(sampled(threads, seed), move || model::interrupt_vs_unlock::<L>(threads));
    }
}

/// Explores [`model::last_unlocker_frees`].
pub fn last_unlocker_frees<L: RawMutex + Send + Sync + 'static>(sampled: Sampled, seed: u64) {
    for threads in MANY {
        explore(sampled(threads, seed), move || model::last_unlocker_frees::<L>(threads));
    }
}

/// Explores [`model::exclusion_despite_deaths`], with two deaths.
pub fn exclusion_despite_deaths<L: RawMutex + Send + Sync + 'static>(sampled: Sampled, seed: u64) {
    for threads in MANY {
        let mortal = Config { deaths: Deaths::Threads(2), ..sampled(threads, seed) };
        let config = Config { survivors: Survivors::MayBlock, ..mortal };
        explore(config, move || model::exclusion_despite_deaths::<L>(threads));
    }
}
