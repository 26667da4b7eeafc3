//! Semaphore arrays under test: the kernel's, ours, and what has one semaphore at a time.

pub mod arrays;
pub mod kernel_set;

use anyhow::{Result, anyhow};
use std::time::Duration;
use ulocks_semarray::Fairness;

/// What a subject is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The kernel's array.
    Kernel,
    /// Ours, in this order of service.
    Ours(Fairness),
    /// Semaphores by themselves.
    Posix,
    /// A word that somebody sleeps on, with or without the flag that says that it is of one
    /// process.
    Futex {
        /// Whether it says so.
        private: bool,
    },
    /// A word that 32 who run on one CPU sleep on, each with a bit of it; one of those on another
    /// CPU wakes the rest.
    Groups,
    /// Words and nothing else.
    Floor,
}

/// A subject.
#[derive(Debug)]
pub struct Entry {
    /// What it is called; unique.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Whether operations that could go together go one by one.
    pub one_by_one: bool,
}

/// The kernel's array: what ratios are taken to.
pub const KERNEL: &str = "sysv";
/// Ours.
pub const SEMARRAY: &str = "semarray";
/// Semaphores by themselves.
pub const POSIX: &str = "sem_t";
/// What the seed of 2010 was twice as fast as.
pub const FUTEX: &str = "futex";
/// As many as can be woken by a call, and nothing else: what nobody can do better.
pub const GROUPS: &str = "futex-groups";
/// Words and nothing else: what no semaphores in user space can do better.
pub const FLOOR: &str = "floor";
/// Ours, never passed.
pub const STRICT: &str = "semarray-strict-0";

const fn strict(after: Duration) -> Kind {
    Kind::Ours(Fairness::Strict { after })
}

static ALL: [Entry; 12] = [
    entry(KERNEL, "System V semaphores, many operations a call", Kind::Kernel, false),
    entry("sysv-single", "the same, one operation a call", Kind::Kernel, true),
    entry(FUTEX, "a word a sleeper, one FUTEX_WAKE each, as the seed of 2010 has it", futex(false), true),
    entry("futex-private", "the same with FUTEX_WAKE_PRIVATE", futex(true), true),
    entry(
        GROUPS,
        "a word for 32 sleepers of a CPU, one FUTEX_WAKE_BITSET each, chained on other CPUs: what is possible",
        Kind::Groups,
        false,
    ),
    entry(POSIX, "POSIX unnamed semaphores, each on lines of its own", Kind::Posix, true),
    entry(SEMARRAY, "ulocks SemArray", Kind::Ours(Fairness::Barging), false),
    entry("semarray-single", "the same, one operation a call", Kind::Ours(Fairness::Barging), true),
    entry(STRICT, "ulocks SemArray, nobody passes who sleeps", strict(Duration::ZERO), false),
    entry(
        "semarray-strict-100us",
        "the same, nobody passes who has slept for so long",
        strict(micros(100)),
        false,
    ),
    entry(
        "semarray-strict-1ms",
        "the same, nobody passes who has slept for so long",
        strict(micros(1000)),
        false,
    ),
    entry(
        FLOOR,
        "a compare-exchange and, in a set, a store for each operation: what is possible",
        Kind::Floor,
        false,
    ),
];

const fn entry(name: &'static str, about: &'static str, kind: Kind, one_by_one: bool) -> Entry {
    Entry { name, about, kind, one_by_one }
}

const fn futex(private: bool) -> Kind {
    Kind::Futex { private }
}

const fn micros(us: u64) -> Duration {
    Duration::from_micros(us)
}

/// Every subject.
pub fn all() -> &'static [Entry] {
    &ALL
}

/// The subject called `name`.
pub fn find(name: &str) -> Result<&'static Entry> {
    all().iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<_> = all().iter().map(|entry| entry.name).collect();
        anyhow!("unknown semaphores '{name}'; allowed: {}", names.join(", "))
    })
}
