//! How a region is created, opened, and reset.
//!
//! # Protocol
//! An attaching process asks for the exclusive lock of byte 0 first.
//!
//! | it gets | so | then |
//! |---|---|---|
//! | the exclusive lock | no process is attached, or creates, or resets | it checks the header, resets, and changes its lock to a shared one, in one step |
//! | the shared lock | some process is attached, or was just now | it checks the header |
//! | none | a process creates or resets | it tries again |
//!
//! With the shared lock it may find that no process has reset the region: the process that had the
//! exclusive lock has died, or found an error. It drops the lock and tries again. Then it is alone,
//! or another process is. It gives up at its deadline.
//!
//! A creating process makes the file, takes the exclusive lock, reserves the space and writes the
//! header, the magic last. Between the first two steps the file is empty and not locked. A process
//! that finds this drops the lock and tries again; with `create_or_open` it becomes the creator.
//! The first creator then finds a region, and attaches or reports that it exists. A file that lost
//! its name in the meantime is not used: its creator has failed and removed it.

use super::error::RegionError;
use super::file::{self, Kind, Mapping};
use super::header::{self, MAGIC, MOST_PARTICIPANTS, Plan, READY, RESETTING, WORDS, at};
use super::{Attached, Region};
use crate::safe::SharedSafe;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};
use ulocks_core::sync::Ordering::{Relaxed, Release};
use ulocks_core::sync::compiler_fence;

/// How long an attaching process sleeps between two attempts.
const PAUSE: Duration = Duration::from_millis(1);

/// How a [`Region`] is created or opened: made by [`Region::options`].
///
/// # Errors
/// All four ways report a [`RegionError`] and leave a file that was there as it was.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use ulocks_core::Shared;
/// use ulocks_shm::Region;
/// use ulocks_unfair::MutexWith;
///
/// let region = Region::<MutexWith<u64, Shared>>::options()
///     .participants(256)
///     .wait(Duration::from_millis(100))
///     .anonymous()?;
/// *region.lock() += 1;
/// # Ok::<(), ulocks_shm::RegionError>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct Options<R> {
    participants: u32,
    wait: Duration,
    root: PhantomData<fn() -> R>,
}

impl<R> Clone for Options<R> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

/// An error, and whether it may be over at the next attempt.
struct Failure {
    error: RegionError,
    passes: bool,
}

impl From<RegionError> for Failure {
    fn from(error: RegionError) -> Self {
        Self { error, passes: false }
    }
}

/// The failure of an attempt that another process may be the reason of.
fn passing(error: RegionError) -> Failure {
    Failure { error, passes: true }
}

/// What an attempt may do with an empty file.
#[derive(Clone, Copy)]
enum Empty {
    /// Makes a region of it, by this plan.
    Fill(Plan),
    /// Waits for its creator.
    Await,
}

impl<R: SharedSafe> Options<R> {
    pub(super) fn new() -> Self {
        Self { participants: 64, wait: Duration::from_secs(1), root: PhantomData }
    }

    /// Makes room for so many threads that take part in robust locks: 64 by default, at most 4096.
    /// Each takes 64 bytes. A region that exists keeps the number it was created with.
    pub fn participants(mut self, number: u32) -> Self {
        self.participants = number;
        self
    }

    /// Waits for so long for a process that creates or resets the region: a second by default.
    pub fn wait(mut self, limit: Duration) -> Self {
        self.wait = limit;
        self
    }

    /// Creates a region in a new file at `path`, with these permissions (less the umask).
    ///
    /// # Errors
    /// [`AlreadyExists`](RegionError::AlreadyExists) if there is a file. After an error there is no
    /// new one, except after [`Busy`](RegionError::Busy): another process makes a region of it.
    pub fn create(&self, path: impl AsRef<Path>, mode: u32) -> Result<Region<R>, RegionError> {
        self.create_at(path.as_ref(), mode, false)
    }

    /// Opens the region in the file at `path`.
    ///
    /// # Errors
    /// [`NotFound`](RegionError::NotFound) if there is no file; those of a file that is not such a
    /// region.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Region<R>, RegionError> {
        self.retry(|| self.attach(file::open(path.as_ref(), None)?, true, Empty::Await))
    }

    /// Opens the region in the file at `path`, or creates it if there is no file, or an empty one.
    ///
    /// # Errors
    /// As [`create`](Self::create) and [`open`](Self::open).
    pub fn create_or_open(&self, path: impl AsRef<Path>, mode: u32) -> Result<Region<R>, RegionError> {
        let fill = Empty::Fill(self.plan()?);
        self.retry(|| match file::open(path.as_ref(), None) {
            Ok(file) => self.attach(file, true, fill),
            Err(RegionError::NotFound) => {
                self.create_at(path.as_ref(), mode, true).map_err(|error| match error {
                    RegionError::AlreadyExists => passing(error),
                    error => error.into(),
                })
            }
            Err(error) => Err(error.into()),
        })
    }

    /// Creates a region without a name, for the children of this process, and for processes that
    /// get its [descriptor](Region::fd). It can be neither shortened nor extended.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn anonymous(&self) -> Result<Region<R>, RegionError> {
        let plan = self.plan()?;
        let file = file::nameless()?;
        file::try_lock(&file, Kind::Exclusive)?;
        file::reserve(&file, plan.size)?;
        file::seal(&file)?;
        Self::publish(file, plan)
    }

    /// Attaches to the region of a descriptor, which another process has passed on. It stays the
    /// caller's. As long as it is open it counts as attached, as it did in the process that it
    /// comes from; so close it.
    ///
    /// # Errors
    /// [`ReadOnly`](RegionError::ReadOnly) if it is not open for reading and writing; those of a
    /// file that is not such a region; if there is no `/proc`.
    pub fn from_fd(&self, fd: impl AsFd) -> Result<Region<R>, RegionError> {
        self.retry(|| self.attach(file::reopen(fd.as_fd())?, false, Empty::Await))
    }

    fn plan(&self) -> Result<Plan, RegionError> {
        match self.participants {
            0 => Err(RegionError::NoParticipants),
            asked if asked > MOST_PARTICIPANTS => Err(RegionError::TooManyParticipants { asked }),
            asked => Plan::of::<R>(u64::from(asked)).ok_or(RegionError::NoSpace {
                needed: u64::MAX,
                source: io::Error::from_raw_os_error(libc::EFBIG),
            }),
        }
    }

    /// Repeats `attempt` until it succeeds, fails for good, or the time is up.
    fn retry(
        &self,
        mut attempt: impl FnMut() -> Result<Region<R>, Failure>,
    ) -> Result<Region<R>, RegionError> {
        let begun = Instant::now();
        loop {
            match attempt() {
                Ok(region) => return Ok(region),
                Err(Failure { passes: true, .. }) if begun.elapsed() < self.wait => {
                    std::thread::sleep(PAUSE);
                }
                Err(Failure { error, .. }) => return Err(error),
            }
        }
    }

    /// Creates the file at `path` and a region in it. If an opener was faster with the new file,
    /// the region is that one's: `join` says whether to attach to it.
    fn create_at(&self, path: &Path, mode: u32, join: bool) -> Result<Region<R>, RegionError> {
        let plan = self.plan()?;
        let file = file::open(path, Some(mode))?;
        let begun = Instant::now();
        while !file::try_lock(&file, Kind::Exclusive)? && size_of_file(&file)? == 0 {
            if begun.elapsed() >= self.wait {
                return Err(RegionError::Busy);
            }
            std::thread::sleep(PAUSE);
        }
        if size_of_file(&file)? != 0 {
            drop(file);
            return if join { self.open(path) } else { Err(RegionError::AlreadyExists) };
        }
        let made = file::reserve(&file, plan.size)
            .and_then(|()| Self::publish(file.try_clone().map_err(RegionError::of("keep the file"))?, plan));
        if made.is_err() {
            // The lock is held until `file` is dropped: a process that waits for it finds no name.
            let _ = std::fs::remove_file(path);
        }
        made
    }

    /// One attempt to attach to `file`. If it is `named`, it must still have a name.
    fn attach(&self, file: File, named: bool, empty: Empty) -> Result<Region<R>, Failure> {
        let metadata = |file: &File| file.metadata().map_err(RegionError::of("examine the file"));
        if !metadata(&file)?.is_file() {
            return Err(RegionError::NotRegular.into());
        }
        let alone = file::try_lock(&file, Kind::Exclusive)?;
        if !alone && !file::try_lock(&file, Kind::Shared)? {
            return Err(passing(RegionError::Busy));
        }
        let now = metadata(&file)?;
        if named && now.nlink() == 0 {
            return Err(passing(RegionError::NotFound));
        }
        if now.len() == 0 {
            return match empty {
                Empty::Fill(plan) if alone => {
                    if let Err(error) = file::reserve(&file, plan.size) {
                        // It was empty, and is again.
                        let _ = file.set_len(0);
                        return Err(error.into());
                    }
                    Ok(Self::publish(file, plan)?)
                }
                _ => Err(passing(RegionError::HalfInitialised)),
            };
        }
        let boot = file::boot()?;
        let words = read(&file, now.len())?;
        let checked = header::check::<R>(&words, now.len());
        // Without the exclusive lock, another process may have been on the way to put this right.
        let plan = checked.map_err(|error| Failure {
            passes: !alone && matches!(error, RegionError::HalfInitialised),
            error,
        })?;
        if !alone && words[at::STATE] == RESETTING {
            return Err(passing(RegionError::Busy));
        }
        if !alone && words[at::BOOT] != boot {
            return Err(passing(RegionError::Corrupt { what: "the id of the boot" }));
        }
        let mapping = Mapping::new(&file, plan.size)?;
        let mut region = Region::<R>::new(mapping, file, plan, words[at::EPOCH], Attached::Joined);
        if alone {
            region.attached = Attached::Reset;
            region.epoch = words[at::EPOCH].wrapping_add(1);
            // SAFETY: the exclusive lock says that no other process and no other region of this
            // process is attached, and no thread has a reference from this one.
            unsafe { region.reset(boot) };
            file::try_lock(region.file(), Kind::Shared)?;
        }
        Ok(region)
    }

    /// Writes the header of a new region into `file`, which has the size and the exclusive lock.
    fn publish(file: File, plan: Plan) -> Result<Region<R>, RegionError> {
        let words = plan.words::<R>(file::boot()?);
        let region = Region::<R>::new(Mapping::new(&file, plan.size)?, file, plan, 1, Attached::Created);
        let header = region.header();
        for (place, word) in header.iter().zip(words) {
            place.store(word, Relaxed);
        }
        in_order();
        header[at::MAGIC].store(MAGIC, Relaxed);
        // The change of the lock cannot fail for another's sake: no other process has a lock.
        file::try_lock(region.file(), Kind::Shared)?;
        Ok(region)
    }
}

impl<R: SharedSafe> Region<R> {
    /// Makes all slots and locks as new, and begins the next epoch.
    ///
    /// # Safety
    /// The caller has the exclusive lock, and no reference into the region.
    unsafe fn reset(&self, boot: u64) {
        let header = self.header();
        header[at::STATE].store(RESETTING, Relaxed);
        in_order();
        let slots = usize::try_from(header::SLOT_SIZE * u64::from(self.participants()));
        let slots = slots.expect("the mapping is larger");
        // SAFETY: the slots are inside of the mapping by the plan; no other thread accesses them.
        // All zero is a free slot.
        unsafe { self.slots().as_ptr().write_bytes(0, slots) };
        // SAFETY: the root is inside of the mapping and aligned, by the plan; each bit pattern is
        // valid, by its type; no other thread accesses it.
        unsafe { R::reset_locks(self.root().as_ptr()) };
        header[at::EPOCH].store(self.epoch, Relaxed);
        header[at::NOT_EPOCH].store(!self.epoch, Relaxed);
        header[at::BOOT].store(boot, Relaxed);
        in_order();
        header[at::STATE].store(READY, Relaxed);
    }
}

/// If the process is killed, others find the stores before this call whenever they find one after
/// it. For death is to the thread as a signal handler is: the processor has done all before and
/// nothing after some instruction, and only the compiler could change the order. Processes that
/// live are ordered by the file's lock, which is the kernel's.
fn in_order() {
    compiler_fence(Release);
}

fn size_of_file(file: &File) -> Result<u64, RegionError> {
    file.metadata().map(|now| now.len()).map_err(RegionError::of("examine the file"))
}

/// The header of `file`, read once.
pub(super) fn read(file: &File, len: u64) -> Result<[u64; WORDS], RegionError> {
    let too_short = RegionError::Truncated { expected: header::BYTES as u64, found: len };
    if len < header::BYTES as u64 {
        return Err(too_short);
    }
    let mut bytes = [0; header::BYTES];
    file.read_exact_at(&mut bytes, 0).map_err(|source| match source.kind() {
        io::ErrorKind::UnexpectedEof => too_short,
        _ => RegionError::Io { step: "read the header", source },
    })?;
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
    }
    Ok(words)
}
