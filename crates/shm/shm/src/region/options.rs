//! How a region is created, opened, and reset.
//!
//! # Protocol
//! The file has two locks: the gate, which an attaching process takes, and one that says that it is
//! attached. A process that is attached has both, shared. An attaching process asks for the gate
//! exclusively first.
//!
//! | it gets | so | then |
//! |---|---|---|
//! | the gate alone | no process is attached, or creates, or resets | it makes an unfinished file anew, or resets; it is attached, and changes its lock of the gate to a shared one in one step |
//! | the gate shared, and a process is attached | nobody resets from now on | it checks the header; it is attached |
//! | the gate shared, and no process is attached | others attach, or a process died before it had reset | it drops the lock and tries again |
//! | nothing | a process creates or resets | it tries again |
//!
//! It gives up at its deadline. The kernel drops the locks of a process that dies at any moment. So
//! a process that gets the gate alone knows that no creator lives. One that finds a process
//! attached knows that the region was reset before.
//!
//! A creating process makes the file, takes the gate, marks the file as begun, reserves the space,
//! writes the header, and prepares the root. Between the first two steps the file is empty and not
//! locked. A process that finds this drops the lock and tries again; with `create_or_open` it
//! becomes the creator. The first creator then finds a region, and reports that it exists, or
//! attaches; if the other one has failed by then, it makes the region anew. A file that lost its
//! name in the meantime is not used: its creator has failed and removed it. A creator that dies
//! leaves an unfinished file ([`unfinished`]), and `create_or_open` makes the region anew.

use super::error::RegionError;
use super::file::{self, Kind, Mapping};
use super::header::{self, BEGUN, MAGIC, MOST_PARTICIPANTS, Plan, READY, RESETTING, WORDS, at};
use super::{Attached, Region, unfinished};
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
/// All ways report a [`RegionError`] and leave a file that was there as it was.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use ulocks_core::Shared;
/// use ulocks_shm::Region;
/// use ulocks_unfair::BargingMutexWith;
///
/// let region = Region::<BargingMutexWith<u64, Shared>>::options()
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

/// What is done to a root, alone, before another process gets it.
type Prepare<'a, R> = &'a mut dyn FnMut(&Region<R>) -> Result<(), RegionError>;

/// What an attempt may do with an empty file, or one whose creator has died.
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
    ///
    /// Locks that are as large as their `SLOTS`, such as [`RwLock`](crate::RwLock), need as many
    /// slots. [`TooFewSlots`](RegionError::TooFewSlots) refuses a root with one of fewer.
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
    /// [`AlreadyExists`](RegionError::AlreadyExists) if there is a file;
    /// [`NoFolder`](RegionError::NoFolder) if its folder does not exist. After an error there is no
    /// new file, except after [`Busy`](RegionError::Busy): another process makes a region of it.
    pub fn create(&self, path: impl AsRef<Path>, mode: u32) -> Result<Region<R>, RegionError> {
        self.create_at(path.as_ref(), mode, &mut |_| Ok(()))
    }

    /// Opens the region in the file at `path`.
    ///
    /// # Errors
    /// [`NotFound`](RegionError::NotFound) if there is no file;
    /// [`HalfInitialised`](RegionError::HalfInitialised) if it is empty or its creator has died;
    /// those of a file that is not such a region.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Region<R>, RegionError> {
        self.open_by(path.as_ref(), &mut |_| Ok(()))
    }

    /// Opens the region in the file at `path`, or creates it if there is no file, or an empty one,
    /// or one whose creator has died before it was done.
    ///
    /// If the root needs more than zeroes and unlocked locks, use
    /// [`create_or_open_with`](Self::create_or_open_with): after this call other processes may have
    /// joined before the caller does anything.
    ///
    /// # Errors
    /// As [`create`](Self::create) and [`open`](Self::open).
    pub fn create_or_open(&self, path: impl AsRef<Path>, mode: u32) -> Result<Region<R>, RegionError> {
        self.create_or_open_by(path.as_ref(), mode, &mut |_| Ok(()))
    }

    /// The same. Before another process gets in, `prepare` is called with the region: when it is
    /// new ([`Attached::Created`]), and when no process was attached ([`Attached::Reset`]). Then it
    /// repairs the data that the last process may have left half-way through a change.
    ///
    /// If `prepare` fails or panics, or the process is killed meanwhile, a new region is made anew
    /// and an old one reset by the next process, which calls its own `prepare`. So all programs
    /// that share the region should prepare it alike. Others wait meanwhile, for as long as their
    /// [`wait`](Self::wait) says. `prepare` must not open the region.
    ///
    /// # Errors
    /// As [`create_or_open`](Self::create_or_open); [`Io`](RegionError::Io) with the error of
    /// `prepare`.
    ///
    /// # Panics
    /// If a child of a `fork` in `prepare` returns from it. The parent goes on.
    ///
    /// # Examples
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    /// use ulocks_shm::Region;
    ///
    /// # let path = std::env::temp_dir().join(format!("ulocks-prepared-{}", std::process::id()));
    /// let options = Region::<AtomicU32>::options();
    /// // Four disks are idle, in each epoch anew: a reset keeps the number that the last one left.
    /// let idle = options.create_or_open_with(&path, 0o600, |idle| {
    ///     idle.store(4, Relaxed);
    ///     Ok(())
    /// })?;
    /// assert_eq!(idle.load(Relaxed), 4);
    /// # std::fs::remove_file(&path).expect("it is there");
    /// # Ok::<(), ulocks_shm::RegionError>(())
    /// ```
    pub fn create_or_open_with(
        &self,
        path: impl AsRef<Path>,
        mode: u32,
        prepare: impl FnOnce(&Region<R>) -> io::Result<()>,
    ) -> Result<Region<R>, RegionError> {
        let mut prepare = Some(prepare);
        self.create_or_open_by(path.as_ref(), mode, &mut |region| {
            // No attempt follows the one that has called this.
            let prepare = prepare.take().expect("called once");
            prepare(region).map_err(|source| RegionError::Io { step: "prepare the root", source })
        })
    }

    fn open_by(&self, path: &Path, prepare: Prepare<'_, R>) -> Result<Region<R>, RegionError> {
        self.retry(|| self.attach(file::open(path, None)?, true, Empty::Await, prepare))
    }

    fn create_or_open_by(
        &self,
        path: &Path,
        mode: u32,
        prepare: Prepare<'_, R>,
    ) -> Result<Region<R>, RegionError> {
        let fill = Empty::Fill(self.plan()?);
        self.retry(|| match file::open(path, None) {
            Ok(file) => self.attach(file, true, fill, prepare),
            Err(RegionError::NotFound) => {
                self.create_at(path, mode, prepare).map_err(|error| match error {
                    // Another process has made the file, or has filled this one's. It may die
                    // before it is done: the next attempt attaches, or fills the file.
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
        file::reserve(&file, plan.size, BEGUN)?;
        file::seal(&file)?;
        Self::publish(file, plan, &mut |_| Ok(()))
    }

    /// Attaches to the region of a descriptor, which another process has passed on. It stays the
    /// caller's. As long as it is open it counts as attached, as it did in the process that it
    /// comes from; so close it.
    ///
    /// # Errors
    /// [`ReadOnly`](RegionError::ReadOnly) if it is not open for reading and writing; those of a
    /// file that is not such a region; if there is no `/proc`.
    pub fn from_fd(&self, fd: impl AsFd) -> Result<Region<R>, RegionError> {
        self.retry(|| self.attach(file::reopen(fd.as_fd())?, false, Empty::Await, &mut |_| Ok(())))
    }

    fn plan(&self) -> Result<Plan, RegionError> {
        match self.participants {
            0 => Err(RegionError::NoParticipants),
            asked if asked > MOST_PARTICIPANTS => Err(RegionError::TooManyParticipants { asked }),
            asked => {
                header::check_room::<R>(asked)?;
                Plan::of::<R>(u64::from(asked)).ok_or(RegionError::NoSpace {
                    needed: u64::MAX,
                    source: io::Error::from_raw_os_error(libc::EFBIG),
                })
            }
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
    /// the region is that one's, and exists.
    fn create_at(&self, path: &Path, mode: u32, prepare: Prepare<'_, R>) -> Result<Region<R>, RegionError> {
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
            return Err(RegionError::AlreadyExists);
        }
        file::alone(&file, || {
            let made = file::reserve(&file, plan.size, BEGUN).and_then(|()| {
                let file = file.try_clone().map_err(RegionError::of("keep the file"))?;
                Self::publish(file, plan, prepare)
            });
            if made.is_err() {
                // The lock is held meanwhile: a process that waits for it finds no name.
                file::remove(path, &file);
            }
            made
        })
    }

    /// One attempt to attach to `file`. If it is `named`, it must still have a name.
    fn attach(
        &self,
        file: File,
        named: bool,
        empty: Empty,
        prepare: Prepare<'_, R>,
    ) -> Result<Region<R>, Failure> {
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
        if now.len() == 0 || alone && unfinished::is_left::<R>(&file, now.len())? {
            return match empty {
                Empty::Fill(plan) if alone => Ok(Self::fill(file, plan, prepare)?),
                // The creator of an empty file may be about to lock it.
                _ => Err(Failure { error: RegionError::HalfInitialised, passes: now.len() == 0 }),
            };
        }
        if !alone && !file::has_attached(&file)? {
            return Err(passing(RegionError::Busy));
        }
        let words = read(&file, now.len())?;
        let plan = header::check::<R>(&words, now.len())?;
        let mapping = Mapping::new(&file, plan.size)?;
        let mut region = Region::<R>::new(mapping, file, plan, words[at::EPOCH], Attached::Joined);
        if alone {
            region.attached = Attached::Reset;
            region.epoch = words[at::EPOCH].wrapping_add(1);
            // SAFETY: the exclusive lock says that no other process and no other region of this
            // process is attached, and no thread has a reference from this one.
            unsafe { region.reset(file::boot()) };
            file::alone(region.file(), || region.prepared(prepare))?;
        }
        region.is_attached()?;
        Ok(region)
    }

    /// Makes a region of `file`, which is empty or was left by a dead creator. It has the exclusive
    /// lock.
    fn fill(file: File, plan: Plan, prepare: Prepare<'_, R>) -> Result<Region<R>, RegionError> {
        // What the dead creator has prepared is not zero.
        file.set_len(0).map_err(RegionError::of("empty the file"))?;
        if let Err(error) = file::reserve(&file, plan.size, BEGUN) {
            let _ = file.set_len(0);
            return Err(error);
        }
        let kept = file.try_clone().map_err(RegionError::of("keep the file"))?;
        file::alone(&kept, || Self::publish(file, plan, prepare))
    }

    /// Makes a new region in `file`, which has the size, the mark and the exclusive lock, and is
    /// all zero otherwise.
    fn publish(file: File, plan: Plan, prepare: Prepare<'_, R>) -> Result<Region<R>, RegionError> {
        let words = plan.words::<R>(file::boot());
        let region = Region::<R>::new(Mapping::new(&file, plan.size)?, file, plan, 1, Attached::Created);
        let header = region.header();
        for (place, word) in header.iter().zip(words) {
            place.store(word, Relaxed);
        }
        in_order();
        header[at::MAGIC].store(MAGIC, Relaxed);
        in_order();
        region.prepared(prepare)?;
        region.is_attached()?;
        Ok(region)
    }
}

impl<R: SharedSafe> Region<R> {
    /// Makes all slots and locks as new, and begins the next epoch. Then the root is to be
    /// [prepared](Self::prepared).
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
    }

    /// Prepares the root, and lets others use it. The caller has the exclusive lock.
    fn prepared(&self, prepare: Prepare<'_, R>) -> Result<(), RegionError> {
        let process = std::process::id();
        let prepared = prepare(self);
        // The child of a fork in `prepare` returns from it, too, and has a copy of the lock.
        assert!(
            std::process::id() == process,
            "a child of fork returns from the preparation of its parent's region; end it, or let it open the region"
        );
        prepared?;
        in_order();
        self.header()[at::STATE].store(READY, Relaxed);
        Ok(())
    }

    /// Says that this region is attached, and lets others attach.
    fn is_attached(&self) -> Result<(), RegionError> {
        file::attach(self.file())?;
        // The change of the lock cannot fail for another's sake: no other process has the lock
        // alone.
        file::try_lock(self.file(), Kind::Shared)?;
        Ok(())
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
    Ok(header::from_bytes(&bytes))
}
