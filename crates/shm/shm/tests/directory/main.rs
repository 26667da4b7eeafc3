//! Directories: locks that processes find by name, also after deaths, resets and damage.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod corrupt;
mod deaths;
#[path = "../common/joined.rs"]
mod joined;
mod names;
mod resets;
#[path = "../region/scratch.rs"]
#[allow(dead_code, reason = "the tests of regions use all of it")]
mod scratch;

use scratch::Scratch;
use ulocks_core::Shared;
use ulocks_shm::{Directory, Mutex, Region};
use ulocks_unfair::BargingMutexWith;

/// What the regions of the tests have.
type Names = Directory<8, 1024>;
type Plain = BargingMutexWith<u64, Shared>;
type Robust = Mutex<u64>;

fn open(scratch: &Scratch) -> Region<Names> {
    Region::options().create_or_open(scratch.path(), 0o600).expect("a region")
}
