//! Memory that is never freed, also for signal handlers.

use crate::thread::is_in_handler;
use core::mem;
use core::ptr::{self, NonNull};

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
pub(crate) fn leak<T>(value: T) -> &'static T {
    if is_in_handler()
        && let Some(place) = zeroed::<T>()
    {
        // SAFETY: the place is large enough, aligned, unused, and stays.
        return unsafe {
            place.write(value);
            place.as_ref()
        };
    }
    Box::leak(Box::new(value))
}
