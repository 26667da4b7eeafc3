//! The header of a region: sixteen words at the start of the file, and the checks of them.
//!
//! | word | what | checked |
//! |---|---|---|
//! | 0 | [`BEGUN`], written before all others; the magic, written after them | first |
//! | 1 | version of the format | second |
//! | 2 | identity: the layout of the root, its size, the machine | against that of the opener |
//! | 3 | size of the region in bytes | computed again |
//! | 4, 5, 6 | the slots: offset, number, size of one | the number is in bounds, the others computed again |
//! | 7, 8 | the root: offset, size | computed again |
//! | 9 | checksum of the words 1 to 8 | after the version |
//! | 10 | boot: a hash of the id of the boot that the region was last reset in | by the attaching process |
//! | 11, 12 | epoch, and its complement | against each other |
//! | 13 | state: [`READY`], [`RESETTING`] or [`CREATING`] | |
//! | 14, 15 | zero | |
//!
//! An attaching process reads the words once, into memory of its own. The number of slots is the
//! only word that it goes on to use as a size, and is in bounds by then. All other offsets and
//! sizes are computed, and only compared with the words. So a header that changes later misleads
//! nobody.
//!
//! The words from 10 on change while the region is reset, by the one process that has the exclusive
//! lock. The state is `RESETTING` then. If the process dies, the next one that is alone finds that
//! state and resets again; the epoch and its complement may differ then.
//!
//! A creator writes `BEGUN` into the empty file and reserves the space. It writes the header with
//! the state `CREATING` and the magic last, prepares the root, and makes the state `READY`. If it
//! dies on the way, the file is empty or *unfinished*. That is a file that begins with `BEGUN` and
//! is all zero behind a part of the header, or one with a sound header that says `CREATING`.

use super::error::RegionError;
use crate::safe::{SharedSafe, layout};
use ulocks_core::sync::AtomicU64;

/// "ULOCKREG" on a machine that stores the first byte first.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"ULOCKREG");
/// "ULOCKNEW": what a creator has begun, and no program has had yet. Another program's zeroes do
/// not begin with it.
pub(super) const BEGUN: u64 = u64::from_le_bytes(*b"ULOCKNEW");
/// Two programs of one version agree on the words of the header, of the slots and of the tokens.
pub(super) const VERSION: u64 = 3;
/// The locks and the slots are usable.
pub(super) const READY: u64 = 1;
/// A process is resetting the locks and the slots, or died while it did.
pub(super) const RESETTING: u64 = 2;
/// A process is preparing the root for the first time, or died while it did. The three states
/// differ from each other in two bits.
pub(super) const CREATING: u64 = 4;

pub(super) const WORDS: usize = 16;
pub(super) const BYTES: usize = WORDS * 8;
/// The positions of the words.
pub(super) mod at {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    pub const IDENTITY: usize = 2;
    pub const SIZE: usize = 3;
    pub const SLOTS_OFFSET: usize = 4;
    pub const SLOTS: usize = 5;
    pub const SLOT_SIZE: usize = 6;
    pub const ROOT_OFFSET: usize = 7;
    pub const ROOT_SIZE: usize = 8;
    pub const CHECKSUM: usize = 9;
    pub const BOOT: usize = 10;
    pub const EPOCH: usize = 11;
    pub const NOT_EPOCH: usize = 12;
    pub const STATE: usize = 13;
    pub const RESERVED: [usize; 2] = [14, 15];
}

/// The words as they are in the mapping. All of them are atomics, so each bit pattern is valid.
pub(super) type Mapped = [AtomicU64; WORDS];

/// Slots begin on a page of their own: the kernel and libc write into them.
pub(super) const SLOTS_OFFSET: u64 = PAGE;
/// One cache line.
pub(super) const SLOT_SIZE: u64 = 64;
/// The most participants that a region can have.
pub const MOST_PARTICIPANTS: u32 = 4096;
/// To this the parts of a region are aligned. The pages of the machine may be larger.
const PAGE: u64 = 4096;

/// What differs between machines that cannot share a region although their types look the same.
const MACHINE: u64 = {
    let big_endian = cfg!(target_endian = "big") as u64;
    let libc_kind = if cfg!(target_env = "musl") { 2 } else { cfg!(target_env = "gnu") as u64 };
    big_endian | (usize::BITS as u64) << 8 | libc_kind << 16
};

/// What two programs must agree on to share a region with the root `R`.
pub(super) const fn identity<R: SharedSafe>() -> u64 {
    layout(&[R::LAYOUT, size_of::<R>() as u64, align_of::<R>() as u64, MACHINE, SLOT_SIZE])
}

/// Where the parts of a region are. Made from the number of slots and the type of the root alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub slots: u32,
    pub root: u64,
    pub size: u64,
}

impl Plan {
    /// The plan of a region with so many slots and the root `R`; `None` if there is none.
    pub fn of<R: SharedSafe>(slots: u64) -> Option<Self> {
        const { assert!(align_of::<R>() as u64 <= PAGE, "the alignment of the root is at most 4096") };
        Self::with(slots, size_of::<R>() as u64)
    }

    /// The same with a root of `root_size` bytes.
    fn with(slots: u64, root_size: u64) -> Option<Self> {
        let slots = u32::try_from(slots).ok().filter(|slots| (1..=MOST_PARTICIPANTS).contains(slots))?;
        let root = SLOTS_OFFSET + (u64::from(slots) * SLOT_SIZE).next_multiple_of(PAGE);
        // A root without a size gets a page, so that each reference into the region is in bounds.
        let room = root_size.max(1).checked_next_multiple_of(PAGE)?;
        Some(Self { slots, root, size: root.checked_add(room)? })
    }

    /// The words of a new region, before its magic.
    pub fn words<R: SharedSafe>(self, boot: u64) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        words[at::MAGIC] = BEGUN;
        words[at::VERSION] = VERSION;
        words[at::IDENTITY] = identity::<R>();
        words[at::SIZE] = self.size;
        words[at::SLOTS_OFFSET] = SLOTS_OFFSET;
        words[at::SLOTS] = u64::from(self.slots);
        words[at::SLOT_SIZE] = SLOT_SIZE;
        words[at::ROOT_OFFSET] = self.root;
        words[at::ROOT_SIZE] = size_of::<R>() as u64;
        words[at::CHECKSUM] = checksum(&words);
        words[at::BOOT] = boot;
        words[at::EPOCH] = 1;
        words[at::NOT_EPOCH] = !1;
        words[at::STATE] = CREATING;
        words
    }
}

/// The checksum of the words that never change. It finds damage, not malice.
pub(super) fn checksum(words: &[u64; WORDS]) -> u64 {
    layout(&words[at::VERSION..at::CHECKSUM])
}

/// Whether `words`, the header of a file of `len` bytes, are of a region with the root `R`, and
/// where its parts are.
pub(super) fn check<R: SharedSafe>(words: &[u64; WORDS], len: u64) -> Result<Plan, RegionError> {
    check_format(words)?;
    if words[at::IDENTITY] != identity::<R>() {
        return Err(RegionError::WrongLayout { expected: identity::<R>(), found: words[at::IDENTITY] });
    }
    let plan = check_shape(words, size_of::<R>() as u64)?;
    check_epoch(words)?;
    let plan = check_length(plan, len)?;
    check_room::<R>(plan.slots)?;
    Ok(plan)
}

/// The same for a program that does not know the root, and takes the word of the header for its
/// size. The words that a reset writes are not checked: see [`check_epoch`].
pub(super) fn check_untyped(words: &[u64; WORDS], len: u64) -> Result<Plan, RegionError> {
    check_format(words)?;
    let plan = check_shape(words, words[at::ROOT_SIZE])?;
    check_length(plan, len)
}

/// Whether each lock of the root `R` has room for so many participants.
pub(super) fn check_room<R: SharedSafe>(participants: u32) -> Result<(), RegionError> {
    match R::LEAST_SLOTS {
        slots if (participants as usize) <= slots => Ok(()),
        slots => Err(RegionError::TooFewSlots { participants, slots }),
    }
}

/// The words of these bytes.
pub(super) fn from_bytes(bytes: &[u8; BYTES]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
    }
    words
}

fn intact(holds: bool, what: &'static str) -> Result<(), RegionError> {
    if holds { Ok(()) } else { Err(RegionError::Corrupt { what }) }
}

fn check_format(words: &[u64; WORDS]) -> Result<(), RegionError> {
    if words[at::MAGIC] != MAGIC {
        return Err(RegionError::WrongMagic { found: words[at::MAGIC] });
    }
    if words[at::VERSION] != VERSION {
        return Err(RegionError::WrongVersion { expected: VERSION, found: words[at::VERSION] });
    }
    intact(words[at::CHECKSUM] == checksum(words), "the checksum of the header")
}

fn check_shape(words: &[u64; WORDS], root_size: u64) -> Result<Plan, RegionError> {
    let plan = Plan::with(words[at::SLOTS], root_size);
    let plan = plan.ok_or(RegionError::Corrupt { what: "the number of slots" })?;
    intact(words[at::SLOTS_OFFSET] == SLOTS_OFFSET, "the offset of the slots")?;
    intact(words[at::SLOT_SIZE] == SLOT_SIZE, "the size of a slot")?;
    intact(words[at::ROOT_OFFSET] == plan.root, "the offset of the root")?;
    intact(words[at::ROOT_SIZE] == root_size, "the size of the root")?;
    intact(words[at::SIZE] == plan.size, "the size of the region")?;
    intact(at::RESERVED.iter().all(|&word| words[word] == 0), "the reserved words")?;
    Ok(plan)
}

/// Whether the words that a reset writes are sound: a process died while it wrote them, or not.
pub(super) fn check_epoch(words: &[u64; WORDS]) -> Result<(), RegionError> {
    match words[at::STATE] {
        READY => intact(words[at::EPOCH] == !words[at::NOT_EPOCH], "the epoch"),
        RESETTING | CREATING => Ok(()),
        _ => Err(RegionError::Corrupt { what: "the state" }),
    }
}

/// Whether `words`, which are those of a file without a magic, are [`BEGUN`] and what a dead
/// creator may have written of a header, in whatever order; with `R`, of one with this root.
pub(super) fn is_begun<R: SharedSafe>(words: &[u64; WORDS]) -> bool {
    let is = |at: usize, value: u64| words[at] == 0 || words[at] == value;
    is_begun_untyped(words) && is(at::IDENTITY, identity::<R>()) && is(at::ROOT_SIZE, size_of::<R>() as u64)
}

/// The same of any root.
pub(super) fn is_begun_untyped(words: &[u64; WORDS]) -> bool {
    let is = |at: usize, value: u64| words[at] == 0 || words[at] == value;
    let [first, second] = at::RESERVED;
    words[at::MAGIC] == BEGUN
        && is(at::VERSION, VERSION)
        && is(at::SLOTS_OFFSET, SLOTS_OFFSET)
        && words[at::SLOTS] <= u64::from(MOST_PARTICIPANTS)
        && is(at::SLOT_SIZE, SLOT_SIZE)
        && is(at::EPOCH, 1)
        && is(at::NOT_EPOCH, !1)
        && is(at::STATE, CREATING)
        && words[first] | words[second] == 0
}

fn check_length(plan: Plan, len: u64) -> Result<Plan, RegionError> {
    if len < plan.size {
        return Err(RegionError::Truncated { expected: plan.size, found: len });
    }
    if len > plan.size {
        return Err(RegionError::WrongSize { expected: plan.size, found: len });
    }
    Ok(plan)
}
