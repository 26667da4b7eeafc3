//! Models of the locks on the virtual machine: many threads, old values, deadlines, deaths. The
//! mutants in `mutants/*.toml` show what they find.
#![cfg(all(ulocks_vm, feature = "vm"))]

mod asym;
mod barging;
#[cfg(feature = "parking_lot")]
#[path = "../common/bits.rs"]
mod bits;
#[cfg(feature = "parking_lot")]
mod byte;
mod condvar;
#[path = "../common/overtaking.rs"]
mod overtaking;
#[path = "../common/queueing.rs"]
mod queueing;
mod tasks;
mod throughput;
#[path = "../common/warm.rs"]
mod warm;
