//! Data races on plain memory.
//!
//! For every stretch of memory the last write is kept, and the last read of each thread since. An
//! access races with what is kept, conflicts with it, and does not come after it in happens-before.
//! To keep the last write only is enough: an earlier write happened before it (or the race between
//! the two was reported). The same holds for reads of one thread. Flanagan and Freund, "FastTrack",
//! PLDI 2009, without its compression of reads to one epoch.
//!
//! Stretches are kept by address and split where accesses overlap in part, so a race is found byte
//! by byte.

use super::fault::{Access, Fault, What};
use super::view::View;
use crate::engine::At;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug)]
struct Stamp {
    thread: usize,
    epoch: u32,
    at: At,
}

impl Stamp {
    fn access(self, what: What) -> Access {
        Access { thread: self.thread, what, at: self.at }
    }
}

#[derive(Clone, Debug)]
struct Stretch {
    end: usize,
    write: Option<Stamp>,
    /// Since the write; at most one for each thread.
    reads: Vec<Stamp>,
}

#[derive(Debug, Default)]
pub(super) struct Plain {
    /// By the first address. Disjoint.
    stretches: BTreeMap<usize, Stretch>,
}

impl Plain {
    pub(super) fn read(
        &mut self,
        thread: usize,
        view: &View,
        address: usize,
        size: usize,
        at: At,
    ) -> Result<(), Fault> {
        let stamp = Stamp { thread, epoch: view.epoch(thread), at };
        self.on_each(address, size, |stretch| {
            check(stretch.write, What::PlainWrite, view, stamp.access(What::PlainRead))?;
            match stretch.reads.iter_mut().find(|read| read.thread == thread) {
                Some(read) => *read = stamp,
                None => stretch.reads.push(stamp),
            }
            Ok(())
        })
    }

    pub(super) fn write(
        &mut self,
        thread: usize,
        view: &View,
        address: usize,
        size: usize,
        at: At,
    ) -> Result<(), Fault> {
        let stamp = Stamp { thread, epoch: view.epoch(thread), at };
        self.on_each(address, size, |stretch| {
            check(stretch.write, What::PlainWrite, view, stamp.access(What::PlainWrite))?;
            for read in stretch.reads.drain(..) {
                check(Some(read), What::PlainRead, view, stamp.access(What::PlainWrite))?;
            }
            stretch.write = Some(stamp);
            Ok(())
        })
    }

    /// What is known of `size` bytes at `address` is of no use any more.
    pub(super) fn forget(&mut self, address: usize, size: usize) {
        if size == 0 {
            return;
        }
        let end = address + size;
        self.split(address);
        self.split(end);
        while let Some((&start, _)) = self.stretches.range(address..end).next() {
            self.stretches.remove(&start);
        }
    }

    pub(super) fn clear(&mut self) {
        self.stretches.clear();
    }

    /// Applies `body` to all stretches of `size` bytes at `address`, of which there may be none
    /// yet.
    fn on_each(
        &mut self,
        address: usize,
        size: usize,
        mut body: impl FnMut(&mut Stretch) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if size == 0 {
            return Ok(());
        }
        let end = address + size;
        if let Some(stretch) = self.stretches.get_mut(&address)
            && stretch.end == end
        {
            return body(stretch);
        }
        self.split(address);
        self.split(end);
        let mut from = address;
        while from < end {
            let next = self.stretches.range(from..end).next().map_or(end, |(&start, _)| start);
            if next > from {
                self.stretches.insert(from, Stretch { end: next, write: None, reads: Vec::new() });
            }
            let stretch = self.stretches.get_mut(&from).expect("filled just now");
            body(stretch)?;
            from = stretch.end;
        }
        Ok(())
    }

    /// Makes `address` a border.
    fn split(&mut self, address: usize) {
        if let Some((&start, stretch)) = self.stretches.range_mut(..address).next_back()
            && start < address
            && address < stretch.end
        {
            let upper = stretch.clone();
            stretch.end = address;
            self.stretches.insert(address, upper);
        }
    }
}

/// That `before`, if there is such, happened before `access`.
fn check(before: Option<Stamp>, what: What, view: &View, access: Access) -> Result<(), Fault> {
    match before {
        Some(stamp) if view.epoch(stamp.thread) < stamp.epoch => {
            Err(Fault::Race { first: stamp.access(what), second: access })
        }
        _ => Ok(()),
    }
}
