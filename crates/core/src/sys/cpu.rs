//! The CPU the calling thread runs on: a hint, out of date as soon as it is read.
//!
//! A lock can use it so: the holder leaves its CPU as a hint. If a waiter runs on that CPU itself,
//! the holder is not running at this moment, unless it has moved since. To spin would be useless.

use crate::sys::world;

/// The number of the CPU on which the caller runs, if that can be known.
///
/// A few nanoseconds: glibc (from 2.35 on) reads it from the thread's restartable-sequence area,
/// others from the vDSO. Under Miri and in models it is unknown; in a cost run of the virtual
/// machine it is the virtual CPU.
///
/// # Blocking
/// Never. No system call where there is a vDSO.
///
/// # Signals and forks
/// Async-signal-safe.
///
/// # Examples
/// ```
/// let Some(cpu) = ulocks_core::cpu::current() else { return };
/// println!("on CPU {cpu} just now");
/// ```
#[inline]
#[must_use]
pub fn current() -> Option<u32> {
    world::current_cpu()
}

/// The CPUs on which the calling thread may run: bit `n` stands for all whose number is `n`
/// modulo 64.
///
/// All bits are set where that cannot be known. The thread's affinity is asked for once; a change
/// after that goes unnoticed.
///
/// # Blocking
/// Never. One system call in the life of a thread.
///
/// # Signals and forks
/// Async-signal-safe. A child of `fork` remembers what its parent was told.
///
/// # Examples
/// ```
/// assert_ne!(ulocks_core::cpu::usable(), 0);
/// ```
#[must_use]
pub fn usable() -> u64 {
    world::usable_cpus()
}

/// How many CPUs the process may use.
///
/// Those are the CPUs of all threads that have slept in the queue of a lock, in the last two
/// periods of 16 seconds in which one did: of threads that are bound to one CPU each, as many as
/// there are different ones. Or it is the quota of CPU time of the process's cgroups, rounded down,
/// if that is less (`cpu.max` of cgroup v2). A thread tells its CPUs once a period, when it goes to
/// sleep, and the first one reads the quota again. So a change is noticed. Where the files cannot
/// be read there is no quota. In an exploration it is 64, unless the model says otherwise; in a
/// cost run it is the virtual machine's.
///
/// # Blocking
/// Never for another thread. The first call of a process reads `/proc/self/cgroup`, and a file for
/// each level of its cgroup; after that a thread that goes to sleep does so every 16 seconds. A
/// sandbox that kills a process for `openat` kills it there, unless the process has called
/// [`keep_quota`] before.
///
/// # Signals and forks
/// Async-signal-safe. A child of `fork` knows what its parent knew.
///
/// # Examples
/// ```
/// assert_ne!(ulocks_core::cpu::count(), 0);
/// ```
#[inline]
#[must_use]
pub fn count() -> u32 {
    world::cpu_count()
}

/// Reads the quota of CPU time now, and keeps it: no lock opens a file from here on.
///
/// For a process that will forbid itself to open files. [`count`] goes on to count the CPUs of
/// threads, and knows the quota of this moment. In models it does nothing.
///
/// # Blocking
/// Never for another thread. It reads `/proc/self/cgroup`, and a file for each level of the cgroup.
///
/// # Signals and forks
/// Async-signal-safe. A child of `fork` keeps the quota of its parent.
///
/// # Examples
/// ```
/// ulocks_core::cpu::keep_quota();
/// assert_ne!(ulocks_core::cpu::count(), 0);
/// ```
pub fn keep_quota() {
    world::keep_cpu_quota();
}

/// Counts the CPUs of the caller, if it has not told them lately. For a thread that goes to sleep.
pub(crate) fn recount() {
    world::recount_cpus();
}
