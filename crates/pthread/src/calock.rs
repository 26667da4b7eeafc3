//! `Calock` for mutexes of forty bytes: a word that becomes a `Calock` when two threads meet.
//!
//! A `Calock` has 56 bytes. A mutex that no two threads want at once needs one bit of them. C++
//! programs never destroy their mutexes, so what is allocated for one is never given back; hence it
//! is allocated late.
//!
//! # States of the word
//! | value | meaning | left by |
//! |---|---|---|
//! | 0 | free | (L) to 1, an acquisition |
//! | 1 | held | (U) to 0, the release; (I) to an address, a thread that finds it held |
//! | an address | the mutex is the `Calock` there, for good | |
//!
//! # Invariants
//! 1. At (I) the `Calock` is held, on behalf of the thread whose (L) it was. That thread releases
//!    the `Calock`: its (U) fails.
//! 2. The memory of a `Calock` is never unmapped, so an address that was read from the word stays
//!    valid. It goes to another mutex after `pthread_mutex_destroy` only.
//!
//! # Ordering
//! (L) is Acquire and (U) is Release: they pair. (I) is Release: it pairs with the Acquire of each
//! thread that reads the address. What the holder of 1 did happens before its release of the
//! `Calock`.

use core::ptr;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use ulocks_calock::RawCalock;
use ulocks_core::futex::{FutexKey, Private};
use ulocks_core::raw::RawMutex;
use ulocks_core::time::Deadline;
use ulocks_unfair::RawMutex as RawUnfairMutex;

const FREE: usize = 0;
const HELD: usize = 1;

/// The word.
pub struct Inflated(AtomicUsize);

ulocks_core::initial!([] Inflated = Self(AtomicUsize::new(FREE)));

impl Inflated {
    /// The `Calock`, if the word names one.
    fn calock(&self) -> Option<&RawCalock> {
        match self.0.load(Acquire) {
            FREE | HELD => None,
            // SAFETY: (I) stored the address of a `Calock`, whose memory stays (invariant 2).
            address => Some(unsafe { &*ptr::with_exposed_provenance(address) }),
        }
    }

    /// (L)
    #[inline]
    fn take(&self) -> bool {
        self.0.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }

    /// (I), if the mutex is held. `None` if it is free, or if there is no memory.
    #[cold]
    fn inflate(&self) -> Option<&RawCalock> {
        if self.0.load(Relaxed) != HELD {
            return self.calock();
        }
        let new = ARENA.allocate()?;
        // SAFETY: the memory is this thread's, and has the size of a `Calock`.
        let calock = unsafe {
            new.write(RawCalock::new());
            &*new
        };
        // Invariant 1; no other thread knows it yet, so it is free.
        _ = calock.try_lock();
        match self.0.compare_exchange(HELD, new.expose_provenance(), Release, Relaxed) {
            Ok(_) => Some(calock),
            Err(_) => {
                ARENA.free(new);
                self.calock()
            }
        }
    }

    /// What is done with a `Calock`, after (L) has failed; `None` if (L) succeeded.
    fn or_take<R>(&self, then: impl FnOnce(&RawCalock) -> R) -> Option<R> {
        loop {
            if self.take() {
                return None;
            }
            if let Some(calock) = self.calock().or_else(|| self.inflate()) {
                return Some(then(calock));
            }
            core::hint::spin_loop();
        }
    }

    /// Gives the memory of the `Calock` back.
    pub fn free(&self) {
        if self.calock().is_some() {
            ARENA.free(ptr::with_exposed_provenance_mut(self.0.swap(FREE, Relaxed)));
        }
    }
}

// SAFETY:
// * One token at a time, and a release happens before the next acquisition: by the word and then by
//   the `Calock`, with invariant 1 in between.
// * The token is nothing. Nobody keeps the word's address, so it may be moved.
unsafe impl RawMutex for Inflated {
    type Scope = Private;
    type Token = ();
    const CONDVAR_NS: u32 = <RawCalock>::CONDVAR_NS;

    #[inline]
    fn lock(&self) {
        _ = self.or_take(RawCalock::lock);
    }

    fn try_lock(&self) -> Option<()> {
        match self.calock() {
            Some(calock) => calock.try_lock(),
            None => self.take().then_some(()),
        }
    }

    fn lock_until(&self, deadline: Deadline) -> Option<()> {
        self.or_take(|calock| calock.lock_until(deadline)).unwrap_or(Some(()))
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        // (U)
        if self.0.compare_exchange(HELD, FREE, Release, Acquire).is_err()
            && let Some(calock) = self.calock()
        {
            // SAFETY: invariant 1, or this thread acquired it.
            unsafe { calock.unlock(()) };
        }
    }

    unsafe fn unlock_to_wait(&self, (): ()) {
        match self.calock() {
            // SAFETY: as in `unlock`.
            Some(calock) => unsafe { calock.unlock_to_wait(()) },
            // SAFETY: the caller's promise.
            None => unsafe { self.unlock(()) },
        }
    }

    fn is_locked(&self) -> bool {
        match self.0.load(Acquire) {
            HELD => true,
            // A free word may just have become another's.
            FREE => false,
            _ => self.calock().is_some_and(RawCalock::is_locked),
        }
    }

    /// A mutex with a condition variable is wanted by two threads soon.
    fn requeue_key(&self) -> Option<FutexKey<Private>> {
        self.calock().or_else(|| self.inflate())?.requeue_key()
    }

    fn mark_for_requeued(&self) -> bool {
        self.calock().is_some_and(RawCalock::mark_for_requeued)
    }

    fn lock_requeued(&self) {
        match self.calock() {
            Some(calock) => calock.lock_requeued(),
            None => self.lock(),
        }
    }
}

/// Memory for `Calock`s, from the kernel: malloc may lock a mutex.
struct Arena {
    lock: RawUnfairMutex,
    /// Freed places, each with the address of the next in its first word.
    freed: AtomicUsize,
    /// The rest of the newest mapping.
    next: AtomicUsize,
    end: AtomicUsize,
}

static ARENA: Arena = Arena {
    lock: RawUnfairMutex::new(),
    freed: AtomicUsize::new(0),
    next: AtomicUsize::new(0),
    end: AtomicUsize::new(0),
};

/// A cache line for each.
const PLACE: usize = 64;
const MAPPING: usize = 1 << 16;
const _: () = assert!(size_of::<RawCalock>() <= PLACE);

/// Before a fork, so that the child finds the arena in order.
pub fn hold_arena() {
    ARENA.lock.lock();
}

/// After a fork, in both processes.
pub fn release_arena() {
    // SAFETY: `hold_arena` has locked it, in this thread or in its parent.
    unsafe { ARENA.lock.unlock(()) };
}

impl Arena {
    fn allocate(&self) -> Option<*mut RawCalock> {
        self.lock.lock();
        let place = match self.freed.load(Relaxed) {
            0 => self.cut(),
            place => {
                // SAFETY: `free` has written the next place's address there.
                let next = unsafe { *ptr::with_exposed_provenance::<usize>(place) };
                self.freed.store(next, Relaxed);
                Some(place)
            }
        };
        // SAFETY: locked above.
        unsafe { self.lock.unlock(()) };
        place.map(ptr::with_exposed_provenance_mut)
    }

    /// A place of the newest mapping, or of a new one. The caller has the lock.
    fn cut(&self) -> Option<usize> {
        if self.next.load(Relaxed) == self.end.load(Relaxed) {
            let _errno = ulocks_core::errno::Guard::new();
            // SAFETY: a new mapping, where the kernel likes.
            let start = unsafe {
                libc::mmap(
                    ptr::null_mut(),
                    MAPPING,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                )
            };
            if start == libc::MAP_FAILED {
                return None;
            }
            let start = start.expose_provenance();
            self.next.store(start, Relaxed);
            self.end.store(start + MAPPING, Relaxed);
        }
        let place = self.next.load(Relaxed);
        self.next.store(place + PLACE, Relaxed);
        Some(place)
    }

    /// A place comes back. The last release has touched it for the last time.
    fn free(&self, place: *mut RawCalock) {
        self.lock.lock();
        // SAFETY: the place is this thread's.
        unsafe { place.cast::<usize>().write(self.freed.load(Relaxed)) };
        self.freed.store(place.expose_provenance(), Relaxed);
        // SAFETY: locked above.
        unsafe { self.lock.unlock(()) };
    }
}
