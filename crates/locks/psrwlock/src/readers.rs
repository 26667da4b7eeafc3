//! Where [`Bulk`](crate::Bulk) readers are counted: in the state, or in slots.
//!
//! In the state every reader changes the same cache line. The line then goes from CPU to CPU: two
//! read-modify-writes for each read, one after the other for all readers. With slots a reader
//! counts itself in one of several lines, most likely one that only its own CPU uses. Then it looks
//! at the level, which no thread changes while no thread writes. So readers scale.
//!
//! # Protocol
//! A reader and the owner each write one word and then read the other's. So both need a fence in
//! between, and at least one of them sees the other:
//!
//! | reader | owner |
//! |---|---|
//! | slot += 1 | (close): closes the class of index 0 |
//! | fence | fence |
//! | if the class is open, it is inside; otherwise slot -= 1 | (see slots): waits until it has seen each slot at zero once |
//!
//! On x86 the additions before it are fences already. Elsewhere the owner pays for both fences by
//! `membarrier`, if the kernel has it: some hundred nanoseconds to some microseconds for each
//! write. Between processes, and without `membarrier`, both are `fence(SeqCst)`.
//!
//! A reader leaves by the slot by which it has come, with one subtraction: its last touch. All
//! changes of a slot are additions and subtractions of one, and a reader adds before it subtracts.
//! So if the owner reads zero, every reader whose addition it could see has left. After the fence
//! it sees the additions of all readers inside. Readers that come later find the class closed and
//! leave again. Therefore one look at zero is enough for a slot, and (see slots) looks at the slots
//! one after the other. The subtraction is Release and the look Acquire: the subtractions continue
//! one release sequence. The costly part of a write comes while all higher classes are still open.
//!
//! A departing reader may not touch the lock after its subtraction, and the subtraction does not
//! tell it whether the owner sleeps. So an owner of the same process says in a
//! [table](super::exits) that it waits, and the reader looks there after its fence. Between
//! processes the reader looks at the state before it leaves. If the owner falls asleep in between,
//! it finds out when its timer ends; see "The drain" in [`raw`](super::raw).
//!
//! # Cost
//! 128 bytes for each slot. A write always sifts, and looks at all slots. Slots pay where reads are
//! many times as frequent as writes.
//!
//! # Sources
//! N. Bronson and others, `folly::SharedMutex` (deferred readers, moved by the writer); D. Dice and
//! A. Kogan, "BRAVO" (2019).

use crate::class::{BULK, Bulk, Class};
use crate::configuration::Configuration;
use crate::raw::RawPsRwLock;
use crate::word::{OWNER, State};
use core::cell::Cell;
use core::fmt;
use crossbeam_utils::CachePadded;
use ulocks_core::futex::Scope;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::raw::Initial;
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release, SeqCst};
use ulocks_core::sync::{fence, interruption_point};
use ulocks_core::{Policy, cpu, membarrier, tid};

mod sealed {
    pub trait Sealed {}
}

/// Where [`Bulk`] readers are counted. Chosen by type.
pub trait Readers: sealed::Sealed + Initial + Send + Sync + 'static {
    /// Whether there are slots.
    const DISTRIBUTED: bool;
    #[doc(hidden)]
    fn slots(&self) -> &[Count];
}

/// In the state, with all other readers: eight bytes are enough. The default.
#[derive(Debug)]
pub struct Central;

/// In `N` slots of 1 to 255, each on cache lines of its own, 128 bytes on x86-64 and AArch64; one
/// for each CPU is best. On other machines the size is crossbeam's choice: there a lock with slots
/// in hand-laid shared memory is for programs of one build.
#[repr(C)]
pub struct Distributed<const N: usize = 8>([Count; N]);

/// One slot, on cache lines that nothing else is on: two where they are fetched in pairs.
#[doc(hidden)]
#[repr(C)]
#[derive(Debug)]
pub struct Count(CachePadded<AtomicU32>);

// Programs of different builds share it on these; crossbeam might choose another size one day.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const _: () = assert!(size_of::<Count>() == 128);

/// Where a reader is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u8);

ulocks_core::initial!([] Central = Self);

ulocks_core::initial!([const N: usize] Distributed<N> = {
        const { assert!(N >= 1 && N <= 255, "1 to 255 slots") };
        Self(ulocks_core::each!(Count(CachePadded::new(AtomicU32::new(0))); N))
});

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

impl<D: Configuration> RawPsRwLock<D> {
    /// Whether the class of that index is [`Bulk`].
    pub(crate) const fn is_bulk(index: u32) -> bool {
        index == 0 && D::CLASSES & BULK == 1 << Bulk::RANK
    }

    /// The most readers that one slot counts; the state counts others. The rest of the range is
    /// room for readers that find the class closed.
    const SLOT_LIMIT: u32 = 1 << 16;

    /// Whether the owner pays for the reader's fence; or neither does, since on x86 the addition
    /// before it is a fence.
    #[inline(always)]
    fn is_asymmetric() -> bool {
        membarrier::RMW_IS_FENCE || (<D::Policy as Policy>::Scope::PRIVATE && membarrier::ready())
    }

    /// Acquires for reading at a slot, if the class is open.
    #[inline(always)]
    pub(crate) fn read_at_slot(&self) -> Option<Slot> {
        // Looks first: a reader that comes again and again would delay the owner each time.
        if !Self::LAYOUT.admits(self.look(), 0) {
            return None;
        }
        let slots = self.readers.slots();
        let nth = cpu::current().unwrap_or_else(tid::current) as usize % slots.len();
        let was = slots[nth].0.fetch_add(1, Relaxed);
        Self::fence_of_reader();
        interruption_point();
        let slot = Slot(nth as u8);
        if Self::LAYOUT.admits(State(self.state.load(Acquire)), 0) && was < Self::SLOT_LIMIT {
            self.meter.count(Event::Acquired);
            return Some(slot);
        }
        self.depart_slot(slot);
        None
    }

    /// The reader's fence, after it has changed its slot.
    #[inline(always)]
    fn fence_of_reader() {
        if Self::is_asymmetric() {
            membarrier::light();
        } else {
            fence(SeqCst);
        }
    }

    /// Leaves by a slot: the last touch of the lock.
    #[inline(always)]
    pub(crate) fn depart_slot(&self, Slot(nth): Slot) {
        interruption_point();
        let slot = &self.readers.slots()[usize::from(nth)].0;
        if Self::HAS_EXIT {
            let exit = self.exit();
            let was = slot.fetch_sub(1, Release);
            Self::fence_of_reader();
            if exit.is_waited_at() && was == 1 {
                exit.tell();
            }
            return;
        }
        let event = self.event.key();
        let owner_sleeps = self.look().has(State::DRAINING);
        if slot.fetch_sub(1, Release) == 1 && owner_sleeps {
            event.wake_bits(u32::MAX, OWNER);
        }
    }

    /// Whether a slot counts a reader.
    pub(crate) fn has_readers_at_slots(&self) -> bool {
        !self.slots_were_empty(&Cell::new(0))
    }

    /// (see slots): whether each slot from `next` on has been seen at zero, and how far that goes.
    #[inline]
    pub(crate) fn slots_were_empty(&self, next: &Cell<usize>) -> bool {
        let rest = self.readers.slots().get(next.get()..).unwrap_or(&[]);
        let empty = rest.iter().take_while(|count| count.0.load(Acquire) == 0).count();
        next.set(next.get() + empty);
        empty == rest.len()
    }

    /// The owner's fence, after it has closed the class.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes that share a lock agree on its layout, and `CachePadded` does not promise where it
    /// keeps what it pads.
    #[test]
    fn a_count_is_at_the_beginning_of_its_slot() {
        let slot = Count(CachePadded::new(AtomicU32::new(0)));
        assert_eq!((&raw const slot).addr(), (&raw const *slot.0).addr());
    }
}
