//! Memory of a model: when it is given back, and to whom it is given next.
//!
//! Where the system's `malloc` puts the next allocation is a choice that no exploration controls. A
//! model that compares pointers then depends on it: the same answers lead to another execution. So
//! a program with such models makes [`Allocator`] its global allocator:
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: ulocks_vm::alloc::Allocator = ulocks_vm::alloc::Allocator;
//! ```
//!
//! `ulocks-loom` does that by its feature `allocator`, which is on by default.
//!
//! # What a model is given
//! What it gives back is kept until its execution ends. [`Config::reuse`] says who may have it
//! before: nobody, or the thread that gave it back, which gets the last block of the size first, as
//! from the cache of a thread in `malloc`, if the block was allocated in this execution. So whether
//! two allocations have one address does not depend on what another thread has done, nor on the
//! run. Where a block lies is the system's affair: a model must not hash addresses, nor order by
//! them.
//!
//! # What is found
//! - An access of an atomic or of an [`UnsafeCell`](crate::sync::UnsafeCell) in memory that was
//!   given back: a *use after the end*. The verdict has the places of both.
//! - Memory that is given back twice, likewise.
//! - A write by other means: the bytes of what was given back are looked at when they are given to
//!   another, and when the execution ends. A read by other means sees bytes of `0xf5`.
//! - Memory that is never given back, a *leak*, where [`Config::leaks`] asks for it. What only the
//!   first use allocates, as of a static or a thread-local, is none: an execution that leaks is
//!   repeated, and does not count if it does not leak again. What a model keeps for the executions
//!   to come, such as a list of the outcomes that it has seen, looks like a leak. So it is not
//!   asked for by default.
//!
//! To give memory back is no step. Where [`Config::ordered_drops`] is on, it has to be ordered
//! after all accesses of cells in it, or is a data race. Where it is off, as in `ulocks-loom`, an
//! exploration of all executions may miss a use that nothing orders before it.
//!
//! Code outside of an exploration, and the machine's own, has the system's allocator.
//!
//! [`Config::leaks`]: crate::explore::Config::leaks
//! [`Config::reuse`]: crate::explore::Config::reuse
//! [`Config::ordered_drops`]: crate::explore::Config::ordered_drops

use crate::engine;
use crate::side::{Side, is_model};
use core::alloc::{GlobalAlloc, Layout};
use std::alloc::System;

/// The system's allocator, and for the threads of a model what the [module](self) says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

/// Calls `f`, whose memory is not the model's but the machine's: for what lives longer than an
/// execution, such as the tables of another face of the machine. `f` makes no operation of the
/// machine. What it allocates may be given back anywhere.
pub fn outside<R>(f: impl FnOnce() -> R) -> R {
    let _side = Side::of_machine();
    f()
}

/// What marks the bytes that were given back.
pub(crate) const POISON: u8 = 0xf5;

// SAFETY: what it hands out is the system's, or what the engine has kept, which was the system's,
// of the same layout, and is nobody's. What it is given back goes to the system, or is kept by the
// engine, which gives it to the system later, or to one caller of `alloc`. It does not unwind: the
// engine ends a run by switching to other code.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_model() {
            // SAFETY: the caller's promise.
            return engine::with(|engine| unsafe { engine.allocate(layout) });
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_model() && engine::with(|engine| engine.keep(block, layout)) {
            return;
        }
        // SAFETY: the caller's promise, and nobody keeps the block.
        unsafe { System.dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !is_model() {
            // SAFETY: the caller's promise; each block is the system's.
            return unsafe { System.realloc(block, layout, size) };
        }
        // SAFETY: the caller says that `size`, rounded up to the alignment, is no overflow.
        let new = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !new.is_null() {
            // SAFETY: both blocks are at least that long, the new one is nobody else's, and the old
            // one is given back once.
            unsafe {
                core::ptr::copy_nonoverlapping(block, new, layout.size().min(size));
                self.dealloc(block, layout);
            }
        }
        new
    }
}
