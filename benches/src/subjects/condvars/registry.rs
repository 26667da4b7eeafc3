//! What can be measured, each in one line.

use super::Monitor;
use super::peers::{Api, ParkingLot012, Pi, Std, Usync};
use super::placed::{Pthread, WithSequence};
use crate::subjects::locks::{INHERIT, McsPark, NORMAL, SysV};
use anyhow::{Result, anyhow};
use ulocks_core::api::RawCondvar;
use ulocks_core::policy::Private;

/// A mutex and its condition variable.
#[derive(Debug)]
pub struct Entry {
    /// What it is called; unique.
    pub name: &'static str,
    /// The mutex in the registry of [`locks`](crate::subjects::locks), for `--locks`.
    pub lock: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Whether it belongs to this family, and is not a peer.
    pub family: bool,
    /// Whether it is measured only when it is asked for.
    pub probe: bool,
}

/// Code that is compiled once for every pair.
pub trait Visitor {
    /// What it returns.
    type Output;
    /// Runs with this pair.
    fn visit<M: Monitor>(self) -> Self::Output;
}

macro_rules! registry {
    (peers { $($name:literal $lock:literal $about:literal: $peer:ty;)* }
     probes { $($probe:literal $with:literal $line:literal: $probed:ty;)* }
     family { $($member:literal $of:literal $text:literal: $own:ty;)* }) => {
        static ALL: &[Entry] = &[
            $(Entry { name: $name, lock: $lock, about: $about, family: false, probe: false },)*
            $(Entry { name: $probe, lock: $with, about: $line, family: false, probe: true },)*
            $(Entry { name: $member, lock: $of, about: $text, family: true, probe: false },)*
        ];

        /// Runs `visitor` with the types of `entry`.
        pub fn visit<V: Visitor>(entry: &Entry, visitor: V) -> V::Output {
            match entry.name {
                $($name => visitor.visit::<$peer>(),)*
                $($probe => visitor.visit::<$probed>(),)*
                $($member => visitor.visit::<$own>(),)*
                _ => unreachable!("an entry comes from the registry"),
            }
        }
    };
}

/// A mutex of the family with the condition variable of the family.
type Own<L> = Api<RawCondvar<L>>;

registry! {
    peers {
        "std" "std" "std's": Std;
        "parking_lot" "parking_lot" "parking_lot 0.13's": Api<parking_lot::RawCondvar>;
        "usync" "usync" "usync's": Usync;
        "pthread" "pthread" "glibc's, with a normal mutex": Pthread<NORMAL>;
        "pthread-pi" "pthread-pi" "glibc's, with a mutex of priority inheritance": Pthread<INHERIT>;
        "mcs-park" "mcs-park" "a sequence word with an MCS mutex, strictly in order": WithSequence<McsPark>;
    }
    probes {
        "parking_lot-0.12" "parking_lot-0.12" "parking_lot 0.12's": ParkingLot012;
        "sysv" "sysv" "a sequence word with a SysV semaphore, strictly in order": WithSequence<SysV>;
    }
    family {
        "unfair" "unfair" "ulocks unfair Mutex": Own<ulocks_unfair::RawMutex<Private>>;
        "throughput" "throughput" "ulocks unfair ThroughputMutex": Own<ulocks_unfair::RawThroughputMutex<Private>>;
        "asym" "asym" "ulocks unfair AsymMutex": Own<ulocks_unfair::RawAsymMutex<Private>>;
        "byte" "byte" "ulocks unfair ByteMutex": Own<ulocks_unfair::RawByteMutex<Private>>;
        "calock" "calock" "ulocks Calock": Own<ulocks_calock::RawCalock<Private>>;
        "fair" "fair" "ulocks fair FairMutex": Own<ulocks_fair::RawFairMutex<Private>>;
        "pi" "pi" "ulocks PiMutex with PiCondvar, whose notification names the mutex": Pi;
        "pi-generic" "pi" "ulocks PiMutex with the condition variable of the others": Own<ulocks_pi::RawPiMutex<Private>>;
    }
}

/// Every pair, peers first.
pub fn all() -> &'static [Entry] {
    ALL
}

/// The pair called `name`.
pub fn find(name: &str) -> Result<&'static Entry> {
    all().iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<_> = all().iter().map(|entry| entry.name).collect();
        anyhow!("unknown condition variable '{name}'; allowed: {}", names.join(", "))
    })
}
