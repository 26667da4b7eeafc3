//! Semaphore arrays under test: the kernel's, ours, and what has one semaphore at a time.
//!
//! A new one implements [`Array`], and has a line in the registry.

pub mod arrays;
mod erased;
pub mod kernel_set;

use super::laps::Lap;
use super::locks::Scope;
use anyhow::Result;
use arrays::{Kernel, Ours, Posix, Robust, Sleepers, Words};
use ulocks_semarray::Op;

/// An array of semaphores on which sets of operations are performed.
pub trait Array: Send + Sync + Sized + 'static {
    /// An operation as it wants it.
    type Op: From<Op> + Copy + Send + Sync;

    /// Whether it performs the operations of a set at once, and not one after the other.
    const SETS: bool = true;

    /// Performs the set, waiting until that is possible.
    ///
    /// # Panics
    /// If it is refused, which is a mistake of the benchmark.
    fn apply(&self, set: &[Self::Op]);

    /// Performs a set, and its opposite, each at once.
    #[inline]
    fn pair(&self, take: &[Self::Op], give: &[Self::Op]) {
        self.apply(take);
        self.apply(give);
    }

    /// The values of all semaphores.
    fn values(&self) -> Vec<u32>;
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
    fn values(&self) -> Vec<u32>;
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

/// Makes semaphores with these values, for these users.
pub type Make = fn(&[u32], Scope) -> Result<Box<dyn Semaphores>>;

/// What is known of semaphores.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// How they are made.
    pub make: Make,
    /// In what they can take part.
    pub parts: &'static [Part],
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
        ALL
    }
}

/// The kernel's array: what ratios are taken to.
pub const KERNEL: &str = "sysv";
/// Ours.
pub const SEMARRAY: &str = "semarray";
/// Ours between processes.
pub const ROBUST: &str = "robust-semarray";
/// The kernel's, which takes back what a dead process did.
pub const UNDO: &str = "sysv-undo";
/// Ours between processes, as small as a program of few semaphores makes it.
pub const ROBUST_SET: &str = "robust-set";
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

/// Whether it is of the family and of the kernel, its name, what it is, how many operations it
/// performs in a call at most, in what it takes part, and how it is made: for processes otherwise,
/// where there is an arrow.
macro_rules! entries {
    ($($family:literal $in_kernel:literal $name:expr, $about:literal, $per_call:expr,
       [$($part:ident)*], $make:expr $(=> $between:expr)?;)*) => {
        static ALL: &[Entry] = &[$(Entry {
            name: $name,
            about: $about,
            family: $family,
            kind: Traits {
                make: |values, scope| match scope {
                    $(Scope::Processes => made($between(values)),)?
                    _ => made($make(values)),
                },
                parts: &[$(Part::$part),*],
                per_call: $per_call,
                in_kernel: $in_kernel,
            },
        }),*];
    };
}

entries! {
    false true KERNEL, "System V semaphores, many operations a call", PER_CALL,
    [Wakes Processes Singles Manager], Kernel::new;
    false true UNDO, "System V semaphores with SEM_UNDO", PER_CALL, [], Kernel::undo;
    false true "sysv-single", "System V, one operation a call", 1, [Wakes Processes], Kernel::new;
    false true FUTEX, "a word a sleeper, one FUTEX_WAKE each, as in 2010", 1, [Wakes Processes],
    Sleepers::<true>::new => Sleepers::<false>::new;
    false false POSIX, "POSIX unnamed semaphores, each on lines of its own", 1, [Singles], Posix::new;
    true false SEMARRAY, "ulocks SemArray", PER_CALL, [Wakes Singles Manager], Ours::new;
    true false "semarray-single", "ulocks SemArray, one operation a call", 1, [Wakes], Ours::new;
    true false STRICT, "ulocks SemArray, no set overtakes a sleeper", PER_CALL, [Manager], Ours::strict;
    true false ROBUST, "ulocks shm::SemArray, of 250, sets of up to 64", PER_CALL, [Processes],
    Robust::<250, PER_CALL>::new;
    true false ROBUST_SET, "ulocks shm::SemArray of two, sets of up to 8", 8, [], Robust::<2, 8>::new;
    false false FLOOR, "a compare-exchange for each operation, no set: the least there is", 1, [], Words::new;
}

pub(crate) fn made<A: Array>(array: Result<A>) -> Result<Box<dyn Semaphores>> {
    Ok(Box::new(array?))
}
