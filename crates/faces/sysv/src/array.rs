//! The process's view of an array: its file, opened and mapped once.
//!
//! A table leads from an index to the array that the process has mapped there. An entry changes
//! from none to an array, and back when the array is found removed. The mapping of a removed array
//! is made blank, and stays: a thread that still looks at it sees all-zero memory, and that it is
//! gone. Its exchanges come to nothing, as if they had been made just before the removal.
//!
//! # State
//! The word `users` has the number of threads of the process that have or want the array lock or
//! sleep in a set, and the flag `RETIRED`.
//!
//! | transition | by | label |
//! |---|---|---|
//! | one more, if not `RETIRED` | a thread that is about to take the array lock | (hold) |
//! | `RETIRED` set | the thread that takes the array out of the table | (retire) |
//! | one less | a thread that has released the lock, or that sleeps no more | (let go) |
//!
//! # Invariants
//! 1. The mapping is made blank after (retire), when no user is left. So a lock is released in the
//!    memory in which it was acquired, and a set that was performed is not taken for a removed one.
//! 2. A child of fork inherits the number, but not the other threads. It may keep the memory of a
//!    removed array until it ends.
//! 3. A mapping that has lost a part of its file (see `fault.rs`) is lost, and out of the table,
//!    before that part is made blank. So no operation changes its words that has not begun before,
//!    and others get EIO. What is before the part stays the file's. So a holder of the array lock
//!    releases it for the other processes too.
//!
//! No lock guards the table, so it works in a child of fork and in a signal handler.

use crate::arena;
use crate::config::{MOST_OPS, path_of};
use crate::layout::{Header, Layout, MAGIC, PAGE, Row, Sleeper, VERSION};
use crate::registry::{self, ARRAYS, PROCESSES};
use crate::section::Section;
use crate::sys::{self, Answer, Errno, File};
use crate::word::Word;
use core::mem::offset_of;
use core::ptr::null_mut;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};

/// The process's view of a mapped array. It lives for ever; its mapping may be blank after the
/// array is removed.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Array {
    /// The id.
    pub id: u32,
    /// How many semaphores.
    pub nsems: u32,
    base: *mut u8,
    /// The access that was found: the process in the upper half, then `access` of the header and
    /// two bits. See `access.rs`.
    pub granted: AtomicU64,
    layout: Layout,
    /// The slot that this process had last.
    pub last_slot: AtomicU32,
    users: AtomicU32,
    /// Whether the process has found that the file became shorter than the mapping. The first page
    /// may be whole, so it does not tell.
    is_lost: AtomicBool,
    /// The array that was mapped before.
    next: AtomicPtr<Array>,
}

/// A flag of `users`: the array is not in the table any more.
const RETIRED: u32 = 1 << 31;

// SAFETY: all that is behind the pointer is atomic.
unsafe impl Sync for Array {}
// SAFETY: as above; nothing belongs to a thread.
unsafe impl Send for Array {}

/// The array that was mapped last, and through `next` all others.
static ALL: AtomicPtr<Array> = AtomicPtr::new(null_mut());
static TABLE: [AtomicPtr<Array>; ARRAYS] = [const { AtomicPtr::new(null_mut()) }; ARRAYS];

/// The array with this id, if the process has mapped it.
#[inline]
pub fn mapped(id: u32) -> Option<&'static Array> {
    let array = TABLE[id as usize % ARRAYS].load(Acquire);
    if array.is_null() {
        return None;
    }
    // SAFETY: what the table points to lives for ever.
    Some(unsafe { &*array }).filter(|array| array.id == id)
}

/// Makes the array blank that has `address` in its mapping, from that page on, for it has lost its
/// file there. Whether there is such an array.
pub fn lose(address: usize) -> bool {
    let mut next = ALL.load(Acquire);
    while !next.is_null() {
        // SAFETY: arrays live for ever.
        let array = unsafe { &*next };
        let start = array.base as usize;
        if (start..start + array.layout.bytes).contains(&address) {
            let first = !array.is_lost.swap(true, AcqRel);
            let entry = &TABLE[array.id as usize % ARRAYS];
            let _ = entry.compare_exchange(next, null_mut(), AcqRel, Acquire); // Invariant 3.
            let is_blank = array.blank(address - start).is_ok();
            if first && is_blank {
                complain(array.id);
            }
            return is_blank;
        }
        next = array.next.load(Acquire);
    }
    false
}

/// The array with this id. No lock is held.
///
/// # Errors
/// EINVAL if there is none; EIO if its file is damaged; what the kernel says if that cannot be
/// opened.
pub fn attach(id: u32) -> Answer<&'static Array> {
    let answer = open(id);
    if answer.is_err() {
        if let Some(array) = mapped(id) {
            array.finish_removal();
        }
        if matches!(answer, Err(libc::EINVAL)) {
            registry::drop_name(id)?; // Invariant 3 of the registry.
        }
    }
    answer
}

/// As [`attach`], also under the registry's lock. A removal is left as it is found.
///
/// # Errors
/// As [`attach`].
pub fn open(id: u32) -> Answer<&'static Array> {
    if let Some(array) = mapped(id) {
        return if array.is_gone() { Err(array.why_gone()) } else { Ok(array) };
    }
    let file = File::open(&path_of(id), libc::O_RDWR, 0).map_err(|error| match error {
        libc::ENOENT | libc::ELOOP => libc::EINVAL,
        libc::EPERM => libc::EACCES,
        error => error,
    })?;
    let stat = file.stat()?;
    // The file may become shorter at any time, so it is not looked at through a mapping.
    let mut head = [0; 64];
    let has_head = stat.st_mode & libc::S_IFMT == libc::S_IFREG && file.read(&mut head)? == head.len();
    let field = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (nsems, slots) =
        (field(offset_of!(Header, nsems)) as usize, field(offset_of!(Header, slots)) as usize);
    let is_ours = has_head
        && head.starts_with(&MAGIC.to_ne_bytes())
        && field(offset_of!(Header, version)) == VERSION
        && field(offset_of!(Header, id)) == id
        && field(offset_of!(Header, processes)) as usize == PROCESSES
        && (1..=ARRAYS).contains(&nsems)
        && (1..=ARRAYS).contains(&slots);
    let is_removed = field(offset_of!(Header, removed)) != 0;
    let layout = Layout::new(nsems.max(1), slots.max(1));
    if !is_ours || stat.st_size as usize != layout.bytes {
        complain(id);
        return Err(libc::EIO);
    }
    if is_removed {
        return Err(libc::EINVAL);
    }
    publish(id, &file, layout)
}

/// Says that the file of an array cannot be used.
fn complain(id: u32) {
    let path = path_of(id);
    let end = path.iter().position(|&byte| byte == 0).unwrap_or(0);
    sys::complain(&[&path[..end], b" is damaged or of another version; `ulocks-ipcrm -s` removes it"]);
}

/// Maps the whole file and puts it into the table.
fn publish(id: u32, file: &File, layout: Layout) -> Answer<&'static Array> {
    let place = arena::take::<Array>()?;
    let base = file.map(layout.bytes)?;
    let array = Array {
        id,
        nsems: layout.nsems as u32,
        base,
        granted: AtomicU64::new(0),
        layout,
        last_slot: AtomicU32::new(0),
        users: AtomicU32::new(0),
        is_lost: AtomicBool::new(false),
        next: AtomicPtr::new(null_mut()),
    };
    // SAFETY: the arena has just given the place to this thread alone.
    unsafe { place.write(array) };
    // SAFETY: what was just written lives for ever.
    let array = unsafe { &*place };
    let mut last = ALL.load(Acquire);
    loop {
        array.next.store(last, Relaxed);
        match ALL.compare_exchange(last, place, AcqRel, Acquire) {
            Ok(_) => break,
            Err(now) => last = now,
        }
    }
    let entry = &TABLE[id as usize % ARRAYS];
    let mut known = entry.load(Acquire);
    loop {
        if let Some(first) = mapped(id) {
            let _ = array.blank(0); // Without it, the unused mapping keeps the file.
            return Ok(first);
        }
        match entry.compare_exchange(known, place, AcqRel, Acquire) {
            Ok(old) => {
                if !old.is_null() {
                    // SAFETY: what the table points to lives for ever.
                    unsafe { &*old }.retire();
                }
                return Ok(array);
            }
            Err(now) => known = now,
        }
    }
}

/// What a new array begins with.
#[derive(Clone, Copy, Debug)]
pub struct New {
    /// The id.
    pub id: u32,
    /// The key.
    pub key: u32,
    /// How many semaphores.
    pub nsems: u32,
    /// How many sets can sleep.
    pub waiters: u32,
    /// Access bits.
    pub mode: u32,
    /// The maker's user.
    pub uid: u32,
    /// The maker's group.
    pub gid: u32,
}

/// Makes the file of an array. What has its name is the remains of one that was never complete.
pub fn make(new: New) -> Answer<&'static Array> {
    let path = path_of(new.id);
    let file = File::make(&path)?;
    let layout = Layout::new(new.nsems as usize, new.waiters as usize);
    let complete = || -> Answer<&'static Array> {
        file.allocate(layout.sleepers)?;
        file.set_len(layout.bytes)?;
        let array = publish(new.id, &file, layout)?;
        let head = array.head();
        head.version.store(VERSION, Relaxed);
        head.id.store(new.id, Relaxed);
        head.nsems.store(new.nsems, Relaxed);
        head.slots.store(new.waiters, Relaxed);
        head.processes.store(PROCESSES as u32, Relaxed);
        head.key.store(new.key, Relaxed);
        for (place, value) in [(&head.uid, new.uid), (&head.cuid, new.uid)] {
            place.store(value, Relaxed);
        }
        for (place, value) in [(&head.gid, new.gid), (&head.cgid, new.gid)] {
            place.store(value, Relaxed);
        }
        head.mode.store(new.mode, Relaxed);
        head.access.store(1, Relaxed);
        head.ctime.store(sys::seconds(), Relaxed);
        head.journal.row.store(crate::layout::NONE, Relaxed);
        head.magic.store(MAGIC, Release);
        file.set_mode(crate::access::file_mode(array))?;
        Ok(array)
    };
    complete().inspect_err(|_| {
        let _ = sys::unlink(&path);
    })
}

impl Array {
    /// The header.
    #[inline]
    pub fn head(&self) -> &Header {
        // SAFETY: the mapping begins with a page, and stays mapped; all fields are atomic.
        unsafe { &*self.base.cast() }
    }

    /// A reference to what is `offset` into the mapping.
    ///
    /// # Safety
    /// A `T` is all atomic, fits there, and the offset is a multiple of its alignment.
    #[inline]
    unsafe fn at<T>(&self, offset: usize) -> &T {
        // SAFETY: the caller's promise; the mapping stays.
        unsafe { &*self.base.add(offset).cast() }
    }

    /// The word of a semaphore.
    #[inline]
    pub fn word(&self, index: u32) -> Option<&AtomicU64> {
        if index >= self.nsems {
            return None;
        }
        // SAFETY: the index was checked, and there is a word for each semaphore.
        Some(unsafe { self.at(PAGE + ((index as usize) << self.layout.shift)) })
    }

    /// What the word of a semaphore holds.
    pub fn load(&self, index: u32) -> Word {
        Word(self.word(index).map_or(Word::REMOVED, |word| word.load(Acquire)))
    }

    /// Writes a word that has `BUSY` or `WATCHED`, by the holder of the array lock.
    pub fn store(&self, index: u32, word: Word) {
        if let Some(place) = self.word(index) {
            place.store(word.0, Release);
        }
    }

    /// How many sleepers and rows want a semaphore watched.
    pub fn watch(&self, index: u32) -> Option<&AtomicU32> {
        if index >= self.nsems {
            return None;
        }
        // SAFETY: the index was checked, and there is a count for each semaphore.
        Some(unsafe { self.at(self.layout.watch + 4 * index as usize) })
    }

    /// How many slots for sleepers there are.
    pub fn slots(&self) -> usize {
        self.layout.slots
    }

    /// A place of the queue.
    pub fn place(&self, index: usize) -> Option<&AtomicU32> {
        if index >= self.layout.slots {
            return None;
        }
        // SAFETY: the index was checked, and there is a place for each slot.
        Some(unsafe { self.at(self.layout.queue + 4 * index) })
    }

    /// A sleeper.
    pub fn sleeper(&self, index: usize) -> Option<&Sleeper> {
        if index >= self.layout.slots {
            return None;
        }
        // SAFETY: the index was checked.
        Some(unsafe { self.at(self.layout.sleepers + size_of::<Sleeper>() * index) })
    }

    /// An operation of a sleeper.
    pub fn operation(&self, slot: usize, index: usize) -> Option<&AtomicU64> {
        if slot >= self.layout.slots || index >= MOST_OPS {
            return None;
        }
        // SAFETY: both were checked, and each slot has room for so many operations.
        Some(unsafe { self.at(self.layout.operations + 8 * (MOST_OPS * slot + index)) })
    }

    /// An entry of the journal.
    pub fn entry(&self, index: usize) -> Option<&AtomicU64> {
        if index >= self.layout.nsems.max(MOST_OPS) {
            return None;
        }
        // SAFETY: the index was checked.
        Some(unsafe { self.at(self.layout.journal + 8 * index) })
    }

    /// The row of a process.
    pub fn row(&self, process: usize) -> Option<&Row> {
        if process >= PROCESSES {
            return None;
        }
        // SAFETY: the index was checked, and each slot of a process has a row.
        Some(unsafe { self.at(self.layout.rows + self.layout.row * process) })
    }

    /// The adjustment of a process for a semaphore: an `i16`.
    pub fn adjustment(&self, process: usize, index: u32) -> Option<&AtomicU32> {
        if process >= PROCESSES || index >= self.nsems {
            return None;
        }
        let row = self.layout.rows + self.layout.row * process;
        // SAFETY: both were checked, and a row has an adjustment for each semaphore.
        Some(unsafe { self.at(row + size_of::<Row>() + 4 * index as usize) })
    }

    /// Takes memory for a sleeper.
    pub fn populate_sleeper(&self, slot: usize, nsops: usize) -> Answer<()> {
        let sleeper = self.sleeper(slot).ok_or(libc::ENOMEM)?;
        sys::populate(core::ptr::from_ref(sleeper).cast(), size_of::<Sleeper>())?;
        let first = self.operation(slot, 0).ok_or(libc::ENOMEM)?;
        if nsops > 1 {
            sys::populate(core::ptr::from_ref(first).cast(), 8 * nsops)?;
        }
        Ok(())
    }

    /// Takes memory for a row.
    pub fn populate_row(&self, process: usize) -> Answer<()> {
        let row = self.row(process).ok_or(libc::ENOMEM)?;
        sys::populate(core::ptr::from_ref(row).cast(), self.layout.row)
    }

    /// Whether the array is removed, or its mapping or a part of it blank.
    pub fn is_gone(&self) -> bool {
        let head = self.head();
        head.removed.load(Acquire) != 0 || head.magic.load(Relaxed) != MAGIC || self.is_lost()
    }

    /// What a call on an array that is gone ends with: EINVAL if it was removed, EIO if its file
    /// was truncated or cleared.
    pub fn why_gone(&self) -> Errno {
        let is_removed = self.head().removed.load(Acquire) != 0 || self.users.load(Acquire) & RETIRED != 0;
        if is_removed && !self.is_lost() { libc::EINVAL } else { libc::EIO }
    }

    /// Whether the mapping has lost its file.
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Acquire)
    }

    /// What a call on this array ends with: EIO if the array was lost meanwhile.
    ///
    /// # Errors
    /// As in `answer`, and EIO.
    pub fn unless_lost<T>(&self, answer: Answer<T>) -> Answer<T> {
        if self.is_lost() { Err(libc::EIO) } else { answer }
    }

    /// Completes the removal of an array whose remover may have died on the way, and forgets it.
    fn finish_removal(&'static self) {
        match Section::enter(self) {
            Ok(section) => section.leave(), // It is not removed.
            Err(_) => self.forget(),
        }
    }

    /// Takes a removed array out of the table, and gives its memory back.
    pub fn forget(&self) {
        let me = core::ptr::from_ref(self).cast_mut();
        let entry = &TABLE[self.id as usize % ARRAYS];
        if entry.compare_exchange(me, null_mut(), AcqRel, Acquire).is_ok() {
            self.retire();
        }
    }

    /// (retire)
    fn retire(&self) {
        if self.users.fetch_or(RETIRED, AcqRel) & !RETIRED == 0 {
            let _ = self.blank(0); // Without it, the mapping stays marked as removed.
        }
    }

    /// (hold): the mapping keeps its contents until [`let_go`](Self::let_go).
    ///
    /// # Errors
    /// EINVAL if the array is removed.
    pub fn hold(&self) -> Answer<()> {
        if self.users.fetch_add(1, AcqRel) & RETIRED != 0 {
            self.let_go();
            return Err(libc::EINVAL);
        }
        Ok(())
    }

    /// (hold) of a thread that holds the mapping already, and so does not ask whether it is
    /// retired.
    pub fn hold_again(&self) {
        self.users.fetch_add(1, AcqRel);
    }

    /// (let go)
    pub fn let_go(&self) {
        if self.users.fetch_sub(1, AcqRel) == RETIRED + 1 {
            let _ = self.blank(0); // As in `retire`.
        }
    }

    /// Makes the mapping blank from the page of its byte `first` on: invariants 1 and 3. Two
    /// threads may come here, one after a failed (hold): the second changes nothing.
    fn blank(&self, first: usize) -> Answer<()> {
        // SAFETY: the range is this array's. All-zero parts are valid, and the first page or
        // `is_lost` says that it is gone.
        unsafe { sys::blank(self.base, self.layout.bytes, first) }
    }

    /// The indices of the rows in use.
    pub fn rows(&self) -> impl Iterator<Item = usize> {
        let words = self.head().row_words.load(Relaxed) as usize;
        self.head().rows.iter().take(words).enumerate().flat_map(|(at, bits)| {
            let mut bits = bits.load(Relaxed);
            core::iter::from_fn(move || {
                let bit = bits.trailing_zeros() as usize;
                (bit < 64).then(|| {
                    bits &= bits - 1;
                    64 * at + bit
                })
            })
        })
    }
}
