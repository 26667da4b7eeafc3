//! An entry of a directory: 24 words, and the checks of them.
//!
//! | word | what | checked |
//! |---|---|---|
//! | 0 | state: 0 is free, [`READY`] is an entry | first |
//! | 1 | the epoch of its last reset, in both halves | the halves against each other, then against the directory's |
//! | 2 | identity: the layout, size and alignment of its type | with the checksum |
//! | 3, 4 | offset in the arena, and size | in bounds, behind the entry before |
//! | 5 | alignment (low half), and how tools show it (high half) | the alignment is a power of two |
//! | 6 | checksum of the words 2 to 5 and 8 to 23 | third |
//! | 7 | zero | |
//! | 8 to 15 | name: UTF-8, filled up with zero bytes | not empty, and UTF-8 |
//! | 16 to 23 | name of the type, the same: for people | |
//!
//! The words are read once, into memory of the caller. A word that changes later misleads no
//! thread. Without the checksum a flipped bit of a name would hide its lock, and the next thread
//! would make a second one. The epoch changes later, so it is outside of the checksum and twice in
//! its word.

use ulocks_core::sync::AtomicU64;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};

/// The longest name.
pub const NAME_BYTES: usize = 64;
pub(crate) const WORDS: usize = 24;
/// "ULOCKENT": no other state of an entry is one flipped bit away.
const READY: u64 = u64::from_le_bytes(*b"ULOCKENT");
/// The greatest alignment of a value: that of the arena.
pub(crate) const MOST_ALIGN: u64 = 64;

mod at {
    pub const STATE: usize = 0;
    pub const EPOCH: usize = 1;
    pub const IDENTITY: usize = 2;
    pub const OFFSET: usize = 3;
    pub const SIZE: usize = 4;
    pub const SHAPE: usize = 5;
    pub const CHECKSUM: usize = 6;
    pub const RESERVED: usize = 7;
    pub const NAME: usize = 8;
    pub const KIND: usize = 16;
}

/// Up to 64 bytes of text, filled up with zeroes, as words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text([u64; NAME_BYTES / 8]);

impl Text {
    #[cfg(regions)]
    pub const EMPTY: Self = Self([0; NAME_BYTES / 8]);

    /// `text`, if it has at most 64 bytes and none of them is zero.
    pub fn new(text: &str) -> Option<Self> {
        if text.len() > NAME_BYTES || text.bytes().any(|byte| byte == 0) {
            return None;
        }
        let mut words = [0; NAME_BYTES / 8];
        for (word, bytes) in words.iter_mut().zip(text.as_bytes().chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        }
        Some(Self(words))
    }

    /// The text, if it is one.
    pub fn read(self) -> Option<String> {
        let mut bytes = self.0.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        if bytes[end..].iter().any(|&byte| byte != 0) {
            return None;
        }
        bytes.truncate(end);
        String::from_utf8(bytes).ok()
    }
}

/// What a type is, for a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The same in two programs only if the type means the same in both.
    pub(crate) identity: u64,
    pub(crate) size: u64,
    pub(crate) align: u32,
    /// How tools show it: see [`SharedSafe`](crate::SharedSafe).
    pub(crate) shown_as: u32,
    pub(crate) name: Text,
}

/// What an entry says, checked.
#[derive(Clone, Copy, Debug)]
pub struct Contents {
    pub name: Text,
    pub kind: Kind,
    /// Where the value is in the arena.
    pub offset: u64,
    /// The epoch in which the value was last reset.
    pub epoch: u32,
}

impl Contents {
    /// The first byte behind the value.
    pub fn end(&self) -> u64 {
        // The check has added the same.
        self.offset + self.kind.size
    }

    fn words(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        words[at::IDENTITY] = self.kind.identity;
        words[at::OFFSET] = self.offset;
        words[at::SIZE] = self.kind.size;
        words[at::SHAPE] = u64::from(self.kind.align) | u64::from(self.kind.shown_as) << 32;
        words[at::NAME..at::KIND].copy_from_slice(&self.name.0);
        words[at::KIND..].copy_from_slice(&self.kind.name.0);
        words[at::CHECKSUM] = checksum(&words);
        words
    }
}

/// FNV-1a of the words that never change. It finds damage, not malice.
fn checksum(words: &[u64; WORDS]) -> u64 {
    let parts = words[at::IDENTITY..at::CHECKSUM].iter().chain(&words[at::NAME..]);
    parts.flat_map(|word| word.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// `epoch` as a word: in both halves.
pub(crate) fn epoch_word(epoch: u32) -> u64 {
    u64::from(epoch) | u64::from(epoch) << 32
}

/// The epoch of a word, if its halves agree.
pub(crate) fn epoch_of(word: u64) -> Option<u32> {
    let epoch = (word >> 32) as u32;
    (epoch_word(epoch) == word).then_some(epoch)
}

/// A place for an entry. All-zero memory is a free one.
#[derive(Debug)]
#[repr(C)]
pub struct Entry([AtomicU64; WORDS]);

impl Entry {
    pub fn new() -> Self {
        Self(core::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// Its words, read once; zeroes if it is free.
    pub fn words(&self) -> [u64; WORDS] {
        // The label (list) of `table.rs`.
        let state = self.0[at::STATE].load(Acquire);
        let mut words = [0; WORDS];
        if state != 0 {
            words = core::array::from_fn(|word| self.0[word].load(Relaxed));
            words[at::STATE] = state;
        }
        words
    }

    /// Writes an entry that is free, and makes it one: the label (publish) of `table.rs`.
    pub fn publish(&self, contents: &Contents) {
        let words = contents.words();
        for (place, word) in self.0.iter().zip(words).skip(at::IDENTITY) {
            place.store(word, Relaxed);
        }
        self.0[at::EPOCH].store(epoch_word(contents.epoch), Relaxed);
        self.0[at::STATE].store(READY, Release);
    }

    /// Says that the value was reset in `epoch`: the label (reset) of `table.rs`.
    pub fn set_epoch(&self, epoch: u32) {
        // Mutant: Release -> Relaxed: the directory lock orders the threads. This is for the
        // compiler, whose order counts if the thread dies, and models have no compiler.
        self.0[at::EPOCH].store(epoch_word(epoch), Release);
    }
}

/// What `words` say, whose predecessor ends at `begin` in an arena of `room` bytes and a directory
/// of this `epoch`. `None` if they are of a free entry; the part that is wrong, if one is.
pub(crate) fn check(
    words: &[u64; WORDS],
    begin: u64,
    room: u64,
    epoch: u32,
) -> Result<Option<Contents>, &'static str> {
    match words[at::STATE] {
        0 => return Ok(None),
        READY => {}
        _ => return Err("the state"),
    }
    let intact = |holds: bool, what: &'static str| if holds { Ok(()) } else { Err(what) };
    intact(words[at::CHECKSUM] == checksum(words), "the checksum")?;
    intact(words[at::RESERVED] == 0, "the reserved word")?;
    let own = epoch_of(words[at::EPOCH]).filter(|&own| own <= epoch).ok_or("the epoch")?;
    let text = |at: usize| Text(core::array::from_fn(|word| words[at + word]));
    let (name, kind) = (text(at::NAME), text(at::KIND));
    intact(name.read().is_some_and(|name| !name.is_empty()), "the name")?;
    intact(kind.read().is_some(), "the name of the type")?;
    let align = words[at::SHAPE] & u64::from(u32::MAX);
    intact(align.is_power_of_two() && align <= MOST_ALIGN, "the alignment")?;
    let (offset, size) = (words[at::OFFSET], words[at::SIZE]);
    intact(offset >= begin && offset.is_multiple_of(align), "the offset")?;
    intact(offset.checked_add(size).is_some_and(|end| end <= room), "the size")?;
    Ok(Some(Contents {
        name,
        kind: Kind {
            identity: words[at::IDENTITY],
            size,
            // At most 64, by the check above.
            align: align as u32,
            shown_as: (words[at::SHAPE] >> 32) as u32,
            name: kind,
        },
        offset,
        epoch: own,
    }))
}
