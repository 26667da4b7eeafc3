//! What a raw reader-writer lock offers.
//!
//! | access | excludes | by |
//! |---|---|---|
//! | read | writers | [`RawRwLock`] |
//! | write | all others | [`RawRwLock`] |
//! | upgradable | writers and upgradables, no readers | [`RawRwLockUpgrade`] |
//!
//! All methods that acquire are `#[track_caller]`, and so are all their implementations. So a lock
//! that looks for misuse can name the line of its user. A closure in between breaks the chain.

use super::Initial;
use crate::sys::futex::Scope;
use crate::sys::time::Deadline;

/// A reader-writer lock without data. Its initial value is unlocked.
///
/// # Safety
/// From the return of an acquisition with a [`WriteToken`](RawRwLock::WriteToken) to the release of
/// that token, no other acquisition of any kind returns a token. No token of an earlier acquisition
/// is still unreleased then. What happened before the release of a writer happens before the return
/// of every later acquisition; what happened before the release of a reader happens before the
/// return of every later acquisition by a writer. A token may be forgotten; a locked lock may be
/// moved or dropped.
pub unsafe trait RawRwLock: Initial {
    /// Which threads may contend: those of one process, or of all processes that map the lock.
    type Scope: Scope;
    /// What an acquisition by a reader hands to its release.
    type ReadToken;
    /// What an acquisition by a writer hands to its release.
    type WriteToken;

    /// Acquires the lock beside other readers, waiting as long as it takes.
    #[track_caller]
    fn read(&self) -> Self::ReadToken;
    /// Acquires the lock beside other readers if that needs no waiting.
    #[track_caller]
    fn try_read(&self) -> Option<Self::ReadToken>;
    /// Acquires the lock beside other readers, or gives up once `deadline` has passed.
    #[track_caller]
    fn read_until(&self, deadline: Deadline) -> Option<Self::ReadToken>;
    /// Releases the lock of a reader.
    ///
    /// # Safety
    /// The token comes from an acquisition of this lock in this context.
    unsafe fn unlock_read(&self, token: Self::ReadToken);

    /// Acquires the lock alone, waiting as long as it takes.
    #[track_caller]
    fn write(&self) -> Self::WriteToken;
    /// Acquires the lock alone if that needs no waiting.
    #[track_caller]
    fn try_write(&self) -> Option<Self::WriteToken>;
    /// Acquires the lock alone, or gives up once `deadline` has passed.
    #[track_caller]
    fn write_until(&self, deadline: Deadline) -> Option<Self::WriteToken>;
    /// Releases the lock of a writer.
    ///
    /// # Safety
    /// The token comes from an acquisition of this lock in this context.
    unsafe fn unlock_write(&self, token: Self::WriteToken);

    /// Whether a thread holds the lock at this moment, by any access.
    fn is_locked(&self) -> bool;
    /// Whether a writer holds the lock at this moment.
    fn is_write_locked(&self) -> bool;
}

/// A reader-writer lock whose writer can become a reader without a release in between.
///
/// # Safety
/// As [`RawRwLock`]: a downgrade is the release of the writer to the acquisitions that follow, and
/// no writer gets in between it and the reader it leaves behind.
pub unsafe trait RawRwLockDowngrade: RawRwLock {
    /// Turns the lock of a writer into that of a reader.
    ///
    /// # Safety
    /// The token comes from an acquisition of this lock in this context.
    unsafe fn downgrade(&self, token: Self::WriteToken) -> Self::ReadToken;
}

/// A reader-writer lock with an access beside readers that can turn into a writer's.
///
/// There is at most one upgradable holder, so that no two wait for each other's release.
///
/// # Safety
/// As [`RawRwLock`], and: between the return of an acquisition with an
/// [`UpgradableToken`](RawRwLockUpgrade::UpgradableToken) and the release of that token no other
/// acquisition by a writer or an upgradable returns a token. What happened before its release
/// happens before the return of every later acquisition by a writer or an upgradable. An upgrade is
/// the acquisition of a writer, a downgrade to upgradable is the release of one, and a downgrade to
/// a reader is the release of an upgradable; no writer gets in between an access and the one it is
/// turned into. A failed upgrade leaves the upgradable access as it was.
pub unsafe trait RawRwLockUpgrade: RawRwLockDowngrade {
    /// What an upgradable acquisition hands to its release.
    type UpgradableToken;

    /// Acquires the lock beside readers, to be upgraded perhaps, waiting as long as it takes.
    #[track_caller]
    fn upgradable(&self) -> Self::UpgradableToken;
    /// Acquires the lock beside readers, to be upgraded perhaps, if that needs no waiting.
    #[track_caller]
    fn try_upgradable(&self) -> Option<Self::UpgradableToken>;
    /// Acquires the lock beside readers, to be upgraded perhaps, or gives up once `deadline` has
    /// passed.
    #[track_caller]
    fn upgradable_until(&self, deadline: Deadline) -> Option<Self::UpgradableToken>;
    /// Releases the lock of an upgradable holder.
    ///
    /// # Safety
    /// The token comes from an acquisition of this lock in this context.
    unsafe fn unlock_upgradable(&self, token: Self::UpgradableToken);

    /// Waits until the readers are gone and turns the upgradable holder into a writer.
    ///
    /// # Safety
    /// The token comes from an acquisition of this lock in this context.
    #[track_caller]
    unsafe fn upgrade(&self, token: Self::UpgradableToken) -> Self::WriteToken;
    /// Turns the upgradable holder into a writer if that needs no waiting.
    ///
    /// # Errors
    /// The token, if there are readers.
    ///
    /// # Safety
    /// The token comes from an acquisition of this lock in this context.
    #[track_caller]
    unsafe fn try_upgrade(
        &self,
        token: Self::UpgradableToken,
    ) -> Result<Self::WriteToken, Self::UpgradableToken>;
    /// Turns the upgradable holder into a writer, or gives up once `deadline` has passed.
    ///
    /// # Errors
    /// The token, if there were readers until then.
    ///
    /// # Safety
    /// The token comes from an acquisition of this lock in this context.
    #[track_caller]
    unsafe fn upgrade_until(
        &self,
        token: Self::UpgradableToken,
        deadline: Deadline,
    ) -> Result<Self::WriteToken, Self::UpgradableToken>;

    /// Turns the upgradable holder into a reader.
    ///
    /// # Safety
    /// The token comes from an acquisition of this lock in this context.
    unsafe fn downgrade_upgradable(&self, token: Self::UpgradableToken) -> Self::ReadToken;
    /// Turns the writer into an upgradable holder.
    ///
    /// # Safety
    /// The token comes from an acquisition of this lock in this context.
    unsafe fn downgrade_to_upgradable(&self, token: Self::WriteToken) -> Self::UpgradableToken;
}

/// A reader-writer lock whose waiters may be tasks. [`task`](crate::task) has the methods for users
/// of typed locks.
///
/// Each future may be dropped at any moment, and then leaves nothing behind. One that was polled
/// and is forgotten is a user of the lock for ever.
///
/// # Safety
/// As [`RawRwLockUpgrade`], for the tokens that the futures return too. Each of those may be
/// released, and turned into another, by any thread.
pub unsafe trait RawRwLockAsync: RawRwLockUpgrade<UpgradableToken: Copy> {
    /// The future of [`read_async`](Self::read_async).
    type ReadAsync<'a>: Future<Output = Self::ReadToken> + Send + Sync
    where
        Self: 'a;
    /// The future of [`write_async`](Self::write_async).
    type WriteAsync<'a>: Future<Output = Self::WriteToken> + Send + Sync
    where
        Self: 'a;
    /// The future of [`upgradable_async`](Self::upgradable_async).
    type UpgradableAsync<'a>: Future<Output = Self::UpgradableToken> + Send + Sync
    where
        Self: 'a;
    /// The future of [`upgrade_async`](Self::upgrade_async).
    type UpgradeAsync<'a>: Future<Output = Self::WriteToken> + Send + Sync
    where
        Self: 'a;

    /// Acquires the lock beside other readers for a task, which waits as long as it takes.
    fn read_async(&self) -> Self::ReadAsync<'_>;
    /// Acquires the lock alone for a task, which waits as long as it takes.
    fn write_async(&self) -> Self::WriteAsync<'_>;
    /// Acquires the lock beside readers for a task, to be upgraded perhaps.
    fn upgradable_async(&self) -> Self::UpgradableAsync<'_>;
    /// Turns the upgradable holder into a writer, for a task, which waits until the readers are
    /// gone. A future that is dropped before releases the lock.
    ///
    /// # Safety
    /// The token comes from an acquisition of this lock.
    unsafe fn upgrade_async(&self, token: Self::UpgradableToken) -> Self::UpgradeAsync<'_>;
}

/// A reader-writer lock with releases that hand the lock to the longest waiter.
///
/// # Safety
/// As [`RawRwLock`].
pub unsafe trait RawRwLockFair: RawRwLock {
    /// Releases the lock of a reader to the longest waiter, if there is one.
    ///
    /// # Safety
    /// As [`RawRwLock::unlock_read`].
    unsafe fn unlock_read_fair(&self, token: Self::ReadToken);
    /// Releases the lock of a writer to the longest waiter, if there is one.
    ///
    /// # Safety
    /// As [`RawRwLock::unlock_write`].
    unsafe fn unlock_write_fair(&self, token: Self::WriteToken);

    /// Releases the lock of a reader to the longest waiter, if there is one, and acquires it for
    /// reading again. Where a lock has several kinds of readers, the kind is that of the token.
    ///
    /// # Safety
    /// As [`RawRwLock::unlock_read`].
    #[inline]
    #[track_caller]
    unsafe fn bump_read(&self, token: Self::ReadToken) -> Self::ReadToken {
        // SAFETY: the caller's promise.
        unsafe { self.unlock_read_fair(token) };
        self.read()
    }
}

/// A reader-writer lock whose upgradable holder can hand it to the longest waiter.
///
/// # Safety
/// As [`RawRwLockUpgrade`].
pub unsafe trait RawRwLockUpgradeFair: RawRwLockUpgrade + RawRwLockFair {
    /// Releases the lock of an upgradable holder to the longest waiter, if there is one.
    ///
    /// # Safety
    /// As [`RawRwLockUpgrade::unlock_upgradable`].
    unsafe fn unlock_upgradable_fair(&self, token: Self::UpgradableToken);
}
