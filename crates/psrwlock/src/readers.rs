//! Where [`Bulk`](crate::Bulk) readers are counted: in the state, or spread over slots.
//!
//! In the state every reader changes the same cache line, which then goes from CPU to CPU: two read-modify-writes for each
//! read, one after the other for all. With slots a reader counts itself in one of several lines, most likely one that only its own
//! CPU uses, and looks at the gate, which nobody changes while nobody writes. So readers scale.
//!
//! # Protocol
//! A reader and the owner each write one word and then read the other's, so there must be a fence between on both sides, and
//! at least one of them sees the other:
//!
//! | reader | owner |
//! |---|---|
//! | (A) slot += 1 | (C) shuts the class of index 0 |
//! | fence | fence |
//! | is the gate open? then it is inside | (S) for each slot: moves what is counted there into the state |
//!
//! On x86 the additions that come before are fences already. Elsewhere the owner pays for both, where the kernel has `membarrier`, with some
//! hundred nanoseconds to some microseconds for each write; between processes and without it both are `fence(SeqCst)`.
//!
//! (S) adds the slot's count to the state first, and then takes it out of the slot; if that has changed meanwhile, it takes
//! the addition back and tries again. A reader leaves by its slot, if there is a count in it, and by the state (D)
//! otherwise. Counts have no names, so it does not matter who leaves where: in slots and state together there are as many as there are
//! readers inside and about to go out, and after (S), with the gate shut, a slot has no more than are about to go out. So
//! whoever is inside is counted in the state, where the owner waits for it, and stage 0 is as without slots. One that leaves by the
//! state in place of another that has left by the slot hands that one's release on: it has read the slot, Acquire. The costly part of a
//! write comes while all higher classes are open still.
//!
//! # Price
//! 128 bytes a slot. A write is always sifted, and looks at all slots. It pays where reads are many times as frequent as writes.
//!
//! # Sources
//! N. Bronson and others, `folly::SharedMutex` (deferred readers, moved by the writer); D. Dice and A. Kogan, "BRAVO" (2019).

use crate::class::{BULK, Bulk, Class};
use crate::raw::RawPsRwLock;
use crate::seeded;
use crate::sifted::Discipline;
use crate::word::State;
use core::fmt;
use ulocks_core::futex::Scope;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::part::Part;
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
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

impl<D: Discipline, const BUG: u8> RawPsRwLock<D, BUG> {
    /// Whether the class of that index is [`Bulk`].
    pub(crate) const fn is_bulk(index: u32) -> bool {
        index == 0 && D::CLASSES & BULK == 1 << Bulk::RANK
    }

    /// So many readers are counted at one slot; others at the state, so that all together fit in there.
    const SLOT_LIMIT: u32 = {
        let limit = Self::LAYOUT.full(0) / Self::LAYOUT.one(0) / 256;
        if limit < 1 << 16 { limit as u32 } else { 1 << 16 }
    };

    /// Whether the other side of a fence pays for this one, or nobody has to: on x86 the addition before it is a fence.
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
        match BUG {
            seeded::NO_FENCE => {}
            _ if Self::is_asymmetric() => membarrier::light(),
            _ => fence(SeqCst),
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

    /// Leaves by a slot, if anybody is counted there, and by the state otherwise. The last touch of the lock.
    #[inline(always)]
    pub(crate) fn depart_slot(&self, Slot(place): Slot) {
        interruption_point();
        let count = &self.readers.slots()[usize::from(place)].0;
        // Acquire: who leaves by the state may do so in place of another, who has left by the slot, and hands that one's release on.
        let look = if BUG == seeded::RELAXED_SLOT { Relaxed } else { Acquire };
        let mut was = count.load(look);
        while was > 0 {
            match count.compare_exchange_weak(was, was - 1, Release, look) {
                Ok(_) => return,
                Err(other) => was = other,
            }
        }
        self.depart(0);
    }

    /// Whether anybody is counted at a slot.
    pub(crate) fn has_readers_at_slots(&self) -> bool {
        self.readers.slots().iter().any(|count| count.0.load(Acquire) > 0)
    }

    /// (S): the owner, which has shut the class, moves those at the slots into the state.
    #[cold]
    pub(crate) fn collect_readers(&self) {
        match BUG {
            seeded::NO_FENCE => {}
            _ if membarrier::RMW_IS_FENCE => membarrier::light(),
            _ if Self::is_asymmetric() => {
                assert!(membarrier::heavy(), "the kernel has taken membarrier(2) back")
            }
            _ => fence(SeqCst),
        }
        for Count(count) in self.readers.slots() {
            let mut was = count.load(Acquire);
            while was > 0 {
                let moved = u64::from(was) * Self::LAYOUT.one(0);
                if BUG == seeded::TAKES_FIRST {
                    was = self.take_first(count, was);
                    continue;
                }
                self.state.fetch_add(moved, Relaxed);
                // Release: who finds the slot empty finds them in the state.
                match count.compare_exchange(was, 0, AcqRel, Acquire) {
                    Ok(_) => break,
                    Err(other) => {
                        self.state.fetch_sub(moved, Relaxed);
                        was = other;
                    }
                }
            }
        }
    }

    /// The seeded bug: who leaves between the two is counted nowhere.
    fn take_first(&self, count: &AtomicU32, was: u32) -> u32 {
        let taken = count.compare_exchange(was, 0, Acquire, Acquire);
        if taken.is_ok() {
            self.state.fetch_add(u64::from(was) * Self::LAYOUT.one(0), Relaxed);
        }
        taken.err().unwrap_or(0)
    }
}
