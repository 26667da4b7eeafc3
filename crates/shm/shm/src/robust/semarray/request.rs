//! What a set asks for, and what becomes of its semaphores.

use ulocks_semarray::Op;

/// Flags of an operation's first word, beside the index of its semaphore.
pub(super) const NO_WAIT: u32 = 1 << 31;
pub(super) const WAIT_ZERO: u32 = 1 << 30;
/// Its request's effects are given back at a death.
pub(super) const UNDO: u32 = 1 << 29;
pub(super) const INDEX: u32 = UNDO - 1;

/// An operation that is asked for.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    /// The index of the semaphore, and flags.
    pub first: u32,
    pub change: i64,
}

impl Asked {
    #[inline]
    pub fn new(op: &Op, undo: bool) -> Self {
        let flags = [(op.is_no_wait(), NO_WAIT), (op.is_wait_zero(), WAIT_ZERO), (undo, UNDO)];
        let flags = flags.into_iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, flag)| all | flag);
        Self { first: op.index() as u32 | flags, change: op.change() }
    }
}

/// What becomes of one semaphore.
#[derive(Clone, Copy, Default)]
pub(super) struct Change {
    pub index: usize,
    pub value: i64,
    pub undo: i64,
}

/// What becomes of the semaphores of a set: no semaphore is there twice.
pub(super) struct Changes<const OPS: usize> {
    pub list: [Change; OPS],
    pub number: usize,
}

/// What an evaluation says.
pub(super) enum Verdict {
    Proceeds,
    Waits,
    Fails(u32),
}

impl<const OPS: usize> Changes<OPS> {
    #[inline]
    pub fn new() -> Self {
        Self { list: [Change::default(); OPS], number: 0 }
    }

    /// The entry of semaphore `index`, with what it has now if it is new.
    #[inline]
    pub fn of(&mut self, index: usize, now: impl FnOnce() -> Change) -> &mut Change {
        let place = self.list[..self.number].iter().position(|change| change.index == index);
        let place = place.unwrap_or_else(|| {
            self.list[self.number] = now();
            self.number += 1;
            self.number - 1
        });
        &mut self.list[place]
    }
}
