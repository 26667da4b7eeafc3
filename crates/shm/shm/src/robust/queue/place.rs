//! The place of a request in the queue of a lock.

use crate::slots::MOST_SLOTS;

/// Where a request is in the queue, and which slot its thread watches.
///
/// | bits | meaning |
/// |---|---|
/// | 57 to 63 | the rank |
/// | 13 to 56 | the ticket |
/// | 0 to 12 | the slot of the watched waiter; the thread's own if it watches the holders; [`NOBODY`](Place::NOBODY) if it watches none |
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(pub(super) u64);

const _: () = assert!(Place::NOBODY >= MOST_SLOTS && Place::RANK_SHIFT + 7 == u64::BITS);

impl Place {
    const SLOT_BITS: u32 = 13;
    const TICKET_BITS: u32 = 44;
    /// No table has such a slot.
    pub(super) const NOBODY: usize = (1 << Self::SLOT_BITS) - 1;
    const RANK_SHIFT: u32 = Self::SLOT_BITS + Self::TICKET_BITS;

    pub(super) fn new(rank: u8, ticket: u64, watched: usize) -> Self {
        let ticket = ticket & ((1 << Self::TICKET_BITS) - 1);
        Self(u64::from(rank) << Self::RANK_SHIFT | ticket << Self::SLOT_BITS).watching(watched)
    }

    pub(super) fn watching(self, slot: usize) -> Self {
        Self(self.order() << Self::SLOT_BITS | (slot & Self::NOBODY) as u64)
    }

    /// Rank and ticket.
    pub(super) fn order(self) -> u64 {
        self.0 >> Self::SLOT_BITS
    }

    pub(super) fn rank(self) -> u8 {
        (self.0 >> Self::RANK_SHIFT) as u8
    }

    pub(super) fn watched(self) -> usize {
        self.0 as usize & Self::NOBODY
    }
}
