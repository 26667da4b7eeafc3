//! The names of the checked locks, and the names that stand for checked or plain ones.

use ulocks_core::{Private, api};

type RawBargingMutex = ulocks_unfair::RawBargingMutex<Private>;
type RawThroughputMutex = ulocks_unfair::RawThroughputMutex<Private>;
type RawAsymMutex = ulocks_unfair::RawAsymMutex<Private>;
type RawFairMutex = ulocks_fair::RawFairMutex<Private>;
type RawPiMutex = ulocks_pi::RawPiMutex<Private>;
type RawCalock = ulocks_calock::RawCalock<Private>;

/// The types behind the names where locks are checked.
#[cfg(checking)]
mod strictly {
    use super::*;
    #[cfg(feature = "arc_lock")]
    pub use crate::CheckedOwnedPermit as OwnedPermit;
    pub use crate::{
        ByClass, Checked as Of, CheckedMutex as Mutex, CheckedPiMutex as PiMutex, CheckedPromise as Promise,
        CheckedPromiseOwner as PromiseOwner, CheckedReentrant as ReentrantOf,
        CheckedReentrantMutex as ReentrantMutex, CheckedRw as RwOf, CheckedRwLock as RwLock,
        CheckedSemaphore as Semaphore, rules::watch::watch,
    };
    use ulocks_core::signal::Soft;
    use ulocks_psrwlock::{BULK, Central, NESTED, PhaseFair, Sifted, URGENT, Unchecked};

    /// The lock of `PsRwLock` without its own check for nesting, which the checker replaces.
    pub type RawPsRwLock = ulocks_psrwlock::RawPsRwLock<
        Sifted<{ BULK | URGENT | NESTED }, Private, PhaseFair, Central, Soft, Unchecked>,
    >;
}

/// The types behind the names where they are plain.
#[cfg(not(all(checking, debug_assertions)))]
mod plainly {
    #[cfg(checking)]
    pub use ulocks_core::api::ReentrantMutex;
    pub use ulocks_core::api::{Mutex, RwLock};
    #[cfg(feature = "arc_lock")]
    pub use ulocks_fair::OwnedPermit;
    pub use ulocks_fair::Semaphore;
    pub use ulocks_psrwlock::ByClass;

    pub type PiMutex<P, T> = ulocks_pi::PiMutexWith<T, P>;

    /// The future as it is. Where locks are checked, it is one that reports the locks that are held
    /// across an `.await`.
    pub fn watch<F: Future>(future: F) -> F {
        future
    }

    /// What is declared of it is for the checker: here it is nothing.
    #[derive(Debug, Default)]
    pub struct Promise;

    /// See [`Promise`]. As where locks are checked, it stays on its thread.
    #[derive(Debug)]
    #[must_use = "dropped at once, it gives the promise up"]
    pub struct PromiseOwner<'a>(core::marker::PhantomData<(&'a Promise, *const ())>);

    impl Promise {
        /// A promise.
        #[must_use]
        pub const fn new() -> Self {
            Self
        }

        /// The thread is the one that others wait for.
        #[inline(always)]
        pub fn own(&self) -> PromiseOwner<'_> {
            PromiseOwner(core::marker::PhantomData)
        }

        /// Calls `wait`.
        #[inline(always)]
        pub fn wait<T>(&self, wait: impl FnOnce() -> T) -> T {
            wait()
        }
    }

    /// It has a drop, since where locks are checked that is of use.
    impl Drop for PromiseOwner<'_> {
        #[inline(always)]
        fn drop(&mut self) {}
    }

    pub type Of<R> = R;
    pub type RwOf<R> = R;
    #[cfg(checking)]
    pub type ReentrantOf<R> = R;
    pub type RawPsRwLock = ulocks_psrwlock::RawPsRwLock<ulocks_psrwlock::Sifted>;
}

macro_rules! faces {
    ($(#[$meta:meta])* $vis:vis mod $module:ident = $types:ident) => {
        $(#[$meta])*
        $vis mod $module {
            use super::*;
            use super::$types as types;

            #[doc(no_inline)]
            pub use ulocks_core::api::WaitTimeoutResult;
            #[doc(no_inline)]
            pub use ulocks_core::condvar::Wakeup;
            #[doc(no_inline)]
            pub use ulocks_fair::Permit;
            #[doc(no_inline)]
            pub use ulocks_pi::{Orphan, PiLockError};

            #[allow(unused_imports, reason = "the root of the crate has that of the checked locks")]
            #[doc(no_inline)]
            pub use types::ByClass;
            #[doc(inline)]
            pub use types::watch;

            /// The semaphore of [`ulocks_fair::Semaphore`].
            pub type Semaphore = types::Semaphore;
            /// A [`Permit`] that owns a share of its [`Semaphore`].
            #[cfg(feature = "arc_lock")]
            #[cfg_attr(docsrs, doc(cfg(feature = "arc_lock")))]
            pub type OwnedPermit = types::OwnedPermit;

            /// A hint that a thread waits for what another one is to do, as if that held a lock.
            /// `ulocks_debug::CheckedPromise` says when it is right.
            pub type Promise = types::Promise;
            /// A thread owns a [`Promise`] as long as this lives.
            pub type PromiseOwner<'a> = types::PromiseOwner<'a>;

            #[cfg(checking)]
            /// Data behind the lock of [`Mutex`], which its holder may lock again.
            pub type ReentrantMutex<T> = types::ReentrantMutex<RawThroughputMutex, T>;
            #[cfg(checking)]
            /// Shared access to the data of a [`ReentrantMutex`]; the drop of the last one unlocks.
            pub type ReentrantMutexGuard<'a, T> =
                api::ReentrantMutexGuard<'a, types::ReentrantOf<RawThroughputMutex>, T>;
            #[cfg(checking)]
            /// A [`ReentrantMutexGuard`] narrowed to a part of the data.
            pub type MappedReentrantMutexGuard<'a, T> =
                api::MappedReentrantMutexGuard<'a, types::ReentrantOf<RawThroughputMutex>, T>;
            #[cfg(checking)]
            faces! { arc ReentrantMutexGuard, ArcReentrantMutexGuard
                = ArcReentrantMutexGuard types::ReentrantOf<RawThroughputMutex> }

            faces! { mutex "[`ulocks::Mutex`](https://docs.rs/ulocks/latest/ulocks/type.Mutex.html)",
                Mutex MutexGuard MappedMutexGuard ArcMutexGuard Condvar: RawThroughputMutex }
            faces! { mutex "[`ThroughputMutex`](ulocks_unfair::ThroughputMutex)",
                ThroughputMutex ThroughputMutexGuard MappedThroughputMutexGuard ArcThroughputMutexGuard ThroughputCondvar: RawThroughputMutex }
            faces! { mutex "[`unfair::BargingMutex`](ulocks_unfair::BargingMutex)",
                BargingMutex BargingMutexGuard MappedBargingMutexGuard ArcBargingMutexGuard BargingCondvar: RawBargingMutex }
            faces! { mutex "[`AsymMutex`](ulocks_unfair::AsymMutex)",
                AsymMutex AsymMutexGuard MappedAsymMutexGuard ArcAsymMutexGuard AsymCondvar: RawAsymMutex }
            faces! { mutex "[`FairMutex`](ulocks_fair::FairMutex)",
                FairMutex FairMutexGuard MappedFairMutexGuard ArcFairMutexGuard FairCondvar: RawFairMutex }
            faces! { mutex "[`Calock`](ulocks_calock::Calock)",
                Calock CalockGuard MappedCalockGuard ArcCalockGuard CalockCondvar: RawCalock }
            faces! { guards PiMutex PiMutexGuard MappedPiMutexGuard: types::Of<RawPiMutex> }
            /// Data behind the lock of [`PiMutex`](ulocks_pi::PiMutex).
            pub type PiMutex<T> = types::PiMutex<Private, T>;
            /// A condition variable for a [`PiMutex`].
            pub type PiCondvar = ulocks_pi::PiCondvarOf<types::Of<RawPiMutex>>;
            /// What a [`PiMutex`] returns.
            pub type PiLockResult<'a, T> = Result<PiMutexGuard<'a, T>, PiLockError<PiMutexGuard<'a, T>>>;
            /// What an attempt to lock a [`PiMutex`] returns.
            pub type PiTryLockResult<'a, T> =
                Result<Option<PiMutexGuard<'a, T>>, PiLockError<PiMutexGuard<'a, T>>>;
            /// What a timed wait with a [`PiMutex`] returns: the guard, and whether it timed out.
            pub type PiWaitResult<'a, T> =
                Result<(PiMutexGuard<'a, T>, Wakeup), PiLockError<PiMutexGuard<'a, T>>>;
            faces! { rwlock "[`ulocks::RwLock`](https://docs.rs/ulocks/latest/ulocks/type.RwLock.html)",
                RwLock RwLockReadGuard RwLockWriteGuard RwLockUpgradableReadGuard MappedRwLockReadGuard
                MappedRwLockWriteGuard ArcRwLockReadGuard ArcRwLockWriteGuard ArcRwLockUpgradableReadGuard }
            faces! { rwlock "[`PsRwLock`](ulocks_psrwlock::PsRwLock)",
                PsRwLock PsRwLockReadGuard PsRwLockWriteGuard PsRwLockUpgradableReadGuard
                MappedPsRwLockReadGuard MappedPsRwLockWriteGuard ArcPsRwLockReadGuard ArcPsRwLockWriteGuard
                ArcPsRwLockUpgradableReadGuard }
        }
    };
    (rwlock $of:literal, $rwlock:ident $read:ident $write:ident $upgradable:ident $mapped_read:ident
        $mapped_write:ident $arc_read:ident $arc_write:ident $arc_upgradable:ident) => {
        #[doc = concat!("Data behind the lock of ", $of, ".")]
        pub type $rwlock<T> = types::RwLock<types::RawPsRwLock, T>;
        #[doc = concat!("Access to read the data of a [`", stringify!($rwlock), "`].")]
        pub type $read<'a, T> = api::RwLockReadGuard<'a, types::RwOf<types::RawPsRwLock>, T>;
        #[doc = concat!("Access to write the data of a [`", stringify!($rwlock), "`].")]
        pub type $write<'a, T> = api::RwLockWriteGuard<'a, types::RwOf<types::RawPsRwLock>, T>;
        #[doc = concat!("Access to read the data of a [`", stringify!($rwlock), "`] that can become \
            access to write.")]
        pub type $upgradable<'a, T> = api::RwLockUpgradableReadGuard<'a, types::RwOf<types::RawPsRwLock>, T>;
        #[doc = concat!("A [`", stringify!($read), "`] narrowed to a part of the data.")]
        pub type $mapped_read<'a, T> = api::MappedRwLockReadGuard<'a, types::RwOf<types::RawPsRwLock>, T>;
        #[doc = concat!("A [`", stringify!($write), "`] narrowed to a part of the data.")]
        pub type $mapped_write<'a, T> = api::MappedRwLockWriteGuard<'a, types::RwOf<types::RawPsRwLock>, T>;
        faces! { arc $read, $arc_read = ArcRwLockReadGuard types::RwOf<types::RawPsRwLock> }
        faces! { arc $write, $arc_write = ArcRwLockWriteGuard types::RwOf<types::RawPsRwLock> }
        faces! { arc $upgradable, $arc_upgradable = ArcRwLockUpgradableReadGuard types::RwOf<types::RawPsRwLock> }
    };
    (mutex $of:literal, $mutex:ident $guard:ident $mapped:ident $arc:ident $condvar:ident: $raw:ident) => {
        #[doc = concat!("Data behind the lock of ", $of, ".")]
        pub type $mutex<T> = types::Mutex<$raw, T>;
        faces! { guards $mutex $guard $mapped: types::Of<$raw> }
        faces! { arc $guard, $arc = ArcMutexGuard types::Of<$raw> }
        #[doc = concat!("A condition variable for a [`", stringify!($mutex), "`].")]
        pub type $condvar = api::Condvar<types::Of<$raw>>;
    };
    (guards $mutex:ident $guard:ident $mapped:ident: $lock:ty) => {
        #[doc = concat!("Access to the data of a [`", stringify!($mutex), "`]; its drop releases the \
            lock.")]
        pub type $guard<'a, T> = api::MutexGuard<'a, $lock, T>;
        #[doc = concat!("A [`", stringify!($guard), "`] narrowed to a part of the data.")]
        pub type $mapped<'a, T> = api::MappedMutexGuard<'a, $lock, T>;
    };
    (arc $guard:ident, $arc:ident = $of:ident $lock:ty) => {
        #[doc = concat!("A [`", stringify!($guard), "`] that owns a share of its lock.")]
        #[cfg(feature = "arc_lock")]
        #[cfg_attr(docsrs, doc(cfg(feature = "arc_lock")))]
        pub type $arc<T> = api::$of<$lock, T>;
    };
}

#[cfg(checking)]
faces! { pub mod strict = strictly }

#[cfg(all(checking, debug_assertions))]
faces! {
    /// The checked locks in builds with debug assertions, and the plain locks in others: a program
    /// imports its locks from here, and is checked by its tests. It has all names of locks that
    /// are at the top of `ulocks`, and the trait `ByClass`.
    pub mod checked = strictly
}

#[cfg(not(all(checking, debug_assertions)))]
faces! {
    /// The checked locks in builds with debug assertions, and the plain locks in others: a program
    /// imports its locks from here, and is checked by its tests. It has all names of locks that
    /// are at the top of `ulocks`, and the trait `ByClass`.
    pub mod checked = plainly
}
