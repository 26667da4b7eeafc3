//! Models of the calock on the virtual machine: many threads, old values, deadlines.
#![cfg(all(ulocks_vm, feature = "vm"))]

mod crowd;
#[path = "../common/impatient.rs"]
mod impatient;
#[path = "../common/overtaking.rs"]
mod overtaking;
mod sound;

use ulocks_core::model::Config;

/// How many executions of a model of so many threads: about as many steps for each number.
fn sampled(threads: usize, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(16_000 / threads as u64) }
}
