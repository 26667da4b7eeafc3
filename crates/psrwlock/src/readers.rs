//! Where [`Bulk`](crate::Bulk) readers are counted: in the state, or spread over slots.
//!
//! In the state every reader changes the same cache line, which then goes from CPU to CPU: two
//! read-modify-writes for each read, one after the other for all. With slots a reader counts itself
//! in one of several lines, most likely one that only its own CPU uses, and looks at the gate,
//! which nobody changes while nobody writes. So readers scale.
//!
//! # Protocol
//! A reader and the owner each write one word and then read the other's, so there must be a fence
//! between on both sides, and at least one of them sees the other:
//!
//! | reader | owner |
//! |---|---|
//! | (A) slot += 1 | (C) shuts the class of index 0 |
//! | fence | fence |
//! | is the gate open? then it is inside, otherwise slot -= 1 | (S) waits until it has seen each slot at zero once |
//!
//! On x86 the additions that come before are fences already. Elsewhere the owner pays for both,
//! where the kernel has `membarrier`, with some hundred nanoseconds to some microseconds for each
//! write; between processes and without it both are `fence(SeqCst)`.
//!
//! A reader leaves by the slot by which it has come, with one subtraction: its last touch. All
//! changes of a slot are additions and subtractions of one, and no reader subtracts before it has
//! added. So if the owner reads zero, every reader whose addition it could see has left. After the
//! fence it sees the additions of all who are inside. Readers that come later find the gate shut
//! and go out again. Therefore one look at zero is enough for a slot, and (S) looks at the slots
//! one after the other. The subtraction is Release and the look Acquire: all subtractions up to the
//! one that was seen continue one release sequence. The costly part of a write comes while all
//! higher classes are open still.
//!
//! A departing reader may not touch the lock after its subtraction, and the subtraction does not
//! tell it whether the owner sleeps. So it looks at the state before. If the owner falls asleep
//! between, it is not woken, and finds out by itself when its nap is over; see "The drain" in
//! [`raw`](super::raw).
//!
//! # Price
//! 128 bytes a slot. A write is always sifted, and looks at all slots. It pays where reads are many
//! times as frequent as writes.
//!
//! # Sources
//! N. Bronson and others, `folly::SharedMutex` (deferred readers, moved by the writer); D. Dice and
//! A. Kogan, "BRAVO" (2019).

use crate::class::{BULK, Bulk, Class};
use crate::raw::RawPsRwLock;
use crate::sifted::Discipline;
use crate::word::{DRAINED, State};
use core::cell::Cell;
use core::fmt;
use ulocks_core::futex::Scope;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::part::Part;
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release, SeqCst};
use ulocks_core::sync::{fence, interruption_point};
use ulocks_core::{Policy, cpu, membarrier, tid};

mod sealed {
    pub trait Sealed {}
}

/// Where [`Bulk`] readers are counted. Chosen by type.
pub trait Readers: sealed::Sealed + Part + Send + Sync + 'static {
    /// Whether there are slots.
    const DISTRIBUTED: bool;
    #[doc(hidden)]
    fn slots(&self) -> &[Count];
}

/// In the state, with everybody else: eight bytes are enough. The default.
#[derive(Debug)]
pub struct Central;

/// In `N` slots of 128 bytes each, 1 to 255; one for each CPU is best.
#[repr(C)]
pub struct Distributed<const N: usize = 8>([Count; N]);

/// One slot, on cache lines that nothing else is on: two, since they are fetched in pairs.
#[doc(hidden)]
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Count(AtomicU32);

/// Where a reader is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u8);

impl Part for Central {
    ulocks_core::raw_init!(Self);
}

impl<const N: usize> Part for Distributed<N> {
    ulocks_core::raw_init!({
        const { assert!(N >= 1 && N <= 255, "1 to 255 slots") };
        Self(ulocks_core::each!(Count(AtomicU32::new(0)); N))
    });
}

impl sealed::Sealed for Central {}
impl<const N: usize> sealed::Sealed for Distributed<N> {}

impl Readers for Central {
    const DISTRIBUTED: bool = false;
    fn slots(&self) -> &[Count] {
        &[]
    }
}

impl<const N: usize> Readers for Distributed<N> {
    const DISTRIBUTED: bool = true;
    #[inline(always)]
    fn slots(&self) -> &[Count] {
        &self.0
    }
}

impl<const N: usize> fmt::Debug for Distributed<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|count| count.0.load(Relaxed))).finish()
    }
}

impl<D: Discipline> RawPsRwLock<D> {
    /// Whether the class of that index is [`Bulk`].
    pub(crate) const fn is_bulk(index: u32) -> bool {
        index == 0 && D::CLASSES & BULK == 1 << Bulk::RANK
    }

    /// So many readers are counted at one slot; others at the state. The rest of the count is room
    /// for readers that have come in vain.
    const SLOT_LIMIT: u32 = 1 << 16;

    /// Whether the other side of a fence pays for this one, or nobody has to: on x86 the addition
    /// before it is a fence.
    #[inline(always)]
    fn is_asymmetric() -> bool {
        membarrier::RMW_IS_FENCE || (<D::Policy as Policy>::Scope::PRIVATE && membarrier::ready())
    }

    /// Acquires for reading at a slot, if the class is open.
    #[inline(always)]
    pub(crate) fn read_at_slot(&self) -> Option<Slot> {
        // Who comes in vain looks first, so as not to keep the owner waiting each time.
        if !Self::LAYOUT.admits(self.look(), 0) {
            return None;
        }
        let slots = self.readers.slots();
        let place = cpu::current().unwrap_or_else(tid::current) as usize % slots.len();
        let was = slots[place].0.fetch_add(1, Acquire);
        if Self::is_asymmetric() {
            membarrier::light();
        } else {
            fence(SeqCst);
        }
        interruption_point();
        let slot = Slot(place as u8);
        if Self::LAYOUT.admits(State(self.state.load(Acquire)), 0) && was < Self::SLOT_LIMIT {
            self.meter.count(Event::Acquired);
            return Some(slot);
        }
        self.depart_slot(slot);
        None
    }

    /// Leaves by a slot: the last touch of the lock.
    #[inline(always)]
    pub(crate) fn depart_slot(&self, Slot(place): Slot) {
        interruption_point();
        let event = self.event.key();
        let owner_sleeps = self.look().has(State::DRAINING);
        let was = self.readers.slots()[usize::from(place)].0.fetch_sub(1, Release);
        if owner_sleeps && was == 1 {
            event.wake_bits(u32::MAX, DRAINED);
        }
    }

    /// Whether anybody is counted at a slot.
    pub(crate) fn has_readers_at_slots(&self) -> bool {
        !self.slots_were_empty(&Cell::new(0))
    }

    /// (S): whether each slot from `next` on has been seen at zero, and how far that goes.
    #[inline]
    pub(crate) fn slots_were_empty(&self, next: &Cell<usize>) -> bool {
        let rest = self.readers.slots().get(next.get()..).unwrap_or(&[]);
        let empty = rest.iter().take_while(|count| count.0.load(Acquire) == 0).count();
        next.set(next.get() + empty);
        empty == rest.len()
    }

    /// The owner's fence, after it has shut the class.
    #[cold]
    pub(crate) fn see_readers(&self) {
        if membarrier::RMW_IS_FENCE {
            membarrier::light();
        } else if Self::is_asymmetric() {
            assert!(membarrier::heavy(), "the kernel has taken membarrier(2) back");
        } else {
            fence(SeqCst);
        }
    }
}
