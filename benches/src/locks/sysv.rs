//! A SysV semaphore as a lock: Franke's base line, two system calls an acquisition.
//!
//! A semaphore set outlives the process that made it. The process that made it therefore removes it: when the lock is
//! dropped, when a trial with hanging workers is abandoned (they then fail with EIDRM), and when the process is
//! interrupted or terminated by a signal. Only SIGKILL leaves a set behind; `ipcs -s` shows it. SEM_UNDO is off, as in
//! his program.

use super::{Held, Lock, Release, Scope};
use anyhow::{Result, ensure};
use std::io;
use std::sync::Once;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// A set of one semaphore.
#[derive(Debug)]
pub struct SysV {
    id: libc::c_int,
    maker: libc::pid_t,
}

impl Drop for SysV {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl SysV {
    /// Adds `change`; says whether that was possible without waiting, or after it.
    #[inline]
    fn change(&self, change: i16, flags: i16) -> bool {
        let mut op = libc::sembuf { sem_num: 0, sem_op: change, sem_flg: flags };
        loop {
            // SAFETY: one operation is passed, and it is valid.
            if unsafe { libc::semop(self.id, &mut op, 1) } == 0 {
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

impl Lock for SysV {
    const TIMED: bool = true;
    const COUNTABLE: bool = false;

    unsafe fn place(place: *mut Self, _: Scope) -> Result<()> {
        survive_signals();
        // SAFETY: no pointers are involved.
        let id = unsafe { libc::semget(libc::IPC_PRIVATE, 1, 0o600) };
        ensure!(id >= 0, "semget: {}", io::Error::last_os_error());
        // From here on the set has an owner that removes it.
        // SAFETY: no pointers are involved.
        let lock = Self { id, maker: unsafe { libc::getpid() } };
        remember(&lock);
        ensure!(lock.change(1, 0), "semop: the new semaphore refused to be raised");
        // SAFETY: valid for writes and aligned, by the contract of `place`.
        unsafe { place.write(lock) };
        Ok(())
    }

    type Held<'a> = Held<'a, Self>;

    #[inline]
    fn acquire(&self) -> Self::Held<'_> {
        self.change(-1, 0);
        Held(self)
    }

    #[inline]
    fn try_acquire(&self) -> Option<Self::Held<'_>> {
        self.change(-1, libc::IPC_NOWAIT as i16).then(|| Held(self))
    }

    fn abandon(&self) {
        // A forked worker must not take the lock from the others.
        // SAFETY: no pointers are involved.
        if unsafe { libc::getpid() } == self.maker {
            forget(self);
            // SAFETY: no pointers are involved; removing a set twice fails with EINVAL and harms nobody.
            unsafe { libc::semctl(self.id, 0, libc::IPC_RMID) };
        }
    }
}

impl Release for SysV {
    #[inline]
    fn release(&self) {
        self.change(1, 0);
    }
}

/// Sets to remove when a signal ends the process: the maker's process id in the upper half, the id plus one in the
/// lower; zero is a free place. A forked worker inherits the list and the handler, hence the process id. More sets than
/// places are not remembered: a signal leaves those behind.
static SETS: [AtomicU64; 256] = [const { AtomicU64::new(0) }; 256];

fn entry(maker: libc::pid_t, id: libc::c_int) -> u64 {
    (maker as u64) << 32 | (id as u32 + 1) as u64
}

fn remember(lock: &SysV) {
    let new = entry(lock.maker, lock.id);
    let _ = SETS.iter().any(|place| place.compare_exchange(0, new, Relaxed, Relaxed).is_ok());
}

fn forget(lock: &SysV) {
    let old = entry(lock.maker, lock.id);
    let _ = SETS.iter().any(|place| place.compare_exchange(old, 0, Relaxed, Relaxed).is_ok());
}

/// Removes the sets and lets the signal do what it would have done. Async-signal-safe: atomics and system calls.
extern "C" fn remove_all(signal: libc::c_int) {
    // SAFETY: no pointers are involved. SA_RESETHAND has restored the default action; the signal is raised again and
    // comes as soon as this handler returns.
    unsafe {
        let own = libc::getpid() as u64;
        for place in &SETS {
            let set = place.load(Relaxed);
            if set != 0 && set >> 32 == own {
                libc::semctl((set as u32 - 1) as libc::c_int, 0, libc::IPC_RMID);
            }
        }
        libc::raise(signal);
    }
}

/// Installs [`remove_all`], once, for the signals that would end the process and for which nobody else has a handler.
fn survive_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // SAFETY: all-zero is a valid sigaction; the handler keeps to what a handler may do.
            unsafe {
                let mut old: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &mut old);
                if old.sa_sigaction == libc::SIG_DFL {
                    let mut new: libc::sigaction = std::mem::zeroed();
                    new.sa_sigaction = remove_all as extern "C" fn(libc::c_int) as libc::sighandler_t;
                    new.sa_flags = libc::SA_RESETHAND;
                    libc::sigaction(signal, &new, std::ptr::null_mut());
                }
            }
        }
    });
}

#[cfg(test)]
impl SysV {
    /// The id of the set.
    pub(crate) fn id(&self) -> libc::c_int {
        self.id
    }
}
