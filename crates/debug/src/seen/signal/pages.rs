//! Memory that is never freed, also for signal handlers.

use crate::seen::thread::is_in_handler;
use core::ptr::NonNull;
use core::{mem, ptr};

/// A place for a `T`, in pages of the kernel's, all zero. `None` if there is no memory. The system
/// call is async-signal-safe, unlike the allocator.
pub(crate) fn zeroed<T>() -> Option<NonNull<T>> {
    const { assert!(mem::align_of::<T>() <= 4096, "a page is aligned well enough") };
    // SAFETY: new pages are asked for, so no others change.
    let pages = unsafe {
        libc::mmap(
            ptr::null_mut(),
            mem::size_of::<T>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if pages == libc::MAP_FAILED { None } else { NonNull::new(pages.cast()) }
}

/// Keeps a value for ever: in a page of its own if this is a handler. There are as many as there
/// are lines that handlers acquire locks in.
pub(crate) fn keep<T>(value: T) -> NonNull<T> {
    if is_in_handler()
        && let Some(place) = zeroed::<T>()
    {
        // SAFETY: the place is large enough, aligned, and unused.
        unsafe { place.write(value) };
        return place;
    }
    NonNull::from(Box::leak(Box::new(value)))
}

/// Frees what [`keep`] has kept in this call of this thread, unless this is a handler.
///
/// # Safety
/// Nothing refers to it any more.
pub(crate) unsafe fn forget<T>(kept: NonNull<T>) {
    // In a model nothing is freed while others may look.
    if !cfg!(modelled) && !is_in_handler() {
        // SAFETY: outside of handlers it is a box, and the caller's promise.
        drop(unsafe { Box::from_raw(kept.as_ptr()) });
    }
}
