//! Memory that a model has given back, until the execution ends, and memory that it has not.
//!
//! # Invariants
//! 1. A block that is kept is the system's, of its layout, and nobody else's: the model has given
//!    it up. It leaves by being given to the system, or to one allocation of a thread.
//! 2. Its bytes are [`POISON`], unless a thread has written to it that has given it up.
//! 3. A thread is given only what it has given back itself, and what this execution has allocated,
//!    the last one first. So which allocations have one address is known from the steps of one
//!    thread, and steps of others change places with them as before. What is older, such as the
//!    buffer of a static, is there in one execution and not in another.

use super::Reuse;
use super::machine::Machine;
use super::verdict::Verdict;
use crate::alloc::POISON;
use crate::engine::At;
use crate::memory::{Access, Fault, What};
use core::alloc::Layout;
use std::alloc::{GlobalAlloc as _, System};
use std::collections::{BTreeMap, HashMap};

/// A block that was allocated, or that was given back.
#[derive(Clone, Copy)]
struct Block {
    layout: Layout,
    thread: usize,
    /// The last operation of that thread before.
    at: Option<At>,
    /// How many blocks were allocated or given back before.
    nth: u64,
}

impl Block {
    /// That it was given back.
    fn end(&self) -> Access {
        let at = self.at.unwrap_or(core::panic::Location::caller());
        Access { thread: self.thread, what: What::Free, at }
    }
}

/// What was given back in this execution, by address.
#[derive(Default)]
pub(super) struct Freed {
    blocks: BTreeMap<usize, Block>,
    count: u64,
    /// What this execution has allocated and not given back, by address.
    allocated: HashMap<usize, Block>,
    /// Of each thread and layout, what it has given back, the last one at the end.
    free: HashMap<(usize, Layout), Vec<usize>>,
}

impl Freed {
    /// The block in which this byte lies.
    fn around(&self, address: usize) -> Option<&Block> {
        let (&start, block) = self.blocks.range(..=address).next_back()?;
        (address - start < block.layout.size()).then_some(block)
    }
}

impl Drop for Freed {
    fn drop(&mut self) {
        for (address, block) in core::mem::take(&mut self.blocks) {
            // SAFETY: the block is the system's, of this layout, and nobody else's.
            unsafe { System.dealloc(address as *mut u8, block.layout) };
        }
    }
}

/// Whether somebody has written to a block that was given back.
///
/// # Safety
/// The block is kept.
unsafe fn was_written(address: usize, size: usize) -> bool {
    // SAFETY: the block is nobody else's, and all its bytes were written.
    let bytes = unsafe { core::slice::from_raw_parts(address as *const u8, size) };
    bytes.iter().any(|&byte| byte != POISON)
}

impl Machine<'_, '_> {
    /// A block that the current thread allocates or gives back.
    fn block(&mut self, layout: Layout) -> Block {
        let nth = self.freed.count;
        self.freed.count += 1;
        Block { layout, thread: self.current, at: self.last_place(), nth }
    }

    /// The current thread gives memory back.
    pub(super) fn keep(&mut self, address: usize, layout: Layout) -> Result<(), (Fault, At)> {
        let block = self.block(layout);
        let access = block.end();
        let at = access.at;
        if let Some(before) = self.freed.blocks.get(&address) {
            return Err((Fault::Freed { access, freed: before.end() }, at));
        }
        if self.config.ordered_drops {
            self.memory.plain_write(self.current, address, layout.size(), at).map_err(|fault| (fault, at))?;
        }
        self.memory.plain_forget(address, layout.size());
        // SAFETY: the model has given the block up, which is as long as that.
        unsafe { core::ptr::write_bytes(address as *mut u8, POISON, layout.size()) };
        let is_own = self.freed.allocated.remove(&address).is_some();
        self.freed.blocks.insert(address, block);
        if is_own {
            self.freed.free.entry((self.current, layout)).or_default().push(address);
        }
        Ok(())
    }

    /// A block for the current thread: what it has given back last, if that fits, or a new one.
    ///
    /// # Safety
    /// As that of `GlobalAlloc::alloc`.
    pub(super) unsafe fn allocate(&mut self, layout: Layout) -> *mut u8 {
        let again = self.reuse(layout);
        // SAFETY: the caller's promise.
        let block = again.unwrap_or_else(|| unsafe { System.alloc(layout) });
        if !block.is_null() {
            let allocated = self.block(layout);
            self.freed.allocated.insert(block.addr(), allocated);
        }
        block
    }

    fn reuse(&mut self, layout: Layout) -> Option<*mut u8> {
        if self.config.reuse == Reuse::Never {
            return None;
        }
        let address = self.freed.free.get_mut(&(self.current, layout))?.pop()?;
        // SAFETY: the block is kept.
        if unsafe { was_written(address, layout.size()) } {
            return None; // it is found when the execution ends
        }
        self.freed.blocks.remove(&address);
        Some(address as *mut u8)
    }

    /// Demands that memory was not given back.
    pub(super) fn demand_memory(&self, address: usize, what: What, at: At) -> Result<(), Fault> {
        let access = Access { thread: self.current, what, at };
        let freed = self.freed.around(address);
        freed.map_or(Ok(()), |block| Err(Fault::Freed { access, freed: block.end() }))
    }

    /// At the end: the first block that was allocated and not given back.
    pub(super) fn not_given_back(&self) -> Option<String> {
        let allocated = self.freed.allocated.values();
        let Block { layout, thread, at, .. } = allocated.min_by_key(|block| block.nth)?;
        let when = match at {
            Some(at) => format!("after its operation at {at}"),
            None => "before its first operation".to_owned(),
        };
        let more = match self.freed.allocated.len() {
            1 => String::new(),
            many => format!(", and {} more blocks", many - 1),
        };
        let bytes = layout.size();
        Some(format!("{bytes} bytes of memory were never given back: thread {thread} took them {when}{more}"))
    }

    /// At the end: the first block that was written to after it had been given back.
    pub(super) fn written_after_its_end(&mut self) -> Option<Verdict> {
        // SAFETY: the blocks are kept.
        let is_written =
            |(address, block): &(&usize, &Block)| unsafe { was_written(**address, block.layout.size()) };
        let (_, block) = self.freed.blocks.iter().filter(is_written).min_by_key(|(_, block)| block.nth)?;
        let text = format!(
            "use after the end: {} bytes of memory were written to after {} (by plain code: where is not known)",
            block.layout.size(),
            block.end()
        );
        let steps = self.steps;
        if let Some(story) = &mut self.story {
            story.tell_without_place(steps, block.thread, text.clone());
        }
        Some(Verdict::Dead(text))
    }
}
