//! The checked locks: each is a lock of the family with the rules around it.

#[cfg(feature = "arc_lock")]
mod arc;
mod call;
mod checker;
mod listed;
mod lock;
mod mutex;
mod notified;
#[cfg(feature = "arc_lock")]
mod owned;
mod pi;
mod promise;
mod reentrant;
#[cfg(feature = "shm")]
mod robust;
mod rwlock;
mod semaphore;
mod task;
mod wrapper;

pub use checker::Checked;
pub use mutex::CheckedMutex;
#[cfg(feature = "arc_lock")]
#[cfg_attr(docsrs, doc(cfg(feature = "arc_lock")))]
pub use owned::{CheckedAcquireOwnedAsync, CheckedOwnedPermit};
pub use pi::CheckedPiMutex;
pub use promise::{CheckedPromise, CheckedPromiseOwner};
pub use reentrant::{CheckedReentrant, CheckedReentrantMutex};
#[cfg(feature = "shm")]
pub use robust::{Robust, RobustGuard};
pub use rwlock::{ByClass, CheckedReadToken, CheckedRw, CheckedRwLock, CheckedUpgradableToken};
pub use semaphore::{CheckedSemaphore, LockPermit};
pub use task::CheckedAsync;
