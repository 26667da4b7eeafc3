//! The same locks on the virtual machine.

/// What they are compiled against.
mod world {
    pub use ulocks_vm::sync::{AtomicU32, Ordering, pause, spin_until};

    pub fn futex_wait(word: &AtomicU32, expected: u32) {
        ulocks_vm::futex::wait(word, expected, !0, None, true);
    }

    pub fn futex_wake(word: &AtomicU32, count: u32) -> u32 {
        ulocks_vm::futex::wake((&raw const *word).addr(), count, !0, true)
    }
}

#[path = "locks.rs"]
pub mod locks;
