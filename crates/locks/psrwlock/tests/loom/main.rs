//! Models of the priority-sifting lock. The mutants of the package are what they must find.
//!
//! Three threads at a time, as a rule: with two writers in line beside two readers, or a second
//! reader beside a timed one and an upgradable, loom does not finish in minutes. The virtual
//! machine has those, and larger ones.
//!
//! An owner that waits for readers polls again and again here. So no model of this world can tell
//! whether a departing reader has woken it; the virtual machine can.
#![cfg(all(ulocks_loom, feature = "loom"))]

// Each world uses those that it can explore.
#[allow(dead_code)]
#[path = "../clients/mod.rs"]
mod clients;
mod signals;
mod slots;
mod sound;
mod steps;

use clients::phases::Phases;
use clients::place::Place;
use ulocks_core::Private;
use ulocks_core::model::{Config, Grade};
use ulocks_core::signal::Soft;
use ulocks_core::spin::NoSpin;
use ulocks_psrwlock::{
    BULK, Central, HANDLER, NESTED, PhaseFair, RawPsRwLock, Sifted, URGENT, Unchecked, WriterBatch,
};

/// How the locks of the models sift: in all ways no thread spins, and none checks nesting.
type Plain<const CLASSES: u8, F = PhaseFair, R = Central> =
    Sifted<CLASSES, Private<NoSpin>, F, R, Soft, Unchecked>;
type One = Plain<BULK>;
type Two = Plain<{ BULK | URGENT }>;
type Three = Plain<{ BULK | URGENT | NESTED }>;
type Four = Plain<{ BULK | URGENT | NESTED | HANDLER }>;
type Batch = Plain<{ BULK | URGENT }, WriterBatch<2>>;
/// Whose write phases are counted.
type Watched<F = PhaseFair, S = NoSpin> =
    Sifted<{ BULK | URGENT }, Private<S, Phases>, F, Central, Soft, Unchecked>;
/// Whose writers spin, and are left the lock.
type Spins = Sifted<{ BULK | URGENT }, Private, PhaseFair, Central, Soft, Unchecked>;

/// An owner that waits for readers naps, so that a model in which it waits for ever does not end.
const ENDLESS: &str = "maximum number of branches";

/// The place of a lock that sifts like `D`.
type At<D> = Place<D>;
type Raw<D> = RawPsRwLock<D>;

fn exact(preemptions: usize) -> Config {
    Config::bounded(preemptions)
}

/// A wake-up orders nothing, as on the machine.
fn unordered(preemptions: usize) -> Config {
    Config { grade: Grade::Unordered, ..exact(preemptions) }
}

/// Some deadlines pass; after these none does.
fn timed(preemptions: usize, timeouts: u32) -> Config {
    Config { timeouts, ..exact(preemptions) }
}

/// Some deadlines pass or not; after these all do.
fn at_last(preemptions: usize, timeouts: u32) -> Config {
    Config { rest_expire: true, ..timed(preemptions, timeouts) }
}
