//! Processes of the virtual machine. Each is one thread, and its slot has the thread's number.

use super::registry::Registry;
use super::robust::List;
use super::sys::Answer;
use core::cell::Cell;
use ulocks_core::sync::Ordering::{Acquire, Release};

/// A process with its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The index of the slot.
    pub index: usize,
    /// The identity.
    pub identity: u64,
    /// There is no `execve`.
    pub epoch: u32,
}

ulocks_core::model::thread_local! {
    static MINE: Cell<Option<Slot>> = Cell::new(None);
}

/// The calling process.
pub fn number() -> u32 {
    ulocks_core::tid::current()
}

/// The slot of the calling process, if it has one.
pub fn mine() -> Option<Slot> {
    MINE.get()
}

/// The slot of the calling process, claimed if need be.
///
/// # Errors
/// None.
pub fn claim(registry: &'static Registry) -> Answer<Slot> {
    if let Some(slot) = mine() {
        return Ok(slot);
    }
    let index = ulocks_core::model::thread::current();
    let process = &registry.processes[index];
    List::current().append(&process.token);
    let slot = Slot { index, identity: index as u64 + 1, epoch: 0 };
    process.identity.store(slot.identity, Release);
    MINE.set(Some(slot));
    Ok(slot)
}

/// The calling process has come to its end, and the kernel has walked its robust list. The machine
/// walks only the lists of threads that die.
pub fn end() {
    const OWNER_DIED: u32 = 1 << 30;
    if let (Some(slot), Ok(registry)) = (mine(), super::registry::get()) {
        registry.processes[slot.index].token.word.store(OWNER_DIED, Release);
    }
}

/// A slot is not used again, so nobody counts its rows.
pub fn will_undo(_: &Registry, _: Slot) {}

/// See [`will_undo`].
pub fn has_undone(_: &Registry, _: usize, _: u64) {}

/// Whether the process is gone.
pub fn is_suspect(registry: &Registry, index: usize, identity: u64) -> bool {
    is_gone(registry, index, identity, || true)
}

/// Whether the process that had slot `index` with this identity is gone.
pub fn is_gone(registry: &Registry, index: usize, identity: u64, _: impl FnOnce() -> bool) -> bool {
    const THREAD: u32 = (1 << 30) - 1;
    let process = &registry.processes[index];
    process.identity.load(Acquire) != identity || process.token.word.load(Acquire) & THREAD == 0
}

/// Whether thread `thread` of the process in slot `index` is gone.
pub fn is_thread_gone(registry: &Registry, slot: Slot, _: u32) -> bool {
    is_gone(registry, slot.index, slot.identity, || true)
}
