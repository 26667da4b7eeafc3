//! What the locks of the family, and those they are told apart from, would cost on many CPUs:
//! predictions of the virtual machine, in a table and as JSON.
//!
//! This library is empty outside of the world of the virtual machine, where the locks are the same
//! source as everywhere. Nothing here is a measurement, and every output says so.

#![cfg(all(ulocks_vm, feature = "vm"))]

pub mod cli;
mod locks;
mod reference;
mod table;

pub use locks::{Lock, all};

use serde::Serialize;
use ulocks_vm_cost::Outcome;

/// One lock on so many CPUs.
#[derive(Debug, Serialize)]
pub struct Cell {
    /// The lock's name.
    pub lock: String,
    /// What the machine predicts.
    #[serde(flatten)]
    pub outcome: Outcome,
}
