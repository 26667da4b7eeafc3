//! The wait of a thread, which the thread publishes and any thread reads.

use super::{Held, Record, indices};
use crate::seen::access::Access;
use crate::seen::class::Node;
use crate::seen::report::{LockName, Place};
use crate::seen::slot::{how, subclass_and_access};
use core::panic::Location;
use core::ptr;
use ulocks_core::sync::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};
use ulocks_core::sync::{
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// What a thread waits for.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    pub lock: usize,
    pub class: &'static Node,
    pub subclass: u8,
    pub access: Access,
    pub instance: u64,
    pub place: Place,
    pub timed: bool,
    /// By the coarse clock, in nanoseconds.
    pub since: u64,
    /// Of a wait for a promise: the slots that had an entry when it began, and the sum of their
    /// turns.
    pub before: (u64, u64),
}

impl Wait {
    pub fn name(&self) -> LockName {
        self.class.lock_name((self.lock, self.instance), self.subclass, self.access)
    }
}

#[derive(Default)]
pub(super) struct Waiting {
    lock: AtomicUsize,
    class: AtomicPtr<Node>,
    place: AtomicPtr<Location<'static>>,
    timed: AtomicBool,
    since: AtomicU64,
    instance: AtomicU64,
    /// The subclass and the access.
    how: AtomicU32,
    before: [AtomicU64; 2],
}

impl Record {
    pub fn begin_wait(&self, wait: &Wait) {
        self.is_about_to_wait(wait);
        let waiting = &self.waiting;
        waiting.class.store(ptr::from_ref(wait.class).cast_mut(), Relaxed);
        waiting.place.store(ptr::from_ref(wait.place).cast_mut(), Relaxed);
        waiting.timed.store(wait.timed, Relaxed);
        waiting.since.store(wait.since, Relaxed);
        waiting.instance.store(wait.instance, Relaxed);
        waiting.how.store(how(wait.subclass, wait.access).into(), Relaxed);
        if wait.access == Access::Promise {
            waiting.before[0].store(wait.before.0, Relaxed);
            waiting.before[1].store(wait.before.1, Relaxed);
        }
        waiting.lock.store(wait.lock, Relaxed);
        self.waits.store(self.waits.load(Relaxed) + 1, Release); // (begin wait)
        self.has_begun_to_wait(wait);
    }

    pub fn end_wait(&self) {
        self.is_about_to_end_its_wait();
        self.waits.store(self.waits.load(Relaxed) + 1, Relaxed);
        fence(Release); // (end wait)
    }

    /// What the thread waits for, and the number of that wait.
    pub fn waiting(&self) -> Option<(Wait, u64)> {
        let number = self.waits.load(Acquire); // (begin wait)
        if number.is_multiple_of(2) {
            return None;
        }
        let waiting = &self.waiting;
        let (class, place) = (waiting.class.load(Relaxed), waiting.place.load(Relaxed));
        // SAFETY: a wait that has begun was written, with references that are `'static`.
        let (class, place) = unsafe { (&*class, &*place) };
        let (lock, timed) = (waiting.lock.load(Relaxed), waiting.timed.load(Relaxed));
        let (how, since) = (waiting.how.load(Relaxed), waiting.since.load(Relaxed));
        let instance = waiting.instance.load(Relaxed);
        let (subclass, access) = subclass_and_access(how as u8);
        let before = match access {
            Access::Promise => (waiting.before[0].load(Relaxed), waiting.before[1].load(Relaxed)),
            _ => (0, 0),
        };
        // A later wait may have been written in the meantime.
        fence(Acquire); // (end wait)
        let same = self.waits.load(Relaxed) == number;
        let wait = Wait { lock, class, subclass, access, instance, place, timed, since, before };
        same.then_some((wait, number))
    }

    /// What a wait that begins now has as [`before`](Wait::before).
    pub fn entries(&self) -> (u64, u64) {
        let used = self.used.load(Relaxed);
        (used, self.sum_of_turns(used))
    }

    /// The same sum says that no slot of `used` has got a later entry: each turn only grows.
    fn sum_of_turns(&self, used: u64) -> u64 {
        indices(used).map(|index| self.slot(index).turn()).fold(0, u64::wrapping_add)
    }

    /// Whether the thread keeps `held` as long as it waits. In a wait for a promise it runs, and
    /// may release what it acquires there. The entry was read before.
    pub fn keeps(&self, held: &Held) -> bool {
        // No promise is modelled.
        if cfg!(modelled) {
            return true;
        }
        let Some((Wait { access: Access::Promise, before: (used, turns), .. }, _)) = self.waiting() else {
            return true;
        };
        let is_it = |now: Held| (now.lock, now.access, now.since) == (held.lock, held.access, held.since);
        // The turns are read last: an entry that was written in the wait shows its own.
        let mut held = indices(used).filter_map(|index| self.slot(index).read(&self.used, 1 << index));
        held.any(is_it) && self.sum_of_turns(used) == turns
    }
}
