//! Children that use a lock, and are stopped or killed at a known place.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use ulocks_core::Shared;
use ulocks_core::spin::NoSpin;
use ulocks_psrwlock::{BULK, ByClass, PsRwLockWith, Sifted, State, URGENT};
use ulocks_testkit::shared::Mapping;
use ulocks_testkit::watchdog::watch;

pub type Lock = PsRwLockWith<u32, Sifted<{ BULK | URGENT }, Shared<NoSpin>>>;

/// A child that has begun to do something with a lock.
pub struct Child(libc::pid_t);

impl Child {
    /// Starts a child that runs `body` and ends.
    pub fn runs(body: impl FnOnce()) -> Self {
        // SAFETY: the child uses the lock, which allocates nothing, unless it panics, for which
        // glibc makes its allocator usable; and it leaves by `_exit`.
        let id = unsafe { libc::fork() };
        assert!(id >= 0, "fork: {}", io::Error::last_os_error());
        if id == 0 {
            let outcome = catch_unwind(AssertUnwindSafe(body));
            // SAFETY: ends the child without running what belongs to the parent.
            unsafe { libc::_exit(outcome.is_err().into()) };
        }
        Self(id)
    }

    /// Starts a child that runs `acquire` and then keeps what it has, for ever.
    pub fn keeps<G>(acquire: impl FnOnce() -> G) -> Self {
        Self::runs(|| {
            let _held = acquire();
            loop {
                // SAFETY: waits for a signal.
                unsafe { libc::pause() };
            }
        })
    }

    fn is_in(&self, state: char) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0)).expect("a child");
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(state))
    }

    /// Returns when it sleeps in the kernel and `seen` holds for the lock.
    pub fn sleeps(self, lock: &Lock, seen: impl Fn(State) -> bool) -> Self {
        let is_so = || seen(lock.state()) && self.is_in('S');
        ulocks_testkit::limit::until("the child sleeps", is_so);
        self
    }

    fn signal(&self, signal: i32) {
        // SAFETY: it is a child that was not waited for.
        assert_eq!(unsafe { libc::kill(self.0, signal) }, 0);
    }

    /// Returns when it is stopped.
    pub fn stopped(self) -> Self {
        self.signal(libc::SIGSTOP);
        ulocks_testkit::limit::until("the child is stopped", || self.is_in('T'));
        self
    }

    /// Lets it go on, and returns when it has ended.
    pub fn continued(self) {
        self.signal(libc::SIGCONT);
        self.ends();
    }

    pub fn killed(self) {
        self.signal(libc::SIGKILL);
        assert_eq!(self.status(), libc::SIGKILL);
    }

    pub fn ends(self) {
        assert_eq!(self.status(), 0);
    }

    fn status(self) -> i32 {
        let mut status = 0;
        // SAFETY: it is a child that was not waited for; `status` is a place for the result.
        let waited = unsafe { libc::waitpid(self.0, &raw mut status, 0) };
        assert_eq!(waited, self.0, "waitpid: {}", io::Error::last_os_error());
        status
    }
}

/// Runs `test` on a lock that children share, with an end if it hangs.
pub fn with_a_lock(name: &str, test: impl FnOnce(&Lock)) {
    let mapping = Mapping::shared();
    let place = mapping.place::<Lock>();
    // SAFETY: a fresh page that is large enough, zeroed, which is an unlocked lock around zero.
    let lock = unsafe { &*place };
    let address = place.expose_provenance();
    let _watchdog = watch(name, move || {
        // SAFETY: the mapping outlives the watchdog.
        let lock = unsafe { &*std::ptr::with_exposed_provenance::<Lock>(address) };
        format!("{:?}", lock.state())
    });
    test(lock);
}
