//! The memory of a trial, so that forked workers see the same locks and counters as threads do.
//!
//! Everything that one side writes and another reads lies on lines of its own, 128 bytes because of
//! adjacent-line prefetch: the phase, what the coordinator waits for, each worker's results, each
//! lock, each protected counter.

use crate::run::syscalls::Counters;
use crate::subjects::locks::{Locks, Mapping, Turned};
use crate::workloads::waits::Waits;
use anyhow::Result;
use crossbeam_utils::CachePadded;
use std::cell::UnsafeCell;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

/// What coordinator and workers tell each other.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Control {
    /// One of the phases of [`phase`](crate::subjects::locks::phase).
    pub phase: CachePadded<AtomicU32>,
    /// Workers that are at the barrier.
    pub ready: CachePadded<AtomicU32>,
    /// Workers that have left it and had a lock once before the warm-up.
    pub started: CachePadded<AtomicU32>,
    /// Workers that have written their results and will not touch the locks again.
    pub finished: CachePadded<AtomicU32>,
    /// Workers that failed; they count as finished too.
    pub failed: CachePadded<AtomicU32>,
}

/// What a worker reports.
#[repr(C, align(128))]
pub struct Slot {
    /// Futex calls, counted as they are made.
    pub futexes: Counters,
    /// Length of the message of a failed worker; zero of any other.
    message_len: AtomicU32,
    message: UnsafeCell<[u8; 240]>,
    tally: UnsafeCell<Tally>,
}

/// What a worker has done; of the window, but for `turned`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// What its loop has done from first to last.
    pub turned: Turned,
    /// Operations that completed.
    pub counted: u64,
    /// System CPU time, nanoseconds.
    pub system_ns: u64,
    /// Context switches.
    pub switches: u64,
}

impl Slot {
    /// Reports a failure, in a message cut to fit. Called once, by the slot's worker.
    pub fn fail(&self, message: &str) {
        let message = if message.is_empty() { "panic" } else { message };
        // SAFETY: only its worker writes, once, and others read after they have seen the length.
        let room = unsafe { &mut *self.message.get() };
        let len = message.len().min(room.len());
        room[..len].copy_from_slice(&message.as_bytes()[..len]);
        self.message_len.store(len as u32, Release);
    }

    /// What the worker reported, if it failed.
    pub fn failure(&self) -> Option<String> {
        let len = self.message_len.load(Acquire) as usize;
        // SAFETY: the length is stored after the message, which does not change any more.
        (len > 0).then(|| String::from_utf8_lossy(unsafe { &(&*self.message.get())[..len] }).into_owned())
    }
}

/// The locks of a trial, and room for all that its workers say.
pub struct Arena {
    memory: Mapping,
    workers: usize,
    timed: bool,
    /// The locks.
    pub locks: Locks,
}

// SAFETY: the mapping holds atomics, and cells that one worker writes before it counts as finished
// and others read after that; `Locks` are `Sync`.
unsafe impl Sync for Arena {}

impl Arena {
    /// Maps room for so many workers.
    pub fn new(workers: usize, timed: bool, locks: Locks) -> Result<Self> {
        let waits = if timed { workers * size_of::<Waits>() } else { 0 };
        let bytes = Self::waits_at(workers, &locks) + waits;
        Ok(Self { memory: Mapping::new(bytes)?, workers, timed, locks })
    }

    fn counters_at(workers: usize) -> usize {
        size_of::<Control>() + workers * size_of::<Slot>()
    }

    fn waits_at(workers: usize, locks: &Locks) -> usize {
        Self::counters_at(workers) + locks.count() * size_of::<CachePadded<AtomicU64>>()
    }

    /// What coordinator and workers tell each other.
    pub fn control(&self) -> &Control {
        // SAFETY: it lies at the start of the zeroed mapping, consists of atomics, and lives as
        // long as `self`.
        unsafe { &*self.memory.at(0).cast() }
    }

    /// The results of the workers.
    pub fn slots(&self) -> &[Slot] {
        let first = self.memory.at(size_of::<Control>());
        // SAFETY: `new` mapped room for them, behind a multiple of 128 bytes; zeros are a valid
        // `Slot`; what changes in it is in cells.
        unsafe { std::slice::from_raw_parts(first.cast(), self.workers) }
    }

    /// The counters that the locks protect, one each.
    pub fn protected(&self) -> &[CachePadded<AtomicU64>] {
        let first = self.memory.at(Self::counters_at(self.workers));
        // SAFETY: as above, of counters.
        unsafe { std::slice::from_raw_parts(first.cast(), self.locks.count()) }
    }

    /// The waits of a worker, if they are measured.
    ///
    /// # Safety
    /// The worker itself asks, once; or it has finished, and the reference is not written to.
    #[expect(clippy::mut_from_ref, reason = "it is memory that processes share")]
    pub unsafe fn waits(&self, worker: usize) -> Option<&mut Waits> {
        let at = Self::waits_at(self.workers, &self.locks) + worker * size_of::<Waits>();
        // SAFETY: `new` mapped room for them; zeros are no waits; by the contract no other
        // reference is in use while this one is.
        self.timed.then(|| unsafe { &mut *self.memory.at(at).cast() })
    }

    /// Writes what a worker has done.
    ///
    /// # Safety
    /// The worker itself calls, before it counts as finished.
    pub unsafe fn put(&self, worker: usize, tally: Tally) {
        // SAFETY: by the contract nobody else is at this cell.
        unsafe { *self.slots()[worker].tally.get() = tally };
    }

    /// What each worker has done.
    ///
    /// # Safety
    /// All have finished.
    pub unsafe fn tallies(&self) -> Vec<Tally> {
        // SAFETY: by the contract nobody writes to these cells any more.
        self.slots().iter().map(|slot| unsafe { *slot.tally.get() }).collect()
    }
}

/// Sleeps while `word` is `value`, at most for `time`; may return early. Works between processes.
pub fn wait_while(word: &AtomicU32, value: u32, time: Duration) {
    let timeout = libc::timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos().into() };
    // SAFETY: the word and the timeout live until the call returns; all outcomes are treated alike.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &timeout) };
}

/// Changes `word` and wakes every thread in [`wait_while`].
pub fn announce(word: &AtomicU32, change: impl FnOnce(&AtomicU32)) {
    change(word);
    // SAFETY: waking needs only the address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
