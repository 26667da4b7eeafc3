//! Clients for reader-writer locks that upgrade and downgrade.
//!
//! | property | client |
//! |---|---|
//! | an upgradable holder keeps writers and upgradables out, and no readers | [`upgradable_beside_readers`] |
//! | an upgrade sees the readers out, and no thread writes before it | [`upgrades`] |
//! | a failed upgrade leaves the upgradable access as it was | [`upgrades`], by [`How::TryFirst`] and [`How::Timed`] |
//! | a downgrade publishes, lets readers in, and no writer | [`downgrades`], [`downgrade_meets_readers`] |
//! | writer, upgradable and reader turn into one another | [`round_trips`] |

use super::rw::{Meeting, Protected, soon};
use crate::thread::{Arc, together, with};
use ulocks_core::raw::{RawRwLockDowngrade, RawRwLockUpgrade};

/// Which upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// `upgrade`.
    Wait,
    /// `try_upgrade`, then `upgrade`.
    TryFirst,
    /// `upgrade_until` with a deadline that may pass, then `upgrade`.
    Timed,
}

/// # Safety
/// The token comes from an acquisition of `lock` by this thread.
unsafe fn upgrade<L: RawRwLockUpgrade>(lock: &L, token: L::UpgradableToken, how: How) -> L::WriteToken {
    // SAFETY: the caller's promise.
    let first = unsafe {
        match how {
            How::Wait => Err(token),
            How::TryFirst => lock.try_upgrade(token),
            How::Timed => lock.upgrade_until(token, soon()),
        }
    };
    // SAFETY: as above: what failed left the access as it was.
    first.unwrap_or_else(|token| unsafe { lock.upgrade(token) })
}

/// While one thread holds the lock upgradable, readers come in and meet it there; writers and
/// upgradables do not.
pub fn upgradable_beside_readers<L: RawRwLockUpgrade + Send + Sync + 'static>(readers: usize) {
    let protected = Protected::<L>::new();
    let meeting = Meeting::of(readers + 1);
    let lock = &protected.lock;
    let held = lock.upgradable();
    assert!(lock.is_locked(), "is_locked is false while the lock is held");
    assert!(!lock.is_write_locked(), "is_write_locked is true while the lock is held upgradable");
    let others: Vec<_> = (0..readers)
        .map(|_| {
            let meeting = Arc::clone(&meeting);
            with(&protected, move |protected| {
                let token = protected.lock.read();
                meeting.wait();
                protected.look_and_unlock(token)
            })
        })
        .collect();
    assert!(lock.try_write().is_none(), "try_write succeeded beside an upgradable holder");
    assert!(lock.try_upgradable().is_none(), "there are two upgradable holders");
    let beside = lock.try_read().expect("an upgradable holder keeps readers out");
    protected.look_and_unlock(beside);
    meeting.wait();
    for other in others {
        other.join().expect("a reader panicked");
    }
    // SAFETY: the token is from the acquisition above.
    unsafe { lock.unlock_upgradable(held) };
    protected.check_at_rest(0);
}

/// Upgradable holders look, upgrade, find what they saw and count, beside `readers` and `writers`.
pub fn upgrades<L: RawRwLockUpgrade + Send + Sync + 'static>(
    how: How,
    upgradables: usize,
    readers: usize,
    writers: usize,
) {
    let protected = Protected::<L>::new();
    let shared = Arc::clone(&protected);
    together(upgradables + readers + writers, move |me| {
        let lock = &shared.lock;
        if me < upgradables {
            let token = lock.upgradable();
            let seen = shared.look();
            // SAFETY: the token is from the acquisition above.
            let token = unsafe { upgrade(lock, token, how) };
            let count = shared.count_and_unlock(token);
            assert_eq!(count, seen + 1, "somebody wrote between an upgradable holder's look and its upgrade");
        } else if me < upgradables + readers {
            shared.look_and_unlock(lock.read());
        } else {
            shared.count_and_unlock(lock.write());
        }
    });
    protected.check_at_rest(upgradables + writers);
}

/// Writers count, become readers and find what they counted, beside `readers`.
pub fn downgrades<L: RawRwLockDowngrade + Send + Sync + 'static>(writers: usize, readers: usize) {
    let protected = Protected::<L>::new();
    let shared = Arc::clone(&protected);
    together(writers + readers, move |me| {
        if me < writers {
            let token = shared.lock.write();
            let count = shared.count();
            // SAFETY: the token is from the acquisition above.
            let token = unsafe { shared.lock.downgrade(token) };
            assert_eq!(
                shared.look_and_unlock(token),
                count,
                "somebody wrote between a downgrade's two sides"
            );
        } else {
            shared.look_and_unlock(shared.lock.read());
        }
    });
    protected.check_at_rest(writers);
}

/// Readers wait for a writer, which writes and becomes a reader: they see what it wrote, and meet
/// it inside.
pub fn downgrade_meets_readers<L: RawRwLockDowngrade + Send + Sync + 'static>(readers: usize) {
    let protected = Protected::<L>::new();
    let meeting = Meeting::of(readers + 1);
    let held = protected.lock.write();
    let others: Vec<_> = (0..readers)
        .map(|_| {
            let meeting = Arc::clone(&meeting);
            with(&protected, move |protected| {
                let token = protected.lock.read();
                let seen = protected.look();
                meeting.wait();
                // SAFETY: the token is from the acquisition above.
                unsafe { protected.lock.unlock_read(token) };
                seen
            })
        })
        .collect();
    protected.count();
    // SAFETY: the token is from the acquisition above.
    let held = unsafe { protected.lock.downgrade(held) };
    assert!(!protected.lock.is_write_locked(), "is_write_locked is true after a downgrade");
    meeting.wait();
    for other in others {
        assert_eq!(other.join().expect("a reader panicked"), 1, "a reader did not see what was written");
    }
    assert!(protected.lock.try_write().is_none(), "try_write succeeded beside a writer turned reader");
    protected.look_and_unlock(held);
    protected.check_at_rest(1);
}

/// Threads each of which goes from writer to upgradable, to writer again, to upgradable and to
/// reader, beside `readers`: from beginning to end no other thread writes.
pub fn round_trips<L: RawRwLockUpgrade + Send + Sync + 'static>(how: How, travellers: usize, readers: usize) {
    let protected = Protected::<L>::new();
    let shared = Arc::clone(&protected);
    together(travellers + readers, move |me| {
        let lock = &shared.lock;
        if me >= travellers {
            shared.look_and_unlock(lock.read());
            return;
        }
        let token = lock.write();
        let first = shared.count();
        // SAFETY: each token is that of the step before.
        unsafe {
            let token = lock.downgrade_to_upgradable(token);
            assert_eq!(shared.look(), first, "somebody wrote beside an upgradable holder");
            let token = upgrade(lock, token, how);
            assert_eq!(shared.count(), first + 1, "somebody wrote before an upgrade");
            let token = lock.downgrade_to_upgradable(token);
            let token = lock.downgrade_upgradable(token);
            assert_eq!(shared.look_and_unlock(token), first + 1, "somebody wrote beside a reader");
        }
    });
    protected.check_at_rest(2 * travellers);
}

/// A reader that holds the lock makes `try_upgrade` fail and an `upgrade_until` give up; its
/// release lets an upgrade by. For a model in which all deadlines pass in the end.
pub fn upgrade_waits_for_readers<L: RawRwLockUpgrade + Send + Sync + 'static>() {
    let protected = Protected::<L>::new();
    let read = protected.lock.read();
    let other = with(&protected, |protected| {
        let lock = &protected.lock;
        let token = lock.upgradable();
        // SAFETY: each token is that of the step before.
        unsafe {
            let token = lock.try_upgrade(token).err().expect("try_upgrade succeeded beside a reader");
            let token =
                lock.upgrade_until(token, soon()).err().expect("upgrade_until succeeded beside a reader");
            assert!(lock.try_upgradable().is_none(), "a failed upgrade lost the upgradable access");
            let beside = lock.try_read().expect("an upgrade that gave up keeps readers out");
            protected.look_and_unlock(beside);
            lock.unlock_upgradable(token);
        }
    });
    other.join().expect("the upgradable holder panicked");
    protected.look_and_unlock(read);
    protected.check_at_rest(0);
}
