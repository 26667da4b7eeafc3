//! The clients' roles as values, for lists of threads of any length; and two that loom has no room
//! for.

use crate::clients::place::{Place, soon};
use core::panic::Location;
use ulocks_core::time::Deadline;
use ulocks_psrwlock::{Bulk, Configuration, Nested, ReadToken, Urgent};
use ulocks_testkit::thread::{Arc, together};

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

/// A place where classes and roles are values.
pub trait ByValue {
    fn read_of(&self, class: Of) -> ReadToken;
    fn try_read_of(&self, class: Of) -> Option<ReadToken>;
    fn read_of_until(&self, class: Of, deadline: Deadline) -> Option<ReadToken>;
    /// Looks, and leaves.
    fn leave(&self, token: ReadToken) -> usize;
    /// The writer counts, and leaves.
    fn count_and_leave(&self);
    /// Does what `role` says. How much that adds to the count.
    fn play(&self, role: Role) -> usize;
}

impl<D: Configuration> ByValue for Place<D> {
    fn read_of(&self, class: Of) -> ReadToken {
        match class {
            Of::Bulk => self.read::<Bulk>(),
            Of::Urgent => self.read::<Urgent>(),
            Of::Nested => self.read::<Nested>(),
        }
    }

    fn try_read_of(&self, class: Of) -> Option<ReadToken> {
        let (lock, at) = (&self.lock, Location::caller());
        match class {
            Of::Bulk => lock.try_read_in::<Bulk>(at),
            Of::Urgent => lock.try_read_in::<Urgent>(at),
            Of::Nested => lock.try_read_in::<Nested>(at),
        }
    }

    fn read_of_until(&self, class: Of, deadline: Deadline) -> Option<ReadToken> {
        let (lock, at) = (&self.lock, Location::caller());
        match class {
            Of::Bulk => lock.read_in_until::<Bulk>(deadline, at),
            Of::Urgent => lock.read_in_until::<Urgent>(deadline, at),
            Of::Nested => lock.read_in_until::<Nested>(deadline, at),
        }
    }

    fn leave(&self, token: ReadToken) -> usize {
        let seen = self.look();
        self.unlock_read(token);
        seen
    }

    fn count_and_leave(&self) {
        self.count();
        self.unlock_write();
    }

    fn play(&self, role: Role) -> usize {
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
