//! Semaphore arrays under test: the kernel's, ours, and what has one semaphore at a time.
//!
//! A new one implements [`Array`], and has a line in the registry.

pub mod arrays;
mod erased;
pub mod kernel_set;

use super::laps::Lap;
use anyhow::Result;
use arrays::{Kernel, Ours, Posix, Robust, Sleepers, Words};
use std::time::Duration;
use ulocks_semarray::{Fairness, Op};

/// An array of semaphores on which sets of operations are performed.
pub trait Array: Send + Sync + Sized + 'static {
    /// An operation as it wants it.
    type Op: Copy + Send + Sync;

    /// Whether it performs the operations of a set at once, and not one after the other.
    const SETS: bool = true;

    /// Brings an operation into that form.
    fn op(op: Op) -> Self::Op;

    /// Performs the set, waiting until that is possible.
    ///
    /// # Panics
    /// If it is refused, which is a mistake of the benchmark.
    fn apply(&self, set: &[Self::Op]);

    /// The values of all semaphores.
    fn values(&self) -> Result<Vec<u32>>;
}

/// Runs a block of some tens of microseconds and says how many nanoseconds a set and its opposite
/// took.
pub type Block = Box<dyn Fn() -> f64>;

/// Posts to these semaphores and says how many calls that took.
pub type Poster<'a> = Box<dyn FnMut(&[usize]) -> u64 + 'a>;

/// Semaphores without their type. Nothing is called through this more often than once a sleep, or
/// once a set of several microseconds; what is shorter is a loop inside of it.
pub trait Semaphores: Send + Sync {
    /// Readies a set, to be performed by a call of what this returns. Where there are no sets, one
    /// operation comes after the other.
    fn set<'a>(&'a self, set: &[Op]) -> Box<dyn Fn() + 'a>;

    /// Readies posts: adds one to each of some semaphores, so many in a call.
    fn poster(&self, per_call: usize) -> Poster<'_>;

    /// Performs the two sets by turns.
    fn turns(&self, first: &[Op], second: &[Op], lap: &mut Lap<'_>);

    /// Sets of so many operations, each performed and taken back, or single operations on so many
    /// semaphores; nothing if it takes no sets.
    fn block(self: Box<Self>, ops: u32, one_by_one: bool) -> Option<Block>;

    /// The values of all semaphores.
    fn values(&self) -> Result<Vec<u32>>;
}

/// In what a subject can take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Posts to many that sleep.
    Wakes,
    /// The same between processes.
    Processes,
    /// Single operations on semaphores of an array.
    Singles,
    /// Sets of one who must not starve.
    Manager,
}

type Make = fn(&[u32]) -> Result<Box<dyn Semaphores>>;
type Parts = &'static [Part];

/// What is known of semaphores.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// Makes some with these values.
    pub make: Make,
    /// In what they can take part.
    pub parts: Parts,
    /// The most operations in a call that posts.
    pub per_call: usize,
    /// Whether each call is a system call; else those are counted that wake.
    pub in_kernel: bool,
}

/// A subject of this kind.
pub type Entry = super::Entry<Traits>;

impl super::Kind for Traits {
    const WHAT: &'static str = "semaphores";

    fn entries() -> &'static [Entry] {
        &ALL
    }
}

/// The kernel's array: what ratios are taken to.
pub const KERNEL: &str = "sysv";
/// Ours.
pub const SEMARRAY: &str = "semarray";
/// Ours between processes.
pub const ROBUST: &str = "robust-semarray";
/// Semaphores by themselves.
pub const POSIX: &str = "sem_t";
/// What the program of 2010 was twice as fast as.
pub const FUTEX: &str = "futex";
/// Words and nothing else: what no semaphores in user space can do better.
pub const FLOOR: &str = "floor";
/// Ours, never passed.
pub const STRICT: &str = "semarray-strict-0";
/// The most operations in a call that posts.
pub const PER_CALL: usize = 64;

use Part::{Manager, Processes, Wakes};
const SETS: &[Part] = &[Wakes, Part::Singles, Manager];
const BOTH: &[Part] = &[Wakes, Processes];
const KERNELS: &[Part] = &[Wakes, Processes, Part::Singles, Manager];

const SINGLY: &[Part] = &[Part::Singles];

static ALL: [Entry; 9] = [
    kernel(
        KERNEL,
        "System V semaphores, many operations a call",
        |v| made(Kernel::new(v)),
        KERNELS,
        PER_CALL,
    ),
    kernel("sysv-single", "System V, one operation a call", |v| made(Kernel::new(v)), BOTH, 1),
    kernel(FUTEX, "a word a sleeper, one FUTEX_WAKE each, as in 2010", |v| made(Sleepers::new(v)), BOTH, 1),
    peer(POSIX, "POSIX unnamed semaphores, each on lines of its own", |v| made(Posix::new(v)), SINGLY),
    ours(SEMARRAY, "ulocks SemArray", barging, SETS, PER_CALL),
    ours("semarray-single", "ulocks SemArray, one operation a call", barging, &[Wakes], 1),
    ours(STRICT, "ulocks SemArray, no set overtakes a sleeper", strict, &[Manager], PER_CALL),
    ours(
        ROBUST,
        "ulocks RobustSemArray, between processes",
        |v| made(Robust::new(v)),
        &[Processes],
        PER_CALL,
    ),
    peer(
        FLOOR,
        "a compare-exchange for each operation, no set: the least there is",
        |v| made(Words::new(v)),
        &[],
    ),
];

pub(crate) fn made<A: Array>(array: Result<A>) -> Result<Box<dyn Semaphores>> {
    Ok(Box::new(array?))
}

fn barging(values: &[u32]) -> Result<Box<dyn Semaphores>> {
    made(Ours::new(values, Fairness::Barging))
}

fn strict(values: &[u32]) -> Result<Box<dyn Semaphores>> {
    made(Ours::new(values, Fairness::Strict { after: Duration::ZERO }))
}

const fn kernel(name: &'static str, about: &'static str, make: Make, parts: Parts, per_call: usize) -> Entry {
    let kind = Traits { make, parts, per_call, in_kernel: true };
    Entry { name, about, family: false, probe: false, kind }
}

const fn peer(name: &'static str, about: &'static str, make: Make, parts: Parts) -> Entry {
    let kind = Traits { make, parts, per_call: 1, in_kernel: false };
    Entry { name, about, family: false, probe: false, kind }
}

const fn ours(name: &'static str, about: &'static str, make: Make, parts: Parts, per_call: usize) -> Entry {
    let kind = Traits { make, parts, per_call, in_kernel: false };
    Entry { name, about, family: true, probe: false, kind }
}
