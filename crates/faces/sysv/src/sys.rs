//! System calls, made directly: they leave `errno` alone, and no library can interpose them.
//!
//! The library for LD_PRELOAD defines `syscall`, `semop` and their kin. So this crate must not call
//! those of the C library.

use core::arch::asm;
use core::ptr::{null, null_mut};
use libc::{c_int, c_long};

/// What a system call says instead of a result: an `errno`, greater than 0.
pub type Errno = c_int;

/// A result, or an `errno`.
pub type Answer<T = c_int> = Result<T, Errno>;

/// Makes a system call. The answer is the kernel's: a negative `errno` is a failure.
///
/// # Safety
/// The call with these arguments must be one that leaves Rust's memory valid.
#[cfg(target_arch = "x86_64")]
#[inline]
pub unsafe fn raw(number: c_long, a: [usize; 6]) -> isize {
    let answer: isize;
    // SAFETY: the kernel changes rax, rcx and r11 only; the caller answers for the rest.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2], in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    answer
}

/// Makes a system call. The answer is the kernel's: a negative `errno` is a failure.
///
/// # Safety
/// The call with these arguments must be one that leaves Rust's memory valid.
#[cfg(target_arch = "aarch64")]
#[inline]
pub unsafe fn raw(number: c_long, a: [usize; 6]) -> isize {
    let answer: isize;
    // SAFETY: the kernel changes x0 only; the caller answers for the rest.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a[0] as isize => answer,
            in("x1") a[1], in("x2") a[2], in("x3") a[3], in("x4") a[4], in("x5") a[5],
            options(nostack),
        );
    }
    answer
}

/// As [`raw`], with the failure taken apart.
///
/// # Safety
/// As [`raw`].
#[inline]
pub unsafe fn call(number: c_long, a: [usize; 6]) -> Result<usize, Errno> {
    // SAFETY: the caller's promise.
    match unsafe { raw(number, a) } {
        answer if answer < 0 => Err(-answer as Errno),
        answer => Ok(answer as usize),
    }
}

/// SIGBUS in a set of signals.
pub const BUS: u64 = 1 << (libc::SIGBUS - 1);
const SET_BYTES: usize = 8;

/// Blocks all signals of the calling thread. Which were blocked before.
pub fn block_all() -> u64 {
    change_mask(libc::SIG_BLOCK, u64::MAX)
}

/// Blocks these signals of the calling thread, and no others.
pub fn set_mask(mask: u64) {
    change_mask(libc::SIG_SETMASK, mask);
}

/// Changes which signals of the calling thread are blocked. Which were before.
pub fn change_mask(how: c_int, set: u64) -> u64 {
    let mut before = 0_u64;
    let (set, old) = (&raw const set as usize, &raw mut before as usize);
    // SAFETY: both sets are borrowed, and have the size that is given.
    unsafe { raw(libc::SYS_rt_sigprocmask, [how as usize, set, old, SET_BYTES, 0, 0]) };
    before
}

/// The C library's way to say that a call has failed: -1.
pub fn fail(error: Errno) -> c_int {
    // SAFETY: the address is valid for writes by this thread.
    unsafe { *libc::__errno_location() = error };
    -1
}

/// Seconds since 1970, as the kernel stamps arrays.
#[inline]
pub fn seconds() -> u64 {
    // SAFETY: a null pointer asks for the result only.
    unsafe { libc::time(null_mut()) as u64 }
}

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn monotonic() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is borrowed.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

/// Sleeps on `word` while it is `expected`, until nanosecond `until` of CLOCK_MONOTONIC.
///
/// There is always a time limit: without one, the kernel would restart the wait after a handler
/// that was installed with `SA_RESTART`.
pub fn wait(word: &ulocks_core::sync::AtomicU32, expected: u32, until: u64) -> Answer<()> {
    let (seconds, nanoseconds) = ((until / 1_000_000_000) as i64, (until % 1_000_000_000) as i64);
    let limit = libc::timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let (address, limit) = (core::ptr::from_ref(word) as usize, &raw const limit as usize);
    let command = libc::FUTEX_WAIT_BITSET as usize;
    // SAFETY: the kernel reads the word and the limit, which are borrowed for the whole call.
    unsafe {
        call(libc::SYS_futex, [address, command, expected as usize, limit, 0, u32::MAX as usize]).map(drop)
    }
}

/// Wakes up to `count` threads that sleep on `word`.
pub fn wake(word: &ulocks_core::sync::AtomicU32, count: u32) {
    wake_at(core::ptr::from_ref(word) as usize, count);
}

/// Wakes the threads that sleep on `word` with one of these bits.
pub fn wake_some(word: &ulocks_core::sync::AtomicU32, bits: u32) {
    let a = [
        core::ptr::from_ref(word) as usize,
        libc::FUTEX_WAKE_BITSET as usize,
        i32::MAX as usize,
        0,
        0,
        bits as usize,
    ];
    // SAFETY: a wake-up neither reads nor writes the word.
    unsafe { raw(libc::SYS_futex, a) };
}

/// The same of the word at `address`.
pub fn wake_at(address: usize, count: u32) {
    // SAFETY: a wake-up neither reads nor writes the word, which need not be there.
    unsafe { raw(libc::SYS_futex, [address, libc::FUTEX_WAKE as usize, count as usize, 0, 0, 0]) };
}

/// The calling process.
pub fn process() -> u32 {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { raw(libc::SYS_getpid, [0; 6]) as u32 }
}

/// The calling thread. A child of `vfork` gets its own number, and leaves its parent the one that
/// is kept in `ulocks_core::tid`.
pub fn thread() -> u32 {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { raw(libc::SYS_gettid, [0; 6]) as u32 }
}

/// Sends a signal to the calling thread, as `info` describes it. If the user may queue no more, it
/// comes without that.
pub fn queue_to_self(signal: c_int, info: &libc::siginfo_t) {
    let mut info = *info;
    for _ in 0..2 {
        let (thread, place) = (thread() as usize, &raw const info as usize);
        let a = [process() as usize, thread, signal as usize, place, 0, 0];
        // SAFETY: the call reads the structure, which is borrowed.
        if unsafe { call(libc::SYS_rt_tgsigqueueinfo, a) }.is_ok() {
            return;
        }
        info.si_code = libc::SI_USER; // Such a signal needs no place in the queue.
    }
}

/// Sends a signal to the calling thread.
pub fn send_to_self(signal: c_int) {
    let (process, thread) = (process() as usize, thread() as usize);
    // SAFETY: the call touches no memory; the caller wants what the signal does.
    unsafe { raw(libc::SYS_tgkill, [process, thread, signal as usize, 0, 0, 0]) };
}

/// Whether thread `thread` exists in process `process`; a process that may not be signalled exists.
pub fn exists(process: u32, thread: u32) -> bool {
    // SAFETY: signal 0 is sent to no thread.
    let answer = unsafe { call(libc::SYS_tgkill, [process as usize, thread as usize, 0, 0, 0, 0]) };
    answer != Err(libc::ESRCH)
}

/// Whether a thread with this number exists in any process.
pub fn thread_exists(thread: u32) -> bool {
    // SAFETY: signal 0 is sent to no thread.
    let answer = unsafe { call(libc::SYS_tkill, [thread as usize, 0, 0, 0, 0, 0]) };
    answer != Err(libc::ESRCH)
}

/// An open file that is closed when dropped.
#[derive(Debug)]
pub struct File(usize);

impl File {
    /// Opens `path`, which ends with a zero byte.
    pub fn open(path: &[u8], flags: c_int, mode: u32) -> Result<Self, Errno> {
        if path.last() != Some(&0) {
            return Err(libc::EINVAL);
        }
        let flags = flags | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        let at = libc::AT_FDCWD as usize;
        let a = [at, path.as_ptr() as usize, flags as usize, mode as usize, 0, 0];
        // SAFETY: the path is borrowed and ends with a zero byte.
        unsafe { call(libc::SYS_openat, a).map(Self) }
    }

    /// The descriptor.
    pub fn number(&self) -> usize {
        self.0
    }

    /// What fstat says.
    pub fn stat(&self) -> Answer<libc::stat> {
        // SAFETY: all-zero is a valid value of these integers.
        let mut stat: libc::stat = unsafe { core::mem::zeroed() };
        let place = &raw mut stat as usize;
        // SAFETY: the place has the size of the kernel's structure, which is libc's.
        unsafe { call(libc::SYS_fstat, [self.0, place, 0, 0, 0, 0]) }.map(|_| stat)
    }

    /// Sets the length.
    ///
    /// # Errors
    /// ENOSPC also if the process may not make a file of that length.
    pub fn set_len(&self, bytes: usize) -> Answer<()> {
        check_limit(bytes)?;
        // SAFETY: the call changes a file only.
        unsafe { call(libc::SYS_ftruncate, [self.0, bytes, 0, 0, 0, 0]) }.map(drop)
    }

    /// Takes memory or disk for the first `bytes`.
    ///
    /// # Errors
    /// As [`set_len`](Self::set_len).
    pub fn allocate(&self, bytes: usize) -> Answer<()> {
        check_limit(bytes)?;
        // SAFETY: the call changes a file only.
        let allocate = || unsafe { call(libc::SYS_fallocate, [self.0, 0, 0, bytes, 0, 0]) };
        let mut answer = allocate();
        while answer == Err(libc::EINTR) {
            answer = allocate(); // The handler waits.
        }
        match answer {
            Err(libc::EOPNOTSUPP | libc::ENOSYS) => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// Sets the access bits.
    pub fn set_mode(&self, mode: u32) -> Answer<()> {
        // SAFETY: the call changes a file only.
        unsafe { call(libc::SYS_fchmod, [self.0, mode as usize, 0, 0, 0, 0]) }.map(drop)
    }

    /// Reads up to the length of `into`, from the file's position.
    pub fn read(&self, into: &mut [u8]) -> Answer<usize> {
        // SAFETY: the place is borrowed, with its length.
        unsafe { call(libc::SYS_read, [self.0, into.as_mut_ptr() as usize, into.len(), 0, 0, 0]) }
    }

    /// Writes the bytes at the file's position, all of them or none.
    pub fn write(&self, bytes: &[u8]) -> Answer<()> {
        // SAFETY: the bytes are borrowed, with their length.
        let done = unsafe { call(libc::SYS_write, [self.0, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]) }?;
        if done == bytes.len() { Ok(()) } else { Err(libc::ENOSPC) }
    }

    /// Makes a file with this name. What has the name is removed first.
    pub fn make(path: &[u8]) -> Answer<Self> {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
        match Self::open(path, flags, 0o600) {
            Err(libc::EEXIST) => {
                unlink(path)?;
                Self::open(path, flags, 0o600)
            }
            answer => answer,
        }
    }

    /// Maps the first `bytes`, shared, for reading and writing. The mapping stays.
    pub fn map(&self, bytes: usize) -> Answer<*mut u8> {
        let access = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let a = [0, bytes, access, libc::MAP_SHARED as usize, self.0, 0];
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory in use.
        unsafe { call(libc::SYS_mmap, a) }.map(core::ptr::with_exposed_provenance_mut)
    }
}

/// Whether the process may make a file of that length. The kernel would send SIGXFSZ if not.
fn check_limit(bytes: usize) -> Answer<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let place = &raw mut limit as usize;
    // SAFETY: the place is borrowed, and has the size of the kernel's structure; 0 is the caller.
    let asked = unsafe { call(libc::SYS_prlimit64, [0, libc::RLIMIT_FSIZE as usize, 0, place, 0, 0]) };
    if asked.is_ok() && bytes as u64 > limit.rlim_cur { Err(libc::ENOSPC) } else { Ok(()) }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this object's, and is closed once.
        unsafe { raw(libc::SYS_close, [self.0, 0, 0, 0, 0, 0]) };
    }
}

/// New zeroed memory of the process, whole pages.
pub fn anonymous(bytes: usize) -> Answer<*mut u8> {
    let access = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let kind = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory in use.
    unsafe { call(libc::SYS_mmap, [0, bytes, access, kind, usize::MAX, 0]) }
        .map(core::ptr::with_exposed_provenance_mut)
}

/// Replaces a mapping of `bytes` at `from` by zeroes of the process's own, from the page of its
/// byte `first` to its end.
///
/// # Safety
/// All users of that part expect that.
///
/// # Errors
/// ENOMEM if the kernel has no room for the new mapping. Then the range stays as it was.
pub unsafe fn blank(from: *mut u8, bytes: usize, first: usize) -> Answer<()> {
    // SAFETY: the call takes a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize; // Safe in a signal handler.
    let kept = first & page.wrapping_neg();
    let (from, bytes) = (from as usize + kept, bytes - kept);
    let access = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: the range was mapped by this crate, and stays mapped.
    unsafe { call(libc::SYS_mmap, [from, bytes, access, kind as usize, usize::MAX, 0]) }.map(drop)
}

/// Gives the memory of a blank mapping back. In a program that has called `mlockall`, a new mapping
/// is locked, and has taken all of its memory.
///
/// # Safety
/// The mapping is the process's own, and its users expect that it becomes zero.
pub unsafe fn unlock(from: *mut u8, bytes: usize) {
    // SAFETY: the range is a mapping, and stays one.
    unsafe { raw(libc::SYS_munlock, [from as usize, bytes, 0, 0, 0, 0]) };
    // SAFETY: as above; the caller's promise for the contents.
    unsafe { raw(libc::SYS_madvise, [from as usize, bytes, libc::MADV_DONTNEED as usize, 0, 0, 0]) };
}

/// Unmaps a mapping that no thread knows.
///
/// # Safety
/// As the name says.
pub unsafe fn unmap(from: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { raw(libc::SYS_munmap, [from as usize, bytes, 0, 0, 0, 0]) };
}

/// Takes memory for a part of a mapping, so that a full file system gives an error and no SIGBUS.
pub fn populate(from: *const u8, bytes: usize) -> Answer<()> {
    const POPULATE_WRITE: usize = 23;
    let first = from as usize & !4095;
    let end = (from as usize + bytes).next_multiple_of(4096);
    // SAFETY: the advice changes no contents.
    match unsafe { call(libc::SYS_madvise, [first, end - first, POPULATE_WRITE, 0, 0, 0]) } {
        Err(libc::EINVAL | libc::ENOSYS) | Ok(_) => Ok(()), // Before Linux 5.14.
        Err(_) => Err(libc::ENOMEM),
    }
}

/// Removes the name `path`, which ends with a zero byte.
pub fn unlink(path: &[u8]) -> Answer<()> {
    if path.last() != Some(&0) {
        return Err(libc::EINVAL);
    }
    let at = libc::AT_FDCWD as usize;
    // SAFETY: the path is borrowed and ends with a zero byte.
    unsafe { call(libc::SYS_unlinkat, [at, path.as_ptr() as usize, 0, 0, 0, 0]) }.map(drop)
}

/// Gives the file `from` the name `to`, unless that name is taken. Both end with a zero byte.
pub fn rename_new(from: &[u8], to: &[u8]) -> Answer<()> {
    const NOREPLACE: usize = 1;
    if from.last() != Some(&0) || to.last() != Some(&0) {
        return Err(libc::EINVAL);
    }
    let at = libc::AT_FDCWD as usize;
    let a = [at, from.as_ptr() as usize, at, to.as_ptr() as usize, NOREPLACE, 0];
    // SAFETY: both paths are borrowed and end with a zero byte.
    unsafe { call(libc::SYS_renameat2, a) }.map(drop)
}

/// Makes a folder that its user alone may use.
pub fn make_folder(path: &[u8]) -> Answer<()> {
    const OWN: usize = 0o700;
    if path.last() != Some(&0) {
        return Err(libc::EINVAL);
    }
    let (at, path) = (libc::AT_FDCWD as usize, path.as_ptr() as usize);
    // SAFETY: the path is borrowed and ends with a zero byte.
    unsafe { call(libc::SYS_mkdirat, [at, path, OWN, 0, 0, 0]) }.map(drop)
}

/// Writes one line to standard error.
pub fn complain(parts: &[&[u8]]) {
    let mut line = [0_u8; 512];
    let mut used = 0;
    for part in [b"ulocks_sysv: ".as_slice()].iter().chain(parts).chain(&[b"\n".as_slice()]) {
        let room = part.len().min(line.len() - used);
        line[used..used + room].copy_from_slice(&part[..room]);
        used += room;
    }
    // SAFETY: the line is borrowed, with its length.
    unsafe { raw(libc::SYS_write, [2, line.as_ptr() as usize, used, 0, 0, 0]) };
}

/// The value of an environment variable; `name` ends with a zero byte.
pub fn environment(name: &core::ffi::CStr) -> Option<&'static [u8]> {
    // SAFETY: the name ends with a zero byte.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if core::ptr::eq(value, null()) {
        return None;
    }
    // SAFETY: the value ends with a zero byte. It is read at once, before the program can change
    // it.
    Some(unsafe { core::ffi::CStr::from_ptr(value) }.to_bytes())
}
