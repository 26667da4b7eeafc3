//! The place of a request in the queue of a lock.

/// Where a request is in the queue, and which slot its thread watches.
///
/// | bits | meaning |
/// |---|---|
/// | 56 to 63 | the rank |
/// | 12 to 55 | the ticket |
/// | 0 to 11 | the slot of the watched waiter; the thread's own if it watches the holders |
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(pub(super) u64);

impl Place {
    const SLOT_BITS: u32 = 12;
    const TICKET_BITS: u32 = 44;

    pub(super) fn new(rank: u8, ticket: u64, watched: usize) -> Self {
        let ticket = ticket & ((1 << Self::TICKET_BITS) - 1);
        Self(u64::from(rank) << 56 | ticket << Self::SLOT_BITS).watching(watched)
    }

    pub(super) fn watching(self, slot: usize) -> Self {
        Self(self.order() << Self::SLOT_BITS | slot as u64 & ((1 << Self::SLOT_BITS) - 1))
    }

    /// Rank and ticket.
    pub(super) fn order(self) -> u64 {
        self.0 >> Self::SLOT_BITS
    }

    pub(super) fn rank(self) -> u8 {
        (self.0 >> 56) as u8
    }

    pub(super) fn watched(self) -> usize {
        (self.0 & ((1 << Self::SLOT_BITS) - 1)) as usize
    }
}
