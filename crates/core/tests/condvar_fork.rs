//! A condition variable on which a thread waits while another one forks: the child has the counts,
//! and not the waiter.
#![cfg(world = "machine")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::{scope, yield_now};
use ulocks_core::condvar::RawCondvar;
use ulocks_core::futex::Local;
use ulocks_core::raw::RawMutex;
use ulocks_testkit::plain::ThreeState;
use ulocks_testkit::shared::Mapping;
use ulocks_testkit::{Child, task};

/// Long enough for a fork to come into the spin.
type Patient = ThreeState<Local, 500_000_000>;

/// Its waiters sleep at once.
type Hasty = ThreeState<Local>;

struct Place<'a, L: RawMutex> {
    mutex: &'a L,
    changed: &'a RawCondvar<L>,
    /// Changed under the mutex.
    is_open: AtomicBool,
    /// How many have the mutex and are about to wait. Changed under it.
    waits: AtomicUsize,
}

impl<'a, L: RawMutex<Token = ()>> Place<'a, L> {
    fn new(mutex: &'a L, changed: &'a RawCondvar<L>) -> Self {
        Self { mutex, changed, is_open: AtomicBool::new(false), waits: AtomicUsize::new(0) }
    }

    fn pass(&self) {
        self.mutex.lock();
        self.waits.fetch_add(1, Relaxed);
        while !self.is_open.load(Relaxed) {
            // SAFETY: the mutex is held, and again when `wait` returns.
            let _ = unsafe { self.changed.wait(self.mutex, (), None) };
        }
        // SAFETY: locked above, or by `wait`.
        unsafe { self.mutex.unlock(()) };
    }

    /// Blocks until `nth` waiters have registered.
    fn until_registered(&self, nth: usize) {
        while self.waits.load(Relaxed) < nth {
            yield_now();
        }
        // The last of them has released the mutex, hence is registered.
        self.mutex.lock();
        // SAFETY: locked above.
        unsafe { self.mutex.unlock(()) };
    }

    fn open(&self) {
        self.mutex.lock();
        self.is_open.store(true, Relaxed);
        // SAFETY: locked above.
        unsafe { self.mutex.unlock(()) };
        self.changed.notify_one();
    }
}

/// A waiter of the child comes, after those of its parent, and is notified. It sleeps, so its
/// notification must be a wake-up, whatever the parent's counts say of spinners.
fn in_child<L: RawMutex<Token = ()> + Sync>(place: &Place<'_, L>) {
    scope(|threads| {
        let (id, _) = task::begun(threads, || place.pass());
        place.until_registered(2);
        task::until_asleep(&[id]);
        place.open();
    });
}

/// How a child ends that does `body`. It is killed if it hangs: translated, its rounds take half a
/// minute.
fn ends(body: impl FnOnce()) -> i32 {
    let bounded = || {
        // SAFETY: sets a timer.
        unsafe { libc::alarm(100) };
        body();
    };
    Child::runs(bounded).waited()
}

#[test]
fn a_spinner_left_behind_by_a_fork_takes_no_notification() {
    let (mutex, changed) = (Patient::new(), RawCondvar::new());
    let place = &Place::new(&mutex, &changed);
    scope(|threads| {
        threads.spawn(|| place.pass());
        place.until_registered(1);
        let status = ends(|| in_child(place));
        place.open();
        assert_eq!(status, 0, "the child's waiter was not notified");
    });
}

/// The child has unmapped it, as the stack of a thread that the child does not have.
#[test]
fn a_child_looks_at_no_mutex_of_its_parents_waiters() {
    let (mutex, changed) = (Mapping::private().leak::<Hasty>(), Mapping::private().leak());
    // SAFETY: zeroed pages, which are an unlocked mutex and a condition variable (law 1).
    let place = &Place::new(unsafe { &*mutex }, unsafe { &*changed });
    let unmap = || {
        // SAFETY: the page is mapped, and nothing in the child uses it from here on.
        assert_eq!(unsafe { libc::munmap(mutex.cast(), 1) }, 0);
    };
    scope(|threads| {
        let (id, _) = task::begun(threads, || place.pass());
        place.until_registered(1);
        task::until_asleep(&[id]);
        let at_once = ends(|| {
            unmap();
            place.changed.notify_all();
        });
        let after_a_wait = ends(|| {
            in_child(place);
            unmap();
            assert!(!place.changed.notify_one(), "a waiter of the parent is notified");
        });
        place.open();
        assert_eq!((at_once, after_a_wait), (0, 0), "a child looked at the mutex, or hung");
    });
}
