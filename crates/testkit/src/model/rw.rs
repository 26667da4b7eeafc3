//! The clients of `model`, for reader-writer locks. What they may be asked to do beside one another
//! are [`Role`]s.
//!
//! | property | client |
//! |---|---|
//! | a writer is alone; what was written is seen, what is read is not written meanwhile | [`exclusion`] |
//! | no thread sleeps for ever | [`no_lost_wake`] |
//! | readers share, also those that had to wait | [`readers_meet`] |
//! | a wait that gives up strands no thread | [`timeout_vs_unlock`] |
//! | a wait that a signal handler ends strands no thread | `interrupt_vs_unlock`, on the virtual machine |
//! | a wait that gives up leaves nothing behind | [`give_up_while_held`] |
//! | `try_read` and `try_write` tell the truth | [`try_coherence`] |
//! | the release is the last access | [`last_unlocker_frees`] |
//!
//! What a lock that upgrades and downgrades promises beyond that is in [`upgrade`](super::upgrade).

use super::{Handle, free};
use crate::new_lock;
use crate::thread::{Arc, together, with};
use core::time::Duration;
use ulocks_core::futex::{Futex, Local};
#[cfg(world = "vm")]
use ulocks_core::raw::RawInterruptible;
use ulocks_core::raw::RawRwLock;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::sync::{AtomicUsize, UnsafeCell};
use ulocks_core::time::Deadline;

/// How a thread goes at the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `read`.
    Read,
    /// `write`.
    Write,
    /// `read_until`, with a deadline that may pass.
    TimedRead,
    /// `write_until`, with a deadline that may pass.
    TimedWrite,
    /// `try_read`.
    TryRead,
    /// `try_write`.
    TryWrite,
}

impl Role {
    fn is_reader(self) -> bool {
        matches!(self, Self::Read | Self::TimedRead | Self::TryRead)
    }
}

/// A deadline that may pass before a model has anything else to do.
pub(super) fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(1))
}

/// A lock and what it protects: a count that is no atomic, in a cell whose accesses the model
/// checks.
pub(super) struct Protected<L> {
    pub(super) lock: L,
    count: UnsafeCell<usize>,
}

// SAFETY: `count` is read by readers of `lock` and written by its writers, or by the one thread
// left after the others were joined. That the lock keeps these apart is what the clients test; the
// model reports where it does not.
unsafe impl<L: Sync> Sync for Protected<L> {}
// SAFETY: owning a `Protected` is owning both parts.
unsafe impl<L: Send> Send for Protected<L> {}

impl<L: RawRwLock> Protected<L> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { lock: new_lock(), count: UnsafeCell::new(0) })
    }

    /// What the count is. The caller holds the lock in whatever way.
    pub(super) fn look(&self) -> usize {
        // SAFETY: the caller holds the lock, so no thread writes.
        self.count.with(|count| unsafe { *count })
    }

    /// Adds one to the count and returns it. The caller is the writer.
    pub(super) fn count(&self) -> usize {
        self.count.with_mut(|count| {
            // SAFETY: the caller holds the lock alone.
            unsafe {
                *count += 1;
                *count
            }
        })
    }

    pub(super) fn look_and_unlock(&self, token: L::ReadToken) -> usize {
        let seen = self.look();
        // SAFETY: the token is from an acquisition of this lock by this thread.
        unsafe { self.lock.unlock_read(token) };
        seen
    }

    pub(super) fn count_and_unlock(&self, token: L::WriteToken) -> usize {
        let count = self.count();
        // SAFETY: the token is from an acquisition of this lock by this thread.
        unsafe { self.lock.unlock_write(token) };
        count
    }

    /// Does what `role` says. Whether the lock was had; a reader looks, a writer counts.
    fn play(&self, role: Role) -> bool {
        self.play_within(role, soon)
    }

    /// As [`play`](Self::play), with that limit where `role` is a timed one.
    fn play_within(&self, role: Role, limit: fn() -> Deadline) -> bool {
        let lock = &self.lock;
        let mut until = None;
        let mut limit = || *until.insert(limit());
        let (read, written) = match role {
            Role::Read => (Some(lock.read()), None),
            Role::TimedRead => (lock.read_until(limit()), None),
            Role::TryRead => (lock.try_read(), None),
            Role::Write => (None, Some(lock.write())),
            Role::TimedWrite => (None, lock.write_until(limit())),
            Role::TryWrite => (None, lock.try_write()),
        };
        match (read, written) {
            (Some(token), _) => {
                self.look_and_unlock(token);
            }
            (_, Some(token)) => {
                self.count_and_unlock(token);
            }
            (None, None) => {
                let due = until.is_none_or(|until| until.is_interruptible() || until.has_passed());
                assert!(due, "a waiter left before its deadline");
                return false;
            }
        }
        true
    }

    /// As [`play`](Self::play). How much that adds to the count.
    fn adds(&self, role: Role) -> usize {
        usize::from(self.play(role) && !role.is_reader())
    }

    /// The lock after all threads but this one are gone: free, and `expected` is the count.
    pub(super) fn check_at_rest(&self, expected: usize) {
        let lock = &self.lock;
        assert!(!lock.is_locked(), "the lock is locked although its last holder released it");
        assert!(!lock.is_write_locked(), "the lock is write-locked although its last holder released it");
        let token = lock.try_read().expect("try_read failed on a lock that nobody holds");
        let count = self.look_and_unlock(token);
        assert_eq!(count, expected, "updates were lost");
        let token = lock.try_write().expect("try_write failed on a lock that nobody holds");
        self.count_and_unlock(token);
        assert!(!lock.is_locked(), "the lock is locked although its last holder released it");
    }
}

/// A place where all expected threads meet before one goes on.
pub(super) struct Meeting {
    came: Futex<Local>,
    expected: u32,
}

impl Meeting {
    pub(super) fn of(expected: usize) -> Arc<Self> {
        Arc::new(Self { came: Futex::new(0), expected: expected.try_into().expect("a meeting of threads") })
    }

    /// Arrives, and waits for the others. Without an order between them that the lock would have to
    /// make: all accesses are relaxed. If one never comes, all sleep, which the model reports.
    pub(super) fn wait(&self) {
        let mut came = self.came.fetch_add(1, Relaxed) + 1;
        if came == self.expected {
            self.came.key().wake(u32::MAX);
        }
        while came < self.expected {
            self.came.wait(came, None);
            came = self.came.load(Relaxed);
        }
    }
}

/// A writer is alone, and sees what the writers before it did; a reader sees it too, and no thread
/// writes what it reads.
pub fn exclusion<L: RawRwLock + Send + Sync + 'static>(roles: &'static [Role]) {
    let protected = Protected::<L>::new();
    let shared = Arc::clone(&protected);
    let counted = together(roles.len(), move |me| shared.adds(roles[me])).into_iter().sum();
    protected.check_at_rest(counted);
}

/// Every thread gets the lock `rounds` times: a thread that sleeps is woken. A lost wake-up is a
/// deadlock. Every second time a thread waits with a deadline that never comes, which is no reason
/// to leave.
///
/// # Panics
/// If one leaves all the same.
pub fn no_lost_wake<L: RawRwLock + Send + Sync + 'static>(roles: &'static [Role], rounds: usize) {
    let lock = Arc::new(new_lock::<L>());
    let shared = Arc::clone(&lock);
    together(roles.len(), move |me| {
        for round in 0..rounds {
            let (timed, early) = (round % 2 == 1, "a waiter left without a reason");
            if roles[me].is_reader() {
                let token =
                    if timed { shared.read_until(Deadline::NEVER).expect(early) } else { shared.read() };
                // SAFETY: the token is from the line above.
                unsafe { shared.unlock_read(token) };
            } else {
                let token =
                    if timed { shared.write_until(Deadline::NEVER).expect(early) } else { shared.write() };
                // SAFETY: the token is from the line above.
                unsafe { shared.unlock_write(token) };
            }
        }
    });
    assert!(!lock.is_locked(), "the lock is locked although its last holder released it");
}

/// Readers that had to wait for a writer, and the writer turned reader itself, all get in together:
/// no thread leaves before the last has come. A lock that lets one of them in as if it were a
/// writer makes all wait for ever.
pub fn readers_meet<L: RawRwLock + Send + Sync + 'static>(readers: usize) {
    let protected = Protected::<L>::new();
    let meeting = Meeting::of(readers + 1);
    let held = protected.lock.write();
    let others: Vec<_> = (0..readers)
        .map(|_| {
            let meeting = Arc::clone(&meeting);
            with(&protected, move |protected| {
                let token = protected.lock.read();
                meeting.wait();
                protected.look_and_unlock(token)
            })
        })
        .collect();
    protected.count_and_unlock(held);
    let token = protected.lock.read();
    meeting.wait();
    protected.look_and_unlock(token);
    for other in others {
        assert_eq!(other.join().expect("a reader panicked"), 1, "a reader did not see what was written");
    }
    protected.check_at_rest(1);
}

/// Waits that may expire run against the release of `held`, and against one another: whichever way
/// the timed ones end, no thread is left asleep on a free lock.
///
/// # Panics
/// If the property fails, and if `held` is not `Read` or `Write`.
pub fn timeout_vs_unlock<L: RawRwLock + Send + Sync + 'static>(held: Role, roles: &'static [Role]) {
    leave_or_not::<L>(held, roles, soon);
}

/// As [`timeout_vs_unlock`], with waits that a signal handler may end and no deadline does.
///
/// # Panics
/// As [`timeout_vs_unlock`].
#[cfg(world = "vm")]
pub fn interrupt_vs_unlock<L: RawRwLock + RawInterruptible + Send + Sync + 'static>(
    held: Role,
    roles: &'static [Role],
) {
    super::install_handler();
    leave_or_not::<L>(held, roles, super::until_struck);
}

fn leave_or_not<L: RawRwLock + Send + Sync + 'static>(
    held: Role,
    roles: &'static [Role],
    limit: fn() -> Deadline,
) {
    let protected = Protected::<L>::new();
    let start = || {
        roles.iter().map(|&role| {
            with(&protected, move |protected| {
                usize::from(protected.play_within(role, limit) && !role.is_reader())
            })
        })
    };
    let mut counted = 0;
    let others: Vec<_> = match held {
        Role::Read => {
            let token = protected.lock.read();
            let others = start().collect();
            protected.look_and_unlock(token);
            others
        }
        Role::Write => {
            let token = protected.lock.write();
            let others = start().collect();
            protected.count_and_unlock(token);
            counted += 1;
            others
        }
        _ => panic!("{held:?}: the lock is held as Read or Write"),
    };
    // Once more against what the timed waiters left behind.
    let token = protected.lock.write();
    protected.count_and_unlock(token);
    counted += 1;
    counted += others.into_iter().map(|other| other.join().expect("a waiter panicked")).sum::<usize>();
    protected.check_at_rest(counted);
}

/// Waiters of which each gives up when its time comes, however long the holder stays: none needs
/// the release to leave, and none leaves anything behind. Writers that gave up on a reader do not
/// keep the next reader out. For a model in which all deadlines pass in the end.
///
/// # Panics
/// If one of them gets the lock, or leaves a trace; and if `held` is not `Read` or `Write`.
pub fn give_up_while_held<L: RawRwLock + Send + Sync + 'static>(held: Role, waiters: usize) {
    let protected = Protected::<L>::new();
    let (read, written) = match held {
        Role::Read => (Some(protected.lock.read()), None),
        Role::Write => (None, Some(protected.lock.write())),
        _ => panic!("{held:?}: the lock is held as Read or Write"),
    };
    let others: Vec<_> = (0..waiters)
        .map(|me| {
            with(&protected, move |protected| {
                let role =
                    if held == Role::Write && me % 2 == 0 { Role::TimedRead } else { Role::TimedWrite };
                protected.play(role)
            })
        })
        .collect();
    for other in others {
        assert!(!other.join().expect("a waiter panicked"), "a writer is not alone");
    }
    if let Some(held) = read {
        let beside = protected.lock.try_read().expect("writers that gave up keep readers out");
        protected.look_and_unlock(beside);
        protected.look_and_unlock(held);
        protected.check_at_rest(0);
    }
    if let Some(held) = written {
        protected.count_and_unlock(held);
        protected.check_at_rest(1);
    }
}

/// `try_read`, `try_write`, `is_locked` and `is_write_locked` tell the truth: of several attempts
/// on a free lock one succeeds, and all if only readers make any; a success excludes what it
/// should; and a holder's own attempt is answered as any other.
pub fn try_coherence<L: RawRwLock + Send + Sync + 'static>(readers: usize, writers: usize) {
    let protected = Protected::<L>::new();
    assert!(!protected.lock.is_locked() && !protected.lock.is_write_locked(), "a new lock is locked");
    let shared = Arc::clone(&protected);
    let got = together(readers + writers, move |me| {
        let lock = &shared.lock;
        if me < readers {
            let Some(token) = lock.try_read() else { return 0 };
            assert!(lock.is_locked(), "is_locked is false while the lock is held");
            assert!(!lock.is_write_locked(), "is_write_locked is true while a reader holds the lock");
            assert!(lock.try_write().is_none(), "try_write succeeded beside a reader");
            shared.look_and_unlock(token);
        } else {
            let Some(token) = lock.try_write() else { return 0 };
            assert!(lock.is_locked(), "is_locked is false while the lock is held");
            assert!(lock.is_write_locked(), "is_write_locked is false while a writer holds the lock");
            assert!(lock.try_write().is_none(), "try_write succeeded beside a writer");
            assert!(lock.try_read().is_none(), "try_read succeeded beside a writer");
            shared.count_and_unlock(token);
        }
        1
    });
    let all: usize = got.iter().sum();
    assert!(all >= 1, "every attempt failed on a lock that was free");
    assert!(writers > 0 || all == readers, "try_read failed although nobody writes");
    protected.check_at_rest(got[readers..].iter().sum());
}

/// Memory with a lock in it, and how many users of it have done their work in there.
struct Doomed<L> {
    lock: L,
    done: AtomicUsize,
}

/// Each user takes the lock, counts itself as done and releases. A writer that finds all others
/// done knows that they have released, since it is alone, and frees the memory once it has released
/// too; a reader knows the same if all the others are writers. A lock that touches its word after
/// the release of a reader or of a writer may touch freed memory.
///
/// Which of several readers is the last is not known, and no thread frees. What "freed" means in
/// the models, and what loom may miss, is told at
/// [`model::last_unlocker_frees`](super::last_unlocker_frees).
pub fn last_unlocker_frees<L: RawRwLock + Send + Sync + 'static>(readers: usize, writers: usize) {
    let users = readers + writers;
    let doomed = Box::new(Doomed { lock: new_lock::<L>(), done: AtomicUsize::new(0) });
    let handle = Handle(Box::into_raw(doomed));
    let owned = handle.clone();
    let freed: usize = together(users, move |me| {
        let handle = handle.clone();
        // SAFETY: this user is not done yet, so the memory is alive.
        let doomed = unsafe { &*handle.0 };
        let lock = &doomed.lock;
        // Relaxed: what orders a user's release before the end of the memory is the lock.
        let am_last = || doomed.done.fetch_add(1, Relaxed) + 1 == users;
        let last = if me < readers {
            let token = lock.read();
            let last = am_last() && readers == 1;
            // SAFETY: the token is from the acquisition above.
            unsafe { lock.unlock_read(token) };
            last
        } else {
            let token = lock.write();
            let last = am_last();
            // SAFETY: the token is from the acquisition above.
            unsafe { lock.unlock_write(token) };
            last
        };
        if last {
            // SAFETY: all users are done, and have released or are this one.
            unsafe { free(handle.0.cast_mut()) };
        }
        usize::from(last)
    })
    .into_iter()
    .sum();
    if freed == 0 {
        assert!(readers > 1, "nobody found itself the last");
        // SAFETY: all users were joined.
        unsafe { free(owned.0.cast_mut()) };
    }
    assert!(freed <= 1, "the memory was freed {freed} times");
}
