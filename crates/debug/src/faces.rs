//! The names of the checked locks, and the names that stand for checked or plain ones.

use ulocks_core::{Private, api};

type RawMutex = ulocks_unfair::RawMutex<Private>;
type RawThroughputMutex = ulocks_unfair::RawThroughputMutex<Private>;
type RawAsymMutex = ulocks_unfair::RawAsymMutex<Private>;
type RawBiasedMutex = ulocks_unfair::RawBiasedMutex<Private>;
type RawFairMutex = ulocks_fair::RawFairMutex<Private>;
type RawPiMutex = ulocks_pi::RawPiMutex<Private>;
type RawCalock = ulocks_calock::RawCalock<Private>;

macro_rules! faces {
    ($(#[$meta:meta])* $vis:vis mod $module:ident, $face:path, $raw_of:ident) => {
        $(#[$meta])*
        $vis mod $module {
            use super::*;
            #[allow(unused_imports)]
            use $face as Face;

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
        }
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
use crate::Checked;

#[cfg(checking)]
faces! { pub mod strict, crate::CheckedMutex, Checked }

#[cfg(all(checking, debug_assertions))]
faces! {
    /// The checked locks in builds with debug assertions, and the plain locks in others: a program
    /// imports its locks from here, and is checked by its tests.
    pub mod checked, crate::CheckedMutex, Checked
}

#[cfg(not(all(checking, debug_assertions)))]
faces! {
    /// The checked locks in builds with debug assertions, and the plain locks in others: a program
    /// imports its locks from here, and is checked by its tests.
    pub mod checked, api::Mutex, Plain
}
