//! Files that a creator has left which died before it was done: see [`header`].
//!
//! The caller has the exclusive lock, so no creator lives. Such a file is made anew, and nothing in
//! it is anyone's. It begins with the creator's mark, is all zero but for a part of a header, and
//! is not larger than a creator of the same root may have made it; or its header is sound, and says
//! that no program has had it yet. A file of another program is neither, also if it is all zero:
//! that program may have mapped it, and be about to write.

use super::error::RegionError;
use super::file;
use super::header::{self, BEGUN, CREATING, MAGIC, MOST_PARTICIPANTS, Plan, WORDS, at};
use crate::safe::SharedSafe;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// So much of a file is read at once.
const CHUNK: u64 = 1 << 16;

/// Whether `file`, of `len` bytes, was left by a dead creator of a region with the root `R`.
pub(super) fn is_left<R: SharedSafe>(file: &File, len: u64) -> Result<bool, RegionError> {
    let words = first_words(file)?;
    let most = Plan::of::<R>(u64::from(MOST_PARTICIPANTS)).map_or(u64::MAX, |plan| plan.size);
    match words[at::MAGIC] {
        BEGUN => Ok(len <= most && header::is_begun::<R>(&words) && is_zero(file, len)?),
        MAGIC => Ok(words[at::STATE] == CREATING && header::check::<R>(&words, len).is_ok()),
        _ => Ok(false),
    }
}

/// The same of a region with any root.
pub(super) fn is_left_untyped(file: &File, len: u64) -> Result<bool, RegionError> {
    let words = first_words(file)?;
    match words[at::MAGIC] {
        BEGUN => Ok(header::is_begun_untyped(&words) && is_zero(file, len)?),
        MAGIC => Ok(words[at::STATE] == CREATING && header::check_untyped(&words, len).is_ok()),
        _ => Ok(false),
    }
}

/// The words of the header, with zeroes behind the end of the file.
fn first_words(file: &File) -> Result<[u64; WORDS], RegionError> {
    let mut bytes = [0; header::BYTES];
    read(file, &mut bytes, 0)?;
    Ok(header::from_bytes(&bytes))
}

/// Whether all is zero behind the header.
fn is_zero(file: &File, len: u64) -> Result<bool, RegionError> {
    let mut bytes = vec![0; CHUNK as usize];
    let mut next = header::BYTES as u64;
    while let Some(begin) = file::next_data(file, next)?.filter(|&begin| begin < len) {
        let bytes = &mut bytes[..CHUNK.min(len - begin) as usize];
        bytes.fill(0);
        read(file, bytes, begin)?;
        if bytes.iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
        next = begin + CHUNK;
    }
    Ok(true)
}

/// Reads as far as the file goes.
fn read(file: &File, bytes: &mut [u8], offset: u64) -> Result<(), RegionError> {
    match file.read_exact_at(bytes, offset) {
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
            Err(RegionError::Io { step: "read the file", source: error })
        }
        _ => Ok(()),
    }
}
