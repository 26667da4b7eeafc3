//! The names to begin with, each another name of a lock of the family.
//!
//! There are two lists of them, one for rustdoc. It shows the methods on the page of an alias only
//! if the alias names the type: not if it names another alias, nor on a second page of one alias.
//! So rustdoc reads aliases of lock_api's types. The other list is right in the model worlds, too,
//! whose types are the family's own. `cargo xtask test` looks for the methods on the pages.

#[cfg(not(doc))]
mod names;
#[cfg_attr(not(doc), allow(dead_code, unused_imports))]
mod pages;
mod reentrant;
mod semaphore;

#[cfg(not(doc))]
pub use names::*;
#[cfg(doc)]
pub use pages::*;
#[allow(unused_imports)] // The model worlds have none.
pub use reentrant::*;
#[cfg(feature = "arc_lock")]
pub use semaphore::OwnedPermit;
pub use semaphore::{Permit, Semaphore};
pub use ulocks_core::api::WaitTimeoutResult;

#[cfg(not(doc))]
ulocks_core::on_machine! {
    /// Both lists name the same types.
    #[allow(unused)]
    mod same {
        use super::{names, pages};

        macro_rules! same {
            ($($name:ident[$($of:tt)*])*) => {
                $(const _: fn(names::$name<$($of)*>) -> pages::$name<$($of)*> = |same| same;)*
            };
        }

        same! {
            Condvar[]
            Mutex[()]
            MutexGuard['static, ()]
            MappedMutexGuard['static, ()]
            RwLock[()]
            RwLockReadGuard['static, ()]
            RwLockWriteGuard['static, ()]
            RwLockUpgradableReadGuard['static, ()]
            MappedRwLockReadGuard['static, ()]
            MappedRwLockWriteGuard['static, ()]
        }
        #[cfg(feature = "arc_lock")]
        same! {
            ArcMutexGuard[()]
            ArcRwLockReadGuard[()]
            ArcRwLockWriteGuard[()]
            ArcRwLockUpgradableReadGuard[()]
        }
    }
}
