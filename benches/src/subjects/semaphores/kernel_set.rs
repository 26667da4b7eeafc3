//! A set of the kernel's semaphores that does not outlive the process that made it.
//!
//! System V semaphores stay when their process ends, and cannot be removed while they are still to
//! be used. The process that made a set therefore removes it: when [`SemSet`] is dropped, also by a
//! panic that unwinds; when a trial with hanging workers is abandoned (they then fail with EIDRM);
//! when a trial ends with workers that hang; and when the process is interrupted, terminated or
//! aborted by a signal, as one is that takes [too long](crate::run::child). SIGKILL leaves a set
//! behind; `ipcs -s` shows it. A set with SEM_UNDO is used by the lock `sysv-undo` and the set
//! `semop-undo` alone.

use anyhow::{Context, Result, ensure};
use std::io;
use std::sync::Once;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// A set of semaphores.
#[derive(Debug)]
pub struct SemSet {
    id: libc::c_int,
    maker: libc::pid_t,
    len: usize,
}

impl Drop for SemSet {
    fn drop(&mut self) {
        self.remove();
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
        survive_signals();
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

    /// Removes the set, if this is the process that made it: a forked worker must not take it from
    /// the others.
    pub fn remove(&self) {
        // SAFETY: no pointers are involved.
        if unsafe { libc::getpid() } == self.maker {
            forget(self);
            // SAFETY: no pointers are involved; removing a set twice fails with EINVAL and harms
            // no thread.
            unsafe { libc::semctl(self.id, 0, libc::IPC_RMID) };
        }
    }
}

/// Sets to remove when a signal ends the process: the maker's process id in the upper half, the id
/// plus one in the lower; zero is a free place. A forked worker inherits the list and the handler,
/// hence the process id. More sets than places are not remembered: a signal leaves those behind.
static SETS: [AtomicU64; 256] = [const { AtomicU64::new(0) }; 256];

fn entry(maker: libc::pid_t, id: libc::c_int) -> u64 {
    (maker as u64) << 32 | (id as u32 + 1) as u64
}

fn remember(set: &SemSet) {
    let new = entry(set.maker, set.id);
    let _ = SETS.iter().any(|place| place.compare_exchange(0, new, Relaxed, Relaxed).is_ok());
}

fn forget(set: &SemSet) {
    let old = entry(set.maker, set.id);
    let _ = SETS.iter().any(|place| place.compare_exchange(old, 0, Relaxed, Relaxed).is_ok());
}

/// Removes the sets that this process has made and that are there yet. Async-signal-safe: atomics
/// and system calls.
pub(crate) fn remove_all() {
    // SAFETY: no pointers are involved.
    let own = unsafe { libc::getpid() } as u64;
    for set in SETS.iter().map(|place| place.load(Relaxed)).filter(|set| *set != 0 && set >> 32 == own) {
        // SAFETY: as above.
        unsafe { libc::semctl((set as u32 - 1) as libc::c_int, 0, libc::IPC_RMID) };
    }
}

/// Removes the sets and lets the signal do what it would have done.
extern "C" fn on_signal(signal: libc::c_int) {
    remove_all();
    // SAFETY: no pointers are involved. SA_RESETHAND has restored the default action; the signal
    // comes as soon as this handler returns.
    unsafe { libc::raise(signal) };
}

/// Installs [`on_signal`], once, for the signals that would end the process and for which no code
/// else has a handler.
fn survive_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGABRT] {
            // SAFETY: all-zero is a valid sigaction; the handler keeps to what a handler may do.
            unsafe {
                let mut old: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &mut old);
                if old.sa_sigaction == libc::SIG_DFL {
                    let mut new: libc::sigaction = std::mem::zeroed();
                    new.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
                    new.sa_flags = libc::SA_RESETHAND;
                    libc::sigaction(signal, &new, std::ptr::null_mut());
                }
            }
        }
    });
}
