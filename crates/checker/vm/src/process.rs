//! Processes of the machine, and memory that they share at different addresses.
//!
//! The processes of a run live in one address space and trust each other not to look. What tells
//! them apart is what the kernel tells apart: private futexes, signal handlers, and which threads
//! die together. A [`Region`] is mapped as often as one likes, each time at another address, and a
//! shared futex in it is the same futex at all of them.

use crate::engine::{self, linux};
use crate::thread::{self, JoinHandle};
use core::panic::Location;
use core::ptr::NonNull;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Starts a process whose first thread runs `body`.
#[track_caller]
pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let at = Location::caller();
    thread::start(body, |body| {
        engine::with(|engine| linux::demand(engine, "a process").spawn_process(body, at))
    })
}

/// The number of the calling thread's process: 0 runs the model itself.
#[must_use]
pub fn current() -> usize {
    engine::with(|engine| engine.linux().map_or(0, |linux| linux.current_process()))
}

/// Registers the calling thread's robust list, as `set_robust_list`: the kernel walks it when the
/// thread dies.
///
/// `head` is the address of three words: an `AtomicPtr` to the first entry, an `AtomicUsize` with
/// the distance from an entry to its futex word, and an `AtomicPtr` to the entry of the lock that
/// is being acquired or released. An entry begins with an `AtomicPtr` to the next; the last one's
/// is `head`. A lock is taken for the thread's if its word holds the thread's number plus one
/// ([`robust_tid`]).
///
/// The kernel marks each lock of the list that is the thread's: it sets `FUTEX_OWNER_DIED`, keeps
/// `FUTEX_WAITERS`, and wakes one waiter if that was set. The pending lock is marked in the same
/// way. If the pending lock is not the thread's, the kernel writes nothing. It wakes one waiter if
/// the word names no owner; Linux 7.2 does so also if the word names an owner without
/// `FUTEX_WAITERS`. [`Config::kernel`](crate::explore::Config::kernel) chooses between them. Both
/// rules were measured, on 6.18 and on 7.2.
///
/// # Safety
/// What the list leads to is alive whenever the thread may die.
pub unsafe fn set_robust_list(head: *const ()) {
    engine::with(|engine| {
        if let Some(linux) = engine.linux() {
            linux.set_robust_list(head.expose_provenance());
        }
    });
}

/// The thread id that a robust lock's word holds while the calling thread owns it.
#[must_use]
pub fn robust_tid() -> u32 {
    thread::current() as u32 + 1
}

/// Memory that processes share. All zero at first. One that is made in a run ends with it.
#[derive(Clone, Debug)]
pub struct Region(Arc<Pages>);

#[derive(Debug)]
struct Pages {
    file: i32,
    bytes: usize,
    number: usize,
    is_of_a_run: bool,
}

/// A region at one address. The mapping ends when this is dropped, or with the run.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    number: usize,
    region: Region,
}

/// What a run has asked the kernel for. Threads that die in it drop nothing, so the rest is given
/// back at its end.
#[derive(Clone, Copy)]
enum Resource {
    File(i32),
    Mapping { start: usize, bytes: usize },
}

thread_local! {
    /// The resources of this run, by number.
    static RESOURCES: RefCell<HashMap<usize, Resource>> = RefCell::default();
}

/// A number that no other region or mapping has.
fn next_number() -> usize {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    NUMBER.fetch_add(1, Relaxed)
}

fn keep(number: usize, resource: Resource) {
    if engine::is_installed() {
        RESOURCES.with_borrow_mut(|kept| {
            kept.insert(number, resource);
        });
    }
}

/// Gives back what the run that has just ended still has. Nothing of it refers to that any more but
/// by `unsafe` code.
pub(crate) fn end_run() {
    RESOURCES.with_borrow_mut(|kept| kept.drain().for_each(|(_, resource)| give_back(resource)));
}

/// Gives back a resource, unless its run has ended.
fn drop_resource(number: usize, resource: Resource, is_of_a_run: bool) {
    let was_kept = RESOURCES.try_with(|kept| kept.borrow_mut().remove(&number).is_some());
    if was_kept.unwrap_or(false) || !is_of_a_run {
        give_back(resource);
    }
}

fn give_back(resource: Resource) {
    match resource {
        // SAFETY: the descriptor is ours, and is given back once.
        Resource::File(file) => unsafe {
            libc::close(file);
        },
        Resource::Mapping { start, bytes } => {
            let base = core::ptr::with_exposed_provenance_mut(start);
            // SAFETY: the mapping was made by `map` and is given back once. Borrows of what is in
            // it end before the `Mapping` does, and are of a run, which has ended.
            unsafe {
                libc::munmap(base, bytes);
            }
        }
    }
}

// SAFETY: a mapping is plain memory of the process, which any thread may access and unmap.
unsafe impl Send for Mapping {}
// SAFETY: as above; a shared reference gives an address and nothing else.
unsafe impl Sync for Mapping {}

impl Region {
    /// A region of at least `bytes` bytes.
    ///
    /// # Panics
    /// If there is no memory for it.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let bytes = bytes.max(1).next_multiple_of(4096);
        // SAFETY: the name is a string that ends in zero; the call takes no other pointer.
        let file = unsafe { libc::memfd_create(c"ulocks-vm".as_ptr(), libc::MFD_CLOEXEC) };
        assert!(file >= 0, "no memory for a region: {}", std::io::Error::last_os_error());
        let pages = Pages { file, bytes, number: next_number(), is_of_a_run: engine::is_installed() };
        keep(pages.number, Resource::File(file));
        // SAFETY: takes a descriptor of ours and a number.
        let failed = unsafe { libc::ftruncate(file, bytes as libc::off_t) };
        assert_eq!(failed, 0, "no memory for a region: {}", std::io::Error::last_os_error());
        Self(Arc::new(pages))
    }

    /// Maps the region, at an address of its own.
    ///
    /// # Panics
    /// If the address space is exhausted.
    #[must_use]
    pub fn map(&self) -> Mapping {
        let Pages { file, bytes, number: region, .. } = *self.0;
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that exists.
        let base = unsafe { libc::mmap(core::ptr::null_mut(), bytes, access, flags, file, 0) };
        assert_ne!(base, libc::MAP_FAILED, "cannot map a region: {}", std::io::Error::last_os_error());
        let base = NonNull::new(base.cast::<u8>()).expect("the kernel maps nothing at null");
        let start = base.as_ptr().expose_provenance();
        let number = next_number();
        keep(number, Resource::Mapping { start, bytes });
        engine::with(|engine| {
            if let Some(linux) = engine.linux() {
                linux.map(start..start + bytes, region & 0x7fff);
            }
        });
        Mapping { base, number, region: self.clone() }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        drop_resource(self.number, Resource::File(self.file), self.is_of_a_run);
    }
}

impl Mapping {
    /// The address of the mapping.
    #[must_use]
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// How many bytes are mapped.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.region.0.bytes
    }

    /// The `T` at `offset`.
    ///
    /// # Safety
    /// A `T` is there: all-zero memory is one, or a caller has made one; and it is not accessed as
    /// anything else. The run in which the region was mapped has not ended.
    ///
    /// # Panics
    /// If it would not lie in the mapping, or not be aligned.
    #[must_use]
    pub unsafe fn at<T>(&self, offset: usize) -> &T {
        assert!(offset.is_multiple_of(align_of::<T>()), "offset {offset} is not aligned for the type");
        let end = offset.checked_add(size_of::<T>());
        assert!(end.is_some_and(|end| end <= self.bytes()), "offset {offset} lies outside of the region");
        // SAFETY: aligned and inside, by the assertions; a `T`, by the caller's promise; mapped as
        // long as `self`.
        unsafe { self.base.byte_add(offset).cast().as_ref() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let start = self.base.as_ptr().expose_provenance();
        drop_resource(self.number, Resource::Mapping { start, bytes: self.bytes() }, true);
    }
}
