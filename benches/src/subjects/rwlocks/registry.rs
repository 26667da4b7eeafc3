//! Every reader-writer lock, each in one line.

use super::{Masked, ParkingLot, Peer, Pthread, RwLock, Std, Usync, family};
use anyhow::{Result, anyhow};
use std::sync::LazyLock;

/// Code that is compiled once for every lock.
pub trait Visitor {
    /// What it returns.
    type Output;
    /// Runs with lock type `L`.
    fn visit<L: RwLock>(self, entry: &'static Entry) -> Self::Output;
}

/// A lock in the registry.
#[derive(Debug)]
pub struct Entry {
    /// What it is called; unique.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Whether it belongs to this family, and is not a peer.
    pub family: bool,
    /// Whether `Urgent` is a class of its own.
    pub urgent: bool,
    /// Whether there is a class `Nested`.
    pub nested: bool,
    /// Whether it can be read in signal handlers.
    pub handler: bool,
    /// Whether it says how long it keeps signals off.
    pub timed_mask: bool,
}

impl Entry {
    /// What the type says.
    pub(super) fn new<L: RwLock>(name: &'static str, about: &'static str, family: bool) -> Self {
        Self {
            name,
            about,
            family,
            urgent: L::URGENT,
            nested: L::NESTED,
            handler: L::HANDLER,
            timed_mask: L::TIMED_MASK,
        }
    }
}

static ALL: LazyLock<Vec<Entry>> = LazyLock::new(|| peers().into_iter().chain(family::entries()).collect());

/// Every lock, peers first.
pub fn all() -> &'static [Entry] {
    &ALL
}

/// The lock called `name`.
pub fn find(name: &str) -> Result<&'static Entry> {
    all().iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<_> = all().iter().map(|entry| entry.name).collect();
        anyhow!("unknown reader-writer lock '{name}'; allowed: {}", names.join(", "))
    })
}

macro_rules! peers {
    ($($name:literal $about:literal: $lock:ty;)*) => {
        fn peers() -> Vec<Entry> {
            vec![$(Entry::new::<$lock>($name, $about, false)),*]
        }

        /// Runs `visitor` with the type of `entry`.
        pub fn visit<V: Visitor>(entry: &'static Entry, visitor: V) -> Result<V::Output> {
            match entry.name {
                $($name => Ok(visitor.visit::<$lock>(entry)),)*
                _ => family::visit(entry, visitor),
            }
        }
    };
}

peers! {
    "std-rw" "std::sync::RwLock": Peer<Std>;
    "parking_lot-rw" "parking_lot 0.13 RwLock": Peer<ParkingLot>;
    "pthread-rw" "pthread_rwlock_t, readers first": Peer<Pthread<false>>;
    "pthread-rw-writer" "pthread_rwlock_t, writers first": Peer<Pthread<true>>;
    "usync-rw" "usync RwLock": Peer<Usync>;
    "std-rw-masked" "the same, signals blocked by whoever wants or has it": Masked<Std>;
    "parking_lot-rw-masked" "the same, signals blocked by whoever wants or has it": Masked<ParkingLot>;
    "pthread-rw-masked" "the same, signals blocked by whoever wants or has it": Masked<Pthread<false>>;
    "pthread-rw-writer-masked" "the same, signals blocked by whoever wants or has it": Masked<Pthread<true>>;
}
