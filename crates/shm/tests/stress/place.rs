//! A page that children share, with slots and mutexes in it.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use ulocks_core::spin::NoSpin;
use ulocks_core::{Shared, futex};
use ulocks_shm::robust::mutex::raw::RawRobustMutex;
use ulocks_shm::robust::mutex::{LockError, RobustMutex};
use ulocks_shm::slots::{Member, Slot};
use ulocks_testkit::Child;
use ulocks_testkit::shared::Mapping;
use ulocks_testkit::watchdog::{Watchdog, watch};

/// Waiters sleep at once.
pub type Mutex = RobustMutex<u32, RawRobustMutex<Shared<NoSpin>>>;

/// What the children share. All zero at first.
#[repr(C)]
pub struct Place {
    slots: [Slot; 16],
    pub mutex: Mutex,
    pub other: Mutex,
    /// How many acquisitions were told of a death.
    pub told: AtomicU32,
    /// How many came to their end.
    pub finished: AtomicU32,
    /// How many have begun to wait.
    pub begun: AtomicU32,
}

impl Place {
    /// Takes part in the mutexes.
    pub fn join(&self) -> Member<'_> {
        let start = std::ptr::from_ref(self).addr();
        // SAFETY: a place lies in a mapping that outlives its members: a thread of a test ends
        // before the mapping does, and a child ends without unmapping it.
        let me = unsafe { Member::join(&self.slots, start..start + size_of::<Self>()) }.unwrap();
        // A waiter that depends on its next look hangs, and the watchdog ends the test.
        me.set_recheck(std::time::Duration::from_hours(1));
        me
    }
}

pub struct Shm(Mapping);

impl Shm {
    /// A new place.
    pub fn new(name: &'static str) -> (Self, Watchdog) {
        (Self(Mapping::shared()), watch(name, || "a waiter sleeps for ever".into()))
    }

    pub fn place(&self) -> &Place {
        // SAFETY: the mapping is zeroed, as long as `self`, and accessed as nothing else.
        unsafe { &*self.0.place::<Place>() }
    }

    /// Takes part in the place's mutexes.
    pub fn join(&self) -> Member<'_> {
        self.place().join()
    }

    /// A child that waits for the mutex, adds one, and ends.
    pub fn waiter(&self) -> Child {
        let before = self.place().begun.load(Relaxed);
        Child::runs(|| {
            let me = self.join();
            self.place().begun.fetch_add(1, Relaxed);
            self.adds(&me);
        })
        .sleeps(|| self.place().begun.load(Relaxed) > before)
    }

    /// Adds one under the mutex, whole again if a holder has died.
    pub fn adds(&self, me: &Member<'_>) {
        let place = self.place();
        let mut guard = match place.mutex.lock(me) {
            Ok(guard) => guard,
            Err(LockError::OwnerDied(mut guard)) => {
                place.told.fetch_add(1, Relaxed);
                guard.mark_consistent();
                guard
            }
            Err(error) => panic!("{error}"),
        };
        *guard += 1;
        drop(guard);
        place.finished.fetch_add(1, Relaxed);
    }
}

/// That the mutexes of a place are between processes.
const _: fn() = || {
    fn shared<P: ulocks_core::Policy<Scope = futex::Shared>>() {}
    shared::<Shared<NoSpin>>();
};
