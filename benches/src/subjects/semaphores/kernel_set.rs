//! A set of the kernel's semaphores that does not outlive the process that made it.
//!
//! System V semaphores stay when their process ends, and cannot be removed while they are still to
//! be used. The process that made a set therefore removes it: when [`SemSet`] is dropped, also by a
//! panic that unwinds; when a trial ends with workers that hang; and when a signal interrupts or
//! terminates the process, as one that takes [too long](crate::run::child). SIGKILL leaves a set
//! behind; `ipcs -s` shows it.

use anyhow::{Context, Result, ensure};
use std::io;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;

/// A set of semaphores.
#[derive(Debug)]
pub struct SemSet {
    id: libc::c_int,
    maker: libc::pid_t,
    len: usize,
}

impl Drop for SemSet {
    /// Removes the set, if this is the process that made it: a forked worker must not take it from
    /// the others.
    fn drop(&mut self) {
        // SAFETY: no pointers are involved; removing a set twice fails with EINVAL and harms no
        // thread.
        unsafe {
            if libc::getpid() == self.maker {
                replace(self.id + 1, 0);
                libc::semctl(self.id, 0, libc::IPC_RMID);
            }
        }
    }
}

/// What `semctl` takes fourth; libc does not name it.
#[repr(C)]
union Fourth {
    array: *mut u16,
}

impl SemSet {
    /// Makes a set of semaphores with these values.
    pub fn new(values: &[u32]) -> Result<Self> {
        let count = libc::c_int::try_from(values.len()).unwrap_or(libc::c_int::MAX);
        let given = values.iter().map(|&value| u16::try_from(value));
        let mut values: Vec<u16> = given.collect::<Result<_, _>>().context("semctl: values go to 32767")?;
        // SAFETY: no pointers are involved.
        let id = unsafe { libc::semget(libc::IPC_PRIVATE, count, 0o600) };
        ensure!(id >= 0, "semget of {count} semaphores: {}", io::Error::last_os_error());
        // From here on the set has an owner that removes it.
        // SAFETY: no pointers are involved.
        let set = Self { id, maker: unsafe { libc::getpid() }, len: values.len() };
        remember(&set);
        let all = Fourth { array: values.as_mut_ptr() };
        // SAFETY: SETALL reads as many values as the set has semaphores, and there are as many.
        let done = unsafe { libc::semctl(id, 0, libc::SETALL, all) };
        ensure!(done == 0, "semctl(SETALL): {}", io::Error::last_os_error());
        Ok(set)
    }

    /// Its id.
    pub fn id(&self) -> libc::c_int {
        self.id
    }

    /// The values of its semaphores.
    pub fn values(&self) -> Result<Vec<u32>> {
        let mut values = vec![0u16; self.len];
        let all = Fourth { array: values.as_mut_ptr() };
        // SAFETY: GETALL writes as many values as the set has semaphores, and there is room for
        // them.
        let done = unsafe { libc::semctl(self.id, 0, libc::GETALL, all) };
        ensure!(done == 0, "semctl(GETALL): {}", io::Error::last_os_error());
        Ok(values.into_iter().map(u32::from).collect())
    }

    /// Performs the operations, waiting until that is possible; says whether it was, which it is
    /// not if an operation that does not wait stopped it. A signal handler does not end it.
    ///
    /// # Panics
    /// If the kernel refuses the set for another reason.
    #[inline]
    pub fn apply(&self, ops: &[libc::sembuf]) -> bool {
        loop {
            // SAFETY: the operations are valid for reads; the kernel does not write to them.
            if unsafe { libc::semop(self.id, ops.as_ptr().cast_mut(), ops.len()) } == 0 {
                return true;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN) => return false,
                _ => panic!("semop: {error}"),
            }
        }
    }
}

/// Sets to remove when a signal ends the process: the id plus one; zero is a free place. More sets
/// than places are not remembered: a signal leaves those behind.
static SETS: [AtomicI32; 256] = [const { AtomicI32::new(0) }; 256];
/// The process that made them: a forked worker inherits the list and the handler.
static MAKER: AtomicI32 = AtomicI32::new(0);

fn replace(old: i32, new: i32) {
    let _ = SETS.iter().any(|place| place.compare_exchange(old, new, Relaxed, Relaxed).is_ok());
}

/// Sees to it that the set is removed by the signals that would end the process.
fn remember(set: &SemSet) {
    replace(0, set.id + 1);
    if MAKER.swap(set.maker, Relaxed) == set.maker {
        return;
    }
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler keeps to what a handler may do; ignored signals stay ignored.
        unsafe {
            if libc::signal(signal, on_signal as extern "C" fn(i32) as usize) == libc::SIG_IGN {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
    }
}

/// Removes the sets that this process has made and that are there yet. Async-signal-safe: atomics
/// and system calls.
pub(crate) fn remove_all() {
    // SAFETY: no pointers are involved.
    unsafe {
        if libc::getpid() == MAKER.load(Relaxed) {
            for id in SETS.iter().map(|place| place.load(Relaxed)).filter(|id| *id > 0) {
                libc::semctl(id - 1, 0, libc::IPC_RMID);
            }
        }
    }
}

/// Removes the sets and lets the signal do what it would have done.
extern "C" fn on_signal(signal: i32) {
    remove_all();
    // SAFETY: no pointers are involved. With the default action restored, the signal comes as soon
    // as this handler returns.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}
