//! The robust locks of `ulocks-shm`, each in a region of its own.
//!
//! A region is never given back: a thread that has joined it stays in it until it ends. Trials are
//! processes, so what stays behind is little.

use super::loops::time;
use super::{Lock, Scope};
use anyhow::Result;
use std::cell::RefCell;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::time::Duration;
use ulocks_shm::robust::RawRobust;
use ulocks_shm::{
    Joined, LockError, Member, Mutex, MutexGuard, Refused, Region, RwLock, RwLockWriteGuard, SemError,
    Semaphore, SemaphorePermit, SharedSafe,
};

/// A robust lock around a number. A reader-writer lock is acquired for writing.
pub trait Robust: SharedSafe + Sync + 'static {
    /// Its guard.
    type Guard<'a>;

    /// Makes a new one a free lock.
    fn prepare(&self, me: &Member<'_>) {
        let _ = me;
    }

    /// Acquires, and repairs what a dead holder has left. None only if it was not to `wait`.
    fn lock<'a>(&'a self, me: &'a Member<'_>, wait: bool) -> Option<Self::Guard<'a>>;
}

/// What an acquisition gives: the data of a dead holder is a number, which is whole.
#[inline]
fn had<G>(result: Result<G, LockError<G>>, wait: bool, mark_consistent: impl FnOnce(&mut G)) -> Option<G> {
    match result {
        Ok(guard) => Some(guard),
        Err(LockError::OwnerDied(mut guard)) => {
            mark_consistent(&mut guard);
            Some(guard)
        }
        Err(LockError::Refused(Refused::TimedOut)) if !wait => None,
        Err(error) => panic!("robust lock: {error}"),
    }
}

impl<L: RawRobust> Robust for Mutex<u64, L> {
    type Guard<'a> = MutexGuard<'a, u64, L>;

    #[inline]
    fn lock<'a>(&'a self, me: &'a Member<'_>, wait: bool) -> Option<Self::Guard<'a>> {
        let result = if wait { self.lock(me) } else { self.try_lock(me) };
        had(result, wait, MutexGuard::mark_consistent)
    }
}

impl Robust for RwLock<u64> {
    type Guard<'a> = RwLockWriteGuard<'a, u64, 64, ulocks_core::Shared>;

    #[inline]
    fn lock<'a>(&'a self, me: &'a Member<'_>, wait: bool) -> Option<Self::Guard<'a>> {
        let result = if wait { self.write(me) } else { self.try_write(me) };
        had(result, wait, RwLockWriteGuard::mark_consistent)
    }
}

impl Robust for Semaphore {
    type Guard<'a> = SemaphorePermit<'a>;

    fn prepare(&self, me: &Member<'_>) {
        self.add_permits(me, 1).expect("room for one permit");
    }

    #[inline]
    fn lock<'a>(&'a self, me: &'a Member<'_>, wait: bool) -> Option<Self::Guard<'a>> {
        match if wait { self.acquire(me) } else { self.try_acquire_many(me, 1) } {
            Ok(permit) => Some(permit),
            Err(SemError::WouldBlock | SemError::Refused(Refused::TimedOut)) if !wait => None,
            Err(error) => panic!("robust lock: {error}"),
        }
    }
}

thread_local! {
    /// The regions that this thread has joined, by their addresses.
    static JOINED: RefCell<Vec<(usize, &'static Joined<'static>)>> = const { RefCell::new(Vec::new()) };
}

/// A robust lock in a region, which forked workers inherit.
#[derive(Debug)]
pub struct InRegion<R: Robust>(&'static Region<R>);

impl<R: Robust> InRegion<R> {
    /// The calling thread as a member of the region; the first call joins it.
    fn member(&self) -> &'static Member<'static> {
        let base = self.0.base().addr().get();
        JOINED.with_borrow_mut(|joined| {
            if let Some((_, me)) = joined.iter().find(|(region, _)| *region == base) {
                return &***me;
            }
            // SAFETY: the member stays until its thread ends. The workloads drop what they hold
            // before that: they leak no guard.
            let me = unsafe { self.0.join() }.unwrap_or_else(|error| panic!("robust lock: {error}"));
            let me: &'static Joined<'static> = Box::leak(Box::new(me));
            joined.push((base, me));
            &**me
        })
    }
}

impl<R: Robust> Lock for InRegion<R> {
    fn place(place: &mut MaybeUninit<Self>, _: Scope) -> Result<()> {
        let region = Region::<R>::options().anonymous()?;
        region.with_member(|me| region.prepare(me))?;
        place.write(Self(Box::leak(Box::new(region))));
        Ok(())
    }

    type Held<'a> = R::Guard<'a>;

    #[inline]
    fn acquire(&self, wait: bool) -> Option<Self::Held<'_>> {
        R::lock(self.0, self.member(), wait)
    }

    /// The thread joins the region before and leaves it afterwards, neither of which is timed: in
    /// the blocks of the peers their robust lists are empty.
    fn time_pairs(&self, times: u32, _: bool) -> Duration {
        let lock: &R = black_box(self.0);
        let timed = self.0.with_member(|me| time(times, || drop(R::lock(lock, me, true))));
        timed.unwrap_or_else(|error| panic!("robust lock: {error}"))
    }
}
