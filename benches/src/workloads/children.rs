//! Workers as forked processes, none of which outlives its trial.

use crate::run::child::state;
use crate::run::threads::clock_time;
use anyhow::{Context, Result};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// The children of one trial. Dropping it kills and reaps those that are left.
#[derive(Debug, Default)]
pub struct Children {
    /// Process id and worker index.
    alive: Vec<(libc::pid_t, usize)>,
}

impl Children {
    /// Forks `n` processes, each of which runs `body` with its index and ends. Status 1 says that
    /// it panicked.
    ///
    /// # Errors
    /// If a process cannot be had; none is left.
    pub fn fork(n: usize, body: &mut dyn FnMut(usize)) -> Result<Self> {
        let mut children = Self { alive: Vec::with_capacity(n) };
        // SAFETY: no pointers are involved.
        let parent = unsafe { libc::getpid() };
        for index in 0..n {
            // SAFETY: the child touches shared memory and its own copy of this process only. It
            // leaves through `_exit`, so it runs no destructors and no exit handlers.
            let pid = unsafe { libc::fork() };
            match pid {
                -1 => {
                    let error = io::Error::last_os_error();
                    return Err(error).with_context(|| format!("cannot start process {} of {n}", index + 1));
                }
                0 => {
                    // SAFETY: no pointers are involved. A parent that died before the request is
                    // noticed by its id.
                    let is_child = unsafe {
                        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                        libc::getppid() == parent
                    };
                    let done = !is_child || catch_unwind(AssertUnwindSafe(|| body(index))).is_ok();
                    // SAFETY: no pointers are involved.
                    unsafe { libc::_exit(i32::from(!done)) };
                }
                _ => children.alive.push((pid, index)),
            }
        }
        Ok(children)
    }

    /// CPU time of those that live, so far.
    pub fn cpu_time(&self) -> Duration {
        let of = |&(pid, _): &(libc::pid_t, usize)| {
            let mut clock = 0;
            // SAFETY: the clock is writable; the child is ours and was not reaped, so the id is its
            // own.
            let known = unsafe { libc::clock_getcpuclockid(pid, &mut clock) } == 0;
            if known { clock_time(clock) } else { Duration::ZERO }
        };
        self.alive.iter().map(of).sum()
    }

    /// Whether all of them sleep, at the moment of the look.
    pub fn are_asleep(&self) -> bool {
        self.alive.iter().all(|(pid, _)| state(&format!("/proc/{pid}")) == Some('S'))
    }

    /// Whether all of them were reaped.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.alive.is_empty()
    }

    /// Reaps the children that have ended; describes a child that ended other than by itself.
    pub fn reap(&mut self) -> Option<String> {
        let mut death = None;
        self.alive.retain(|&(pid, index)| {
            let mut status = 0;
            // SAFETY: the status is writable; the child is ours and was not reaped before.
            let reaped = unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) } == pid;
            if reaped && libc::WIFSIGNALED(status) {
                death = Some(format!("worker {index} was killed by signal {}", libc::WTERMSIG(status)));
            } else if reaped && libc::WEXITSTATUS(status) != 0 {
                death = Some(format!("worker {index} left with status {}", libc::WEXITSTATUS(status)));
            }
            !reaped
        });
        death
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for &(pid, _) in &self.alive {
            // SAFETY: the child is ours and was not reaped, so the id is still its own.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        for &(pid, _) in &self.alive {
            // SAFETY: as above; the status is not wanted.
            while unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) } == -1
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
        }
    }
}
