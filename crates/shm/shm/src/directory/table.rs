//! The protocol of a `Directory`: a table of entries, a lock, and an epoch.
//!
//! # Properties
//! - Two threads that ask for one name and type get the same value, and two names give values that
//!   do not overlap. A name has one value for as long as the region exists.
//! - A value is prepared once in each epoch before a thread gets it: zeroed when it is created,
//!   unlocked after a reset of the region. A preparation that death or a panic cut off is made
//!   again, from its beginning.
//! - If a thread dies at any step, no other thread waits for it for ever, and what it had made is
//!   an entry or a free place, never a part of an entry.
//! - Damage gives an error. Whatever the words are, no value is outside of the arena, and no two of
//!   one reading overlap.
//!
//! # State
//! The *directory lock* is a [`RawMutex`]. `epoch` counts the resets of the region. `entries`
//! are free, or ready: `entry.rs` has their words. The other words say to tools where the table is.
//!
//! | transition | by | label |
//! |---|---|---|
//! | a free entry to a ready one, when all of its other words and its value are written | a thread that creates, with the directory lock | (publish) |
//! | the epoch of an entry to that of the directory, when its value is reset | a thread that asks for it, with the directory lock | (reset) |
//! | `epoch` increased; the directory lock released | a process that is alone and resets the region | (begin epoch) |
//!
//! A reset of the region cannot reset the values: it does not know their types. So it only makes
//! (begin epoch), which makes all of them *stale*. A thread that asks for a stale value by its type
//! resets it first. It has the directory lock meanwhile, so another thread that asks waits.
//!
//! # Invariants
//! 1. Words of a ready entry do not change, except by (reset). The ready entries are the first
//!    ones, and each has its value behind that of the one before. So the free room of the arena is
//!    derived from the entries, and no counter can disagree with them.
//! 2. A thread gets a reference to a value under the directory lock only, and only if the entry has
//!    the epoch of the directory. So no thread has a reference to a stale value: none got one in
//!    this epoch, and those that got one before are gone, since (begin epoch) was made by a process
//!    that was alone. The thread that resets it has it alone.
//! 3. Before (publish) no thread but the creating one has a reference to the value. If that thread
//!    dies, the entry is free, its words mean nothing, and the next creation begins anew: it zeroes
//!    the value and writes all words.
//! 4. If a thread dies between the reset of a value and (reset), the value is stale. The next
//!    thread resets it again, which a reset permits.
//! 5. (begin epoch) is one store. If the process dies before it, the region is reset again. If it
//!    dies after it, the region is too, and an epoch is skipped.
//! 6. So the holder of the directory lock may die at any step, and leaves nothing to repair. An
//!    acquisition that tells of a death is one like others.
//!
//! An entry is never removed. A thread that has the value does not hold the directory lock, and a
//! count of such threads would be wrong after the first death.
//!
//! # Ordering
//! The directory lock orders all accesses of those that hold it. (publish) releases what the entry
//! says, and a thread that lists without the lock reads the state with Acquire (list). (reset)
//! releases, so that the compiler leaves it behind the reset: for a death only this order counts,
//! and the next holder acquires the death. (begin epoch) is ordered before all others by the lock
//! of the file.
//!
//! # Sources
//! This project's. The lazy reset is that of a slab with generations.

use super::entry::{Contents, Entry, Kind, Text, check, epoch_of, epoch_word};
use super::error::DirectoryError;
use crate::robust::RawRobust;
use crate::robust::mutex::raw::RawMutex;
use crate::slots::Member;
use ulocks_core::sync::AtomicU64;
use ulocks_core::sync::Ordering::Relaxed;

/// "ULOCKDIR": how tools find a table.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"ULOCKDIR");

/// What a value is prepared for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fresh {
    /// It was created, and is all zero.
    Created,
    /// The region was reset: its locks are unlocked, its data is as it was left.
    Reset,
}

/// What a thread asks for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub(crate) name: Text,
    pub(crate) kind: Kind,
}

impl Wanted {
    /// Eight bytes of this name, for models.
    #[doc(hidden)]
    #[must_use]
    pub fn word(name: &str) -> Self {
        let name = Text::new(name).expect("a short name");
        Self { name, kind: Kind { identity: 1, size: 8, align: 8, shown_as: 0, name } }
    }
}

/// The table, for values in an arena that is elsewhere. All-zero memory has no entries.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Table<const ENTRIES: usize> {
    lock: RawMutex,
    epoch: AtomicU64,
    /// `MAGIC`, once there is an entry.
    magic: AtomicU64,
    /// How many entries there are, and how large the arena is: for tools.
    entries_told: AtomicU64,
    room_told: AtomicU64,
    spare: [AtomicU64; 3],
    entries: [Entry; ENTRIES],
}

/// Where the parts of a table are, for a tool that reads the file.
#[cfg(regions)]
pub(crate) mod at {
    use super::{Entry, Table};
    use core::mem::offset_of;

    pub const LOCK: usize = offset_of!(Table<1>, lock);
    pub const EPOCH: usize = offset_of!(Table<1>, epoch);
    pub const MAGIC: usize = offset_of!(Table<1>, magic);
    pub const NUMBER: usize = offset_of!(Table<1>, entries_told);
    pub const ROOM: usize = offset_of!(Table<1>, room_told);
    pub const ENTRIES: usize = offset_of!(Table<1>, entries);
    pub const ENTRY: usize = size_of::<Entry>();
    pub const ALIGN: usize = align_of::<Table<1>>();
    // The arena is aligned as the table is, and so follows at once.
    const _: () = assert!(ENTRIES.is_multiple_of(ALIGN) && ENTRY.is_multiple_of(ALIGN));
}

/// The directory lock, until it is dropped.
struct Held<'a> {
    lock: &'a RawMutex,
    me: &'a Member<'a>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if ulocks_core::sync::is_abandoned() {
            return;
        }
        // SAFETY: this thread has acquired it.
        unsafe { self.lock.unlock(self.me) };
    }
}

impl<const ENTRIES: usize> Table<ENTRIES> {
    /// A table without entries.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        let word = || AtomicU64::new(0);
        Self {
            lock: RawMutex::new(),
            epoch: word(),
            magic: word(),
            entries_told: word(),
            room_told: word(),
            spare: [word(), word(), word()],
            entries: core::array::from_fn(|_| Entry::new()),
        }
    }

    /// Where in an arena of `room` bytes the value of `wanted` is. `prepare` is called with this
    /// place if the value is created or stale, with the directory lock. Without `create` an entry
    /// that does not exist is an error.
    ///
    /// # Errors
    /// If there is none, and none can be made.
    ///
    /// # Safety
    /// All threads that use this table are members of one table of slots.
    pub unsafe fn locate(
        &self,
        me: &Member<'_>,
        wanted: &Wanted,
        room: u64,
        create: bool,
        prepare: impl FnOnce(u64, Fresh),
    ) -> Result<u64, DirectoryError> {
        // SAFETY: the caller's promise. A death is nothing special: invariant 6.
        unsafe { self.lock.lock(me) }.map_err(DirectoryError::Lock)?;
        let held = Held { lock: &self.lock, me };
        let epoch = self.epoch()?;
        let mut begin = 0;
        let mut free = None;
        let mut found = None;
        for (index, entry) in self.entries.iter().enumerate() {
            let corrupt = |what| DirectoryError::Corrupt { entry: Some(index), what };
            let Some(contents) = check(&entry.words(), begin, room, epoch).map_err(corrupt)? else {
                free = free.or(Some((index, entry)));
                continue;
            };
            // Invariant 1.
            if let Some((index, _)) = free {
                return Err(DirectoryError::Corrupt { entry: Some(index), what: "the state" });
            }
            begin = contents.end();
            if contents.name == wanted.name {
                if found.is_some() {
                    return Err(corrupt("the name"));
                }
                found = Some((entry, contents));
            }
        }
        let offset = match found {
            Some((entry, contents)) => {
                let asked = &wanted.kind;
                let same = contents.kind.identity == asked.identity && contents.kind.size == asked.size;
                if !same || !contents.offset.is_multiple_of(u64::from(asked.align)) {
                    return Err(wrong_type(&contents.kind, asked));
                }
                if contents.epoch != epoch {
                    prepare(contents.offset, Fresh::Reset);
                    entry.set_epoch(epoch); // (reset)
                }
                contents.offset
            }
            None if !create => return Err(DirectoryError::NotFound),
            None => {
                let Some((_, entry)) = free else { return Err(DirectoryError::Full { entries: ENTRIES }) };
                let offset = place(begin, &wanted.kind, room)?;
                self.tell(room);
                prepare(offset, Fresh::Created);
                entry.publish(&Contents { name: wanted.name, kind: wanted.kind, offset, epoch }); // (publish)
                offset
            }
        };
        drop(held);
        Ok(offset)
    }

    /// What the first entries say, up to the first free or damaged one, without the directory lock.
    pub fn list(&self, room: u64) -> impl Iterator<Item = Result<Contents, DirectoryError>> + '_ {
        let (mut begin, mut over) = (0, false);
        self.entries.iter().enumerate().map_while(move |(index, entry)| {
            if over {
                return None;
            }
            // (list). The epoch last: it does not fall.
            let words = entry.words();
            let checked = self.epoch().and_then(|epoch| {
                let corrupt = |what| DirectoryError::Corrupt { entry: Some(index), what };
                check(&words, begin, room, epoch).map_err(corrupt)
            });
            over = checked.is_err();
            begin = checked.as_ref().ok().and_then(Option::as_ref).map_or(begin, Contents::end);
            checked.transpose()
        })
    }

    /// (begin epoch), if no thread uses the table.
    pub fn reset(&self) {
        self.epoch.store(next_epoch(self.epoch.load(Relaxed)), Relaxed);
        self.lock.reset();
    }

    fn epoch(&self) -> Result<u32, DirectoryError> {
        let corrupt = DirectoryError::Corrupt { entry: None, what: "the epoch" };
        epoch_of(self.epoch.load(Relaxed)).ok_or(corrupt)
    }

    /// Says to tools where the table is. Each creation says the same.
    fn tell(&self, room: u64) {
        self.entries_told.store(ENTRIES as u64, Relaxed);
        self.room_told.store(room, Relaxed);
        self.magic.store(MAGIC, Relaxed);
    }
}

/// The word of the epoch after that of `word`. If the halves differ, one of them is damaged: past
/// both, all values are stale.
pub(crate) fn next_epoch(word: u64) -> u64 {
    epoch_word((word as u32).max((word >> 32) as u32).wrapping_add(1))
}

fn wrong_type(found: &Kind, asked: &Kind) -> DirectoryError {
    let name = |kind: &Kind| kind.name.read().unwrap_or_default();
    DirectoryError::WrongType { asked: name(asked), found: name(found) }
}

/// The first place behind `begin` for a value of this kind.
fn place(begin: u64, kind: &Kind, room: u64) -> Result<u64, DirectoryError> {
    let no_room = DirectoryError::NoRoom { needed: kind.size, left: room.saturating_sub(begin) };
    let offset = begin.checked_next_multiple_of(u64::from(kind.align));
    let fits = |&offset: &u64| offset.checked_add(kind.size).is_some_and(|end| end <= room);
    offset.filter(fits).ok_or(no_room)
}
