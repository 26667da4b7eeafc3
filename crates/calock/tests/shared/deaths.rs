//! What a process leaves behind that is killed while it waits: the others go on.

use std::io;
use std::time::Duration;
use ulocks_calock::{CalockWith, Every, Interval, State};
use ulocks_core::Shared;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::shared::Mapping;
use ulocks_testkit::watchdog::watch;

type Lock<I = Every<1_000_000>> = CalockWith<u32, Shared<NoSpin>, I>;

fn state<I: Interval>(lock: &Lock<I>) -> State {
    // SAFETY: the raw mutex is only asked for its state.
    unsafe { lock.raw() }.inner().state()
}

/// A child that locks, adds one, unlocks and ends.
struct Child(libc::pid_t);

impl Child {
    fn adds_one<I: Interval>(lock: &Lock<I>) -> Self {
        Self::runs(|| *lock.lock() += 1)
    }

    fn runs(body: impl FnOnce()) -> Self {
        // SAFETY: the child only uses the lock, which allocates nothing, and leaves by `_exit`.
        let id = unsafe { libc::fork() };
        assert!(id >= 0, "fork: {}", io::Error::last_os_error());
        if id == 0 {
            body();
            // SAFETY: ends the child without running what belongs to the parent.
            unsafe { libc::_exit(0) };
        }
        Self(id)
    }

    /// Returns when it sleeps in the kernel and `seen` holds for the lock.
    fn sleeps<I: Interval>(self, lock: &Lock<I>, seen: impl Fn(State) -> bool) -> Self {
        let asleep = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0)).expect("a child");
            stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'))
        };
        while !(seen(state(lock)) && asleep()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self
    }

    /// Ends its sleep in the kernel without a wake-up.
    fn disturbed(&self) {
        // SAFETY: it is a child that was not waited for, and handles the signal.
        assert_eq!(unsafe { libc::kill(self.0, libc::SIGUSR1) }, 0);
    }

    fn killed(self) {
        // SAFETY: it is a child that was not waited for.
        assert_eq!(unsafe { libc::kill(self.0, libc::SIGKILL) }, 0);
        assert_eq!(self.status(), libc::SIGKILL);
    }

    fn ends(self) {
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

fn with_a_lock<I: Interval>(name: &str, test: impl Fn(&Lock<I>)) {
    let mapping = Mapping::shared();
    let place = mapping.place::<Lock<I>>();
    // SAFETY: a fresh page that is large enough, zeroed, which is an unlocked mutex around zero.
    let lock = unsafe { &*place };
    let address = place.expose_provenance();
    let _watchdog = watch(name, move || {
        // SAFETY: the mapping outlives the watchdog.
        let lock = unsafe { &*std::ptr::with_exposed_provenance::<Lock<I>>(address) };
        format!("{:?}", state(lock))
    });
    test(lock);
}

const PROMOTED: fn(State) -> bool = |state| state.0 & State::PROMOTED != 0;

#[test]
fn a_sentinel_that_dies_has_a_successor() {
    with_a_lock("sentinel killed", |lock: &Lock| {
        let held = lock.lock();
        let sentinel = Child::adds_one(lock).sleeps(lock, |state| state.parked() == 1);
        let other = Child::adds_one(lock).sleeps(lock, |state| state.parked() == 2);
        sentinel.killed();
        drop(held);
        other.ends();
        assert_eq!(*lock.lock(), 1);
        assert_eq!(state(lock).parked(), 1, "the dead stays counted");
    });
}

#[test]
fn a_lock_that_is_kept_for_the_dead_is_freed() {
    with_a_lock("promoted killed", |lock: &Lock| {
        let held = lock.lock();
        let promoted = Child::adds_one(lock).sleeps(lock, PROMOTED);
        let other = Child::adds_one(lock).sleeps(lock, |state| state.parked() == 2);
        promoted.killed();
        drop(held);
        assert!(lock.try_lock().is_none(), "it is kept");
        other.ends();
        *lock.lock() += 1;
        assert_eq!(*lock.lock(), 2);
    });
}

#[test]
fn a_lock_that_is_kept_for_the_dead_is_freed_for_an_arrival() {
    with_a_lock("promoted killed, nobody else waits", |lock: &Lock| {
        let held = lock.lock();
        Child::adds_one(lock).sleeps(lock, PROMOTED).killed();
        drop(held);
        *lock.lock() += 1;
        Child::adds_one(lock).ends();
        assert_eq!(*lock.lock(), 2);
    });
}

/// The sentinel wakes by itself and not by the watch.
#[test]
fn a_lock_that_is_kept_for_the_dead_is_freed_by_the_sentinel() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the handler does nothing. Without SA_RESTART, a wait in the kernel ends.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()), 0);
    }
    with_a_lock("promoted killed, the sentinel waits", |lock: &Lock<Every<500_000_000>>| {
        let held = lock.lock();
        let early = Child::runs(|| assert!(lock.try_lock_for(Duration::from_millis(100)).is_none()))
            .sleeps(lock, |state| state.parked() == 1);
        let overdue = Child::adds_one(lock).sleeps(lock, |state| state.parked() == 2);
        let sentinel = Child::adds_one(lock).sleeps(lock, |state| state.parked() == 3);
        // No sentinel is left: it would have to be woken by a release.
        early.ends();
        // One of the others is overdue after two intervals, the other after three.
        std::thread::sleep(Duration::from_millis(2 * 500));
        sentinel.disturbed();
        let sentinel = sentinel.sleeps(lock, |state| state.0 & State::SENTINEL != 0);
        overdue.disturbed();
        overdue.sleeps(lock, PROMOTED).killed();
        drop(held);
        sentinel.ends();
        assert_eq!(*lock.lock(), 1);
    });
}

#[test]
fn waiters_that_are_killed_at_any_moment_strand_nobody() {
    with_a_lock("killed at any moment", |lock: &Lock| {
        let mut acquired = 0;
        for round in 0..5 {
            let held = lock.lock();
            let [dead, alive] =
                [3, 2].map(|some| (0..some).map(|_| Child::adds_one(lock)).collect::<Vec<_>>());
            std::thread::sleep(Duration::from_micros(1_000 * round));
            // None of them can have the lock.
            dead.into_iter().for_each(Child::killed);
            acquired += *held;
            drop(held);
            alive.into_iter().for_each(Child::ends);
            let mut all = lock.lock();
            acquired += *all;
            *all = 0;
        }
        assert_eq!(acquired, 5 * 2);
    });
}
