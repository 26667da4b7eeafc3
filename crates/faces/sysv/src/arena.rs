//! Memory of the process for small things that live for ever: it needs no allocator.
//!
//! A semaphore call may come from a handler that has interrupted the allocator, and before the
//! allocator is ready.

use crate::sys::{self, Answer};
use core::ptr::null_mut;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed};
use ulocks_core::sync::{AtomicPtr, AtomicUsize};

const CHUNK: usize = 64 * 1_024;
/// All places are whole lines of a cache.
const LINE: usize = 64;

/// The head of a chunk: how much of it is given away.
struct Chunk {
    used: AtomicUsize,
}

static CHUNKS: AtomicPtr<Chunk> = AtomicPtr::new(null_mut());

/// A zeroed place for one `T`, at the start of a line.
pub fn take<T>() -> Answer<*mut T> {
    let bytes = size_of::<T>().next_multiple_of(LINE);
    if bytes > CHUNK - LINE || align_of::<T>() > LINE {
        return Err(libc::ENOMEM);
    }
    loop {
        let chunk = CHUNKS.load(Acquire);
        if !chunk.is_null() {
            // SAFETY: a chunk is never unmapped, and zero is a valid head.
            let used = unsafe { &(*chunk).used }.fetch_add(bytes, Relaxed) + LINE;
            if used + bytes <= CHUNK {
                // SAFETY: the place is inside the chunk.
                return Ok(unsafe { chunk.cast::<u8>().add(used) }.cast());
            }
        }
        let new = sys::anonymous(CHUNK)?;
        if CHUNKS.compare_exchange(chunk, new.cast(), AcqRel, Acquire).is_err() {
            // SAFETY: no other thread has seen it.
            unsafe { sys::unmap(new, CHUNK) };
        }
    }
}
