//! A mutex that its holder may lock again. The model worlds have none.

use crate::lock::api::Raw;
use crate::sys::tid;
use core::num::NonZeroUsize;
use lock_api::GetThreadId;

/// Tells the threads of a process apart for a [`ReentrantMutex`], by the kernel's ids.
///
/// The child of a fork has another id. A mutex that its parent held stays locked in it.
#[derive(Debug, Clone, Copy)]
pub struct ThreadId;

// SAFETY: a kernel's id is that of one living thread of the process, and stays the same while the
// thread lives.
unsafe impl GetThreadId for ThreadId {
    const INIT: Self = Self;

    #[inline]
    fn nonzero_thread_id(&self) -> NonZeroUsize {
        NonZeroUsize::new(tid::current() as usize).expect("the kernel gives no thread the id 0")
    }
}

/// Data that a thread may lock again while it holds it. A guard gives shared access only.
pub type ReentrantMutex<L, T> = lock_api::ReentrantMutex<Raw<L>, ThreadId, T>;
/// Shared access to the data of a [`ReentrantMutex`]; the drop of the last one releases the lock.
pub type ReentrantMutexGuard<'a, L, T> = lock_api::ReentrantMutexGuard<'a, Raw<L>, ThreadId, T>;
/// A [`ReentrantMutexGuard`] narrowed to a part of the data.
pub type MappedReentrantMutexGuard<'a, L, T> = lock_api::MappedReentrantMutexGuard<'a, Raw<L>, ThreadId, T>;
/// As [`ReentrantMutexGuard`], and owns a share of the mutex.
#[cfg(feature = "arc_lock")]
pub type ArcReentrantMutexGuard<L, T> = lock_api::ArcReentrantMutexGuard<Raw<L>, ThreadId, T>;
