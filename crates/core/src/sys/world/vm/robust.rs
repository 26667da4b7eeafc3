//! The robust list of a thread of the virtual machine. A model has one token a thread, so a list
//! has one entry.

use super::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};
use crate::sys::types::robust::ListError;

/// The kernel's `struct robust_list_head`.
#[repr(C)]
struct Head {
    first: AtomicPtr<()>,
    offset: AtomicUsize,
    pending: AtomicPtr<()>,
}

/// The distance from an entry to its word; see `sys::robust`.
const OFFSET: usize = 0_usize.wrapping_sub(32);

/// The robust list of the thread that asked for it.
#[derive(Clone, Copy)]
pub(crate) struct List {
    head: &'static Head,
}

impl core::fmt::Debug for List {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("List")
    }
}

impl List {
    /// A list for the calling thread, which has none yet.
    pub(crate) fn current() -> Result<Self, ListError> {
        // Leaked: the thread may die at any step, and the kernel reads the head then.
        let head: &Head = Box::leak(Box::new(Head {
            first: AtomicPtr::default(),
            offset: AtomicUsize::new(OFFSET),
            pending: AtomicPtr::default(),
        }));
        let list = Self { head };
        head.first.store(list.end(), Relaxed);
        // SAFETY: the head is leaked, and `append` and `remove` keep the entry alive while it is in
        // the list.
        unsafe { ulocks_vm::process::set_robust_list(list.end()) };
        Ok(list)
    }

    /// Which of a token's two words the kernel looks at.
    pub(crate) fn word_index(self) -> usize {
        0
    }

    /// Says which word the thread is about to acquire or release.
    pub(crate) fn set_pending(self, word: Option<usize>) {
        let entry = word.map_or(0, |word| word.wrapping_sub(OFFSET));
        self.head.pending.store(core::ptr::with_exposed_provenance_mut(entry), Relaxed);
    }

    /// The address of the word that is pending.
    pub(crate) fn pending(self) -> Option<usize> {
        let entry = self.head.pending.load(Relaxed).addr();
        (entry != 0).then(|| entry.wrapping_add(OFFSET))
    }

    /// Puts `entry` at the end of the list.
    ///
    /// # Safety
    /// `entry` is alive until [`remove`](Self::remove) or the end of the thread.
    pub(crate) unsafe fn append(self, entry: *mut *mut ()) -> Result<(), ListError> {
        // SAFETY: the caller's promise; in this world an entry is an atomic.
        unsafe { &*entry.cast::<AtomicPtr<()>>() }.store(self.end(), Relaxed);
        self.head.first.store(entry.cast(), Relaxed);
        Ok(())
    }

    /// Takes the entry out of the list.
    ///
    /// # Safety
    /// The thread has put it there with [`append`](Self::append).
    pub(crate) unsafe fn remove(self, _entry: *mut *mut ()) -> Result<(), ListError> {
        self.head.first.store(self.end(), Relaxed);
        Ok(())
    }

    fn end(self) -> *mut () {
        core::ptr::from_ref(self.head).cast_mut().cast()
    }
}
