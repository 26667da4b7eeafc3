//! Writes in steps, on the typed lock.

use crate::by_class::raw;
use crate::configuration::Configuration;
use crate::pending::{Due, Stage};
use crate::{PsRwLockUpgradableReadGuard, PsRwLockWith, PsRwLockWriteGuard};
use core::fmt;
use core::panic::Location;
use core::time::Duration;
use std::time::Instant;
use ulocks_core::api;
use ulocks_core::time::Deadline;

/// A write that has begun, and goes on when it is polled: for a thread that has other work to do
/// meanwhile.
///
/// A poll does not wait for other threads. A drop gives up, and lets readers in again. Once the
/// write is [ready](Stage::Ready), signal handlers of this thread wait, too: finish or drop it.
/// Before that it never keeps handlers out: if it finds handlers inside, it opens their class again
/// until the next poll.
///
/// # Fairness
/// A poll that finds another writer, or an upgradable reader, asks for the write side. The next
/// release keeps the write side for it, or in a rare race the one after that. A waiting writer then
/// gives way for up to a millisecond, once in each of its waits. So a write that is polled within a
/// millisecond of its [news](Self::news) is passed by each waiting writer at most once, and does
/// not keep that writer out for longer. Attempts, such as `try_write`, and other writes in steps
/// may take the write side at once. A write that owns the write side is passed by no writer, and
/// readers wait for it as for any writer: poll often, or give up.
///
/// # When to poll
/// [`news`](Self::news) is what to wait for: a futex word, its value, bits to sleep with, and a
/// time. A thread [waits](News::wait) for it. A reactor hands it to the kernel, for example as
/// `IORING_OP_FUTEX_WAIT` with a timeout.
///
/// # Forgotten writes
/// A forgotten write that owns the write side keeps it, like a forgotten guard. One that does not
/// delays the other writers by up to a millisecond, once. So does one whose process has died.
///
/// ```
/// use ulocks_psrwlock::{ByClass, PsRwLock, Stage, Urgent};
///
/// let lock = PsRwLock::new(1);
/// let reader = lock.read();
/// let mut write = lock.write_begin();
/// assert_eq!(write.poll(), Stage::Readers("Bulk"));
/// assert!(lock.try_read().is_none(), "shut out");
/// assert!(lock.try_read_in::<Urgent>().is_some(), "not yet");
/// drop(reader);
/// assert_eq!(write.poll(), Stage::Ready);
/// *write.finish().unwrap() = 2;
/// assert_eq!(*lock.read(), 2);
/// ```
///
/// As a future, with a thread that waits for the news:
///
/// ```
/// use std::future::poll_fn;
/// use std::sync::mpsc::Sender;
/// use std::task::{Poll, Waker};
/// use ulocks_psrwlock::{News, PendingWrite, PsRwLockWriteGuard, Sifted, Stage};
///
/// /// A helper thread receives what to wait for, waits, and wakes the task.
/// async fn finish<'a>(
///     write: PendingWrite<'a, u32, Sifted>,
///     reactor: Sender<(News<'a, Sifted>, Waker)>,
/// ) -> PsRwLockWriteGuard<'a, u32> {
///     let mut write = Some(write);
///     poll_fn(|context| {
///         if let Some(pending) = &mut write {
///             if pending.poll() != Stage::Ready {
///                 reactor.send((pending.news(), context.waker().clone())).unwrap();
///                 return Poll::Pending;
///             }
///         }
///         let ready = write.take().map(PendingWrite::finish);
///         Poll::Ready(ready.expect("polled once more").expect("it is ready"))
///     })
///     .await
/// }
/// ```
pub struct PendingWrite<'a, T: ?Sized, D: Configuration> {
    lock: &'a PsRwLockWith<T, D>,
    owner: Option<PsRwLockUpgradableReadGuard<'a, T, D>>,
    /// Whether it has asked for the write side, and is not the owner.
    asks: bool,
    /// Whether all classes are closed and all readers have left. A reader that comes then is
    /// counted for a moment, and another look would see it.
    is_ready: bool,
    due: Due,
}

impl<'a, T: ?Sized, D: Configuration> PendingWrite<'a, T, D> {
    pub(crate) fn new(lock: &'a PsRwLockWith<T, D>) -> Self {
        Self { lock, owner: None, asks: false, is_ready: false, due: Due::now(raw(lock).event()) }
    }

    /// Goes on as far as that needs no waiting. Returns what it waits for now.
    #[track_caller]
    pub fn poll(&mut self) -> Stage {
        let (raw, at, asked) = (raw(self.lock), Location::caller(), self.asks);
        let seen = raw.event();
        if self.owner.is_none() {
            // SAFETY: the token is of this lock, acquired here.
            match unsafe { api::upgradable_with(self.lock, |raw| raw.poll_upgradable(asked, at)) } {
                Ok(owner) => (self.owner, self.asks) = (Some(owner), false),
                Err(asked) => {
                    (self.asks, self.due) = (true, Due::of_asked(asked, seen));
                    return Stage::Writer;
                }
            }
        }
        let stage = if self.is_ready { Stage::Ready } else { raw.poll_sift() };
        self.is_ready = stage == Stage::Ready;
        self.due = Due::of_stage(stage, seen);
        stage
    }

    /// What to wait for before the next poll; nothing before the first poll.
    pub fn news(&self) -> News<'a, D> {
        News { raw: raw(self.lock), due: self.due }
    }

    /// The data, if this write owns the write side. Readers may read it at the same time.
    pub fn data(&self) -> Option<&T> {
        self.owner.as_deref()
    }

    /// The write lock.
    ///
    /// # Errors
    /// The write itself, if it is not [ready](Stage::Ready).
    #[track_caller]
    pub fn finish(mut self) -> Result<PsRwLockWriteGuard<'a, T, D>, Self> {
        if self.poll() != Stage::Ready {
            return Err(self);
        }
        match self.owner.take() {
            Some(owner) => Ok(PsRwLockUpgradableReadGuard::upgrade(owner)),
            None => Err(self),
        }
    }

    /// The write lock, waiting as long as it takes.
    #[track_caller]
    pub fn wait(mut self) -> PsRwLockWriteGuard<'a, T, D> {
        // Takes the write side if it is kept for this write.
        self.poll();
        match self.owner.take() {
            Some(owner) => {
                raw(self.lock).clear_draining();
                PsRwLockUpgradableReadGuard::upgrade(owner)
            }
            None => {
                let lock = self.lock;
                drop(self);
                lock.write()
            }
        }
    }
}

impl<T: ?Sized, D: Configuration> Drop for PendingWrite<'_, T, D> {
    fn drop(&mut self) {
        if self.owner.is_some() {
            raw(self.lock).clear_draining();
        } else if self.asks {
            raw(self.lock).withdraw();
        }
    }
}

impl<T: ?Sized, D: Configuration> fmt::Debug for PendingWrite<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = raw(self.lock).state();
        f.debug_struct("PendingWrite").field("owns", &self.owner.is_some()).field("state", &state).finish()
    }
}

/// When a [`PendingWrite`] is to be polled again: as soon as the futex word at
/// [`address`](Self::address) has another value than [`expected`](Self::expected), or a wake-up of
/// that futex has come for one of the [`bits`](Self::bits), or the time [`at_most`](Self::at_most)
/// has passed since the last poll. To poll earlier does no harm.
///
/// The futex is private to the process unless the lock's policy is
/// [`Shared`](ulocks_core::Shared).
///
/// It holds nothing of the write, so it may outlive it, and may be sent to another thread.
pub struct News<'a, D: Configuration> {
    raw: &'a crate::raw::RawPsRwLock<D>,
    due: Due,
}

impl<D: Configuration> Clone for News<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<D: Configuration> Copy for News<'_, D> {}

impl<D: Configuration> News<'_, D> {
    /// The address of the futex word, for system calls. The word belongs to the lock.
    #[must_use]
    pub fn address(&self) -> usize {
        self.raw.event_address()
    }

    /// The value that the futex word has as long as there is no news.
    #[must_use]
    pub fn expected(&self) -> u32 {
        self.due.seen
    }

    /// The bits of wake-ups that are news, as in `FUTEX_WAIT_BITSET`.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.due.bits.get()
    }

    /// How long to wait at most. `None`: without limit. Some changes that a write waits for do not
    /// change the word.
    #[must_use]
    pub fn at_most(&self) -> Option<Duration> {
        self.due.at_most
    }

    /// Whether the futex word has changed.
    #[must_use]
    pub fn has_come(&self) -> bool {
        self.raw.event() != self.due.seen
    }

    /// Waits until a poll is worth it.
    pub fn wait(&self) {
        self.raw.wait_for_news(self.due, None);
    }

    /// Waits until a poll is worth it, or for `timeout`. False if that has passed.
    pub fn wait_for(&self, timeout: Duration) -> bool {
        self.raw.wait_for_news(self.due, Some(Deadline::after(timeout)))
    }

    /// Waits until a poll is worth it, or until `timeout`. False if that has passed.
    pub fn wait_until(&self, timeout: Instant) -> bool {
        self.raw.wait_for_news(self.due, Some(Deadline::at(timeout)))
    }
}

impl<D: Configuration> fmt::Debug for News<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("News").field("has_come", &self.has_come()).field("at_most", &self.at_most()).finish()
    }
}
