//! Semaphore arrays under test: the kernel's, ours, and what has one semaphore at a time.

pub mod arrays;
pub mod kernel_set;

use std::time::Duration;
use ulocks_semarray::Fairness;

/// What a subject is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// The kernel's array.
    Kernel,
    /// Ours, in this order of service.
    Ours(Fairness),
    /// Semaphores by themselves.
    Posix,
    /// A word that a thread sleeps on, with or without the flag that says that it is of one
    /// process.
    Futex {
        /// Whether it says so.
        private: bool,
    },
    /// Words and nothing else.
    Floor,
}

/// The kernel's array: what ratios are taken to.
pub const KERNEL: &str = "sysv";
/// Ours.
pub const SEMARRAY: &str = "semarray";
/// Semaphores by themselves.
pub const POSIX: &str = "sem_t";
/// What the seed of 2010 was twice as fast as.
pub const FUTEX: &str = "futex";
/// Words and nothing else: what no semaphores in user space can do better.
pub const FLOOR: &str = "floor";
/// Ours, never passed.
pub const STRICT: &str = "semarray-strict-0";

const fn strict(after: Duration) -> Made {
    Made::Ours(Fairness::Strict { after })
}

/// What is known of semaphores.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// What they are made of.
    pub made_of: Made,
    /// Whether operations that could go together go one by one.
    pub one_by_one: bool,
}

/// A subject of this kind.
pub type Entry = super::Entry<Traits>;

impl super::Kind for Traits {
    const WHAT: &'static str = "semaphores";

    fn entries() -> &'static [Entry] {
        &ALL
    }
}

static ALL: [Entry; 11] = [
    entry(KERNEL, "System V semaphores, many operations a call", Made::Kernel, false),
    entry("sysv-single", "System V semaphores, one operation a call", Made::Kernel, true),
    entry(FUTEX, "a word a sleeper, one FUTEX_WAKE each, as the seed of 2010 has it", futex(false), true),
    entry("futex-private", "a word a sleeper, one FUTEX_WAKE_PRIVATE each", futex(true), true),
    entry(POSIX, "POSIX unnamed semaphores, each on lines of its own", Made::Posix, true),
    entry(SEMARRAY, "ulocks SemArray", Made::Ours(Fairness::Barging), false),
    entry("semarray-single", "ulocks SemArray, one operation a call", Made::Ours(Fairness::Barging), true),
    entry(STRICT, "ulocks SemArray, no set overtakes a sleeper", strict(Duration::ZERO), false),
    entry(
        "semarray-strict-100us",
        "ulocks SemArray, no set overtakes a sleeper of 100 us",
        strict(micros(100)),
        false,
    ),
    entry(
        "semarray-strict-1ms",
        "ulocks SemArray, no set overtakes a sleeper of 1 ms",
        strict(micros(1000)),
        false,
    ),
    entry(
        FLOOR,
        "a compare-exchange and, in a set, a store for each operation: the least that is possible",
        Made::Floor,
        false,
    ),
];

const fn futex(private: bool) -> Made {
    Made::Futex { private }
}

const fn micros(us: u64) -> Duration {
    Duration::from_micros(us)
}

const fn entry(name: &'static str, about: &'static str, made_of: Made, one_by_one: bool) -> Entry {
    let family = matches!(made_of, Made::Ours(_));
    Entry { name, about, family, probe: false, kind: Traits { made_of, one_by_one } }
}
