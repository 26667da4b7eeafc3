//! A page that children share, with slots and mutexes in it.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use ulocks_core::capabilities::{Capability, capabilities};
use ulocks_core::spin::NoSpin;
use ulocks_core::{Shared, futex};
use ulocks_shm::robust::RawRobust;
use ulocks_shm::robust::fair_mutex::RawFairMutex;
use ulocks_shm::robust::mutex::raw::RawMutex;
use ulocks_shm::slots::Slot;
use ulocks_shm::{self as shm, LockError, Member, RwLock, Semaphore};
use ulocks_testkit::Child;
use ulocks_testkit::shared::Mapping;
use ulocks_testkit::watchdog::{Watchdog, watch};

/// Waiters sleep at once.
pub type Mutex = shm::Mutex<u32, RawMutex<Shared<NoSpin>>>;

/// What the children share. All zero at first.
#[repr(C)]
pub struct Place {
    slots: [Slot; 16],
    pub mutex: Mutex,
    pub other: Mutex,
    fair: shm::Mutex<u32, RawFairMutex<Shared<NoSpin>>>,
    rwlock: RwLock<u32, 16, Shared<NoSpin>>,
    semaphore: Semaphore<16, Shared<NoSpin>>,
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
        // A waiter that depends on its next look hangs, and the watchdog ends the test. Before
        // Linux 5.16 each waiter depends on it.
        if capabilities().has(Capability::Waitv) {
            me.set_recheck(std::time::Duration::from_hours(1));
        }
        me
    }
}

/// A lock of the place that the children use.
pub struct Subject {
    /// Adds one under it. Whether the thread was told of a death.
    adds: fn(&Place, &Member<'_>) -> bool,
    pub is_held: fn(&Place) -> bool,
}

/// Adds one under `mutex`, whole again if a holder has died.
fn adds_under<L: RawRobust>(mutex: &shm::Mutex<u32, L>, me: &Member<'_>) -> bool {
    let (mut guard, told) = match mutex.lock(me) {
        Ok(guard) => (guard, false),
        Err(LockError::OwnerDied(mut guard)) => {
            guard.mark_consistent();
            (guard, true)
        }
        Err(error) => panic!("{error}"),
    };
    *guard += 1;
    told
}

fn adds_by_writing(place: &Place, me: &Member<'_>) -> bool {
    let (mut guard, told) = match place.rwlock.write(me) {
        Ok(guard) => (guard, false),
        Err(LockError::OwnerDied(mut guard)) => {
            guard.mark_consistent();
            (guard, true)
        }
        Err(error) => panic!("{error}"),
    };
    *guard += 1;
    told
}

pub static BARGING: Subject =
    Subject { adds: |place, me| adds_under(&place.mutex, me), is_held: |place| place.mutex.is_locked() };
pub static FAIR: Subject =
    Subject { adds: |place, me| adds_under(&place.fair, me), is_held: |place| place.fair.is_locked() };
pub static WRITING: Subject = Subject { adds: adds_by_writing, is_held: |place| place.rwlock.is_locked() };
/// A semaphore of one permit. It does not say that a thread died.
pub static PERMIT: Subject = Subject {
    adds: |place, me| place.semaphore.acquire(me).map(drop).is_err(),
    is_held: |place| place.semaphore.available_permits() == 0,
};

pub struct Shm(Mapping, &'static Subject);

impl Shm {
    /// A new place, for its barging mutex.
    pub fn new(name: &'static str) -> (Self, Watchdog) {
        Self::of(name, &BARGING)
    }

    /// A new place, for this lock.
    pub fn of(name: &'static str, subject: &'static Subject) -> (Self, Watchdog) {
        let shm = Self(Mapping::shared(), subject);
        let me = shm.join();
        shm.place().semaphore.add_permits(&me, 1).unwrap();
        drop(me);
        (shm, watch(name, || "a waiter sleeps for ever".into()))
    }

    /// Whether the lock is held.
    pub fn is_held(&self) -> bool {
        (self.1.is_held)(self.place())
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

    /// Adds one under the lock, whole again if a holder has died.
    pub fn adds(&self, me: &Member<'_>) {
        let place = self.place();
        if (self.1.adds)(place, me) {
            place.told.fetch_add(1, Relaxed);
        }
        place.finished.fetch_add(1, Relaxed);
    }
}

/// That the mutexes of a place are between processes.
const _: fn() = || {
    fn shared<P: ulocks_core::Policy<Scope = futex::Global>>() {}
    shared::<Shared<NoSpin>>();
};
