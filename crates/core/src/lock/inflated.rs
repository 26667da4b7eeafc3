//! A word that becomes a lock of any size when two threads meet.
//!
//! Some memory has room for a word and not for a lock: a `pthread_mutex_t` has eight bytes for one,
//! a `Calock` 16. A mutex that no two threads want at once needs one bit of them. So the lock is
//! allocated when a thread finds the word held. The technique is that of Java's monitors: Bacon and
//! others, "Thin Locks: Featherweight Synchronization for Java" (1998).
//!
//! # States of the word
//! | value | meaning | left by |
//! |---|---|---|
//! | 0 | free | (take) to 1, an acquisition |
//! | 1 | held | (release) to 0, the release; (inflate) to an address, a thread that finds it held |
//! | an address | the mutex is the lock there, until [`Inflated::free`] | |
//!
//! # Invariants
//! 1. At (inflate) the lock is held, on behalf of the thread whose (take) it was. That thread
//!    releases the lock: its (release) fails.
//! 2. The lock stays at its address until [`Inflated::free`], which its user calls when no thread
//!    uses the mutex.
//! 3. A thread decides by one load of the word. Between two loads a held word may become an
//!    address.
//!
//! # Ordering
//! (take) is Acquire and (release) is Release: they pair. (inflate) is Release: it pairs with the
//! Acquire (follow) of each thread that reads the address. What the holder of 1 did happens before
//! its release of the lock.

use super::traits::RawMutex;
use crate::sys::futex::FutexKey;
use crate::sys::sync::AtomicUsize;
use crate::sys::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sys::time::Deadline;
use core::marker::PhantomData;
use core::ptr;

const FREE: usize = 0;
const HELD: usize = 1;

/// Where locks are allocated.
///
/// # Safety
/// What `allocate` returns has room for an `L`, is aligned for it, and is the caller's alone until
/// it is freed.
pub unsafe trait Memory<L> {
    /// Room for a lock, not initialised. `None` if there is none.
    fn allocate() -> Option<*mut L>;

    /// Takes it back.
    ///
    /// # Safety
    /// It comes from `allocate`, and no thread uses it.
    unsafe fn free(lock: *mut L);
}

/// The word of a mutex that becomes an `L`.
#[repr(transparent)]
pub struct Inflated<L, M>(AtomicUsize, PhantomData<fn(L, M)>);

crate::initial!([L, M] Inflated<L, M> = Self(AtomicUsize::new(FREE), PhantomData));

impl<L: RawMutex, M: Memory<L>> Inflated<L, M> {
    /// The lock at the word, if that is an address.
    fn at(&self, word: usize) -> Option<&L> {
        // SAFETY: (inflate) stored the address of an initialised lock, which stays there (invariant
        // 2).
        (word > HELD).then(|| unsafe { &*ptr::with_exposed_provenance(word) })
    }

    /// (follow)
    fn lock_if_any(&self) -> Option<&L> {
        self.at(self.0.load(Acquire))
    }

    /// (take)
    #[inline]
    fn take(&self) -> bool {
        self.0.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }

    /// (inflate), if the mutex is held. `None` if it is free, or if there is no memory.
    #[cold]
    fn inflate(&self) -> Option<&L> {
        match self.0.load(Acquire) {
            HELD => {}
            word => return self.at(word),
        }
        let new = M::allocate()?;
        // SAFETY: the memory is this thread's, and has room for a lock.
        let lock = unsafe {
            new.write(crate::initial!(L));
            &*new
        };
        // Invariant 1. No other thread knows the lock yet, so it is free. A token that is nothing
        // may be forgotten.
        _ = lock.try_lock();
        match self.0.compare_exchange(HELD, new.expose_provenance(), Release, Acquire) {
            Ok(_) => Some(lock),
            Err(word) => {
                // SAFETY: allocated above; no other thread knows it.
                unsafe { M::free(new) };
                self.at(word)
            }
        }
    }

    /// What is done with the lock after (take) has failed; `None` if (take) succeeded.
    #[cfg_attr(world = "vm", track_caller)]
    fn or_take<R>(&self, then: impl FnOnce(&L) -> R) -> Option<R> {
        let mut found = None;
        crate::sys::sync::spin_until(|| {
            if self.take() {
                return true;
            }
            found = self.lock_if_any().or_else(|| self.inflate());
            found.is_some()
        });
        found.map(then)
    }

    /// (release), or `unlock` of the lock that the word has become.
    #[inline]
    fn release(&self, unlock: impl FnOnce(&L)) {
        if let Err(word) = self.0.compare_exchange(HELD, FREE, Release, Acquire)
            && let Some(lock) = self.at(word)
        {
            unlock(lock);
        }
    }

    /// Gives the memory of the lock back, if there is one.
    ///
    /// # Safety
    /// No thread uses the mutex, or will do so before it is initialised again.
    pub unsafe fn free(&self) {
        if self.lock_if_any().is_some() {
            // SAFETY: the lock was allocated at (inflate), and the caller promises that it is not
            // used.
            unsafe { M::free(ptr::with_exposed_provenance_mut(self.0.swap(FREE, Relaxed))) };
        }
    }
}

// SAFETY:
// * One token at a time, and a release happens before the next acquisition: by the word and then by
//   the lock, with invariant 1 in between.
// * The token is nothing. No thread keeps the word's address, so it may be moved.
unsafe impl<L: RawMutex<Token = ()>, M: Memory<L>> RawMutex for Inflated<L, M> {
    type Scope = L::Scope;
    type Token = ();
    type Condvar = crate::lock::condvar::Sequence<Self>;
    const CONDVAR_NS: u32 = L::CONDVAR_NS;

    #[inline]
    fn lock(&self) {
        _ = self.or_take(L::lock);
    }

    fn try_lock(&self) -> Option<()> {
        match self.lock_if_any() {
            Some(lock) => lock.try_lock(),
            None => self.take().then_some(()),
        }
    }

    fn lock_until(&self, deadline: Deadline) -> Option<()> {
        self.or_take(|lock| lock.lock_until(deadline)).unwrap_or(Some(()))
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        // SAFETY: invariant 1, or this thread acquired it.
        self.release(|lock| unsafe { lock.unlock(()) });
    }

    unsafe fn unlock_to_wait(&self, (): ()) {
        // SAFETY: as in `unlock`.
        self.release(|lock| unsafe { lock.unlock_to_wait(()) });
    }

    fn is_locked(&self) -> bool {
        let word = self.0.load(Acquire); // (follow), invariant 3
        self.at(word).map_or(word == HELD, L::is_locked)
    }

    /// A mutex with a condition variable is wanted by two threads soon.
    fn requeue_key(&self) -> Option<FutexKey<L::Scope>> {
        self.inflate()?.requeue_key()
    }

    fn mark_for_requeued(&self) -> bool {
        self.lock_if_any().is_some_and(L::mark_for_requeued)
    }

    fn lock_requeued(&self) {
        match self.lock_if_any() {
            Some(lock) => lock.lock_requeued(),
            None => self.lock(),
        }
    }
}
