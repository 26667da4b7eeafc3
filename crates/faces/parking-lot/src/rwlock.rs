//! Reading again on a thread that reads already: what `PsRwLock` does not know, around it.
//!
//! A `PsRwLock` has classes of readers. A reader of a higher class passes a writer that waits for
//! readers of a lower one. So `Nested` readers may come in on threads that read as `Bulk`. But two
//! `Nested` reads of one thread deadlock if a writer comes between, and a release must say its
//! class. `read_recursive` may be nested to any depth, and its guards are of the same type as those
//! of `read`.
//!
//! # Properties
//! - [`read`](RecursiveRwLock::read) is a `Bulk` read, at the same cost.
//! - [`read_again`](RecursiveRwLock::read_again) does not wait for a writer that waits while this
//!   thread reads in any way.
//! - Nor does it wait for a writer that waits while another thread reads, but for a moment: readers
//!   inside may wait for a thread that reads again.
//! - One release for both. If all readers came by `read`, it costs one load more than the lock's.
//!
//! # State
//! Beside the lock a word with two counts: the *shares*, `Nested` acquisitions of the lock that
//! readers have in common, and the readers that have *joined* them. A reader is covered by a `Bulk`
//! acquisition, by a share, or by having joined.
//!
//! | label | from | to | by |
//! |---|---|---|---|
//! | (share) | any | one share more | a reader that has acquired the lock as `Nested` |
//! | (join) | a share | one more that has joined | a reader that reads again, at each of its looks |
//! | (unjoin) | one that has joined | one less | any reader that leaves |
//! | (unshare) | a share, none that has joined | one share less | any reader that leaves, and then releases the lock as `Nested` |
//! | | nothing | nothing | any reader that leaves: it releases the lock as `Bulk` |
//!
//! # Invariants
//! 1. Each share is an acquisition of the lock: (share) comes after that, (unshare) before the
//!    release.
//! 2. If any reader has joined, there is a share: (join) needs one, and (unshare) takes none before
//!    the last that has joined has left.
//! 3. *A reader is covered until it leaves.* A reader that leaves may give up what covers another,
//!    and leaves behind its own: a `Bulk` reader that does (unjoin) or (unshare) leaves its `Bulk`
//!    acquisition to one of those that came by (share) or (join). When the word is zero, as many of
//!    them have left or got a `Bulk` acquisition as have come. So a reader that sees zero after its
//!    own (share) or (join) is covered by `Bulk`. A reader that came by `read` is so in any case,
//!    also if the zero is old.
//! 4. *Reading again does not wait for a waiting writer.* By 3 the thread's first read is covered.
//!    If there is a share, (join) succeeds. If not, there is a `Bulk` acquisition, and the class of
//!    `Nested` is open as long as that is not released.
//! 5. *While one reader is inside, another that reads again is kept out for a nap at most.* It
//!    waits for the lock as `Nested` for a nap, then looks for a share, and so on. By 3 the reader
//!    inside is covered. If there is a `Bulk` acquisition, `Nested` is open, and the other gets the
//!    lock. If there is a share, the other does (join) at its next look. Or the reader inside has
//!    acquired as `Nested` and is about to do (share), for which it waits for no thread.
//!
//!    Why one look before the wait is not enough: a reader arrives as `Nested`, and a writer closes
//!    the class before (share), or before a second reader that spins has seen it open. The second
//!    reader has found no share. It sleeps until the writer leaves. The writer waits for the first
//!    reader, which may wait for the second. Nothing of the lock wakes a queued reader at (share),
//!    so the second reader looks by a timer.
//!
//! # Memory ordering
//! - (share) is Release, and (join) Acquire: a reader that joins has acquired by the acquisition
//!   that made a share. All changes are read-modify-writes, so they continue the release sequences.
//! - (unjoin) and (unshare) are Release, and (unshare) is Acquire: the release of the lock after
//!   (unshare) is ordered after the readers that have left by (unjoin) or (unshare) before.
//! - A reader that sees zero needs no ordering: it releases the lock for itself.

use core::mem::ManuallyDrop;
use core::panic::Location;
use core::time::Duration;
use ulocks_core::Private;
use ulocks_core::raw::{
    RawRwLock, RawRwLockDowngrade, RawRwLockFair, RawRwLockUpgrade, RawRwLockUpgradeFair,
};
use ulocks_core::signal::Soft;
use ulocks_core::sync::AtomicU64;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;
use ulocks_psrwlock::{
    BULK, Bulk, Central, NESTED, Nested, PhaseFair, RawPsRwLock, ReadToken, Sifted, Unchecked,
};

type Lock = RawPsRwLock<Sifted<{ BULK | NESTED }, Private, PhaseFair, Central, Soft, Unchecked>>;

const SHARE: u64 = 1;
const JOINED: u64 = 1 << 32;
const SHARES: u64 = JOINED - 1;
/// So many may have joined at once. A guard that is forgotten stays for ever, and without a limit
/// 2^32 of them would be none. The lock limits the shares, far below 2^32.
const MOST: u64 = 1 << 31;

const AS_BULK: ReadToken = Lock::token::<Bulk>();
const AS_NESTED: ReadToken = Lock::token::<Nested>();

/// How long a reader that reads again waits for the lock before it looks for a share. While it
/// looks, it is not in the lock's queue. Others were not measured.
const FIRST_NAP: Duration = Duration::from_millis(1);
/// Each nap takes twice as long as the one before, up to this: beside a long write the look costs
/// some sixty wake-ups a second.
const LONGEST_NAP: Duration = Duration::from_millis(16);

/// As many readers have joined as may.
struct TooMany;

impl TooMany {
    #[cold]
    fn panic(&self) -> ! {
        panic!("too many readers have come in again: {MOST} at once may have");
    }
}

/// How long an acquisition may take.
#[derive(Clone, Copy, Debug)]
pub enum Patience {
    /// As long as it takes.
    Forever,
    /// Until then.
    Until(Deadline),
    /// No waiting.
    Never,
}

/// The reader-writer lock: a `PsRwLock` whose readers may come in again.
pub struct RecursiveRwLock {
    /// As parking_lot's it has no drop glue. It has nothing to give back: no row, and no tasks.
    lock: ManuallyDrop<Lock>,
    again: AtomicU64,
}

impl RecursiveRwLock {
    ulocks_core::const_fn! {
        /// An unlocked lock; its bytes are all zero.
        pub fn new() -> Self {
            Self { lock: ManuallyDrop::new(Lock::new()), again: AtomicU64::new(0) }
        }
    }

    /// Acquires for reading. False if `patience` ran out.
    #[inline]
    pub fn read(&self, patience: Patience) -> bool {
        match patience {
            Patience::Forever => _ = self.lock.read(),
            Patience::Until(deadline) => {
                return self.lock.try_read().or_else(|| self.lock.read_until(deadline)).is_some();
            }
            Patience::Never => return self.lock.try_read().is_some(),
        }
        true
    }

    /// Acquires for reading, also on a thread that reads already and while a writer waits. False if
    /// `patience` ran out.
    ///
    /// # Panics
    /// If 2^31 readers have joined others. With [`Patience::Never`] it is false then.
    #[inline]
    pub fn read_again(&self, patience: Patience) -> bool {
        match self.join() {
            Ok(true) => return true,
            Ok(false) => {}
            Err(TooMany) if matches!(patience, Patience::Never) => return false,
            Err(full) => full.panic(),
        }
        let at = Location::caller();
        if self.lock.try_read_in::<Nested>(at).is_some() {
            self.again.fetch_add(SHARE, Release); // (share)
            return true;
        }
        match patience {
            Patience::Forever => self.wait_to_read_again(None, at),
            Patience::Until(deadline) => self.wait_to_read_again(Some(deadline), at),
            Patience::Never => false,
        }
    }

    /// Waits for the lock, or for a share: invariant 5. False if `deadline` passed first.
    #[cold]
    fn wait_to_read_again(&self, deadline: Option<Deadline>, at: &'static Location<'static>) -> bool {
        let mut nap = FIRST_NAP;
        loop {
            let end = Deadline::after(nap);
            let (until, is_nap) = Deadline::earlier(deadline, Some(end));
            if self.lock.read_in_until::<Nested>(until.unwrap_or(end), at).is_some() {
                self.again.fetch_add(SHARE, Release); // (share)
                return true;
            }
            let has_joined = self.join().unwrap_or_else(|full| full.panic());
            if has_joined || !is_nap {
                return has_joined;
            }
            nap = LONGEST_NAP.min(2 * nap);
        }
    }

    /// (join). False without a share.
    #[inline]
    fn join(&self) -> Result<bool, TooMany> {
        let mut was = self.again.load(Relaxed);
        while was & SHARES != 0 {
            if was >= MOST * JOINED {
                return Err(TooMany);
            }
            match self.again.compare_exchange_weak(was, was + JOINED, Acquire, Relaxed) {
                Ok(_) => return Ok(true),
                Err(now) => was = now,
            }
        }
        Ok(false)
    }

    /// A reader leaves.
    ///
    /// # Safety
    /// The caller has acquired for reading.
    #[inline]
    pub unsafe fn unlock_read(&self) {
        let token = match self.again.load(Relaxed) {
            0 => AS_BULK,
            was => match self.leave(was) {
                Some(token) => token,
                None => return,
            },
        };
        // SAFETY: by invariants 1 and 3 there is such an acquisition, and it covers this reader.
        unsafe { self.lock.unlock_read(token) };
    }

    /// (unjoin), (unshare), or neither. Returns what is to be released.
    #[cold]
    fn leave(&self, mut was: u64) -> Option<ReadToken> {
        while was != 0 {
            let (now, token) =
                if was >= JOINED { (was - JOINED, None) } else { (was - SHARE, Some(AS_NESTED)) };
            match self.again.compare_exchange_weak(was, now, AcqRel, Relaxed) {
                Ok(_) => return token,
                Err(now) => was = now,
            }
        }
        Some(AS_BULK)
    }

    /// Acquires for writing. False if `patience` ran out.
    #[inline]
    pub fn write(&self, patience: Patience) -> bool {
        match patience {
            Patience::Forever => self.lock.write(),
            Patience::Until(deadline) => {
                return self.lock.try_write().or_else(|| self.lock.write_until(deadline)).is_some();
            }
            Patience::Never => return self.lock.try_write().is_some(),
        }
        true
    }

    /// The writer leaves.
    ///
    /// # Safety
    /// The caller has acquired for writing.
    #[inline]
    pub unsafe fn unlock_write(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.lock.unlock_write(()) };
    }

    /// The writer leaves, and keeps the write side for a writer that waits.
    ///
    /// # Safety
    /// The caller has acquired for writing.
    #[inline]
    pub unsafe fn unlock_write_fair(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.lock.unlock_write_fair(()) };
    }

    /// The writer becomes a reader.
    ///
    /// # Safety
    /// The caller has acquired for writing.
    #[inline]
    pub unsafe fn downgrade(&self) {
        // SAFETY: the caller's promise.
        let token = unsafe { self.lock.downgrade(()) };
        debug_assert_eq!(token, AS_BULK);
    }

    /// Acquires for reading, to write perhaps. False if `patience` ran out.
    #[inline]
    pub fn upgradable(&self, patience: Patience) -> bool {
        match patience {
            Patience::Forever => self.lock.upgradable(),
            Patience::Until(deadline) => {
                return self.lock.try_upgradable().or_else(|| self.lock.upgradable_until(deadline)).is_some();
            }
            Patience::Never => return self.lock.try_upgradable().is_some(),
        }
        true
    }

    /// The upgradable reader leaves.
    ///
    /// # Safety
    /// The caller has acquired as an upgradable reader.
    #[inline]
    pub unsafe fn unlock_upgradable(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.lock.unlock_upgradable(()) };
    }

    /// The upgradable reader leaves, and keeps the write side for a writer that waits.
    ///
    /// # Safety
    /// The caller has acquired as an upgradable reader.
    #[inline]
    pub unsafe fn unlock_upgradable_fair(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.lock.unlock_upgradable_fair(()) };
    }

    /// The upgradable reader becomes the writer. False if `patience` ran out; it is still an
    /// upgradable reader then.
    ///
    /// # Safety
    /// The caller has acquired as an upgradable reader.
    #[inline]
    pub unsafe fn upgrade(&self, patience: Patience) -> bool {
        // SAFETY: the caller's promise; what fails leaves the access as it was.
        unsafe {
            match patience {
                Patience::Forever => self.lock.upgrade(()),
                Patience::Until(deadline) => {
                    return self
                        .lock
                        .try_upgrade(())
                        .or_else(|()| self.lock.upgrade_until((), deadline))
                        .is_ok();
                }
                Patience::Never => return self.lock.try_upgrade(()).is_ok(),
            }
        }
        true
    }

    /// The upgradable reader becomes a reader.
    ///
    /// # Safety
    /// The caller has acquired as an upgradable reader.
    #[inline]
    pub unsafe fn downgrade_upgradable(&self) {
        // SAFETY: the caller's promise.
        let token = unsafe { self.lock.downgrade_upgradable(()) };
        debug_assert_eq!(token, AS_BULK);
    }

    /// The writer becomes an upgradable reader.
    ///
    /// # Safety
    /// The caller has acquired for writing.
    #[inline]
    pub unsafe fn downgrade_to_upgradable(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.lock.downgrade_to_upgradable(()) };
    }

    /// Whether a thread holds the lock at this moment.
    #[inline]
    pub fn is_locked(&self) -> bool {
        self.lock.is_locked()
    }

    /// Whether a writer holds the lock at this moment. A writer that waits for the last readers
    /// has shut out all classes, too, but there is a share then.
    #[inline]
    pub fn is_write_locked(&self) -> bool {
        self.lock.is_write_locked() && self.again.load(Relaxed) == 0
    }
}

impl Default for RecursiveRwLock {
    fn default() -> Self {
        Self::new()
    }
}

ulocks_core::on_machine! {
    #[cfg(test)]
    mod tests {
        use super::*;
        use std::panic::{AssertUnwindSafe, catch_unwind};
        use ulocks_core::sync::spin_until;

        /// Guards that are forgotten are never counted down.
        #[test]
        fn readers_that_have_joined_are_refused_long_before_their_count_wraps() {
            let lock = RecursiveRwLock::new();
            assert!(lock.read_again(Patience::Forever)); // the share
            lock.again.fetch_add((MOST - 1) * JOINED, Relaxed);
            assert!(lock.read_again(Patience::Never), "there is room for one more");
            assert!(!lock.read_again(Patience::Never));
            for patience in [Patience::Forever, Patience::Until(Deadline::after(core::time::Duration::ZERO))] {
                let refused = catch_unwind(AssertUnwindSafe(|| lock.read_again(patience)));
                let message = *refused.expect_err("one too many came in").downcast::<String>().unwrap();
                assert!(message.contains("too many readers"), "{message}");
            }
            assert_eq!(lock.again.load(Relaxed), MOST * JOINED + SHARE);
            assert!(!lock.write(Patience::Never), "a writer came in beside readers");
            // SAFETY: the reader that has joined leaves.
            unsafe { lock.unlock_read() };
            assert!(lock.read_again(Patience::Forever), "there is room again");
        }

        /// The writer has shut out both classes, as one that is inside.
        #[test]
        fn a_writer_that_waits_for_a_reader_does_not_hold_the_lock() {
            let lock = RecursiveRwLock::new();
            assert!(lock.read_again(Patience::Forever));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    lock.write(Patience::Forever);
                    assert!(lock.is_write_locked(), "a writer holds the lock");
                    // SAFETY: acquired above.
                    unsafe { lock.unlock_write() };
                });
                spin_until(|| lock.lock.is_write_locked());
                let is_written = lock.is_write_locked();
                // SAFETY: acquired above.
                unsafe { lock.unlock_read() };
                assert!(!is_written, "a reader holds the lock");
            });
        }
    }
}
