//! Where [`Bulk`](crate::Bulk) readers are counted: in the state, or in slots that the lock
//! [borrows](super::rows).
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
//! write. Without `membarrier` both are `fence(SeqCst)`.
//!
//! A reader leaves by the slot by which it has come, with one subtraction: its last touch. All
//! changes of a slot are additions and subtractions of one, and a reader adds before it subtracts.
//! So if the owner reads zero, every reader whose addition it could see has left. After the fence
//! it sees the additions of all readers inside. Readers that come later find the class closed and
//! leave again. Therefore one look at zero is enough for a slot, and (see slots) looks at the slots
//! one after the other. The subtraction is Release and the look Acquire: the subtractions continue
//! one release sequence. The costly part of a write comes while all higher classes are still open.
//!
//! # Sources
//! N. Bronson and others, `folly::SharedMutex` (deferred readers, moved by the writer).

use crate::class::{BULK, Bulk, Class};
use crate::configuration::Configuration;
use crate::raw::RawPsRwLock;
use ulocks_core::membarrier;
use ulocks_core::sync::Ordering::SeqCst;
use ulocks_core::sync::fence;

mod sealed {
    pub trait Sealed {}
}

/// Where [`Bulk`] readers are counted. Chosen by type.
pub trait Readers: sealed::Sealed + Send + Sync + 'static {
    /// Whether the lock borrows slots.
    const BIASED: bool;
    /// Models: each reader in the state asks for them, and each writer takes them away.
    #[doc(hidden)]
    const EAGER: bool = false;
    /// Models: the kernel refuses `membarrier`, and a read-modify-write is no fence.
    #[doc(hidden)]
    const FENCED: bool = false;
}

/// In the state, with all other readers, and while many threads read in slots that the lock
/// borrows: see [`PsRwLock`](crate::PsRwLock). Between processes it is as [`Central`]. The default.
#[derive(Debug)]
pub enum Biased {}

/// As [`Biased`], for models: each reader in the state gets the lock a row, and each writer takes
/// it away.
#[doc(hidden)]
#[derive(Debug)]
pub enum Eager {}

/// As [`Eager`], on a machine whose kernel refuses `membarrier`: both sides make a fence.
#[doc(hidden)]
#[derive(Debug)]
pub enum Fenced {}

/// In the state, with all other readers: for a release that has no token.
#[derive(Debug)]
pub enum Central {}

impl sealed::Sealed for Biased {}
impl sealed::Sealed for Eager {}
impl sealed::Sealed for Fenced {}
impl sealed::Sealed for Central {}

impl Readers for Biased {
    const BIASED: bool = true;
}

impl Readers for Eager {
    const BIASED: bool = true;
    const EAGER: bool = true;
}

impl Readers for Fenced {
    const BIASED: bool = true;
    const EAGER: bool = true;
    const FENCED: bool = true;
}

impl Readers for Central {
    const BIASED: bool = false;
}

/// Where a reader is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) row: u8,
    pub(crate) nth: u8,
}

impl<D: Configuration> RawPsRwLock<D> {
    /// Whether the class of that index is [`Bulk`].
    pub(crate) const fn is_bulk(index: u32) -> bool {
        index == 0 && D::CLASSES & BULK == 1 << Bulk::RANK
    }

    /// Whether the reader's fence costs nothing: on x86 the addition before it is one, and else the
    /// owner pays for both.
    #[inline(always)]
    fn is_light() -> bool {
        !D::Readers::FENCED && (membarrier::RMW_IS_FENCE || membarrier::ready())
    }

    /// The reader's fence, after it has changed its slot.
    #[inline(always)]
    pub(crate) fn fence_of_reader() {
        if Self::is_light() {
            membarrier::light();
        } else {
            fence(SeqCst);
        }
    }

    /// The owner's fence, after it has closed the class.
    #[cold]
    pub(crate) fn fence_of_owner() {
        if !Self::is_light() {
            fence(SeqCst);
        } else if membarrier::RMW_IS_FENCE {
            membarrier::light();
        } else {
            assert!(membarrier::heavy(), "the kernel has taken membarrier(2) back");
        }
    }
}
