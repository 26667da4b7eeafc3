//! Acquisitions of a reader-writer lock by a task.

use super::sealed::Sealed;
use crate::lock::api::{
    MappedRwLockReadGuard, MappedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard,
    RwLockWriteGuard, forget_upgradable, read_with, upgradable_guard, write_guard,
};
use crate::lock::traits::{RawRwLock, RawRwLockAsync};
use core::convert::Infallible;
use core::fmt;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::sync::Arc;

impl<L: RawRwLock, T: ?Sized> Sealed for RwLock<L, T> {}

/// Acquisitions of an [`RwLock`] by a task. What they have in common is told in the
/// [module](super).
///
/// # Fairness
/// That of the lock. A task that waits to read is a queued reader: after the present writer it is
/// inside, once it is polled. Until then the next writer waits for it.
///
/// # Examples
/// ```
/// use ulocks_core::api::RwLock;
/// use ulocks_core::raw::RawRwLockAsync;
/// use ulocks_core::task::{AsyncRwLock, AsyncRwLockUpgradableReadGuard};
///
/// async fn add_if_missing<L: RawRwLockAsync>(names: &RwLock<L, Vec<String>>, name: &str) {
///     let names = names.upgradable_async().await;
///     if !names.iter().any(|known| known == name) {
///         let mut names = AsyncRwLockUpgradableReadGuard::upgrade_async(names).await;
///         names.push(name.to_owned());
///     }
/// }
/// ```
pub trait AsyncRwLock: Sealed {
    /// The lock without its data.
    type Lock: RawRwLockAsync;
    /// What the lock protects.
    type Data: ?Sized;

    /// Acquires the lock for reading.
    fn read_async(&self) -> ReadAsync<'_, Self::Lock, Self::Data>;
    /// Acquires the lock for writing.
    fn write_async(&self) -> WriteAsync<'_, Self::Lock, Self::Data>;
    /// Acquires the lock for reading, and perhaps for writing later.
    fn upgradable_async(&self) -> UpgradableAsync<'_, Self::Lock, Self::Data>;

    /// As [`read_async`](Self::read_async), of a lock of which the future, and then the guard, own
    /// a share.
    fn read_owned_async(self: Arc<Self>) -> ReadOwnedAsync<Self::Lock, Self::Data>
    where
        Self::Lock: 'static,
        Self::Data: 'static;
    /// As [`write_async`](Self::write_async), of a lock of which the future, and then the guard,
    /// own a share.
    fn write_owned_async(self: Arc<Self>) -> WriteOwnedAsync<Self::Lock, Self::Data>
    where
        Self::Lock: 'static,
        Self::Data: 'static;
}

impl<L: RawRwLockAsync, T: ?Sized> AsyncRwLock for RwLock<L, T> {
    type Lock = L;
    type Data = T;

    #[inline]
    fn read_async(&self) -> ReadAsync<'_, L, T> {
        // SAFETY: the lock is acquired, which disturbs no guard.
        ReadAsync { raw: unsafe { self.raw() }.inner().read_async(), rwlock: self }
    }

    #[inline]
    #[track_caller]
    fn write_async(&self) -> WriteAsync<'_, L, T> {
        // SAFETY: as in `read_async`.
        WriteAsync { raw: unsafe { self.raw() }.inner().write_async(), rwlock: self }
    }

    #[inline]
    fn upgradable_async(&self) -> UpgradableAsync<'_, L, T> {
        // SAFETY: as in `read_async`.
        UpgradableAsync { raw: unsafe { self.raw() }.inner().upgradable_async(), rwlock: self }
    }

    fn read_owned_async(self: Arc<Self>) -> ReadOwnedAsync<L, T>
    where
        L: 'static,
        T: 'static,
    {
        // SAFETY: the share lives as long as the future, and is dropped after it; what it owns does
        // not move.
        let rwlock: &'static Self = unsafe { &*Arc::as_ptr(&self) };
        ReadOwnedAsync { future: rwlock.read_async(), rwlock: self }
    }

    #[track_caller]
    fn write_owned_async(self: Arc<Self>) -> WriteOwnedAsync<L, T>
    where
        L: 'static,
        T: 'static,
    {
        // SAFETY: as in `read_owned_async`.
        let rwlock: &'static Self = unsafe { &*Arc::as_ptr(&self) };
        WriteOwnedAsync { future: rwlock.write_async(), rwlock: self }
    }
}

/// A future that returns a guard, and the guard.
macro_rules! acquisition {
    (
        $(#[$about_future:meta])* $Future:ident = $Raw:ident;
        $(#[$about_guard:meta])* $Guard:ident($Inner:ident $(, $kept:ident: $Kept:ty)?) = $make:expr
    ) => {
        $(#[$about_future])*
        #[must_use = "a future does nothing unless it is polled"]
        pub struct $Future<'a, L: RawRwLockAsync + 'a, T: ?Sized> {
            raw: L::$Raw<'a>,
            rwlock: &'a RwLock<L, T>,
        }

        impl<'a, L: RawRwLockAsync, T: ?Sized> Future for $Future<'a, L, T> {
            type Output = $Guard<'a, L, T>;

            #[inline]
            fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
                // SAFETY: `raw` is not moved until it is dropped in its place.
                let (raw, rwlock) = unsafe {
                    let this = self.get_unchecked_mut();
                    (Pin::new_unchecked(&mut this.raw), this.rwlock)
                };
                let token = ready!(raw.poll(context));
                // SAFETY: the token is of an acquisition of this lock, which makes no other guard.
                Poll::Ready(unsafe { ($make)(rwlock, token) })
            }
        }

        impl<L: RawRwLockAsync, T: ?Sized> fmt::Debug for $Future<'_, L, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($Future), " { .. }"))
            }
        }

        guard!($(#[$about_guard])* $Guard($Inner $(, $kept: $Kept)?));
    };
}

macro_rules! guard {
    ($(#[$about:meta])* $Guard:ident($Inner:ident $(, $kept:ident: $Kept:ty)?)) => {
        $(#[$about])*
        ///
        /// It may be sent to another thread, if the data may be: it can be held across an `.await`.
        #[must_use = "if unused the lock will immediately unlock"]
        #[clippy::has_significant_drop]
        pub struct $Guard<'a, L: RawRwLockAsync, T: ?Sized> {
            guard: $Inner<'a, L, T>,
            $($kept: $Kept,)?
        }

        // SAFETY: what the guard within keeps on its thread is the release, and `RawRwLockAsync`
        // allows that on another one. The data is shared, or goes along; the lock is shared.
        unsafe impl<L: RawRwLockAsync + Sync, T: ?Sized + Send + Sync> Send for $Guard<'_, L, T> where
            L::ReadToken: Send,
            L::WriteToken: Send,
            L::UpgradableToken: Send
        {
        }

        impl<'a, L: RawRwLockAsync, T: ?Sized> $Guard<'a, L, T> {
            /// The lock whose guard this is.
            pub fn rwlock(s: &Self) -> &'a RwLock<L, T> {
                $Inner::<L, T>::rwlock(&s.guard)
            }
        }
    };
}

acquisition! {
    /// The future of [`read_async`](AsyncRwLock::read_async).
    ReadAsync = ReadAsync;
    /// Shared access to the data of an [`RwLock`] by a task; its drop releases the lock.
    AsyncRwLockReadGuard(RwLockReadGuard) = |rwlock, token| read_guard(rwlock, token)
}

/// The guard of an acquisition for reading that was made elsewhere.
///
/// # Safety
/// `token` comes from an acquisition of the lock of `rwlock` by a task, and no other guard stands
/// for that.
#[doc(hidden)]
pub unsafe fn read_guard<L: RawRwLockAsync, T: ?Sized>(
    rwlock: &RwLock<L, T>,
    token: L::ReadToken,
) -> AsyncRwLockReadGuard<'_, L, T> {
    // SAFETY: the caller's promise.
    let guard = unsafe { read_with(rwlock, |_| Ok::<_, Infallible>(token)) };
    AsyncRwLockReadGuard { guard: guard.unwrap_or_else(|never| match never {}) }
}

acquisition! {
    /// The future of [`write_async`](AsyncRwLock::write_async).
    WriteAsync = WriteAsync;
    /// Exclusive access to the data of an [`RwLock`] by a task; its drop releases the lock.
    AsyncRwLockWriteGuard(RwLockWriteGuard) =
        |rwlock, token| AsyncRwLockWriteGuard { guard: write_guard(rwlock, token) }
}

acquisition! {
    /// The future of [`upgradable_async`](AsyncRwLock::upgradable_async).
    UpgradableAsync = UpgradableAsync;
    /// Shared access to the data of an [`RwLock`] by a task, beside readers and no writer, that can
    /// become exclusive; its drop releases the lock.
    AsyncRwLockUpgradableReadGuard(RwLockUpgradableReadGuard, token: L::UpgradableToken) =
        |rwlock, token| AsyncRwLockUpgradableReadGuard { guard: upgradable_guard(rwlock, token), token }
}

mapped!(
    AsyncRwLockReadGuard(RwLockReadGuard) -> MappedAsyncRwLockReadGuard(MappedRwLockReadGuard);
    RawRwLockAsync<ReadToken>, Send Sync
);
mapped!(
    AsyncRwLockWriteGuard(RwLockWriteGuard) -> MappedAsyncRwLockWriteGuard(MappedRwLockWriteGuard), mut;
    RawRwLockAsync<WriteToken>, Send Sync
);
access!(AsyncRwLockReadGuard<'_, RawRwLockAsync>);
access!(AsyncRwLockUpgradableReadGuard<'_, RawRwLockAsync>);
access!(mut AsyncRwLockWriteGuard<'_, RawRwLockAsync>);
access!(OwnedAsyncRwLockReadGuard<RawRwLockAsync>);
access!(mut OwnedAsyncRwLockWriteGuard<RawRwLockAsync>);

impl<'a, L: RawRwLockAsync, T: ?Sized> AsyncRwLockWriteGuard<'a, L, T> {
    /// Turns the access into a reader's. No writer gets in between.
    pub fn downgrade(s: Self) -> AsyncRwLockReadGuard<'a, L, T> {
        AsyncRwLockReadGuard { guard: RwLockWriteGuard::<L, T>::downgrade(s.guard) }
    }
}

impl<'a, L: RawRwLockAsync, T: ?Sized> AsyncRwLockUpgradableReadGuard<'a, L, T> {
    /// Turns the access into exclusive access, and waits for the readers to leave. No writer gets
    /// in between. If the future is dropped before, the lock is released.
    #[track_caller]
    pub fn upgrade_async(s: Self) -> UpgradeAsync<'a, L, T> {
        let rwlock = forget_upgradable(s.guard);
        // SAFETY: the lock is held by this token. The guard that had the other copy is taken apart.
        UpgradeAsync { raw: unsafe { rwlock.raw().inner().upgrade_async(s.token) }, rwlock }
    }

    /// Turns the access into exclusive access if there are no readers.
    ///
    /// # Errors
    /// The guard, if there are.
    #[track_caller]
    pub fn try_upgrade(s: Self) -> Result<AsyncRwLockWriteGuard<'a, L, T>, Self> {
        let rwlock = forget_upgradable(s.guard);
        // SAFETY: the lock is held by this token. The guard that had the other copy is taken apart,
        // and the one guard that is made has the token that comes back.
        unsafe {
            match rwlock.raw().inner().try_upgrade(s.token) {
                Ok(token) => Ok(AsyncRwLockWriteGuard { guard: write_guard(rwlock, token) }),
                Err(token) => Err(Self { guard: upgradable_guard(rwlock, token), token }),
            }
        }
    }

    /// Turns the access into a reader's. No writer gets in between.
    pub fn downgrade(s: Self) -> AsyncRwLockReadGuard<'a, L, T> {
        AsyncRwLockReadGuard { guard: RwLockUpgradableReadGuard::<L, T>::downgrade(s.guard) }
    }
}

/// The future of [`upgrade_async`](AsyncRwLockUpgradableReadGuard::upgrade_async).
#[must_use = "a future does nothing unless it is polled"]
pub struct UpgradeAsync<'a, L: RawRwLockAsync + 'a, T: ?Sized> {
    raw: L::UpgradeAsync<'a>,
    rwlock: &'a RwLock<L, T>,
}

impl<'a, L: RawRwLockAsync, T: ?Sized> Future for UpgradeAsync<'a, L, T> {
    type Output = AsyncRwLockWriteGuard<'a, L, T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: `raw` is not moved until it is dropped in its place.
        let (raw, rwlock) = unsafe {
            let this = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut this.raw), this.rwlock)
        };
        let token = ready!(raw.poll(context));
        // SAFETY: the token is of an acquisition of this lock, which makes no other guard.
        Poll::Ready(AsyncRwLockWriteGuard { guard: unsafe { write_guard(rwlock, token) } })
    }
}

impl<L: RawRwLockAsync, T: ?Sized> fmt::Debug for UpgradeAsync<'_, L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UpgradeAsync { .. }")
    }
}

/// A future and a guard that own a share of the lock.
macro_rules! owned {
    ($method:literal, $Future:ident($Borrowed:ident), $Guard:ident($Inner:ident)) => {
        #[doc = concat!("The future of [`", $method, "`](AsyncRwLock::", $method, ").")]
        #[must_use = "a future does nothing unless it is polled"]
        pub struct $Future<L: RawRwLockAsync + 'static, T: ?Sized + 'static> {
            // Dropped before the lock.
            future: $Borrowed<'static, L, T>,
            rwlock: Arc<RwLock<L, T>>,
        }

        impl<L: RawRwLockAsync, T: ?Sized> Future for $Future<L, T> {
            type Output = $Guard<L, T>;

            fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
                let rwlock = Arc::clone(&self.rwlock);
                // SAFETY: `future` is not moved until it is dropped in its place.
                let future = unsafe { self.map_unchecked_mut(|this| &mut this.future) };
                future.poll(context).map(|guard| $Guard { guard, rwlock })
            }
        }

        impl<L: RawRwLockAsync, T: ?Sized> fmt::Debug for $Future<L, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($Future), " { .. }"))
            }
        }

        #[doc = concat!("As [`", stringify!($Inner), "`], and owns a share of the lock.")]
        #[must_use = "if unused the lock will immediately unlock"]
        #[clippy::has_significant_drop]
        pub struct $Guard<L: RawRwLockAsync + 'static, T: ?Sized + 'static> {
            // Dropped before the lock.
            guard: $Inner<'static, L, T>,
            rwlock: Arc<RwLock<L, T>>,
        }

        impl<L: RawRwLockAsync, T: ?Sized> $Guard<L, T> {
            /// The lock whose guard this is.
            pub fn rwlock(s: &Self) -> &Arc<RwLock<L, T>> {
                &s.rwlock
            }
        }
    };
}

owned!("read_owned_async", ReadOwnedAsync(ReadAsync), OwnedAsyncRwLockReadGuard(AsyncRwLockReadGuard));
owned!("write_owned_async", WriteOwnedAsync(WriteAsync), OwnedAsyncRwLockWriteGuard(AsyncRwLockWriteGuard));

impl<L: RawRwLockAsync, T: ?Sized> OwnedAsyncRwLockWriteGuard<L, T> {
    /// Turns the access into a reader's. No writer gets in between.
    pub fn downgrade(s: Self) -> OwnedAsyncRwLockReadGuard<L, T> {
        let Self { guard, rwlock } = s;
        OwnedAsyncRwLockReadGuard { guard: AsyncRwLockWriteGuard::downgrade(guard), rwlock }
    }
}
