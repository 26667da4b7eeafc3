//! The directories of a region. They are found by their magic word: the root's type is not known.

use super::locks::{FoundLock, lock, shown_mutex};
use super::long;
use super::slots::Slots;
use crate::directory::entry::{self, Contents, WORDS, epoch_of};
use crate::directory::table::{MAGIC, at, next_epoch};
use crate::region::RegionError;
use crate::region::untyped::Untyped;
use crate::robust::mutex::raw::RawMutex;

/// So much of a root is searched at once.
const CHUNK: u64 = 1 << 20;
/// So many bytes an entry has.
const ENTRY: u64 = at::ENTRY as u64;
/// Of a value so many bytes are read.
const MOST_SHOWN: u64 = 1 << 20;

/// A directory, as it was in the file.
#[derive(Debug)]
pub struct FoundDirectory {
    /// Where it is in the file.
    pub offset: u64,
    /// How many entries it has room for.
    pub entries: u64,
    /// How many bytes.
    pub room: u64,
    /// How many of them are taken.
    pub used: u64,
    /// Its lock.
    pub lock: FoundLock,
    /// The entries before the first one that is free or damaged.
    pub names: Vec<FoundName>,
    /// What is damaged.
    pub damage: Option<String>,
    epoch: u64,
}

/// An entry.
#[derive(Clone, Debug)]
pub struct FoundName {
    /// Its name.
    pub name: String,
    /// Its type, as the program that created it calls it.
    pub kind: String,
    /// Where the value is in the file.
    pub offset: u64,
    /// How many bytes it has.
    pub size: u64,
    /// Whether it is reset when a program asks for it for the next time.
    pub is_stale: bool,
    /// What the lock says; `None` if this program cannot tell, or if it is stale.
    pub lock: Option<FoundLock>,
}

impl FoundDirectory {
    /// Whether it, or a lock in it, is damaged.
    pub(super) fn is_damaged(&self) -> bool {
        let locks = self.names.iter().filter_map(|name| name.lock.as_ref());
        self.damage.is_some() || locks.chain([&self.lock]).any(FoundLock::is_damaged)
    }

    /// Offsets and bytes that unlock it, and make all of its values stale.
    pub(super) fn reset(&self) -> [(u64, Vec<u8>); 2] {
        let lock = vec![0; size_of::<RawMutex>()];
        let epoch = next_epoch(self.epoch).to_ne_bytes().to_vec();
        [(self.offset + at::EPOCH as u64, epoch), (self.offset + at::LOCK as u64, lock)]
    }
}

/// All directories in the root.
pub(super) fn find(region: &Untyped, slots: &Slots) -> Result<Vec<FoundDirectory>, RegionError> {
    let (root, size) = region.root();
    let mut found = Vec::new();
    let (mut begin, mut next) = (0, 0);
    // Holes are zero. A file of a large size, but little data, is read at once.
    while let Some(data) = region.next_data(root + begin)?.filter(|&data| data < root + size) {
        begin = begin.max((data - root) / CHUNK * CHUNK);
        let chunk = region.bytes(root + begin, CHUNK.min(size - begin))?;
        for place in (0..chunk.len()).step_by(at::ALIGN) {
            let inside = begin + place as u64;
            // What is in the arena of a directory belongs to its values.
            if inside < next || long(&chunk, place + at::MAGIC) != MAGIC {
                continue;
            }
            let head = &chunk[place..chunk.len().min(place + at::ENTRIES)];
            if let Some((directory, end)) = directory(region, slots, head, inside)? {
                found.push(directory);
                next = end;
            }
        }
        begin += CHUNK;
    }
    Ok(found)
}

/// The directory that begins `inside` the root with the bytes `head`, and its end; `None` if it
/// would be larger than the root.
fn directory(
    region: &Untyped,
    slots: &Slots,
    head: &[u8],
    inside: u64,
) -> Result<Option<(FoundDirectory, u64)>, RegionError> {
    let (root, size) = region.root();
    let (number, room) = (long(head, at::NUMBER), long(head, at::ROOM));
    let Some(table) = number.checked_mul(ENTRY) else { return Ok(None) };
    let end = inside.checked_add(at::ENTRIES as u64);
    let arena = end.and_then(|end| end.checked_add(table));
    let end = arena.and_then(|arena| arena.checked_add(room)).filter(|&end| end <= size);
    let (Some(arena), Some(end)) = (arena, end) else { return Ok(None) };
    let offset = root + inside;
    // The word of the lock alone: it has no health.
    let lock_word = head[at::LOCK..at::LOCK + size_of::<RawMutex>()].to_vec();
    let shown = lock(shown_mutex::<RawMutex>(), &lock_word, offset, slots).unwrap_or_default();
    let mut directory = FoundDirectory {
        offset,
        entries: number,
        room,
        used: 0,
        lock: FoundLock { health: None, ..shown },
        names: Vec::new(),
        damage: None,
        epoch: long(head, at::EPOCH),
    };
    let Some(epoch) = epoch_of(directory.epoch) else {
        directory.damage = Some("the epoch of the directory is damaged".to_string());
        return Ok(Some((directory, end)));
    };
    let begin = offset + at::ENTRIES as u64;
    let (mut index, mut is_free) = (0, false);
    'table: while index < number {
        if is_free {
            // Holes are zero, and zero is a free entry.
            let data = region.next_data(begin + index * ENTRY)?.filter(|&data| data < begin + table);
            let Some(data) = data else { break };
            index = index.max((data - begin) / ENTRY);
        }
        let count = (CHUNK / ENTRY).min(number - index);
        let bytes = region.bytes(begin + index * ENTRY, count * ENTRY)?;
        for (index, bytes) in (index..).zip(bytes.chunks_exact(at::ENTRY)) {
            let words: [u64; WORDS] = std::array::from_fn(|word| long(bytes, word * 8));
            match entry::check(&words, directory.used, room, epoch) {
                Ok(None) => is_free = true,
                Ok(Some(contents)) if !is_free => {
                    directory.used = contents.end();
                    directory.names.push(name(region, slots, root + arena, &contents, epoch)?);
                }
                Ok(Some(_)) => {
                    let what = format!("entry {index} follows a free one: a state is damaged");
                    directory.damage = Some(what);
                    break 'table;
                }
                Err(what) => {
                    directory.damage = Some(format!("entry {index} is damaged: {what} is wrong"));
                    break 'table;
                }
            }
        }
        index += count;
    }
    Ok(Some((directory, end)))
}

fn name(
    region: &Untyped,
    slots: &Slots,
    arena: u64,
    contents: &Contents,
    epoch: u32,
) -> Result<FoundName, RegionError> {
    let (offset, kind) = (arena + contents.offset, &contents.kind);
    let is_stale = contents.epoch != epoch;
    let shown = if is_stale || kind.shown_as == 0 {
        None
    } else {
        let bytes = region.bytes(offset, kind.size.min(MOST_SHOWN))?;
        lock(kind.shown_as, &bytes, offset, slots)
    };
    Ok(FoundName {
        name: contents.name.read().unwrap_or_default(),
        kind: kind.name.read().unwrap_or_default(),
        offset,
        size: kind.size,
        is_stale,
        lock: shown,
    })
}

const _: () = assert!(size_of::<RawMutex>() == 8 && at::ENTRY == WORDS * 8);
