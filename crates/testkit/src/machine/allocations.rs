//! What a thread allocates: the system's allocator, which counts. A test that asks names it:
//!
//! ```
//! use ulocks_testkit::allocations::{self, Counting};
//!
//! #[global_allocator]
//! static COUNTING: Counting = Counting;
//!
//! assert_eq!(allocations::during(|| drop(Box::new(7_u64))).times, 1);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What a thread has allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocations {
    /// How often.
    pub times: usize,
    /// Bytes in all.
    pub bytes: usize,
    /// Bytes that it has freed.
    pub freed: usize,
    /// The greatest alignment.
    pub align: usize,
}

const NONE: Allocations = Allocations { times: 0, bytes: 0, freed: 0, align: 0 };

thread_local! {
    /// Constant and without a destructor, so that the allocator may look at it at any time.
    static OF_THREAD: Cell<Allocations> = const { Cell::new(NONE) };
}

/// Bytes that the process has allocated and not freed.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, which counts what each thread allocates.
#[derive(Debug)]
pub struct Counting;

// SAFETY: every call is passed on to `System`, whose results are returned unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Allocations { times, bytes, freed, align } = OF_THREAD.get();
        let (times, bytes, align) = (times + 1, bytes + layout.size(), align.max(layout.align()));
        OF_THREAD.set(Allocations { times, bytes, freed, align });
        LIVE.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's contract is the callee's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let of_thread = OF_THREAD.get();
        OF_THREAD.set(Allocations { freed: of_thread.freed + layout.size(), ..of_thread });
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's contract is the callee's.
        unsafe { System.dealloc(memory, layout) };
    }
}

/// What this thread allocates in `body`, if [`Counting`] is the allocator.
pub fn during(body: impl FnOnce()) -> Allocations {
    OF_THREAD.set(NONE);
    body();
    OF_THREAD.get()
}

/// Bytes that the process has allocated and not freed, if [`Counting`] is the allocator.
pub fn live() -> usize {
    LIVE.load(Relaxed)
}
