//! The name and the number of a thread, as words that any thread may read.

use crate::seen::report::ThreadName;
use core::array;
use ulocks_core::sync::{AtomicU32, AtomicU64, Ordering::Relaxed};
use ulocks_core::tid;

const WORDS: usize = 8;

/// Who a thread is. A reader that comes while a thread takes over from another one may see a name
/// that is made of both.
pub(crate) struct ThreadIdentity {
    tid: AtomicU32,
    name: [AtomicU64; WORDS],
}

impl ThreadIdentity {
    pub fn new() -> Self {
        Self { tid: AtomicU32::new(0), name: array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// This is the calling thread from now on.
    pub fn set(&self) {
        self.set_tid();
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("");
        let mut cut = name.len().min(WORDS * 8);
        while !name.is_char_boundary(cut) {
            cut -= 1;
        }
        let mut bytes = [0; WORDS * 8];
        bytes[..cut].copy_from_slice(&name.as_bytes()[..cut]);
        for (word, chunk) in self.name.iter().zip(bytes.chunks_exact(8)) {
            word.store(u64::from_le_bytes(chunk.try_into().expect("chunks of eight")), Relaxed);
        }
    }

    /// This is the thread of `other` from now on.
    pub fn copy(&self, other: &Self) {
        self.tid.store(other.tid(), Relaxed);
        for (word, of_other) in self.name.iter().zip(&other.name) {
            word.store(of_other.load(Relaxed), Relaxed);
        }
    }

    /// The calling thread is one with another number.
    pub fn set_tid(&self) {
        self.tid.store(tid::current(), Relaxed);
    }

    pub fn tid(&self) -> u32 {
        self.tid.load(Relaxed)
    }

    /// The name, filled up with zeros. Allocates nothing.
    pub fn bytes(&self) -> [u8; WORDS * 8] {
        let mut bytes = [0; WORDS * 8];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(&self.name) {
            chunk.copy_from_slice(&word.load(Relaxed).to_le_bytes());
        }
        bytes
    }

    pub fn name(&self) -> ThreadName {
        let name = String::from_utf8_lossy(&self.bytes()).trim_end_matches('\0').to_owned();
        ThreadName { name, tid: self.tid() }
    }
}
