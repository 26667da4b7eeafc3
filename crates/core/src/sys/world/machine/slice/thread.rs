//! What a thread remembers of its critical sections, and the word in which it asks the kernel for
//! more time.
//!
//! # State
//! The word has two bytes: `request` is the thread's, and the kernel's to clear; `granted` is the
//! kernel's. The kernel changes the word at an interrupt of this thread, or in a system call of it,
//! and nowhere else: no other CPU writes it.
//!
//! | `request`, `granted` | to | by | when |
//! |---|---|---|---|
//! | 0, 0 | 1, 0 | the thread | it enters its outermost section (E) |
//! | 1, 0 | 0, 1 | the kernel | it would preempt the thread, and lets it go on |
//! | 1, 0 | 0, 0 | the kernel | it has other work to do with the thread, and preempts it |
//! | 0, 1 | 0, 0 | the kernel | the time is up, or the thread makes a system call |
//! | 1, 0 | 0, 0 | the thread | it leaves its outermost section (L) |
//! | 0, 1 | 0, 0 | the kernel | ... and gives the CPU back (L) |
//!
//! Beside the word, in memory of the thread's own: `depth`, the sections that it is in; `asked`,
//! whether (E) of the outermost has set the request.
//!
//! # Invariants
//! 1. *The request is never set while an extension runs*; the kernel may kill a thread for that.
//!    (E) sets it if it has found both bytes zero, `request` first: while that is zero nothing is
//!    granted. Between the load and the store it cannot become set: other threads have other words,
//!    and a handler that strikes there finds `depth` above zero (2).
//! 2. Only code that moves `depth` from 0 to 1 asks, and only code that moves it from 1 to 0
//!    withdraws and gives back. It is moved *before* (E) touches the word, and *after* (L) is done
//!    with it. So a handler of this thread that enters and leaves has two cases. It finds `depth`
//!    above zero, and leaves the word alone. Or it runs before or after the whole of the section,
//!    and finds and leaves the word as zero.
//! 3. A thread gives the CPU back when it holds no lock any more: at depth 1, in (L), after the
//!    release.
//! 4. What another user of the word has set stays: (E) does not ask on top of it, and then (L) does
//!    not withdraw it.
//!
//! A request that the kernel has answered is not repeated in the same outermost section: one
//! extension a section.
//!
//! # Ordering
//! All of it happens on one CPU, in the order of the program; `between` keeps the compiler to that.

use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{
    AtomicU8,
    Ordering::{Relaxed, SeqCst},
    compiler_fence,
};

/// `rseq::slice_ctrl` of linux/rseq.h.
#[derive(Debug, Default)]
#[repr(C, align(4))]
pub struct Control {
    /// The thread asks.
    pub request: AtomicU8,
    /// The kernel has granted.
    pub granted: AtomicU8,
    reserved: [u8; 2],
}

impl Control {
    /// Nothing asked, nothing granted.
    #[must_use]
    pub const fn new() -> Self {
        Self { request: AtomicU8::new(0), granted: AtomicU8::new(0), reserved: [0; 2] }
    }
}

/// The thread-local part. All-zero, it asks for nothing.
pub(super) struct Thread {
    control: Cell<Option<NonNull<Control>>>,
    give_back: Cell<Option<fn()>>,
    depth: Cell<u32>,
    asked: Cell<bool>,
}

/// An interrupt may come here, with the kernel or a signal handler.
#[inline(always)]
pub(super) fn between() {
    compiler_fence(SeqCst);
    #[cfg(test)]
    super::tests::interrupt();
}

impl Thread {
    pub(super) const fn new() -> Self {
        Self {
            control: Cell::new(None),
            give_back: Cell::new(None),
            depth: Cell::new(0),
            asked: Cell::new(false),
        }
    }

    /// From here on the thread asks by `control`, and gives the CPU back by `give_back`.
    ///
    /// # Safety
    /// `control` is valid for as long as this is used.
    pub(super) unsafe fn enable(&self, control: NonNull<Control>, give_back: fn()) {
        self.give_back.set(Some(give_back));
        between();
        self.control.set(Some(control));
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.control.get().is_some()
    }

    #[cfg(test)]
    pub(super) fn depth(&self) -> u32 {
        self.depth.get()
    }

    #[inline(always)]
    fn control(&self) -> Option<&Control> {
        // SAFETY: valid by the promise of `enable`'s caller; what the kernel writes of it are
        // atomics.
        self.control.get().map(|control| unsafe { control.as_ref() })
    }

    #[inline(always)]
    pub(super) fn set_depth(&self, depth: u32) {
        between();
        self.depth.set(depth);
        between();
    }

    /// (E)
    #[inline(always)]
    pub(super) fn enter(&self) {
        let Some(control) = self.control() else { return };
        let depth = self.depth.get();
        // After 2^32 forgotten guards it stays up, and the thread never asks again.
        self.set_depth(depth.saturating_add(1));
        if depth == 0 {
            self.asked.set(is_free(control));
            between();
            if self.asked.get() {
                control.request.store(1, Relaxed);
            }
        }
        between();
    }

    /// (L)
    #[inline(always)]
    pub(super) fn leave(&self) {
        let Some(control) = self.control() else { return };
        let depth = self.depth.get();
        if depth == 0 {
            return; // entered before the thread was enabled, or by another thread
        }
        if depth == 1 && self.asked.get() {
            self.withdraw(control);
        }
        self.set_depth(depth - 1);
    }

    #[inline(always)]
    fn withdraw(&self, control: &Control) {
        between();
        control.request.store(0, Relaxed);
        between();
        // The extension may end after this look: then there is nothing to give back, and no harm in
        // it.
        if control.granted.load(Relaxed) != 0
            && let Some(give_back) = self.give_back.get()
        {
            between();
            give_back();
        }
    }
}

/// Whether nothing is asked and nothing granted: invariant 1.
#[inline(always)]
fn is_free(control: &Control) -> bool {
    let look = |byte: &AtomicU8| {
        between();
        byte.load(Relaxed) == 0
    };
    look(&control.request) && look(&control.granted)
}
