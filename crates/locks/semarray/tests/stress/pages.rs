//! Memory that is gone when it is freed: the semaphores of an array lie on pages of their own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// As many semaphores fill a page.
pub const A_PAGE: usize = 32;

/// The system's allocator, but for what is as large and as aligned as a page full of semaphores.
struct Pages;

/// How many pages were mapped.
static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// Whether arrays have lain on such pages.
pub fn were_used() -> bool {
    MAPPED.load(Relaxed) > 0
}

fn is_a_page(layout: Layout) -> bool {
    (layout.size(), layout.align()) == (128 * A_PAGE, 128)
}

// SAFETY: pages come from the kernel, large and aligned enough; everything else is passed on to
// `System`, and what is freed comes from where it is given back to, because both go by the layout.
unsafe impl GlobalAlloc for Pages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !is_a_page(layout) {
            // SAFETY: the caller's contract is the callee's.
            return unsafe { System.alloc(layout) };
        }
        MAPPED.fetch_add(1, Relaxed);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let page = unsafe {
            libc::mmap(ptr::null_mut(), layout.size(), access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        if page == libc::MAP_FAILED { ptr::null_mut() } else { page.cast() }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if is_a_page(layout) {
            // SAFETY: it was mapped above, and the caller does not use it any more.
            let unmapped = unsafe { libc::munmap(memory.cast(), layout.size()) };
            assert_eq!(unmapped, 0);
        } else {
            // SAFETY: the caller's contract is the callee's.
            unsafe { System.dealloc(memory, layout) };
        }
    }
}

#[global_allocator]
static PAGES: Pages = Pages;
