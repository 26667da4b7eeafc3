//! What only Linux has, in an execution: processes that map memory twice, deaths and robust lists,
//! priority-inheriting futexes, signals.
//!
//! The rest of the explorer calls what is here by the names that `without_linux.rs` has, too. That
//! file takes the place of this folder in a build without the feature `linux`.

mod calls;
mod deaths;
mod pi;
mod robust;
mod signals;

pub use deaths::{Deaths, Kernel, Survivors};
pub(super) use pi::Inherits;

use super::machine::{Machine, Status, Thread};
use crate::choice::Footprint;
use crate::engine::{At, Key};
use core::ops::Range;

/// What one thread has of it.
#[derive(Default)]
pub(super) struct OfThread {
    process: usize,
    died: bool,
    /// How far the kernel has come with its robust list, once it has died.
    walk: Option<robust::Walk>,
    signals: signals::Signals,
    robust_list: Option<usize>,
    /// Steps it has been chosen for.
    taken: u32,
    /// Its own, without what it inherits.
    priority: u8,
    /// Whether its id may be in a lock: it has asked for its number, and may have written it there,
    /// or has asked the kernel for a lock.
    may_own: bool,
}

/// What an execution has of it.
#[derive(Default)]
pub(super) struct OfMachine {
    regions: Vec<(Range<usize>, usize)>,
    handlers: Vec<signals::Installed>,
    deaths: u32,
    died_at: Option<At>,
}

impl OfThread {
    /// Of a thread that begins. `parent` is the thread that has made it, and whether that made a
    /// process.
    pub(super) fn new(threads: &[Thread], parent: Option<(usize, bool)>) -> Self {
        match parent {
            None => Self::default(),
            // As the kernel has it.
            Some((parent, false)) => Self {
                process: threads[parent].linux.process,
                signals: signals::Signals::masking(threads[parent].linux.signals.masked()),
                ..Self::default()
            },
            // A process has no masks of its maker's here, and so inherits no signals that they
            // block.
            Some((_, true)) => {
                let last = threads.iter().map(|thread| thread.linux.process).max();
                Self { process: 1 + last.unwrap_or(0), ..Self::default() }
            }
        }
    }

    pub(super) fn may_own(&mut self) {
        self.may_own = true;
    }
}

impl OfMachine {
    pub(super) fn has_handlers(&self) -> bool {
        !self.handlers.is_empty()
    }
}

impl Machine<'_, '_> {
    pub(super) fn process_of(&self, thread: usize) -> usize {
        self.threads.get(thread).map_or(0, |thread| thread.linux.process)
    }

    fn map(&mut self, addresses: Range<usize>, region: usize) {
        let regions = &mut self.linux.regions;
        regions.retain(|(old, _)| old.end <= addresses.start || addresses.end <= old.start);
        regions.push((addresses, region));
    }

    /// The address by which the kernel knows a futex of a region: its place in the region.
    pub(super) fn canonical_address(&self, address: usize) -> usize {
        let hit = self.linux.regions.iter().find(|(addresses, _)| addresses.contains(&address));
        hit.map_or(address, |(addresses, region)| (1 << 63) + (region << 32) + (address - addresses.start))
    }

    pub(super) fn canonical(&self, key: Key) -> Key {
        match key.private {
            true => Key { address: key.address ^ (self.process_of(self.current) << 48), ..key },
            false => Key { address: self.canonical_address(key.address), ..key },
        }
    }

    /// What is left of a thread that has come to its end. If it may own a priority-inheriting lock,
    /// its exit from the kernel is a step of its own.
    pub(super) fn at_its_end(&self, thread: usize) -> Status {
        let may_own = self.threads[thread].linux.may_own && self.may_own_a_lock(thread);
        if may_own { Status::Exiting } else { Status::Done }
    }

    /// Whether a thread is not free to take a step of this footprint early.
    ///
    /// If it may be sent a signal, the signal would come too late for it. And a death that takes
    /// others with it happens before or after each of their steps.
    pub(super) fn may_be_struck(&self, thread: usize, announced: Footprint) -> bool {
        announced.is_invisible() && self.handles_signals(thread) || self.death_takes_others(thread)
    }
}

/// Gives back what the run that has just ended had of it.
pub(super) fn end_run() {
    crate::process::end_run();
}
