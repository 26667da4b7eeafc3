//! What a region asks of the system: a file, its lock, its space, its mapping.
//!
//! The locks are open file description locks on two bytes. They belong to the open file, not to the
//! process: two regions of one process exclude each other as those of two processes do, and the
//! kernel releases them with the last descriptor of the open file, also if the process is killed.

use super::error::RegionError;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::NonNull;

/// What another open file holds if a lock is not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// With others that have the same kind.
    Shared,
    /// Alone.
    Exclusive,
}

/// The byte whose lock a process has while it attaches and while it is attached.
const GATE: i64 = 0;
/// The byte whose lock a process has while it is attached.
const ATTACHED: i64 = 1;

/// Opens the file at `path`. With `mode` it makes a new one, and fails if there is one.
pub(super) fn open(path: &Path, mode: Option<u32>) -> Result<File, RegionError> {
    let mut options = OpenOptions::new();
    // A pipe without a reader, or a device, must not stop the caller.
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    if let Some(mode) = mode {
        options.create_new(true).mode(mode);
    }
    options.open(path).map_err(RegionError::of("open the file")).map_err(|error| match error {
        RegionError::NotFound if mode.is_some() => RegionError::NoFolder,
        error => error,
    })
}

/// Opens the file of `fd` once more. A duplicate of `fd` would be the same open file, and so share
/// its lock: it would find itself alone beside the region that it comes from.
pub(super) fn reopen(fd: BorrowedFd<'_>) -> Result<File, RegionError> {
    let step = "find out how the descriptor was opened";
    // SAFETY: `fd` is open; the call has no other arguments.
    let flags = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) };
    if flags < 0 {
        return Err(RegionError::of(step)(io::Error::last_os_error()));
    }
    if flags & libc::O_ACCMODE != libc::O_RDWR {
        return Err(RegionError::ReadOnly);
    }
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    open(Path::new(&path), None).map_err(|error| match error {
        RegionError::NotFound => {
            let source = io::Error::from_raw_os_error(libc::ENOENT);
            RegionError::Io { step: "open the descriptor again: it takes a /proc", source }
        }
        error => error,
    })
}

/// A new file without a name.
pub(super) fn nameless() -> Result<File, RegionError> {
    // SAFETY: the name ends with a zero.
    let fd =
        unsafe { libc::memfd_create(c"ulocks-region".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    if fd < 0 {
        return Err(RegionError::of("create an anonymous file")(io::Error::last_os_error()));
    }
    // SAFETY: a new descriptor, which nothing else owns.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Forbids for ever to make the nameless `file` shorter or longer, and to lift that.
pub(super) fn seal(file: &File) -> Result<(), RegionError> {
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: the descriptor is open, and the argument is a number.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) };
    if result == 0 { Ok(()) } else { Err(RegionError::of("seal the file")(io::Error::last_os_error())) }
}

/// Locks `file` as one that attaches, or changes the lock that it has, in one step. `false` if
/// another open file is in the way.
pub(super) fn try_lock(file: &File, kind: Kind) -> Result<bool, RegionError> {
    let result = control(file.as_raw_fd(), &lock_of(kind, GATE));
    match result.as_ref().map_err(io::Error::raw_os_error) {
        Ok(()) => Ok(true),
        Err(Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(_) => result.map(|()| true).map_err(|source| RegionError::Io { step: "lock the file", source }),
    }
}

/// Says that `file` is attached from now on. It has a lock of [`try_lock`].
pub(super) fn attach(file: &File) -> Result<(), RegionError> {
    control(file.as_raw_fd(), &lock_of(Kind::Shared, ATTACHED))
        .map_err(|source| RegionError::Io { step: "lock the file", source })
}

/// Whether another open file is attached.
pub(super) fn has_attached(file: &File) -> Result<bool, RegionError> {
    is_locked_at(file, ATTACHED)
}

/// Whether another open file is attached or attaches. Asks only: `file` has no lock afterwards.
pub(super) fn is_locked(file: &File) -> Result<bool, RegionError> {
    is_locked_at(file, GATE)
}

/// Does `work` with the exclusive lock of `file`. If it fails or panics, `file` has no lock
/// afterwards, although a child that was forked meanwhile has a copy of its descriptor.
pub(super) fn alone<T>(file: &File, work: impl FnOnce() -> Result<T, RegionError>) -> Result<T, RegionError> {
    struct Unlocks<'f>(&'f File, u32);
    impl Drop for Unlocks<'_> {
        fn drop(&mut self) {
            // A child that comes here has a copy of its parent's lock.
            if std::process::id() == self.1 {
                let all = libc::flock { l_len: 0, l_type: libc::F_UNLCK as _, ..lock_of(Kind::Shared, GATE) };
                let _ = control(self.0.as_raw_fd(), &all);
            }
        }
    }
    let unlocks = Unlocks(file, std::process::id());
    let made = work()?;
    std::mem::forget(unlocks);
    Ok(made)
}

/// Removes the name `path`, if it is still the name of `file`.
pub(super) fn remove(path: &Path, file: &File) {
    let (Ok(named), Ok(mine)) = (std::fs::symlink_metadata(path), file.metadata()) else { return };
    if (named.dev(), named.ino()) == (mine.dev(), mine.ino()) {
        let _ = std::fs::remove_file(path);
    }
}

fn is_locked_at(file: &File, byte: i64) -> Result<bool, RegionError> {
    let mut lock = lock_of(Kind::Exclusive, byte);
    // SAFETY: `lock` is a place for the answer, whose `l_pid` is zero, as this command demands.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
    if result < 0 {
        return Err(RegionError::of("ask for the lock of the file")(io::Error::last_os_error()));
    }
    Ok(lock.l_type != libc::F_UNLCK as libc::c_short)
}

fn lock_of(kind: Kind, byte: i64) -> libc::flock {
    // SAFETY: all-zero bytes are a `flock`, whose fields are numbers.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    let kind = if kind == Kind::Shared { libc::F_RDLCK } else { libc::F_WRLCK };
    // Both constants are below three.
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    // 0 or 1.
    lock.l_start = byte as libc::off_t;
    lock.l_len = 1;
    lock
}

fn control(fd: RawFd, lock: &libc::flock) -> io::Result<()> {
    loop {
        // SAFETY: `lock` is a `flock` whose `l_pid` is zero, as this command demands.
        if unsafe { libc::fcntl(fd, libc::F_OFD_SETLK, std::ptr::from_ref(lock)) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Gives `file`, which is empty, `size` bytes, and room for them on the disk: without the room the
/// first write to the mapping would be a SIGBUS. It begins with `mark`, also if this process is
/// killed before it has the size; all else is zero.
pub(super) fn reserve(file: &File, size: u64, mark: u64) -> Result<(), RegionError> {
    let failed = |source: io::Error| match source.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG | libc::ENOMEM) => {
            RegionError::NoSpace { needed: size, source }
        }
        _ => RegionError::Io { step: "reserve space for the region", source },
    };
    let too_large = || failed(io::Error::from_raw_os_error(libc::EFBIG));
    let length = libc::off_t::try_from(size).map_err(|_| too_large())?;
    // Beyond the limit the kernel would send a SIGXFSZ, which ends a process by default.
    if most_bytes().is_some_and(|most| size > most) {
        return Err(too_large());
    }
    if has_huge_pages(file)? {
        return Err(RegionError::HugePages);
    }
    file.write_all_at(&mark.to_ne_bytes(), 0).map_err(failed)?;
    loop {
        // SAFETY: the descriptor is open; the numbers are not negative.
        let error = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) };
        match error {
            0 => return Ok(()),
            libc::EINTR => {}
            error => return Err(failed(io::Error::from_raw_os_error(error))),
        }
    }
}

/// A part of the address space that shows a file, and is taken away when dropped.
#[derive(Debug)]
pub(super) struct Mapping {
    base: NonNull<u8>,
    size: usize,
}

impl Mapping {
    /// Maps the first `size` bytes of `file` at an address of the kernel's choice.
    pub fn new(file: &File, size: u64) -> Result<Self, RegionError> {
        let failed = |source| RegionError::Io { step: "map the file", source };
        let size = usize::try_from(size).map_err(|_| failed(io::Error::from_raw_os_error(libc::ENOMEM)))?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let fd = file.as_raw_fd();
        // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), size, protection, libc::MAP_SHARED, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(failed(io::Error::last_os_error()));
        }
        let base = NonNull::new(base.cast()).ok_or_else(|| failed(io::Error::other("address zero")))?;
        Ok(Self { base, size })
    }

    /// Its first byte.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// How many bytes it has.
    pub fn size(&self) -> usize {
        self.size
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this size; references into it do not outlive the owner.
        let result = unsafe { libc::munmap(self.base.as_ptr().cast(), self.size) };
        debug_assert_eq!(result, 0, "munmap: {}", io::Error::last_os_error());
    }
}

/// The limit on the size of files that this process writes, if there is one.
#[allow(clippy::unnecessary_cast, reason = "the limit has 32 bits in some C libraries")]
fn most_bytes() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a place for the answer.
    let asked = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    (asked == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur as u64)
}

/// Whether the file system gives files of whole huge pages only: then a file has another size than
/// its region.
#[allow(clippy::unnecessary_cast, reason = "the type of the field differs between C libraries")]
fn has_huge_pages(file: &File) -> Result<bool, RegionError> {
    // SAFETY: all-zero bytes are a `statfs`, whose fields are numbers.
    let mut status: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and `status` is a place for the answer.
    if unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut status) } != 0 {
        return Err(RegionError::of("examine the file system")(io::Error::last_os_error()));
    }
    Ok(status.f_type as i64 == HUGETLBFS)
}

/// `HUGETLBFS_MAGIC`.
const HUGETLBFS: i64 = 0x9584_58f6;

/// Where data is in `file` at or behind `offset`: what lies between is zero. `None` if there is no
/// more. The file system may not tell: then all is data.
pub(super) fn next_data(file: &File, offset: u64) -> Result<Option<u64>, RegionError> {
    let Ok(from) = libc::off_t::try_from(offset) else { return Ok(None) };
    // SAFETY: the descriptor is open. Nothing reads or writes at the position that this changes.
    let next = unsafe { libc::lseek(file.as_raw_fd(), from, libc::SEEK_DATA) };
    if next >= 0 {
        // Not negative, and not before `offset`.
        return Ok(Some(next as u64));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENXIO) => Ok(None),
        Some(libc::EINVAL | libc::EOPNOTSUPP) => Ok(Some(offset)),
        _ => Err(RegionError::of("look for data in the file")(error)),
    }
}

/// A number that is the same until the machine boots again, and then another; 0 if it is not known.
/// In a container it may be another than outside.
pub(super) fn boot() -> u64 {
    let id = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.iter().fold(0, |hash, &byte| crate::safe::layout(&[hash, u64::from(byte)]))
}
