//! The wait of a thread, which the thread publishes and any thread reads.

use super::Record;
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
        waiting.lock.store(wait.lock, Relaxed);
        self.waits.store(self.waits.load(Relaxed) + 1, Release); // (begin wait)
        self.has_begun_to_wait(wait);
    }

    pub fn end_wait(&self) {
        self.is_about_to_end_its_wait();
        self.waits.store(self.waits.load(Relaxed) + 1, Release);
        fence(Release);
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
        fence(Acquire);
        // A later wait may have been written in the meantime.
        let same = self.waits.load(Relaxed) == number;
        let (subclass, access) = subclass_and_access(how as u8);
        same.then_some((Wait { lock, class, subclass, access, instance, place, timed, since }, number))
    }
}
