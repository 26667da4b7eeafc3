#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
// The names are made of the same files for plain and for checked locks.
#![cfg_attr(feature = "checked", allow(clippy::duplicate_mod))]

mod condvar;
mod once;
mod rwlock;

pub use once::*;

/// The protocols, for the models.
#[doc(hidden)]
pub mod protocols {
    pub use crate::condvar::{ExactCondvar, OtherMutex};
    pub use crate::rwlock::{Patience, RecursiveRwLock};
}

ulocks_core::on_machine! {
    mod below;
    mod traits;
    mod locks;
    mod current;
    #[cfg(feature = "checked")]
    #[cfg_attr(docsrs, doc(cfg(feature = "checked")))]
    pub mod checked;
    #[cfg(feature = "v0_12")]
    #[cfg_attr(docsrs, doc(cfg(feature = "v0_12")))]
    pub mod v0_12;

    pub use current::*;
    pub use locks::{RawFairMutex, RawMutex, RawRwLock, RawThreadId};
    pub use lock_api;
}
