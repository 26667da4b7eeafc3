//! Memory for `Calock`s, from the kernel: malloc may be what locks a mutex.
//!
//! A `Calock` is allocated when two threads meet on a mutex, and freed by `pthread_mutex_destroy`.
//! Its place is never unmapped, and goes to the next mutex.

use crate::fork;
use core::ptr;
use ulocks_calock::RawCalock;
use ulocks_core::inflated::{Inflated, Memory};
use ulocks_core::raw::RawMutex;
use ulocks_core::sync::AtomicUsize;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_unfair::RawBargingMutex;

/// `Calock` for mutexes that have eight bytes for a lock.
pub type InflatedCalock = Inflated<RawCalock, Arena>;

/// The memory.
pub struct Arena;

// SAFETY: a place has the size and the alignment of a cache line, which is enough, and is handed
// out once before it comes back.
unsafe impl Memory<RawCalock> for Arena {
    fn allocate() -> Option<*mut RawCalock> {
        STATE.allocate()
    }

    unsafe fn free(lock: *mut RawCalock) {
        STATE.free(lock);
    }
}

/// The state of the memory.
struct State {
    lock: RawBargingMutex,
    /// Freed places, each with the address of the next in its first word.
    freed: AtomicUsize,
    /// The rest of the newest mapping.
    next: AtomicUsize,
    end: AtomicUsize,
}

static STATE: State = State {
    lock: RawBargingMutex::new(),
    freed: AtomicUsize::new(0),
    next: AtomicUsize::new(0),
    end: AtomicUsize::new(0),
};

/// A cache line for each.
const PLACE: usize = 64;
const MAPPING: usize = 1 << 16;
const _: () = assert!(size_of::<RawCalock>() <= PLACE);

/// For the child of a fork: begins anew, since a thread of the parent may have been inside. What
/// the parent had not handed out is lost to the child.
pub fn forget() {
    fork::free_lock(&STATE.lock);
    for word in [&STATE.freed, &STATE.next, &STATE.end] {
        word.store(0, Relaxed);
    }
}

impl State {
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

    /// A place comes back.
    fn free(&self, place: *mut RawCalock) {
        self.lock.lock();
        // SAFETY: the place is this thread's.
        unsafe { place.cast::<usize>().write(self.freed.load(Relaxed)) };
        self.freed.store(place.expose_provenance(), Relaxed);
        // SAFETY: locked above.
        unsafe { self.lock.unlock(()) };
    }
}
