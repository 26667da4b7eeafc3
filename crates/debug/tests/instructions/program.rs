//! A user's library that is compiled twice: with the names of `ulocks_debug::checked`, and, by
//! `--cfg plain`, with the plain locks. `main.rs` compares the instructions of both.

// So both have the same crates before them, whose copies of generic functions they call.
extern crate ulocks_debug as _;

#[cfg(not(plain))]
mod locks {
    pub use ulocks_debug::checked::{
        AsymMutex, BargingMutex, Calock, Condvar, FairMutex, Mutex, PiCondvar, PiMutex, Promise, RwLock,
        Semaphore,
    };
}

#[cfg(plain)]
mod locks {
    pub use ulocks_calock::Calock;
    pub use ulocks_fair::{FairMutex, Semaphore};
    pub use ulocks_pi::{PiCondvar, PiMutex};
    pub use ulocks_psrwlock::PsRwLock as RwLock;
    pub use ulocks_unfair::{
        AsymMutex, BargingMutex, ThroughputCondvar as Condvar, ThroughputMutex as Mutex,
    };

    /// A plain program has none.
    pub struct Promise;

    impl Promise {
        pub fn own(&self) {}

        pub fn wait<T>(&self, wait: impl FnOnce() -> T) -> T {
            wait()
        }
    }
}

use core::time::Duration;
use locks::{
    AsymMutex, BargingMutex, Calock, Condvar, FairMutex, Mutex, PiCondvar, PiMutex, Promise, RwLock,
    Semaphore,
};

macro_rules! mutexes {
    ($($mutex:ident: $pair:ident, $attempt:ident, $timed:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub fn $pair(lock: &$mutex<u64>) {
            *lock.lock() += 1;
        }

        #[unsafe(no_mangle)]
        pub fn $attempt(lock: &$mutex<u64>) -> Option<u64> {
            Some(*lock.try_lock()?)
        }

        #[unsafe(no_mangle)]
        pub fn $timed(lock: &$mutex<u64>) -> bool {
            lock.try_lock_for(Duration::from_millis(1)).is_some()
        }
    )*};
}

mutexes! {
    Mutex: mutex_pair, mutex_attempt, mutex_timed;
    BargingMutex: unfair_pair, unfair_attempt, unfair_timed;
    AsymMutex: asym_pair, asym_attempt, asym_timed;
    FairMutex: fair_pair, fair_attempt, fair_timed;
    Calock: calock_pair, calock_attempt, calock_timed;
}

#[unsafe(no_mangle)]
pub fn pi_pair(lock: &PiMutex<u64>) -> bool {
    lock.lock().map(|mut value| *value += 1).is_ok()
}

#[unsafe(no_mangle)]
pub fn pi_attempt(lock: &PiMutex<u64>) -> Option<u64> {
    Some(*lock.try_lock().ok()??)
}

#[unsafe(no_mangle)]
pub fn pi_timed(lock: &PiMutex<u64>) -> bool {
    lock.try_lock_for(Duration::from_millis(1)).is_ok_and(|guard| guard.is_some())
}

#[unsafe(no_mangle)]
pub fn pi_condition(lock: &PiMutex<bool>, changed: &PiCondvar) -> bool {
    lock.lock().is_ok_and(|ready| changed.wait_while(ready, |ready| !*ready).is_ok())
}

#[unsafe(no_mangle)]
pub fn nested(outer: &Mutex<u64>, inner: &FairMutex<u64>) {
    let mut in_outer = outer.lock();
    *in_outer += *inner.lock();
}

#[unsafe(no_mangle)]
pub fn condition(lock: &Mutex<bool>, changed: &Condvar) {
    let mut ready = lock.lock();
    while !*ready {
        changed.wait(&mut ready);
    }
}

#[unsafe(no_mangle)]
pub fn read(lock: &RwLock<u64>) -> u64 {
    *lock.read()
}

#[unsafe(no_mangle)]
pub fn write(lock: &RwLock<u64>) {
    *lock.write() += 1;
}

#[unsafe(no_mangle)]
pub fn promised(lock: &Mutex<u64>, reply: &Promise, other: &Promise) -> u64 {
    let _owner = reply.own();
    other.wait(|| *lock.lock())
}

#[unsafe(no_mangle)]
pub fn permit(semaphore: &Semaphore) {
    drop(semaphore.acquire());
}
