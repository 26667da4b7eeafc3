//! The names of the checked locks, and the names that stand for checked or plain ones.

use ulocks_core::signal::Soft;
use ulocks_core::{Private, api};
use ulocks_psrwlock::{BULK, Central, NESTED, PhaseFair, Sifted, URGENT, Unchecked};

type RawMutex = ulocks_unfair::RawMutex<Private>;
type RawThroughputMutex = ulocks_unfair::RawThroughputMutex<Private>;
type RawAsymMutex = ulocks_unfair::RawAsymMutex<Private>;
type RawBiasedMutex = ulocks_unfair::RawBiasedMutex<Private>;
type RawFairMutex = ulocks_fair::RawFairMutex<Private>;
type RawPiMutex = ulocks_pi::RawPiMutex<Private>;
type RawCalock = ulocks_calock::RawCalock<Private>;

#[allow(dead_code)]
type PlainPs = ulocks_psrwlock::RawPsRwLock<Sifted>;
/// The lock of `PsRwLock` without its own check for nesting, which the checker replaces.
#[allow(dead_code)]
type UncheckedPs = ulocks_psrwlock::RawPsRwLock<
    Sifted<{ BULK | URGENT | NESTED }, Private, PhaseFair, Central, Soft, Unchecked>,
>;

macro_rules! faces {
    ($(#[$meta:meta])* $vis:vis mod $module:ident, $face:path, $raw_of:ident, $rw_face:path, $rw_of:ident, $rw:ident) => {
        $(#[$meta])*
        $vis mod $module {
            use super::*;
            #[allow(unused_imports)]
            use $face as Face;
            #[allow(unused_imports)]
            use $rw_face as RwFace;

            faces! { $raw_of, "[`ulocks::Mutex`](https://docs.rs/ulocks/latest/ulocks/type.Mutex.html)",
                Mutex MutexGuard MappedMutexGuard Condvar: RawThroughputMutex }
            faces! { $raw_of, "[`ThroughputMutex`](ulocks_unfair::ThroughputMutex)",
                ThroughputMutex ThroughputMutexGuard MappedThroughputMutexGuard ThroughputCondvar: RawThroughputMutex }
            faces! { $raw_of, "[`unfair::Mutex`](ulocks_unfair::Mutex)",
                UnfairMutex UnfairMutexGuard MappedUnfairMutexGuard UnfairCondvar: RawMutex }
            faces! { $raw_of, "[`AsymMutex`](ulocks_unfair::AsymMutex)",
                AsymMutex AsymMutexGuard MappedAsymMutexGuard AsymCondvar: RawAsymMutex }
            faces! { $raw_of, "[`BiasedMutex`](ulocks_unfair::BiasedMutex)",
                BiasedMutex BiasedMutexGuard MappedBiasedMutexGuard BiasedCondvar: RawBiasedMutex }
            faces! { $raw_of, "[`FairMutex`](ulocks_fair::FairMutex)",
                FairMutex FairMutexGuard MappedFairMutexGuard FairCondvar: RawFairMutex }
            faces! { $raw_of, "[`Calock`](ulocks_calock::Calock)",
                Calock CalockGuard MappedCalockGuard CalockCondvar: RawCalock }
            faces! { $raw_of, "[`PiMutex`](ulocks_pi::PiMutex)",
                PiMutex PiMutexGuard MappedPiMutexGuard: RawPiMutex }
            faces! { rwlock $rw_of, "[`ulocks::RwLock`](https://docs.rs/ulocks/latest/ulocks/type.RwLock.html)",
                RwLock RwLockReadGuard RwLockWriteGuard RwLockUpgradableReadGuard MappedRwLockReadGuard
                MappedRwLockWriteGuard: $rw }
            faces! { rwlock $rw_of, "[`PsRwLock`](ulocks_psrwlock::PsRwLock)",
                PsRwLock PsRwLockReadGuard PsRwLockWriteGuard PsRwLockUpgradableReadGuard
                MappedPsRwLockReadGuard MappedPsRwLockWriteGuard: $rw }
        }
    };
    (rwlock $raw_of:ident, $of:literal, $rwlock:ident $read:ident $write:ident $upgradable:ident
        $mapped_read:ident $mapped_write:ident: $raw:ident) => {
        #[doc = concat!("Data behind the lock of ", $of, ".")]
        pub type $rwlock<T> = RwFace<$raw, T>;
        #[doc = concat!("Access to read the data of a [`", stringify!($rwlock), "`].")]
        pub type $read<'a, T> = api::RwLockReadGuard<'a, $raw_of<$raw>, T>;
        #[doc = concat!("Access to write the data of a [`", stringify!($rwlock), "`].")]
        pub type $write<'a, T> = api::RwLockWriteGuard<'a, $raw_of<$raw>, T>;
        #[doc = concat!("Access to read the data of a [`", stringify!($rwlock), "`] that can become access to write.")]
        pub type $upgradable<'a, T> = api::RwLockUpgradableReadGuard<'a, $raw_of<$raw>, T>;
        #[doc = concat!("A [`", stringify!($read), "`] narrowed to a part of the data.")]
        pub type $mapped_read<'a, T> = api::MappedRwLockReadGuard<'a, $raw_of<$raw>, T>;
        #[doc = concat!("A [`", stringify!($write), "`] narrowed to a part of the data.")]
        pub type $mapped_write<'a, T> = api::MappedRwLockWriteGuard<'a, $raw_of<$raw>, T>;
    };
    ($raw_of:ident, $of:literal, $mutex:ident $guard:ident $mapped:ident $($condvar:ident)?: $raw:ident) => {
        #[doc = concat!("Data behind the lock of ", $of, ".")]
        pub type $mutex<T> = Face<$raw, T>;
        #[doc = concat!("Access to the data of a [`", stringify!($mutex), "`]; its drop releases the lock.")]
        pub type $guard<'a, T> = api::MutexGuard<'a, $raw_of<$raw>, T>;
        #[doc = concat!("A [`", stringify!($guard), "`] narrowed to a part of the data.")]
        pub type $mapped<'a, T> = api::MappedMutexGuard<'a, $raw_of<$raw>, T>;
        $(
            #[doc = concat!("A condition variable for a [`", stringify!($mutex), "`].")]
            pub type $condvar = api::Condvar<$raw_of<$raw>>;
        )?
    };
}

#[allow(dead_code)]
type Plain<R> = R;
#[cfg(checking)]
use crate::{Checked, CheckedRw};

#[cfg(checking)]
faces! { pub mod strict, crate::CheckedMutex, Checked, crate::CheckedRwLock, CheckedRw, UncheckedPs }

#[cfg(all(checking, debug_assertions))]
faces! {
    /// The checked locks in builds with debug assertions, and the plain locks in others: a program
    /// imports its locks from here, and is checked by its tests.
    pub mod checked, crate::CheckedMutex, Checked, crate::CheckedRwLock, CheckedRw, UncheckedPs
}

#[cfg(not(all(checking, debug_assertions)))]
faces! {
    /// The checked locks in builds with debug assertions, and the plain locks in others: a program
    /// imports its locks from here, and is checked by its tests.
    pub mod checked, api::Mutex, Plain, api::RwLock, Plain, PlainPs
}
