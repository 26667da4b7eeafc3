//! What a region asks of the system: a file, its lock, its space, its mapping.
//!
//! The lock is an open file description lock on byte 0. It belongs to the open file, not to the
//! process: two regions of one process exclude each other as those of two processes do, and the
//! kernel releases it with the last descriptor of the open file, also if the process is killed.

use super::error::RegionError;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
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

/// Opens the file at `path`. With `mode` it makes a new one, and fails if there is one.
pub(super) fn open(path: &Path, mode: Option<u32>) -> Result<File, RegionError> {
    let mut options = OpenOptions::new();
    // A pipe without a reader, or a device, must not stop the caller.
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    if let Some(mode) = mode {
        options.create_new(true).mode(mode);
    }
    options.open(path).map_err(RegionError::of("open the file"))
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

/// Locks byte 0 of `file`, or changes the lock that `file` has, in one step. `false` if another
/// open file is in the way.
pub(super) fn try_lock(file: &File, kind: Kind) -> Result<bool, RegionError> {
    // SAFETY: all-zero bytes are a `flock`, whose fields are numbers.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    let kind = if kind == Kind::Shared { libc::F_RDLCK } else { libc::F_WRLCK };
    // Both constants are below three.
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_len = 1;
    let result = control(file.as_raw_fd(), &lock);
    match result.as_ref().map_err(io::Error::raw_os_error) {
        Ok(()) => Ok(true),
        Err(Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(_) => result.map(|()| true).map_err(|source| RegionError::Io { step: "lock the file", source }),
    }
}

/// Whether another open file has a lock on byte 0. Asks only: `file` has none afterwards.
pub(super) fn is_locked(file: &File) -> Result<bool, RegionError> {
    // SAFETY: all-zero bytes are a `flock`, whose fields are numbers.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    // Both constants are below three.
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_len = 1;
    // SAFETY: `lock` is a place for the answer, whose `l_pid` is zero, as this command demands.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
    if result < 0 {
        return Err(RegionError::of("ask for the lock of the file")(io::Error::last_os_error()));
    }
    Ok(lock.l_type != libc::F_UNLCK as libc::c_short)
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

/// Gives `file`, which is empty, `size` bytes of zeroes, and room for them on the disk: without the
/// room the first write to the mapping would be a SIGBUS.
pub(super) fn reserve(file: &File, size: u64) -> Result<(), RegionError> {
    let no_space = |source| RegionError::NoSpace { needed: size, source };
    let length =
        libc::off_t::try_from(size).map_err(|_| no_space(io::Error::from_raw_os_error(libc::EFBIG)))?;
    loop {
        // SAFETY: the descriptor is open; the numbers are not negative.
        let error = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) };
        match error {
            0 => return Ok(()),
            libc::EINTR => {}
            libc::ENOSPC | libc::EDQUOT | libc::EFBIG | libc::ENOMEM => {
                return Err(no_space(io::Error::from_raw_os_error(error)));
            }
            _ => {
                let source = io::Error::from_raw_os_error(error);
                return Err(RegionError::Io { step: "reserve space for the region", source });
            }
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

/// A number that is the same until the machine boots again, and then another.
pub(super) fn boot() -> Result<u64, RegionError> {
    let id = std::fs::read("/proc/sys/kernel/random/boot_id")
        .map_err(|source| RegionError::Io { step: "read the id of the boot", source })?;
    Ok(id.iter().fold(0, |hash, &byte| crate::safe::layout(&[hash, u64::from(byte)])))
}
