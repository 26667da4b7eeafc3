//! A process that uses a lock until it ends or is killed.

use super::limit::{until, until_ended};
use super::task;
use std::io;

/// A forked child, which the test waits for or kills.
///
/// A test that forks by itself does not see a panic of the child. It unwinds to the harness, the
/// only thread of the process is over, and that ends with 0.
#[must_use = "a child that is not waited for fails unseen"]
pub struct Child(libc::pid_t);

impl Child {
    /// Runs `body` in a child, which then ends.
    ///
    /// # Panics
    /// If there can be no child.
    pub fn runs(body: impl FnOnce()) -> Self {
        // SAFETY: the child runs `body`, which uses locks that allocate nothing, and leaves by
        // `_exit`. A panic allocates, for which glibc makes the child's allocator usable.
        let id = unsafe { libc::fork() };
        assert!(id >= 0, "fork: {}", io::Error::last_os_error());
        if id == 0 {
            // A test that fails leaves no child behind.
            // SAFETY: no preconditions; the arguments are those that `PR_SET_PDEATHSIG` takes.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            // SAFETY: ends the child without running what belongs to the parent.
            unsafe { libc::_exit(i32::from(outcome.is_err())) };
        }
        Self(id)
    }

    /// Of the calling child: waits for a signal, which ends it or is handled.
    pub fn pauses() {
        // SAFETY: no preconditions.
        unsafe { libc::pause() };
    }

    /// Of the calling child: ends it here, with all that it holds.
    pub fn exits() -> ! {
        // SAFETY: no preconditions.
        unsafe { libc::_exit(0) }
    }

    /// The kernel's id of the child.
    pub fn id(&self) -> i32 {
        self.0
    }

    /// Returns when the child sleeps in the kernel and `seen` holds.
    pub fn sleeps(self, seen: impl Fn() -> bool) -> Self {
        until("a child sleeps and has done what it was to do", || {
            task::until_process_asleep(self.0);
            seen()
        });
        self
    }

    /// Sends the child a signal that it handles.
    ///
    /// # Panics
    /// If the child is gone.
    pub fn signal(&self, number: libc::c_int) {
        // SAFETY: it is a child that was not waited for.
        assert_eq!(unsafe { libc::kill(self.0, number) }, 0, "kill: {}", io::Error::last_os_error());
    }

    /// Kills the child.
    ///
    /// # Panics
    /// If it has ended before.
    pub fn killed(self) {
        self.signal(libc::SIGKILL);
        assert_eq!(self.waited(), libc::SIGKILL, "the child was not there to be killed");
    }

    /// Whether the child has come to its end.
    ///
    /// # Panics
    /// If the kernel does not know it.
    pub fn has_ended(&self) -> bool {
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: `info` is a place for the result; a child that has ended is left to be waited
        // for.
        let result = unsafe { libc::waitid(libc::P_PID, self.0.unsigned_abs(), info.as_mut_ptr(), flags) };
        assert_eq!(result, 0, "waitid: {}", io::Error::last_os_error());
        // SAFETY: zeroes are a `siginfo_t`, and if the kernel wrote another, it is that of a child,
        // which has a process id.
        unsafe { info.assume_init().si_pid() != 0 }
    }

    /// Waits for the child's end.
    ///
    /// # Panics
    /// If it panicked or died.
    pub fn ends(self) {
        assert_eq!(self.waited(), 0, "a child failed");
    }

    /// Waits for the child's end, and says how it came, in the form of `waitpid`.
    ///
    /// # Panics
    /// If the child was waited for before, or does not end within the limit of a process.
    pub fn waited(self) -> i32 {
        until_ended("a child ends", || self.has_ended());
        let mut status = 0;
        // SAFETY: it is a child that was not waited for; `status` is a place for the result.
        let waited = unsafe { libc::waitpid(self.0, &raw mut status, 0) };
        assert_eq!(waited, self.0, "waitpid: {}", io::Error::last_os_error());
        status
    }
}
