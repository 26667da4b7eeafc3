//! What every benchmark of this repository shares: the locks under test, the work done with them,
//! trials, pinning, statistics, and a description of the machine.
//!
//! A trial is one lock under one load (`trial`); the programs that compare locks run trials of all
//! of them in turn, in fresh processes, and judge ratios within a round (`stats`). How it is meant
//! to be honest is written where it is done.
//!
//! In the world of the virtual machine this library is something else: `cost`, what the locks would
//! cost on many CPUs.

#[cfg(not(all(ulocks_vm, feature = "vm")))]
pub mod condvar;
#[cfg(not(all(ulocks_vm, feature = "vm")))]
pub mod convoy;
#[cfg(all(ulocks_vm, feature = "vm"))]
pub mod cost;
#[cfg(not(all(ulocks_vm, feature = "vm")))]
pub mod duel;
#[cfg(not(all(ulocks_vm, feature = "vm")))]
pub mod flex;
#[cfg(not(all(ulocks_vm, feature = "vm")))]
pub mod futexes;
#[cfg(not(all(ulocks_vm, feature = "vm")))]
pub mod handoff;
#[cfg(not(all(ulocks_vm, feature = "vm")))]
pub mod keeper;
#[cfg(not(all(ulocks_vm, feature = "vm")))]
pub mod locks;
#[cfg(not(all(ulocks_vm, feature = "vm")))]
pub mod machine;
#[cfg(not(all(ulocks_vm, feature = "vm")))]
pub mod options;
#[cfg(not(all(ulocks_vm, feature = "vm")))]
pub mod pairs;
#[cfg(not(all(ulocks_vm, feature = "vm")))]
pub mod pin;
#[cfg(not(all(ulocks_vm, feature = "vm")))]
pub mod promises;
#[cfg(not(all(ulocks_vm, feature = "vm")))]
pub mod report;
#[cfg(not(all(ulocks_vm, feature = "vm")))]
pub mod rounds;
#[cfg(not(all(ulocks_vm, feature = "vm")))]
pub mod rw;
#[cfg(not(all(ulocks_vm, feature = "vm")))]
pub mod scaling;
#[cfg(not(all(ulocks_vm, feature = "vm")))]
pub mod sem;
#[cfg(not(all(ulocks_vm, feature = "vm")))]
pub mod semset;
#[cfg(not(all(ulocks_vm, feature = "vm")))]
pub mod stats;
#[cfg(not(all(ulocks_vm, feature = "vm")))]
mod status;
#[cfg(all(ulocks_vm, feature = "vm"))]
#[path = "report/svg.rs"]
mod svg;
#[cfg(not(all(ulocks_vm, feature = "vm")))]
pub mod trial;
#[cfg(not(all(ulocks_vm, feature = "vm")))]
pub mod work;
