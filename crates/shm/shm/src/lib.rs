#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(processes)]
pub mod directory;
#[cfg(regions)]
#[doc(hidden)]
pub mod inspect;
#[cfg(processes)]
mod map;
#[cfg(processes)]
mod queue;
#[cfg(regions)]
mod region;
#[cfg(processes)]
#[doc(hidden)]
pub mod robust;
#[cfg(regions)]
mod safe;
#[cfg(processes)]
#[doc(hidden)]
pub mod slots;

#[cfg(regions)]
pub use directory::{Directory, DirectoryError};
#[cfg(regions)]
pub use region::{Attached, InUse, Joined, MOST_PARTICIPANTS, Options, Region, RegionError};
#[cfg(regions)]
pub use safe::{SharedSafe, layout, least_slots};
#[cfg(regions)]
pub use ulocks_shm_derive::SharedSafe;

#[cfg(processes)]
pub use map::{HashMap, MapError};
#[cfg(processes)]
pub use queue::{PopError, PushError, Queue};
#[cfg(processes)]
#[doc(hidden)]
pub use robust::Mends;
#[cfg(processes)]
pub use robust::condvar::{Condvar, WaitResult};
#[cfg(processes)]
pub use robust::fair_mutex::FairMutex;
#[cfg(processes)]
pub use robust::mutex::{LockError, LockResult, Mutex, MutexGuard, Refused};
#[cfg(processes)]
pub use robust::rwlock::{ReadResult, RwLock, RwLockReadGuard, RwLockWriteGuard, WriteResult};
#[cfg(processes)]
pub use robust::semarray::{PermitResult, SemArray, SemArrayPermit, SemError, Semaphore, SemaphorePermit};
#[cfg(processes)]
pub use robust::{OrRepair, OrRepairBy};
#[cfg(processes)]
pub use slots::{JoinError, Member};

#[cfg(processes)]
#[doc(no_inline)]
pub use ulocks_core::Shared;
#[cfg(processes)]
#[doc(no_inline)]
pub use ulocks_semarray::{Op, Set};
