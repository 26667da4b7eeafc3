//! The checked locks: each is a lock of the family with the rules around it.

#[cfg(feature = "arc_lock")]
mod arc;
mod checker;
mod identity;
mod listed;
mod lock;
mod mutex;
mod pi;
mod reentrant;
#[cfg(feature = "shm")]
mod robust;
mod rwlock;
mod semaphore;
mod wrapper;

pub use checker::Checked;
pub use mutex::CheckedMutex;
pub use pi::CheckedPiMutex;
pub use reentrant::{CheckedReentrant, CheckedReentrantMutex};
#[cfg(feature = "shm")]
pub use robust::{Robust, RobustGuard};
pub use rwlock::{CheckedReadToken, CheckedRw, CheckedRwLock};
pub use semaphore::{CheckedSemaphore, LockPermit};
