//! A lock and what it protects, and the ways in which threads go at it.

use core::panic::Location;
use core::time::Duration;
use ulocks_core::raw::{
    RawRwLock, RawRwLockDowngrade, RawRwLockFair, RawRwLockUpgrade, RawRwLockUpgradeFair,
};
use ulocks_core::sync::{UnsafeCell, interruption_point};
use ulocks_core::time::Deadline;
use ulocks_psrwlock::{Bulk, Configuration, Nested, RawPsRwLock, ReadToken, State, ThreadClass, Urgent};
use ulocks_testkit::thread::{Arc, together, with};

/// A lock, and a count that is no atomic in a cell whose accesses the model checks.
pub struct Place<D: Configuration> {
    pub lock: RawPsRwLock<D>,
    count: UnsafeCell<usize>,
}

// SAFETY: `count` is read by readers of `lock` and written by its writers, or by the one thread
// left after the others were joined. That the lock keeps these apart is what the clients test; the
// model reports where it does not.
unsafe impl<D: Configuration> Sync for Place<D> {}
// SAFETY: owning a place is owning both parts.
unsafe impl<D: Configuration> Send for Place<D> {}

/// What a thread does with the lock, and what that adds to the count: a function of [`Place`].
pub type Client<D> = fn(&Place<D>) -> usize;

/// A deadline that may pass before a model has anything else to do.
pub fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(1))
}

impl<D: Configuration> Place<D> {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { lock: RawPsRwLock::new(), count: UnsafeCell::new(0) })
    }

    /// What the count is. The caller holds the lock in whatever way.
    pub fn look(&self) -> usize {
        interruption_point();
        // SAFETY: the caller holds the lock, so no thread writes.
        self.count.with(|count| unsafe { *count })
    }

    /// Adds one to the count and returns it. The caller is the writer.
    pub fn count(&self) -> usize {
        interruption_point();
        self.count.with_mut(|count| {
            // SAFETY: the caller holds the lock alone.
            unsafe {
                *count += 1;
                *count
            }
        })
    }

    pub fn read<C: ThreadClass>(&self) -> ReadToken {
        self.lock.read_in::<C>(Location::caller())
    }

    pub fn unlock_read(&self, token: ReadToken) {
        // SAFETY: the clients pass on what an acquisition of this lock on this thread gave them.
        unsafe { self.lock.unlock_read(token) };
    }

    pub fn unlock_write(&self) {
        // SAFETY: the clients call this when they are the writer.
        unsafe { self.lock.unlock_write(()) };
    }

    /// Looks, and leaves.
    pub fn leave(&self, token: ReadToken) -> usize {
        let seen = self.look();
        self.unlock_read(token);
        seen
    }

    /// The writer counts, and leaves.
    pub fn count_and_leave(&self) -> usize {
        self.count();
        self.unlock_write();
        1
    }

    /// The lock after all threads but this one are gone: `expected` is the count, and an attempt to
    /// write, which looks at all that waiters may leave behind, leaves it as new.
    pub fn check_at_rest(&self, expected: usize) {
        assert!(!self.lock.is_locked(), "the lock is locked although its last holder released it");
        assert_eq!(self.lock.state().level(), 0, "a lock that nobody uses is shut");
        self.lock.try_write().expect("try_write failed on a lock that nobody holds");
        let count = self.look();
        self.unlock_write();
        assert_eq!(count, expected, "updates were lost");
        assert_eq!(self.lock.state(), State::UNLOCKED, "something is left of a lock that nobody uses");
    }
}

/// Roles.
impl<D: Configuration> Place<D> {
    pub fn reads<C: ThreadClass>(&self) -> usize {
        let token = self.read::<C>();
        self.leave(token);
        0
    }

    pub fn reads_twice<C: ThreadClass>(&self) -> usize {
        self.reads::<C>() + self.reads::<C>()
    }

    pub fn writes(&self) -> usize {
        self.lock.write();
        self.count_and_leave()
    }

    pub fn tries_to_write(&self) -> usize {
        self.lock.try_write().map_or(0, |()| self.count_and_leave())
    }

    pub fn writes_in_time(&self) -> usize {
        self.lock.write_until(soon()).map_or(0, |()| self.count_and_leave())
    }

    /// Releases to a writer that waits.
    pub fn writes_fairly(&self) -> usize {
        self.lock.write();
        self.count();
        // SAFETY: the writer of the line before the last.
        unsafe { self.lock.unlock_write_fair(()) };
        1
    }

    pub fn reads_upgradably(&self) -> usize {
        self.lock.upgradable();
        self.look();
        // SAFETY: acquired above.
        unsafe { self.lock.unlock_upgradable(()) };
        0
    }

    /// Releases to a writer that waits.
    pub fn reads_upgradably_and_fairly(&self) -> usize {
        self.lock.upgradable();
        self.look();
        // SAFETY: acquired above.
        unsafe { self.lock.unlock_upgradable_fair(()) };
        0
    }

    /// No thread writes between the look of an upgradable reader and its write.
    pub fn upgrades(&self) -> usize {
        self.lock.upgradable();
        let seen = self.look();
        // SAFETY: acquired above.
        unsafe { self.lock.upgrade(()) };
        self.writes_after(seen)
    }

    pub fn tries_to_upgrade(&self) -> usize {
        self.lock.upgradable();
        let seen = self.look();
        // SAFETY: acquired above.
        let upgraded = unsafe { self.lock.try_upgrade(()) };
        self.writes_if(upgraded, seen)
    }

    pub fn upgrades_in_time(&self) -> usize {
        let Some(()) = self.lock.upgradable_until(soon()) else { return 0 };
        let seen = self.look();
        // SAFETY: acquired above.
        let upgraded = unsafe { self.lock.upgrade_until((), soon()) };
        self.writes_if(upgraded, seen)
    }

    fn writes_if(&self, upgraded: Result<(), ()>, seen: usize) -> usize {
        if upgraded.is_ok() {
            return self.writes_after(seen);
        }
        assert_eq!(self.look(), seen, "somebody wrote beside an upgradable reader");
        // SAFETY: the upgrade that failed left it.
        unsafe { self.lock.unlock_upgradable(()) };
        0
    }

    fn writes_after(&self, seen: usize) -> usize {
        assert_eq!(
            self.count(),
            seen + 1,
            "somebody wrote between the look of an upgradable reader and its write"
        );
        self.unlock_write();
        1
    }

    /// No thread writes between a write and the look of the reader that the writer has become.
    pub fn downgrades(&self) -> usize {
        self.lock.write();
        let count = self.count();
        // SAFETY: acquired above.
        let token = unsafe { self.lock.downgrade(()) };
        assert_eq!(self.leave(token), count, "somebody wrote between the sides of a downgrade");
        1
    }

    /// From writer to upgradable reader, to writer, to upgradable reader, to reader.
    pub fn goes_up_and_down(&self) -> usize {
        self.lock.write();
        let count = self.count();
        // SAFETY: each is that of the step before.
        let token = unsafe {
            self.lock.downgrade_to_upgradable(());
            assert_eq!(self.look(), count, "somebody wrote beside an upgradable reader");
            self.lock.upgrade(());
            assert_eq!(self.count(), count + 1, "somebody wrote before an upgrade");
            self.lock.downgrade_to_upgradable(());
            self.lock.downgrade_upgradable(())
        };
        assert_eq!(self.leave(token), count + 1, "somebody wrote between the sides of a downgrade");
        2
    }
}

/// A thread in each role, all at once.
pub fn together_with<D: Configuration, const N: usize>(roles: [Client<D>; N]) {
    let place = Place::new();
    let shared = Arc::clone(&place);
    let counted = together(N, move |me| roles[me](&shared)).into_iter().sum();
    place.check_at_rest(counted);
}

/// How the lock is held when others come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    Written,
    WrittenFairly,
    Upgradable,
    UpgradableFairly,
}

/// A thread in each role, while another one holds the lock, which then releases it.
pub fn behind<D: Configuration, const N: usize>(held: Held, roles: [Client<D>; N]) {
    let place = Place::new();
    let lock = &place.lock;
    let start = || -> Vec<_> { roles.into_iter().map(|role| with(&place, role)).collect() };
    // SAFETY: each releases what it has acquired.
    let (others, mut counted) = unsafe {
        match held {
            Held::Written | Held::WrittenFairly => {
                lock.write();
                let others = start();
                place.count();
                if held == Held::Written {
                    lock.unlock_write(())
                } else {
                    lock.unlock_write_fair(())
                }
                (others, 1)
            }
            Held::Upgradable | Held::UpgradableFairly => {
                lock.upgradable();
                let others = start();
                place.look();
                if held == Held::Upgradable {
                    lock.unlock_upgradable(());
                } else {
                    lock.unlock_upgradable_fair(());
                }
                (others, 0)
            }
        }
    };
    counted += others.into_iter().map(|other| other.join().expect("a client panicked")).sum::<usize>();
    place.check_at_rest(counted);
}

/// A class of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    Bulk,
    Urgent,
    Nested,
}

/// What a thread does, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Read(Of),
    TimedRead(Of),
    TryRead(Of),
    /// Reads in each class above the one it is in.
    Nest,
    Write,
    TimedWrite,
    TryWrite,
    FairWrite,
    Downgrade,
    Upgrade,
    TimedUpgrade,
    TryUpgrade,
    FairUpgradable,
    UpAndDown,
}

/// Classes and roles by value, for a lock that has all classes of threads.
impl<D: Configuration> Place<D> {
    pub fn read_of(&self, class: Of) -> ReadToken {
        match class {
            Of::Bulk => self.read::<Bulk>(),
            Of::Urgent => self.read::<Urgent>(),
            Of::Nested => self.read::<Nested>(),
        }
    }

    pub fn try_read_of(&self, class: Of) -> Option<ReadToken> {
        let (lock, at) = (&self.lock, Location::caller());
        match class {
            Of::Bulk => lock.try_read_in::<Bulk>(at),
            Of::Urgent => lock.try_read_in::<Urgent>(at),
            Of::Nested => lock.try_read_in::<Nested>(at),
        }
    }

    pub fn read_of_until(&self, class: Of, deadline: Deadline) -> Option<ReadToken> {
        let (lock, at) = (&self.lock, Location::caller());
        match class {
            Of::Bulk => lock.read_in_until::<Bulk>(deadline, at),
            Of::Urgent => lock.read_in_until::<Urgent>(deadline, at),
            Of::Nested => lock.read_in_until::<Nested>(deadline, at),
        }
    }

    /// Does what `role` says. How much that adds to the count.
    pub fn play(&self, role: Role) -> usize {
        match role {
            Role::Read(class) => {
                let token = self.read_of(class);
                self.leave(token);
                0
            }
            Role::TimedRead(class) => {
                self.read_of_until(class, soon()).map(|token| self.leave(token));
                0
            }
            Role::TryRead(class) => {
                self.try_read_of(class).map(|token| self.leave(token));
                0
            }
            Role::Nest => {
                let tokens =
                    [Of::Bulk, Of::Urgent, Of::Nested].map(|class| (self.read_of(class), self.look()));
                assert!(tokens.iter().all(|token| token.1 == tokens[0].1), "somebody wrote beside a reader");
                tokens.into_iter().for_each(|(token, _)| _ = self.leave(token));
                0
            }
            Role::Write => self.writes(),
            Role::TimedWrite => self.writes_in_time(),
            Role::TryWrite => self.tries_to_write(),
            Role::FairWrite => self.writes_fairly(),
            Role::Downgrade => self.downgrades(),
            Role::Upgrade => self.upgrades(),
            Role::TimedUpgrade => self.upgrades_in_time(),
            Role::TryUpgrade => self.tries_to_upgrade(),
            Role::FairUpgradable => self.reads_upgradably_and_fairly(),
            Role::UpAndDown => self.goes_up_and_down(),
        }
    }
}

/// All play their roles at once, each so many times.
pub fn play<D: Configuration>(roles: &'static [Role], rounds: usize) {
    let place = Place::<D>::new();
    let shared = Arc::clone(&place);
    let counts = together(roles.len(), move |me| (0..rounds).map(|_| shared.play(roles[me])).sum::<usize>());
    place.check_at_rest(counts.into_iter().sum());
}
