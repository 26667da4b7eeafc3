//! The file `registry` of the directory: which keys and ids there are, and which processes.
//!
//! # State
//! An *entry* for each index of an array: its id, key and number of semaphores. The id is
//! `sequence * 32768 + index`, as in the kernel, so an id is not used again for long.
//!
//! | transition | by | label |
//! |---|---|---|
//! | free to used, when the array's file is complete | a thread that makes an array | (publish) |
//! | used to free, after the array was marked as removed | a thread that removes it, or finds it removed | (free) |
//!
//! # Invariants
//! 1. Entries change under the registry's lock. So does the claim of a process slot.
//!    The file has its size and its format before it has its name. Another size is damage.
//! 2. A used entry has its id, key and length written before (publish), and (publish) is one store.
//!    If the holder of the lock dies before (publish), a file without an entry is left. The thread
//!    that gets the lock then removes the file of the last sequence number.
//! 3. A remover marks the array, removes its file, and makes (free). If it dies on the way, the
//!    next thread that uses the id, finds the key, or shows the directory does the rest.
//! 4. `count`, `semaphores` and `high` are derived: a thread that gets the lock from a dead holder
//!    counts again. `high` increases before (publish), so no used entry is above it.
//!
//! # Ordering
//! (publish) is Release, and lookups without the lock are Acquire. All else is ordered by the lock.

use crate::config;
use crate::layout::PROCESSES;
use crate::lock::{Held, Lock, Thread};
use crate::process::Process;
use crate::sys::{self, Answer, File};
use core::ptr::null_mut;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};

/// How many arrays there can be: as many as the kernel's.
pub const ARRAYS: usize = 32_768;
/// The greatest sequence number, so that an id is positive.
const SEQUENCES: u32 = 65_536;

const MAGIC: u64 = u64::from_le_bytes(*b"ulksysvR");
const VERSION: u32 = 1;

/// An array, in the table.
#[derive(Debug)]
#[repr(C)]
pub struct Entry {
    /// 0 is free; otherwise the id and [`USED`].
    state: AtomicU32,
    key: AtomicU32,
    nsems: AtomicU32,
    reserved: AtomicU32,
}

const USED: u32 = 1 << 31;

/// The registry, in its file. All zero is empty, but for the numbers of its format.
#[derive(Debug)]
#[repr(C)]
pub struct Registry {
    magic: AtomicU64,
    version: AtomicU32,
    reserved: [AtomicU32; 13],
    lock: Lock,
    sequence: AtomicU32,
    /// The highest index in use, and 1.
    high: AtomicU32,
    count: AtomicU32,
    semaphores: AtomicU64,
    identities: AtomicU64,
    /// Of slots of processes: the highest in use, and 1.
    pub(crate) process_high: AtomicU32,
    padding: [AtomicU32; 7],
    entries: [Entry; ARRAYS],
    pub(crate) processes: [Process; PROCESSES],
}

static REGISTRY: AtomicPtr<Registry> = AtomicPtr::new(null_mut());
/// Whether the process has found that the file became shorter. Its first page may be whole.
static IS_LOST: AtomicBool = AtomicBool::new(false);

/// The registry of the directory, opened at the first call.
///
/// # Errors
/// EIO if it is damaged, also if that has happened since the first call.
pub fn get() -> Answer<&'static Registry> {
    let known = REGISTRY.load(Acquire);
    if !known.is_null() {
        // SAFETY: what REGISTRY points to is mapped for ever.
        let registry = unsafe { &*known };
        return registry.check().inspect_err(|_| complain()).map(|()| registry);
    }
    config::get()?.ok_or(libc::ENOSYS)?;
    crate::signal::guard();
    let mapped = open().inspect_err(|&error| {
        if error == libc::EIO {
            complain();
        }
    })?;
    let registry = match REGISTRY.compare_exchange(null_mut(), mapped, AcqRel, Acquire) {
        Ok(_) => mapped,
        Err(first) => {
            // SAFETY: no other thread has seen this mapping.
            unsafe { sys::unmap(mapped.cast(), size_of::<Registry>()) };
            first
        }
    };
    // SAFETY: as above.
    Ok(unsafe { &*registry })
}

/// Says once that the registry cannot be used.
fn complain() {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Relaxed) {
        let path = config::path(b"registry");
        let end = path.iter().position(|&byte| byte == 0).unwrap_or(0);
        sys::complain(&[
            &path[..end],
            b" is damaged or of another version: remove the folder when no program uses it",
        ]);
    }
}

/// Makes the mapping blank from the page of `address` on, if that is in it, for it has lost its
/// file there. Whether it did. The first page has the lock: as long as the file has that page, a
/// holder releases the lock for the other processes too.
pub fn lose(address: usize) -> bool {
    let start = REGISTRY.load(Acquire);
    let bytes = size_of::<Registry>();
    let is_here = !start.is_null() && (start as usize..start as usize + bytes).contains(&address);
    if !is_here {
        return false;
    }
    IS_LOST.store(true, Release);
    // SAFETY: all users look at `magic` and `IS_LOST`, and all-zero parts of a registry are valid.
    unsafe { sys::blank(start.cast(), bytes, address - start as usize) }.is_ok()
}

fn open() -> Answer<*mut Registry> {
    let size = size_of::<Registry>();
    let path = config::path(b"registry");
    let file = match File::open(&path, libc::O_RDWR, 0) {
        Err(libc::ENOENT) => {
            make(&path)?;
            File::open(&path, libc::O_RDWR, 0)
        }
        answer => answer,
    }?;
    let stat = file.stat()?;
    // The file may become shorter at any time, so it is not looked at through a mapping.
    let mut head = [0; HEAD.len()];
    let is_regular = stat.st_mode & libc::S_IFMT == libc::S_IFREG;
    if !is_regular || stat.st_size != size as i64 || file.read(&mut head)? != head.len() || head != HEAD {
        return Err(libc::EIO);
    }
    file.map(size).map(<*mut u8>::cast)
}

/// What the file begins with.
const HEAD: [u8; 12] = {
    let (mut head, magic, version) = ([0; 12], MAGIC.to_ne_bytes(), VERSION.to_ne_bytes());
    let (first, last) = head.split_at_mut(8);
    first.copy_from_slice(&magic);
    last.copy_from_slice(&version);
    head
};

/// Makes an empty registry, unless another thread is first.
fn make(path: &[u8]) -> Answer<()> {
    let new = config::path_of_new_registry(ulocks_core::tid::current());
    let file = File::make(&new)?;
    let complete = || {
        file.allocate(size_of::<Registry>())?;
        file.set_len(size_of::<Registry>())?;
        file.write(&HEAD)?;
        file.set_mode(config::registry_mode())?; // The umask may be strict.
        sys::rename_new(&new, path)
    };
    match complete() {
        Ok(()) => Ok(()),
        Err(error) => {
            let _ = sys::unlink(&new);
            if error == libc::EEXIST { Ok(()) } else { Err(error) }
        }
    }
}

/// The registry, locked.
#[derive(Debug)]
pub struct Section {
    /// The registry.
    pub registry: &'static Registry,
    held: Held<'static>,
}

impl Registry {
    /// Whether nobody has truncated or cleared the file, up to this moment: what was read before
    /// is what users of the directory wrote.
    ///
    /// # Errors
    /// EIO.
    pub fn check(&self) -> Answer<()> {
        let is_whole = self.magic.load(Acquire) == MAGIC && !IS_LOST.load(Acquire);
        if is_whole { Ok(()) } else { Err(libc::EIO) }
    }

    /// Acquires the registry's lock.
    ///
    /// # Errors
    /// EIO if the file is damaged; EDEADLK if the thread holds it.
    pub fn enter(&'static self) -> Answer<Section> {
        let section = Section { registry: self, held: self.lock.lock(Thread::new())? };
        if section.held.died {
            section.remove_unfinished();
            section.recount();
        }
        match self.check() {
            Ok(()) => Ok(section),
            Err(error) => {
                section.leave();
                complain();
                Err(error)
            }
        }
    }

    /// An identity that no process had before.
    pub(crate) fn next_identity(&self) -> u64 {
        self.identities.fetch_add(1, Relaxed) + 1
    }

    /// One more than the highest index in use.
    pub fn high(&self) -> usize {
        (self.high.load(Acquire) as usize).min(ARRAYS)
    }

    /// How many arrays there are, and how many semaphores.
    pub fn used(&self) -> (u32, u64) {
        (self.count.load(Relaxed), self.semaphores.load(Relaxed))
    }

    /// The id, key and number of semaphores at `index`.
    pub fn at(&self, index: usize) -> Option<(u32, u32, u32)> {
        let entry = self.entries.get(index)?;
        let state = entry.state.load(Acquire);
        (state & USED != 0).then(|| (state & !USED, entry.key.load(Relaxed), entry.nsems.load(Relaxed)))
    }

    /// How many semaphores array `id` has, also if the caller may not open it.
    pub fn semaphores_of(&self, id: u32) -> Option<u32> {
        self.at(id as usize % ARRAYS).filter(|found| found.0 == id).map(|found| found.2)
    }
}

/// Removes the file and the entry of an array that is marked as removed. No lock is held.
///
/// # Errors
/// As [`get`].
pub fn drop_name(id: u32) -> Answer<()> {
    let registry = get()?;
    if registry.semaphores_of(id).is_some() {
        let section = registry.enter()?;
        section.remove(id);
        section.leave();
    }
    Ok(())
}

impl Section {
    /// Releases the lock.
    pub fn leave(self) {
        drop(self.held.unlock());
    }

    /// The id of the array with this key.
    pub fn find(&self, key: u32) -> Option<u32> {
        (0..self.registry.high())
            .filter_map(|index| self.registry.at(index))
            .find(|found| found.1 == key)
            .map(|found| found.0)
    }

    /// An id for a new array. It has no file, or one that was never complete.
    ///
    /// # Errors
    /// ENOSPC if there are too many arrays; EIO if the registry is damaged.
    pub fn fresh(&self) -> Answer<u32> {
        let free = (0..ARRAYS).find(|&index| self.registry.at(index).is_none()).ok_or(libc::ENOSPC)?;
        let sequence = self.registry.sequence.load(Relaxed) % SEQUENCES;
        self.registry.sequence.store((sequence + 1) % SEQUENCES, Relaxed);
        self.registry.check()?; // In a registry that was lost, all ids look free.
        Ok(sequence * ARRAYS as u32 + free as u32)
    }

    /// (publish)
    pub fn add(&self, id: u32, key: u32, nsems: u32) {
        let index = id as usize % ARRAYS;
        let entry = &self.registry.entries[index];
        entry.key.store(key, Relaxed);
        entry.nsems.store(nsems, Relaxed);
        let high = self.registry.high.load(Relaxed).max(index as u32 + 1);
        self.registry.high.store(high, Release); // Invariant 4.
        entry.state.store(id | USED, Release); // (publish)
        self.recount();
    }

    /// Removes the file, then (free), if the entry is still that of array `id`.
    pub fn remove(&self, id: u32) {
        let entry = &self.registry.entries[id as usize % ARRAYS];
        if entry.state.load(Relaxed) == id | USED {
            let _ = sys::unlink(&config::path_of(id)); // Only the maker may, in a sticky folder.
            entry.state.store(0, Release); // (free)
            self.recount();
        }
    }

    /// Invariant 2: the file that the last holder may have left. No entry has changed since it
    /// chose the id.
    fn remove_unfinished(&self) {
        let sequence = (self.registry.sequence.load(Relaxed) % SEQUENCES).wrapping_sub(1) % SEQUENCES;
        let free = (0..ARRAYS).find(|&index| self.registry.at(index).is_none());
        if let (Some(free), Ok(())) = (free, self.registry.check()) {
            let _ = sys::unlink(&config::path_of(sequence * ARRAYS as u32 + free as u32));
        }
    }

    /// Invariant 4.
    fn recount(&self) {
        let (mut count, mut semaphores, mut high) = (0, 0, 0);
        for index in 0..self.registry.high() {
            if let Some((_, _, nsems)) = self.registry.at(index) {
                count += 1;
                semaphores += u64::from(nsems);
                high = index + 1;
            }
        }
        self.registry.count.store(count, Relaxed);
        self.registry.semaphores.store(semaphores, Relaxed);
        self.registry.high.store(high as u32, Release);
    }
}
