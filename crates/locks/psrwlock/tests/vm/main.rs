//! Models of the priority-sifting lock on the virtual machine: many threads of all classes,
//! handlers that strike anywhere, old values, a clock, deaths. The mutants of the package are what
//! they must find.
#![cfg(all(ulocks_vm, feature = "vm"))]

mod classes;
mod deaths;
mod family;
mod few;
mod first;
mod histories;
mod leaving;
mod naps;
mod partial;
mod phases;
mod place;
mod releases;
mod rows;
mod signals;
mod tasks;

use ulocks_core::model::{Config, Strategy};
use ulocks_core::signal::Soft;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_psrwlock::{BULK, Central, HANDLER, NESTED, PhaseFair, RawPsRwLock, Sifted, URGENT, Unchecked};

/// Waiters sleep at once: fewer steps, hence more executions of what is left.
type Sleeps = Private<NoSpin>;
type SleepsShared = Shared<NoSpin>;

/// What nests is for the table of `Checked` to find, which a model must not depend on.
type Lock<const SET: u8, P = Sleeps, F = PhaseFair, R = Central, M = Soft> =
    RawPsRwLock<Sifted<SET, P, F, R, M, Unchecked>>;

/// The two that a lock is made for.
const TWO: u8 = BULK | URGENT;
/// All classes of threads.
const THREE: u8 = BULK | URGENT | NESTED;
/// All classes.
const FOUR: u8 = THREE | HANDLER;

/// How many executions of a model of so many threads: about as many steps for each number.
fn sampled(threads: usize, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(4_000 / threads as u64) }
}

/// The one execution without surprises: each thread goes on until it has to wait, and time passes
/// when all do.
fn tame() -> Config {
    Config { strategy: Strategy::Bytes(Vec::new()), ..Config::default() }
}
