//! A lock of an open file description: what a program gets from the kernel that does not want any
//! memory shared. The kernel releases it when the last descriptor is closed, also at a death.

use super::{Lock, Scope};
use anyhow::{Context, Result};
use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;

/// A file without a name. Each thread that uses the lock opens it anew: a description that two
/// threads share excludes neither.
#[derive(Debug)]
pub struct Ofd(File);

thread_local! {
    /// What this thread has opened, by the process and the descriptor of the lock's file. A forked
    /// worker does not use what its parent has opened.
    static OPENED: RefCell<Vec<((u32, i32), &'static File)>> = const { RefCell::new(Vec::new()) };
}

impl Ofd {
    fn mine(&self) -> &'static File {
        let (process, fd) = (std::process::id(), self.0.as_raw_fd());
        OPENED.with_borrow_mut(|opened| {
            if let Some((_, file)) = opened.iter().find(|(of, _)| *of == (process, fd)) {
                return *file;
            }
            let path = format!("/proc/self/fd/{fd}");
            let file = OpenOptions::new().read(true).write(true).open(path).expect("the lock's file");
            let file: &'static File = Box::leak(Box::new(file));
            opened.push(((process, fd), file));
            file
        })
    }
}

/// Changes the lock of `file`; whether that was possible.
///
/// # Panics
/// If the kernel refuses for another reason than a holder.
fn control(file: &File, command: libc::c_int, kind: libc::c_int) -> bool {
    // SAFETY: all-zero bytes are a `flock`, whose fields are numbers.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_len = 1;
    loop {
        // SAFETY: `lock` is a `flock` whose `l_pid` is zero, as these commands demand.
        if unsafe { libc::fcntl(file.as_raw_fd(), command, &raw const lock) } == 0 {
            return true;
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EAGAIN | libc::EACCES) => return false,
            _ => panic!("fcntl: {error}"),
        }
    }
}

/// Holding the lock.
#[derive(Debug)]
pub struct Locked(&'static File);

impl Drop for Locked {
    fn drop(&mut self) {
        control(self.0, libc::F_OFD_SETLK, libc::F_UNLCK);
    }
}

impl Lock for Ofd {
    const COUNTABLE: bool = false;
    /// Its runs are those of `shared`.
    const BY_NAME: bool = true;

    fn unlocked(_: Scope) -> Result<Self> {
        // SAFETY: the name ends with a zero.
        let fd = unsafe { libc::memfd_create(c"ulocks-ofd".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error()).context("create a file without a name");
        }
        // SAFETY: a new descriptor, which nothing else owns.
        Ok(Self(unsafe { std::os::fd::FromRawFd::from_raw_fd(fd) }))
    }

    type Held<'a> = Locked;

    #[inline]
    fn acquire(&self) -> Locked {
        let file = self.mine();
        control(file, libc::F_OFD_SETLKW, libc::F_WRLCK);
        Locked(file)
    }

    #[inline]
    fn try_acquire(&self) -> Option<Locked> {
        let file = self.mine();
        control(file, libc::F_OFD_SETLK, libc::F_WRLCK).then_some(Locked(file))
    }
}
