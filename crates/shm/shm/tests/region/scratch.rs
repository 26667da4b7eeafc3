//! Files of a test, and what is in a header.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use ulocks_core::sync::{AtomicU64, Ordering::Relaxed};
use ulocks_shm::layout;

/// Keeps other tests waiting. A child of one test inherits the open files of all, and so keeps
/// regions attached that another test has dropped.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A turn, and a name that no file has.
pub fn alone() -> (MutexGuard<'static, ()>, Scratch) {
    (turn(), Scratch::new())
}

/// A name in the directory for temporary files, removed when dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A name that no file has.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("ulocks-shm-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        Self(std::env::temp_dir().join(name))
    }

    /// A file of these bytes.
    pub fn with(bytes: &[u8]) -> Self {
        let scratch = Self::new();
        fs::write(scratch.path(), bytes).expect("a file for a test");
        scratch
    }

    /// A pipe.
    pub fn pipe() -> Self {
        let scratch = Self::new();
        let path = CString::new(scratch.0.as_os_str().as_bytes()).expect("a path without zeroes");
        // SAFETY: the path ends with a zero.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0, "mkfifo");
        scratch
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn bytes(&self) -> Vec<u8> {
        fs::read(&self.0).expect("the file of the test")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The words of a header.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub enum Word {
    Magic,
    Version,
    Identity,
    Size,
    SlotsOffset,
    Slots,
    SlotSize,
    RootOffset,
    RootSize,
    Checksum,
    Boot,
    Epoch,
    NotEpoch,
    State,
    Reserved0,
    Reserved1,
}

/// The word `at` of the header in `bytes`.
pub fn word(bytes: &[u8], at: Word) -> u64 {
    let at = at as usize * 8;
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Writes the word `at` of the header in `bytes`.
pub fn set_word(bytes: &mut [u8], at: Word, value: u64) {
    let at = at as usize * 8;
    bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
}

/// Makes the checksum right again, as a program with other numbers would have written it.
pub fn seal(bytes: &mut [u8]) {
    let words: Vec<u64> = bytes[8..72]
        .chunks_exact(8)
        .map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")))
        .collect();
    set_word(bytes, Word::Checksum, layout(&words));
}
