//! The threads of a process that take part in the robust locks of a region.

use super::{InUse, Region};
use crate::safe::SharedSafe;
use crate::slots::{JoinError, Member, Slot};
use std::ops::Deref;
use ulocks_core::sync::{AtomicUsize, Ordering::Relaxed};

impl<R: SharedSafe> Region<R> {
    /// Lets the calling thread take part in the robust locks of the region, until the result is
    /// dropped or the thread ends.
    ///
    /// # Errors
    /// If as many threads take part as the region was [created](super::Options::participants) for,
    /// or if the thread has no robust list.
    ///
    /// # Examples
    /// ```
    /// use ulocks_shm::Region;
    /// use ulocks_shm::robust::mutex::{LockError, RobustMutex};
    ///
    /// let region = Region::<RobustMutex<u64>>::options().anonymous()?;
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         let me = region.join().unwrap();
    ///         *region.lock(&me).unwrap() = 7;
    ///         std::mem::forget(region.lock(&me)); // the thread ends while it holds the mutex
    ///         std::mem::forget(me);
    ///     });
    /// });
    /// let me = region.join()?;
    /// match region.lock(&me) {
    ///     Err(LockError::OwnerDied(mut guard)) => {
    ///         assert_eq!(*guard, 7);
    ///         guard.mark_consistent();
    ///     }
    ///     other => panic!("{other:?}"),
    /// }
    /// assert!(region.lock(&me).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn join(&self) -> Result<Joined<'_>, JoinError> {
        let slots = self.slots().cast::<Slot>();
        // SAFETY: there are so many slots of 64 bytes, aligned to that, inside of the mapping. They
        // are atomics, so each bit pattern is valid. They live as long as the mapping.
        let slots = unsafe { core::slice::from_raw_parts(slots.as_ptr(), self.participants() as usize) };
        let start = self.base().addr().get();
        // SAFETY: the mapping stays while the member lives, which borrows the region. If the member
        // is forgotten, its count stays, and the region's drop leaves the mapping there.
        let member = unsafe { Member::join(slots, start..start + self.mapping.size()) }?;
        self.joined.fetch_add(1, Relaxed);
        Ok(Joined { member, count: &self.joined })
    }
}

/// A thread that takes part in the robust locks of a [`Region`]: derefs to its [`Member`].
///
/// # Panics
/// Its drop panics if the thread still holds a robust lock of the region, by a guard that was
/// forgotten. [`leave`](Self::leave) is an error then.
#[derive(Debug)]
pub struct Joined<'r> {
    member: Member<'r>,
    count: &'r AtomicUsize,
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
    /// use ulocks_shm::Region;
    /// use ulocks_shm::robust::mutex::RobustMutex;
    ///
    /// let region = Region::<RobustMutex<u64>>::options().anonymous()?;
    /// let me = region.join()?;
    /// std::mem::forget(region.lock(&me));
    /// let refused = me.leave().unwrap_err();
    /// assert_eq!(refused.count(), 1);
    /// let me = refused.into_inner();
    /// # std::mem::forget(me);
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
        self.count.fetch_sub(1, Relaxed);
    }
}
