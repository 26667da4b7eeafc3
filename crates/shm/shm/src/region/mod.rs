//! [`Region`]: memory that processes share, with a header, slots and a root.

mod error;
#[cfg(doctest)]
mod escapes;
mod file;
mod header;
mod in_use;
mod join;
mod names;
mod options;
mod unfinished;
pub(crate) mod untyped;

pub use error::RegionError;
pub use header::MOST_PARTICIPANTS;
pub use in_use::InUse;
pub use join::Joined;
pub use options::Options;

use crate::safe::SharedSafe;
use file::Mapping;
use header::Plan;
use join::Count;
use names::Names;
use std::fmt;
use std::fs::File;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;

/// How a process came to its [`Region`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attached {
    /// It created the region: the root is all zero.
    Created,
    /// It found the region with no process attached: the locks were reset, the data is as it was
    /// left.
    Reset,
    /// Other processes are attached.
    Joined,
}

/// A value of type `R`, the *root*, in memory that processes share: in a file, which keeps the
/// data, or in anonymous memory. All locks in it are unlocked when the first process attaches.
///
/// A region derefs to its root, which was all zero when it was created. What the root may be is
/// said by [`SharedSafe`]: locks with the policy `Shared`, atomics, arrays and structs of them. A
/// region is mapped for reading and writing, at another address in each process, and twice if one
/// process opens it twice. It is created or opened by [`options`](Self::options).
///
/// # Attaching
/// A process is attached from the moment it opens the region until it drops it, ends, or is killed.
/// If no process is attached, the next one *resets* the region: it unlocks all locks, frees all
/// slots, and begins a new [epoch](Self::epoch). The data is kept as the last process left it, also
/// half-way through a change; [`attached`](Self::attached) says so. The same happens after a
/// reboot. What a lock keeps over a reset depends on its type:
///
/// | lock | after a reset |
/// |---|---|
/// | plain mutexes, reader-writer locks, condition variables | unlocked, without waiters |
/// | `Mutex`, `FairMutex`, `RwLock` | unlocked; the next holder is told if the last one died |
/// | `Semaphore`, `SemArray` | the values, and what dead threads had; do not add it again |
/// | values of a `Directory` | each as its type, when a program first asks for it |
///
/// What a program must do at that moment belongs into
/// [`create_or_open_with`](Options::create_or_open_with), before another process gets in.
///
/// If a process dies while others are attached, the plain locks that it held stay locked.
///
/// # Errors
/// [`RegionError`] lists them. A file that is not such a region, or is damaged, is left untouched.
/// The header is checked. The root is not: each of its bit patterns is valid.
///
/// # SIGBUS
/// If any process truncates the file of a mapped region, the next access to a page that is gone is
/// a SIGBUS in each process. A regular file cannot be protected from that: the kernel seals
/// anonymous files only. So an [anonymous](Options::anonymous) region is sealed, and a file should
/// be writable only for processes that are trusted not to truncate it. Never remove or replace the
/// file while processes may use it: the next process would create another region, with other locks.
/// A full disk is an error when the region is created and no SIGBUS later, since its space is
/// reserved. On an overlay file system, open the region by the path of the merged file only. A
/// program that opens the file of the lower layer directly has another file after the copy-up, and
/// so another region.
///
/// # Process-shared
/// All processes must be built from the same types for the same kind of machine. They must run on
/// one machine: a network file system shares the file, but not the futexes. They must trust each
/// other; the documentation of the crate says how far. After a power cut a file has what the kernel
/// had written by then, page by page in any order. The locks are reset, so only the data needs a
/// check of its own.
///
/// # Signals and forks
/// The methods of a region are not for signal handlers; the locks say themselves which of theirs
/// are. A child of `fork` inherits the mapping and may use the root. It keeps the region attached,
/// until it drops its `Region`, executes another program, or ends. Its drop does not detach the
/// parent.
///
/// # Examples
/// ```
/// use ulocks_core::Shared;
/// use ulocks_shm::{Attached, Region};
/// use ulocks_unfair::BargingMutexWith;
///
/// # let directory = std::env::temp_dir();
/// # let path = directory.join(format!("ulocks-example-{}", std::process::id()));
/// type Root = BargingMutexWith<u64, Shared>;
/// {
///     let region = Region::<Root>::options().create(&path, 0o600)?;
///     *region.lock() += 1;
///     std::mem::forget(region.lock()); // a process dies while it holds the lock
/// }
/// let region = Region::<Root>::options().open(&path)?;
/// assert_eq!(region.attached(), Attached::Reset);
/// assert_eq!(*region.lock(), 1);
/// # std::fs::remove_file(&path).expect("it is there");
/// # Ok::<(), ulocks_shm::RegionError>(())
/// ```
pub struct Region<R: SharedSafe> {
    // Before the file: the mapping goes first, the lock last. Neither goes if a thread has
    // forgotten that it takes part: the kernel writes to its slot when it ends. Of a child of fork,
    // whose parent's threads took part, the mapping stays: where the C library does not empty the
    // robust list of the child, the list leads to the slots of its parent.
    mapping: ManuallyDrop<Mapping>,
    file: ManuallyDrop<File>,
    joined: Count,
    names: Names,
    plan: Plan,
    epoch: u64,
    attached: Attached,
    root: PhantomData<R>,
}

// SAFETY: a region gives shared access to an `R`, which is `Sync`, and never drops or moves it. The
// mapping and the file belong to the process.
unsafe impl<R: SharedSafe> Send for Region<R> {}
// SAFETY: as above.
unsafe impl<R: SharedSafe> Sync for Region<R> {}

impl<R: SharedSafe> Region<R> {
    /// How to create or open a region.
    pub fn options() -> Options<R> {
        Options::new()
    }

    fn new(mapping: Mapping, file: File, plan: Plan, epoch: u64, attached: Attached) -> Self {
        let (mapping, file) = (ManuallyDrop::new(mapping), ManuallyDrop::new(file));
        let (joined, names) = (Count::default(), Names::new(plan.slots));
        Self { mapping, file, joined, names, plan, epoch, attached, root: PhantomData }
    }

    /// How this process came to the region.
    pub fn attached(&self) -> Attached {
        self.attached
    }

    /// How often the region has been created or reset. It does not change while a process is
    /// attached.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// How many threads can take part in robust locks.
    pub fn participants(&self) -> u32 {
        self.plan.slots
    }

    /// The file of the region, to be passed to another process, for [`from_fd`](Options::from_fd).
    /// It is closed by `exec`.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Where this process has mapped the region.
    #[doc(hidden)]
    pub fn base(&self) -> NonNull<u8> {
        self.mapping.base()
    }

    /// Where the slots begin: [`participants`](Self::participants) slots of 64 bytes, aligned to 64
    /// bytes, zeroed by creation and reset.
    #[doc(hidden)]
    pub fn slots(&self) -> NonNull<u8> {
        self.place(header::SLOTS_OFFSET)
    }

    /// Detaches this process, as a drop does, unless one of its threads still takes part.
    ///
    /// # Errors
    /// If a thread takes part whose [`Joined`] was forgotten. A drop would leave the region mapped
    /// and attached until the process ends.
    pub fn detach(self) -> Result<(), InUse<Self>> {
        match self.taking_part() {
            0 => Ok(()),
            threads => Err(InUse::new(self, threads, "threads of this process take part in the region")),
        }
    }

    /// How many threads of this process take part. What those that have left did to the region
    /// happens before.
    #[doc(hidden)]
    pub fn taking_part(&self) -> usize {
        self.joined.get()
    }

    fn root(&self) -> NonNull<R> {
        self.place(self.plan.root).cast()
    }

    fn header(&self) -> &header::Mapped {
        // SAFETY: the mapping begins with the header, is aligned to a page, and lives as long as
        // `self`. The words are atomics, so each bit pattern is valid.
        unsafe { self.mapping.base().cast().as_ref() }
    }

    /// The byte at `offset` of the region, which is one of the plan's.
    fn place(&self, offset: u64) -> NonNull<u8> {
        let offset = usize::try_from(offset).expect("the mapping is larger");
        assert!(offset < self.mapping.size(), "the plan is larger than the mapping");
        // SAFETY: the offset is inside of the mapping.
        unsafe { self.mapping.base().add(offset) }
    }

    fn file(&self) -> &File {
        &self.file
    }
}

// What a panic leaves half done the locks say, the robust ones, or the program, as for a process
// that is killed.
impl<R: SharedSafe> UnwindSafe for Region<R> {}
impl<R: SharedSafe> RefUnwindSafe for Region<R> {}

impl<R: SharedSafe> Deref for Region<R> {
    type Target = R;

    fn deref(&self) -> &R {
        // SAFETY: the root is inside of the mapping and aligned, by the plan, which was computed
        // from `R`. Each bit pattern is valid and it changes through atomics and guards only, by
        // the contract of `SharedSafe`. It lives as long as `self`.
        unsafe { self.root().as_ref() }
    }
}

impl<R: SharedSafe> Drop for Region<R> {
    fn drop(&mut self) {
        if self.joined.get() != 0 {
            return;
        }
        if !self.joined.is_inherited() {
            // SAFETY: it is dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.mapping) };
        }
        // SAFETY: as above.
        unsafe { ManuallyDrop::drop(&mut self.file) };
    }
}

impl<R: SharedSafe> fmt::Debug for Region<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region")
            .field("size", &self.plan.size)
            .field("participants", &self.plan.slots)
            .field("epoch", &self.epoch)
            .field("attached", &self.attached)
            .finish_non_exhaustive()
    }
}
