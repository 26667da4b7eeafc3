//! The threads of a process that take part in the robust locks of a region.

use super::names::ROUND;
use super::{InUse, Region};
use crate::safe::SharedSafe;
use crate::slots::{JoinError, Member, Slot};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use ulocks_core::sync::AtomicU64;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};

/// How many threads of this process take part in a region.
///
/// | bits | meaning |
/// |---|---|
/// | 0 to 30 | how many threads of `process` take part |
/// | 31 | threads of a parent took part when it forked `process` |
/// | 32 to 63 | `process`: of a child of fork it may be an ancestor |
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    const INHERITED: u64 = 1 << 31;
    const NUMBER: u64 = Self::INHERITED - 1;

    /// `word` as one of this process.
    fn mine(word: u64) -> u64 {
        let process = u64::from(std::process::id()) << u32::BITS;
        let counts = word & u64::from(u32::MAX);
        match word ^ counts {
            whose if whose == process => word,
            _ if counts != 0 => process | Self::INHERITED,
            _ => process,
        }
    }

    fn add(&self) {
        self.0.update(Relaxed, Relaxed, |word| Self::mine(word) + 1);
    }

    /// How many threads of this process take part.
    pub fn get(&self) -> usize {
        // At most 31 bits.
        // Acquire: what a thread that has left did to the region comes before its end.
        // Mutant: Acquire -> Relaxed: models have no regions. In Rust the end of a borrow orders
        // the two, but `ulocks_region_close` of C has nothing else.
        (Self::mine(self.0.load(Acquire)) & Self::NUMBER) as usize
    }

    /// Whether threads of a parent took part when it forked this process, or an ancestor of it.
    pub fn is_inherited(&self) -> bool {
        Self::mine(self.0.load(Relaxed)) & Self::INHERITED != 0
    }
}

impl<R: SharedSafe> Region<R> {
    /// Runs `f` in the calling thread, which takes part in the robust locks of the region
    /// meanwhile: they ask for the [`Member`] that `f` gets.
    ///
    /// The thread leaves when `f` returns or panics. No guard leaves `f`, nor does a reference to
    /// what a guard protects: the loan of the member bounds them. So when the thread ends, and the
    /// kernel gives its locks to others, nothing in the process uses them any more. A thread that
    /// uses robust locks all of its life has its whole body in `f`.
    ///
    /// If `f` has forgotten a guard, its lock is left as by the death of the thread. A mutex and a
    /// writer's lock go to the next thread, which is told; a read lock is released; permits come
    /// back.
    ///
    /// Calls nest. The inner call takes a slot of its own and is another participant: it waits for
    /// ever for a lock that the outer one holds.
    ///
    /// # Blocking
    /// Joining and leaving never block. After 65,536 calls that have had one slot, the next one
    /// reads the root from the file, to see which locks a dead thread still has. So does the first
    /// call of each later process that gets the slot, until the region is reset.
    ///
    /// # Errors
    /// If as many threads take part as the region was [created](super::Options::participants) for,
    /// if the thread has no robust list, or if it takes part 2,000 times already, in whatever
    /// regions. If the file cannot be read, or all 65,536 names of a slot are taken by the dead.
    /// `f` is not called then.
    ///
    /// # Process-shared
    /// A lock tells the dead from the living by what this call has given each. That is given to two
    /// calls only after 2^32 calls that have had one slot, without a reset of the region.
    ///
    /// If a process ends, the kernel ends its threads one after the other. A thread that was lent
    /// data by a guard of another one, as in [`scope`](std::thread::scope), may run for some
    /// microseconds after the other's death was told. So lend what another process repairs to no
    /// other thread.
    ///
    /// # Signals and forks
    /// Not for a signal handler. A child of a `fork` in `f` does not take part: a call by the
    /// member panics there, and so does the drop of a guard. Neither changes anything, nor does its
    /// return from `f`. The child must not use the data by a guard: it is its parent's. It calls
    /// this function by itself. A thread must not end inside of `f` but by a panic: `pthread_exit`
    /// and the like are unsafe to call.
    ///
    /// `f` calls `execve` only in the main thread. In another one the kernel does not see that the
    /// member has ended: its locks stay held, and its slot stays taken, until no process is
    /// attached. The other threads of the process end as by any death.
    ///
    /// # Examples
    /// ```
    /// use ulocks_shm::{LockError, Mutex, Region};
    ///
    /// let region = Region::<Mutex<u64>>::options().anonymous()?;
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         region.with_member(|me| {
    ///             *region.lock(me).unwrap() = 7;
    ///             std::mem::forget(region.lock(me)); // as if the thread died with the mutex
    ///         })
    ///     });
    /// });
    /// region.with_member(|me| {
    ///     match region.lock(me) {
    ///         Err(LockError::OwnerDied(mut guard)) => {
    ///             assert_eq!(*guard, 7);
    ///             guard.mark_consistent();
    ///         }
    ///         other => panic!("{other:?}"),
    ///     }
    ///     assert!(region.lock(me).is_ok());
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_member<O>(&self, f: impl FnOnce(&Member<'_>) -> O) -> Result<O, JoinError> {
        // SAFETY: the member is dropped at the end of this function, also if `f` panics, and so
        // before the thread ends and before the region is dropped, which is borrowed. `f` is for
        // members of any lifetime: what it made of this one is in no use after the call.
        let me = unsafe { self.join() }?;
        Ok(f(&me))
    }

    /// Lets the calling thread take part in the robust locks of the region, until the result is
    /// dropped or the thread ends. [`with_member`](Self::with_member) is the safe way.
    ///
    /// # Errors
    /// As [`with_member`](Self::with_member).
    ///
    /// # Signals and forks
    /// As [`with_member`](Self::with_member): an `execve` comes from the main thread, or after the
    /// result was dropped.
    ///
    /// # Safety
    /// When the thread ends, nothing is used any more that a lock of the region has lent to the
    /// member: no guard, and no reference to the data by a guard, also not in another thread. A
    /// result that is dropped before the thread ends sees to that, for guards borrow it. One that
    /// is leaked, with a guard, does not: the kernel gives the locks to other threads.
    ///
    /// # Examples
    /// ```
    /// use ulocks_shm::{LockError, Mutex, Region};
    ///
    /// let region = Region::<Mutex<u64>>::options().anonymous()?;
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         // SAFETY: no guard is used after it was forgotten.
    ///         let me = unsafe { region.join() }.unwrap();
    ///         std::mem::forget(region.lock(&me));
    ///         std::mem::forget(me); // the thread ends as a member, while it holds the mutex
    ///     });
    /// });
    /// assert!(region.with_member(|me| matches!(region.lock(me), Err(LockError::OwnerDied(_))))?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn join(&self) -> Result<Joined<'_>, JoinError> {
        let slots = self.slots().cast::<Slot>();
        // SAFETY: there are so many slots of 64 bytes, aligned to that, inside of the mapping. They
        // are atomics, so each bit pattern is valid. They live as long as the mapping.
        let slots = unsafe { core::slice::from_raw_parts(slots.as_ptr(), self.participants() as usize) };
        let start = self.base().addr().get();
        let root = self.plan.root..self.plan.root + size_of::<R>() as u64;
        let mut slot = 0;
        for _ in 0..ROUND {
            // SAFETY: the mapping stays while the member lives, which borrows the region. If the
            // member is forgotten, its count stays, and the region's drop leaves the mapping there.
            // That nothing lent is used after the thread's end is the caller's promise.
            let member = unsafe { Member::join(slots, start..start + self.mapping.size()) }?;
            if self.names.is_free(&member, self.file(), root.clone())? {
                self.joined.add();
                return Ok(Joined { member: ManuallyDrop::new(member), count: &self.joined });
            }
            slot = member.slot(); // (skip)
        }
        Err(JoinError::Named { slot })
    }
}

/// A thread that takes part in the robust locks of a [`Region`], by the unsafe
/// [`join`](Region::join): derefs to its [`Member`].
///
/// Dropped, it leaves. A lock whose guard was forgotten is left as by the death of the thread.
#[derive(Debug)]
pub struct Joined<'r> {
    member: ManuallyDrop<Member<'r>>,
    count: &'r Count,
}

impl Joined<'_> {
    /// Ends the part of the calling thread.
    ///
    /// # Errors
    /// If the thread still holds robust locks of the region, by guards that were forgotten. It
    /// takes part as before.
    ///
    /// # Examples
    /// ```
    /// use ulocks_shm::{Mutex, Region};
    ///
    /// let region = Region::<Mutex<u64>>::options().anonymous()?;
    /// // SAFETY: no guard is used after it was forgotten.
    /// let me = unsafe { region.join() }?;
    /// std::mem::forget(region.lock(&me));
    /// let refused = me.leave().unwrap_err();
    /// assert_eq!(refused.count(), 1);
    /// drop(refused.into_inner());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn leave(self) -> Result<(), InUse<Self>> {
        match self.held() {
            0 => Ok(()),
            locks => Err(InUse::new(self, locks as usize, "the thread holds robust locks of the region")),
        }
    }
}

impl<'r> Deref for Joined<'r> {
    type Target = Member<'r>;

    fn deref(&self) -> &Member<'r> {
        &self.member
    }
}

impl Drop for Joined<'_> {
    fn drop(&mut self) {
        // A child of fork has not counted its parent's threads.
        let is_counted = self.member.is_of_this_process();
        // SAFETY: it is dropped once, here, and not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.member) };
        // The last access: the region may be closed from here on.
        if is_counted {
            // Mutant: Release -> Relaxed: as in `Count::get`, with which it pairs.
            self.count.0.fetch_sub(1, Release);
        }
    }
}
