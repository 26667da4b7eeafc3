//! The robust list of the calling thread. The C library owns the list; this world puts entries at
//! its end.
//!
//! An entry lies in shared memory, where another process may overwrite it. So nothing here follows
//! a pointer that was read from an entry of this crate. Its entries stand at the end of the list,
//! one behind the other, and [`OURS`] knows their order. The C library puts its own entries in
//! front.

use super::syscall::checked;
use super::{this_process, thread_id};
use crate::sys::futex::TID_MASK;
use crate::sys::types::robust::{ListError, WORD};
use core::cell::RefCell;
use core::mem::ManuallyDrop;
#[cfg(not(target_os = "android"))]
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{Ordering::SeqCst, compiler_fence};

/// The kernel's `struct robust_list_head`.
#[repr(C)]
struct Head {
    first: *mut Entry,
    offset: isize,
    pending: *mut Entry,
}

/// An entry of the list: a pointer to the next entry. The C libraries keep the way back in the
/// pointer before it.
type Entry = *mut ();

/// The lowest bit of a pointer to an entry marks a priority-inheriting mutex.
const PI: usize = 1;
/// The kernel follows a list no further.
const LONGEST: usize = 2_048;
/// So many entries this crate puts into a list: the C library's stand in front of them.
const MOST: usize = 2_000;

/// So many entries need no memory of the allocator. A thread has one for each table of tokens that
/// it takes part in. A library that is preloaded has one, and its caller may be a signal handler
/// that has interrupted the allocator.
const FEW: usize = 4;

/// How far behind the first word of a token its entry stands, in words of a pointer; see
/// `sys::robust`.
const ENTRY_BYTES: isize = 32;

/// What this crate has put into the calling thread's list.
struct Ours {
    /// The process that did.
    process: u64,
    /// The head of the list; null as long as nobody has asked for it.
    head: *mut Head,
    /// The entries.
    entries: Entries,
}

thread_local! {
    static OURS: RefCell<Ours> = const {
        RefCell::new(Ours { process: 0, head: null_mut(), entries: Entries::new() })
    };
}

const _: () = assert!(!core::mem::needs_drop::<Ours>());

/// Entries, from the front of the list to its end.
struct Entries {
    count: usize,
    /// The first ones.
    few: [*mut Entry; FEW],
    /// All others, in memory of the allocator.
    ///
    /// It has no destructor, so that a thread can leave in its destructors, whatever their order.
    /// Without entries it has no memory. So only a thread that ends with entries here leaks it.
    more: ManuallyDrop<Vec<*mut Entry>>,
}

impl Entries {
    const fn new() -> Self {
        Self { count: 0, few: [null_mut(); FEW], more: ManuallyDrop::new(Vec::new()) }
    }

    fn len(&self) -> usize {
        self.count
    }

    fn get(&self, place: usize) -> Option<*mut Entry> {
        match place.checked_sub(FEW) {
            None => (place < self.count).then(|| self.few[place]),
            Some(place) => self.more.get(place).copied(),
        }
    }

    fn last(&self) -> Option<*mut Entry> {
        self.get(self.count.checked_sub(1)?)
    }

    fn place_of(&self, entry: *mut Entry) -> Option<usize> {
        (0..self.count).find(|&place| self.get(place) == Some(entry))
    }

    fn push(&mut self, entry: *mut Entry) {
        match self.few.get_mut(self.count) {
            Some(free) => *free = entry,
            None => self.more.push(entry),
        }
        self.count += 1;
    }

    fn remove(&mut self, place: usize) {
        if let Some(place) = place.checked_sub(FEW) {
            self.more.remove(place);
        } else {
            self.few.copy_within(place + 1.., place);
            if !self.more.is_empty() {
                self.few[FEW - 1] = self.more.remove(0);
            }
        }
        self.count -= 1;
        if self.more.is_empty() {
            *self.more = Vec::new();
        }
    }

    fn clear(&mut self) {
        self.count = 0;
        self.more.clear();
    }
}

impl Ours {
    /// Forgets the parent's entries, if this is a child of fork.
    fn in_this_process(&mut self) {
        let now = this_process();
        if self.process != now {
            if !self.head.is_null() {
                cut(self.head);
            }
            self.entries.clear();
            self.process = now;
        }
    }
}

/// In a child of fork, takes off the list what the parent's thread holds.
///
/// glibc does that by itself. musl does not, and the entries may be in shared memory. An entry of
/// the child behind one of them would be on the list of the parent, too.
fn cut(head: *mut Head) {
    let (end, mine) = (head.cast::<Entry>(), thread_id());
    let mut last = end;
    for _ in 0..=LONGEST {
        // SAFETY: `last` is the head, or an entry of a mutex that this thread holds.
        let next = unsafe { last.read_volatile() }.map_addr(|address| address & !PI).cast::<Entry>();
        if next == end || next.is_null() {
            return;
        }
        let word = next.wrapping_byte_offset(4 * WORD as isize - ENTRY_BYTES).cast::<u32>();
        // SAFETY: the word of a robust mutex, which was mapped at the fork. The C library, too,
        // accesses the first entry.
        if unsafe { word.read_volatile() } & TID_MASK != mine {
            // SAFETY: as above. The child's own entries are in front of its parent's.
            unsafe { last.write_volatile(end.cast()) };
            return;
        }
        last = next;
    }
}

/// Where the C library keeps the robust list of the calling thread, if the kernel knows.
fn registered() -> Option<*mut Head> {
    let (mut head, mut bytes) = (null_mut::<Head>(), 0_usize);
    // SAFETY: 0 is the calling thread; the kernel writes an address and a size to the two places,
    // which are borrowed for the whole call.
    let answer =
        checked(|| unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut bytes) });
    (answer.is_ok() && !head.is_null() && bytes == size_of::<Head>()).then_some(head)
}

/// Android's C library has no robust mutexes.
#[cfg(target_os = "android")]
fn have_it_registered() -> bool {
    false
}

/// Acquires a robust pthread mutex once. Whether that went well.
#[cfg(not(target_os = "android"))]
#[cold]
fn have_it_registered() -> bool {
    let mut attributes = MaybeUninit::uninit();
    let mut mutex = MaybeUninit::<libc::pthread_mutex_t>::uninit();
    let (attributes, mutex) = (attributes.as_mut_ptr(), mutex.as_mut_ptr());
    // SAFETY: the attributes are initialised by the first call, and the mutex before it is used.
    // Both stay where they are until they are destroyed. No other thread knows the mutex.
    unsafe {
        if libc::pthread_mutexattr_init(attributes) != 0 {
            return false;
        }
        let is_made = libc::pthread_mutexattr_setrobust(attributes, libc::PTHREAD_MUTEX_ROBUST) == 0
            && libc::pthread_mutexattr_setpshared(attributes, libc::PTHREAD_PROCESS_SHARED) == 0
            && libc::pthread_mutex_init(mutex, attributes) == 0;
        libc::pthread_mutexattr_destroy(attributes);
        if !is_made {
            return false;
        }
        let is_acquired = libc::pthread_mutex_lock(mutex) == 0;
        if is_acquired {
            libc::pthread_mutex_unlock(mutex);
        }
        libc::pthread_mutex_destroy(mutex);
        is_acquired
    }
}

/// The robust list of the thread that asked for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    head: *mut Head,
}

impl List {
    /// The list of the calling thread.
    pub(crate) fn current() -> Result<Self, ListError> {
        OURS.with_borrow_mut(Ours::in_this_process);
        // glibc registers the list of a thread when it starts. musl does when the thread first
        // acquires a robust mutex.
        let head = registered().or_else(|| if have_it_registered() { registered() } else { None });
        let head = head.ok_or(ListError::Missing)?;
        OURS.with_borrow_mut(|ours| ours.head = head);
        let list = Self { head };
        // SAFETY: the kernel has told where the head is, and the C library keeps it for the whole
        // life of the thread.
        match unsafe { (*head).offset } {
            offset if list.word_index_of(offset).is_some() => Ok(list),
            offset => Err(ListError::Foreign(offset)),
        }
    }

    /// Which of a token's two words the kernel looks at.
    pub(crate) fn word_index(self) -> usize {
        // SAFETY: as in `current`.
        self.word_index_of(unsafe { (*self.head).offset }).unwrap_or_default()
    }

    fn word_index_of(self, offset: isize) -> Option<usize> {
        match ENTRY_BYTES + offset {
            0 => Some(0),
            4 => Some(1),
            _ => None,
        }
    }

    /// Says which word the thread is about to acquire or release: the one at address `word`, or
    /// none.
    #[inline]
    pub(crate) fn set_pending(self, word: Option<usize>) {
        compiler_fence(SeqCst); // The kernel sees what this thread did in the order of the program.
        // SAFETY: as in `current`; the thread and the kernel alone write to the head.
        unsafe {
            let entry = word.map_or(0, |word| word.wrapping_add_signed(-(*self.head).offset));
            (&raw mut (*self.head).pending).write_volatile(core::ptr::with_exposed_provenance_mut(entry));
        }
        compiler_fence(SeqCst);
    }

    /// The address of the word that is pending.
    #[inline]
    pub(crate) fn pending(self) -> Option<usize> {
        // SAFETY: as in `set_pending`.
        let (entry, offset) =
            unsafe { ((&raw const (*self.head).pending).read_volatile(), (*self.head).offset) };
        (!entry.is_null()).then(|| entry.addr().wrapping_add_signed(offset))
    }

    /// Puts `entry` at the end of the list.
    ///
    /// # Safety
    /// The two pointers before and at `entry` are this crate's, are mapped until [`remove`]
    /// (Self::remove) or the end of the thread, and are in no list.
    pub(crate) unsafe fn append(self, entry: *mut Entry) -> Result<(), ListError> {
        OURS.with_borrow_mut(|ours| {
            ours.in_this_process();
            if ours.entries.len() >= MOST {
                return Err(ListError::Full);
            }
            let last = match ours.entries.last() {
                Some(last) => last,
                None => self.before(self.end())?,
            };
            // SAFETY: `entry` is the caller's, with a pointer in front of it; `last` is the head or
            // an entry that is in the list, so it is mapped.
            unsafe {
                entry.sub(1).write_volatile(last.cast());
                entry.write_volatile(self.end().cast());
                compiler_fence(SeqCst);
                last.write_volatile(entry.cast());
            }
            compiler_fence(SeqCst);
            ours.entries.push(entry);
            Ok(())
        })
    }

    /// Takes `entry` out of the list.
    ///
    /// # Safety
    /// This thread has put `entry` there with [`append`](Self::append), and it is still mapped.
    pub(crate) unsafe fn remove(self, entry: *mut Entry) -> Result<(), ListError> {
        OURS.with_borrow_mut(|Ours { entries: ours, .. }| {
            let Some(place) = ours.place_of(entry) else { return Ok(()) };
            let next = ours.get(place + 1);
            let last = match place.checked_sub(1).and_then(|before| ours.get(before)) {
                Some(before) => before,
                None => self.before(entry)?,
            };
            // SAFETY: `last` is the head or an entry that is in the list; `next` is an entry of
            // this crate in the list, with a pointer in front of it.
            unsafe {
                last.write_volatile(next.unwrap_or(self.end()).cast());
                if let Some(next) = next {
                    next.sub(1).write_volatile(last.cast());
                }
            }
            compiler_fence(SeqCst);
            ours.remove(place);
            Ok(())
        })
    }

    /// What the last entry leads to: the head, which begins like an entry.
    fn end(self) -> *mut Entry {
        self.head.cast()
    }

    /// The head or the entry of the C library that leads to `entry`.
    fn before(self, entry: *mut Entry) -> Result<*mut Entry, ListError> {
        let mut last = self.end();
        for _ in 0..=LONGEST {
            // SAFETY: `last` is the head, or an entry that the C library has put into the list.
            let next = unsafe { last.read_volatile() }.map_addr(|address| address & !PI).cast();
            if next == entry {
                return Ok(last);
            }
            if next == self.end() || next.is_null() {
                break;
            }
            last = next;
        }
        Err(ListError::Endless)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_order_whichever_is_removed() {
        let name = |number: usize| core::ptr::without_provenance_mut::<()>(number).cast::<Entry>();
        let (mut entries, mut expected) = (Entries::new(), Vec::new());
        for round in 0..200 {
            let (few, removed) = (round % (2 * FEW + 1), round * 7 % (2 * FEW));
            while expected.len() <= few {
                let entry = name(1 + round + 1_000 * expected.len());
                entries.push(entry);
                expected.push(entry);
            }
            if removed < expected.len() {
                assert_eq!(entries.place_of(expected[removed]), Some(removed));
                entries.remove(removed);
                expected.remove(removed);
            }
            assert_eq!((entries.len(), entries.last()), (expected.len(), expected.last().copied()));
            assert!((0..=expected.len()).all(|place| entries.get(place) == expected.get(place).copied()));
            assert_eq!(entries.more.capacity() == 0, expected.len() <= FEW, "{} entries", expected.len());
        }
    }

    #[test]
    fn the_first_entries_need_no_allocator() {
        let mut entries = Entries::new();
        (0..FEW).for_each(|_| entries.push(null_mut()));
        assert_eq!(entries.more.capacity(), 0);
    }
}
