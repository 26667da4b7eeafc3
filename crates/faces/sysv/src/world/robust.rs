//! Robust lists of the virtual machine: each has the token of its process, and one pending word.

use core::cell::Cell;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::sync::{AtomicPtr, AtomicU32, AtomicUsize};

/// The kernel's `struct robust_list_head`.
#[repr(C)]
#[derive(Debug)]
struct Head {
    first: AtomicPtr<()>,
    offset: AtomicUsize,
    pending: AtomicPtr<()>,
}

/// A word that the kernel marks when its thread dies. All zero is free.
#[repr(C)]
#[derive(Debug)]
pub struct Token {
    next: AtomicPtr<()>,
    /// The thread, or the kernel's mark.
    pub word: AtomicU32,
}

/// The distance from an entry to its word.
const OFFSET: usize = core::mem::offset_of!(Token, word);

ulocks_core::model::thread_local! {
    static HEAD: Cell<Option<&'static Head>> = Cell::new(None);
}

/// The list of the thread that asked for it.
#[derive(Clone, Copy, Debug)]
pub struct List(&'static Head);

impl List {
    /// The calling thread's.
    pub fn current() -> Self {
        if let Some(head) = HEAD.get() {
            return Self(head);
        }
        // Leaked: the thread may die at any step, and the kernel reads the head then.
        let head: &'static Head = Box::leak(Box::new(Head {
            first: AtomicPtr::default(),
            offset: AtomicUsize::new(OFFSET),
            pending: AtomicPtr::default(),
        }));
        HEAD.set(Some(head));
        let list = Self(head);
        head.first.store(list.end(), Relaxed);
        // SAFETY: the head is leaked, and tokens are of the run.
        unsafe { ulocks_core::model::process::set_robust_list(list.end()) };
        list
    }

    fn end(self) -> *mut () {
        core::ptr::from_ref(self.0).cast_mut().cast()
    }

    /// The address of the pending word, or 0.
    pub fn pending(self) -> usize {
        let entry = self.0.pending.load(Relaxed).addr();
        if entry == 0 { 0 } else { entry + OFFSET }
    }

    /// Names the pending word, or with 0 none.
    pub fn set_pending(self, word: usize) {
        let entry = if word == 0 { 0 } else { word - OFFSET };
        self.0.pending.store(core::ptr::with_exposed_provenance_mut(entry), Relaxed);
    }

    /// Puts a token of this thread on the list.
    pub fn append(self, token: &'static Token) {
        token.next.store(self.end(), Relaxed);
        token.word.store(ulocks_core::tid::current(), Relaxed);
        self.0.first.store(core::ptr::from_ref(token).cast_mut().cast(), Relaxed);
    }
}
