//! The file of an array: where everything is.
//!
//! | part | size |
//! |---|---|
//! | [`Header`] | one page |
//! | for each semaphore its word and its watch count | 64 bytes each if there are at most 256, otherwise 16 |
//! | queue of sleepers: their slots, oldest first | 4 bytes for each slot |
//! | entries of the journal | 8 bytes for each semaphore, at least for 500 |
//! | slots of sleepers | 64 bytes each |
//! | operations of sleepers | 500 of 8 bytes for each slot |
//! | rows of adjustments, one for each slot of a process | 16 bytes, and 4 for each semaphore |
//!
//! The last three parts are not allocated before they are used. Nothing in the file is a pointer.
//! The lengths are read once, checked against the length of the file, and kept in the
//! [`Array`](crate::array::Array), which is the process's own. So no index that another process
//! writes leads out of the mapping.

use crate::lock::Lock;
use ulocks_core::sync::{AtomicU32, AtomicU64};

/// The first bytes of a file that is complete.
pub const MAGIC: u64 = u64::from_le_bytes(*b"ulksysvA");
/// The version of this layout.
pub const VERSION: u32 = 2;
/// The most operations of a set.
pub const MOST_OPS: usize = 500;
/// How many processes at a time can have adjustments, or sleep.
pub const PROCESSES: usize = 4_096;
/// A page.
pub const PAGE: usize = 4_096;
const LINE: usize = 64;
/// With more semaphores than this, several share a line.
const APART: usize = 256;

/// The first page of the file.
#[derive(Debug)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`], written last.
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// The id of the array.
    pub id: AtomicU32,
    /// How many semaphores.
    pub nsems: AtomicU32,
    /// How many slots of sleepers.
    pub slots: AtomicU32,
    /// How many rows.
    pub processes: AtomicU32,
    /// The key.
    pub key: AtomicU32,
    /// The owner's user.
    pub uid: AtomicU32,
    /// The owner's group.
    pub gid: AtomicU32,
    /// The maker's user.
    pub cuid: AtomicU32,
    /// The maker's group.
    pub cgid: AtomicU32,
    /// Access bits.
    pub mode: AtomicU32,
    /// 1 once the array is removed.
    pub removed: AtomicU32,
    /// How many words of [`rows`](Self::rows) were ever used.
    pub row_words: AtomicU32,
    reserved: AtomicU32,

    /// When an operation was last performed.
    pub otime: AtomicU64,
    /// When the array was last made or set.
    pub ctime: AtomicU64,
    /// Increases when owner or access bits change. Never 0.
    pub access: AtomicU32,
    reserved2: [AtomicU32; 11],

    /// The array lock.
    pub lock: Lock,
    /// How many slots are in the queue.
    pub queued: AtomicU32,
    reserved3: AtomicU32,
    /// How many slots for sleepers were ever used: these have memory.
    pub used_slots: AtomicU32,
    /// The number of the next sleeper.
    pub tickets: AtomicU64,
    /// The journal: see `section.rs`.
    pub journal: Journal,
    /// A bit for each row in use.
    pub rows: [AtomicU64; PROCESSES / 64],
}

/// What is written before a change.
#[derive(Debug)]
#[repr(C)]
pub struct Journal {
    /// The number of entries and 1, or 0 if nothing is under way.
    pub state: AtomicU32,
    /// The row that changes, or [`NONE`].
    pub row: AtomicU32,
    /// The process that is noted in the words.
    pub process: AtomicU32,
    /// The slot of the sleeper that is completed, or [`NONE`].
    pub slot: AtomicU32,
    /// 1 if the values are set, and all adjustments for these semaphores cleared.
    pub sets: AtomicU32,
    reserved: AtomicU32,
}

/// No row, no slot.
pub const NONE: u32 = u32::MAX;

/// A sleeper. All zero is free.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Sleeper {
    /// See `queue.rs`.
    pub status: AtomicU32,
    /// The slot of its process.
    pub process: AtomicU32,
    /// The epoch of its process.
    pub epoch: AtomicU32,
    /// Its thread.
    pub thread: AtomicU32,
    /// The identity of its process.
    pub identity: AtomicU64,
    /// Its age.
    pub ticket: AtomicU64,
    /// How many operations.
    pub nsops: AtomicU32,
    /// The operation that blocks.
    pub blocking: AtomicU32,
    /// Whether an operation alters a value.
    pub alters: AtomicU32,
    /// The process, as `getpid` says it.
    pub number: AtomicU32,
    /// The first operation.
    pub first: AtomicU64,
    /// The bell of its group, if it is the first one of that: see `queue.rs`.
    pub bell: AtomicU32,
    reserved: AtomicU32,
}

/// The row of a process. The adjustments follow.
#[derive(Debug)]
#[repr(C)]
pub struct Row {
    /// The identity of the process.
    pub identity: AtomicU64,
    /// The process.
    pub number: AtomicU32,
    reserved: AtomicU32,
}

const _: () = assert!(size_of::<Header>() <= PAGE && size_of::<Sleeper>() == 64 && size_of::<Row>() == 16);

/// Where the parts are.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// How many semaphores.
    pub nsems: usize,
    /// How many slots of sleepers.
    pub slots: usize,
    /// How far words are apart, as a power of two.
    pub shift: u32,
    /// The queue.
    pub queue: usize,
    /// The entries of the journal.
    pub journal: usize,
    /// The slots.
    pub sleepers: usize,
    /// Their operations.
    pub operations: usize,
    /// The rows.
    pub rows: usize,
    /// The length of a row.
    pub row: usize,
    /// The length of the file.
    pub bytes: usize,
}

impl Layout {
    /// The layout for so many semaphores and slots.
    pub fn new(nsems: usize, slots: usize) -> Self {
        let shift = if nsems <= APART { 6 } else { 4 };
        let after = |start: usize, bytes: usize| (start + bytes).next_multiple_of(LINE);
        let queue = after(PAGE, nsems << shift);
        let journal = after(queue, 4 * slots);
        let sleepers = after(journal, 8 * nsems.max(MOST_OPS)).next_multiple_of(PAGE);
        let operations = after(sleepers, size_of::<Sleeper>() * slots);
        let rows = after(operations, 8 * MOST_OPS * slots).next_multiple_of(PAGE);
        let row = after(size_of::<Row>(), 4 * nsems);
        let bytes = (rows + row * PROCESSES).next_multiple_of(PAGE);
        Self { nsems, slots, shift, queue, journal, sleepers, operations, rows, row, bytes }
    }
}
