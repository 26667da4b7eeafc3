//! The memory of a trial: a mapped memory file, so that forked workers see the same locks and
//! counters as threads do.
//!
//! Everything that one side writes and another reads lies on lines of its own, 128 bytes because of
//! adjacent-line prefetch: the phase, what the coordinator waits for, each worker's results, each
//! lock, each protected counter.

use crate::run::syscalls::Counters;
use crate::subjects::locks::{Lock, Scope};
use anyhow::{Result, ensure};
use crossbeam_utils::CachePadded;
use std::io;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};
use std::time::Duration;

/// What coordinator and workers tell each other.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Control {
    /// One of the phases in [`phase`]; written by the coordinator, read by each worker at each
    /// operation.
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

/// Values of [`Control::phase`], in their order.
pub mod phase {
    /// Workers gather at the barrier.
    pub const GATHER: u32 = 0;
    /// Workers go for the lock one after the other, and make room for the next.
    pub const RAMP_UP: u32 = 1;
    /// Operations do not count yet.
    pub const WARM_UP: u32 = 2;
    /// Operations count.
    pub const MEASURE: u32 = 3;
    /// Workers end.
    pub const STOP: u32 = 4;
}

/// [`Slot::state`] of a worker that has failed; zero before.
pub const FAILED: u32 = 1;

/// What a worker reports. Atomics only so that other processes may read it; each but the futex
/// calls is written once.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Slot {
    /// Zero, or [`FAILED`].
    pub state: AtomicU32,
    /// Operations that completed in the window.
    pub counted: AtomicU64,
    /// Exclusive operations from first to last.
    pub exclusive: AtomicU64,
    /// Shared operations that saw the protected counter change.
    pub torn: AtomicU64,
    /// User CPU time in the window, nanoseconds.
    pub user_ns: AtomicU64,
    /// System CPU time in the window, nanoseconds.
    pub system_ns: AtomicU64,
    /// Voluntary context switches in the window.
    pub voluntary: AtomicU64,
    /// Involuntary context switches in the window.
    pub involuntary: AtomicU64,
    /// Futex calls, counted as they are made.
    pub futexes: Counters,
    /// Sum of the recorded waits, nanoseconds.
    pub wait_sum: AtomicU64,
    /// The longest of them.
    pub wait_max: AtomicU64,
    /// Buckets in use in the worker's part of the arena.
    pub buckets: AtomicU32,
    /// Length of the message of a failed worker.
    pub message_len: AtomicU32,
    /// The message, UTF-8, cut to fit.
    pub message: Message,
}

/// Room for a failed worker's message.
pub type Message = [AtomicU8; 240];

impl Slot {
    /// Reports a failure; called once, instead of writing results.
    pub fn fail(&self, message: &str) {
        for (to, from) in self.message.iter().zip(message.bytes()) {
            to.store(from, Relaxed);
        }
        self.message_len.store(message.len().min(self.message.len()) as u32, Relaxed);
        self.state.store(FAILED, Release);
    }

    /// What the worker reported, if it failed.
    pub fn failure(&self) -> Option<String> {
        (self.state.load(Acquire) == FAILED).then(|| {
            let len = self.message_len.load(Relaxed) as usize;
            let bytes: Vec<u8> = self.message[..len].iter().map(|byte| byte.load(Relaxed)).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        })
    }
}

/// A bucket of a histogram: a value and how often it was recorded.
#[derive(Debug)]
#[repr(C)]
pub struct Bucket {
    /// A value that falls into the bucket.
    pub value: AtomicU64,
    /// How often.
    pub count: AtomicU64,
}

/// A lock and the counter it protects.
#[derive(Debug)]
#[repr(C)]
pub struct Cell<L> {
    /// The lock.
    pub lock: L,
    /// Raised by a load and a store in each exclusive critical section.
    pub protected: CachePadded<AtomicU64>,
}

/// The mapping, with `L` locks in it. Dropping it drops the locks, in the process that made them
/// only because forked workers leave through `_exit`.
#[derive(Debug)]
pub struct Arena<L> {
    base: *mut u8,
    bytes: usize,
    slots_at: usize,
    buckets_at: usize,
    cells_at: usize,
    workers: usize,
    buckets_each: usize,
    cells: usize,
    locks: PhantomData<L>,
}

// SAFETY: the mapping holds atomics and locks that are `Sync`; the rest is constant after `new`.
unsafe impl<L: Lock> Sync for Arena<L> {}
// SAFETY: as above; the last owner drops the locks, which are dropped in place wherever that
// happens, as any lock in an `Arc` is.
unsafe impl<L: Lock> Send for Arena<L> {}

impl<L: Lock> Arena<L> {
    /// Maps room for `workers` workers with `buckets_each` histogram buckets and for `locks` locks,
    /// and creates those.
    pub fn new(scope: Scope, workers: usize, buckets_each: usize, locks: usize) -> Result<Self> {
        let slots_at = size_of::<Control>();
        let cells_at = slots_at + workers * size_of::<Slot>();
        let buckets_at = cells_at + locks * size_of::<Cell<L>>();
        let bytes = buckets_at + workers * buckets_each * size_of::<Bucket>();
        let base = map(bytes)?;
        let mut arena = Self {
            base,
            bytes,
            slots_at,
            buckets_at,
            cells_at,
            workers,
            buckets_each,
            cells: 0,
            locks: PhantomData,
        };
        for index in 0..locks {
            // Counted only once it stands, so that a failure drops those before it. SAFETY: the
            // offset is within the mapping, which is writable, zeroed and aligned to a page; `Cell`
            // and all before it are multiples of 128 bytes.
            unsafe { L::place(ptr::addr_of_mut!((*arena.cell_ptr(index)).lock), scope)? };
            arena.cells += 1;
        }
        Ok(arena)
    }

    fn cell_ptr(&self, index: usize) -> *mut Cell<L> {
        // SAFETY: `new` mapped room for that many cells at this offset; callers stay below.
        unsafe { self.base.add(self.cells_at).cast::<Cell<L>>().add(index) }
    }

    /// What coordinator and workers tell each other.
    pub fn control(&self) -> &Control {
        // SAFETY: it lies at the start of the zeroed mapping, consists of atomics, and lives as
        // long as `self`.
        unsafe { &*self.base.cast() }
    }

    /// The results of the workers.
    pub fn slots(&self) -> &[Slot] {
        // SAFETY: `new` mapped room for them; zeroed memory is a valid `Slot`, all atomics.
        unsafe { std::slice::from_raw_parts(self.base.add(self.slots_at).cast(), self.workers) }
    }

    /// The locks with their counters.
    pub fn cells(&self) -> &[Cell<L>] {
        // SAFETY: the first `cells` locks have been placed; the counters are zeroed atomics.
        unsafe { std::slice::from_raw_parts(self.cell_ptr(0), self.cells) }
    }

    /// The histogram buckets of one worker.
    pub fn buckets(&self, worker: usize) -> &[Bucket] {
        assert!(worker < self.workers);
        let at = self.buckets_at + worker * self.buckets_each * size_of::<Bucket>();
        // SAFETY: `new` mapped room for so many at this offset, a multiple of 16; they are zeroed
        // atomics.
        unsafe { std::slice::from_raw_parts(self.base.add(at).cast(), self.buckets_each) }
    }
}

impl<L> Drop for Arena<L> {
    fn drop(&mut self) {
        for index in 0..self.cells {
            // SAFETY: this lock was placed and no thread uses it: the arena is owned by all its
            // threads, and forked workers have been reaped.
            unsafe {
                let cell = self.base.add(self.cells_at).cast::<Cell<L>>().add(index);
                ptr::drop_in_place(ptr::addr_of_mut!((*cell).lock));
            }
        }
        // SAFETY: this is the mapping of `new`, and all references into it borrowed `self`.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

/// A zeroed mapping of a memory file, shared with forked processes.
fn map(bytes: usize) -> Result<*mut u8> {
    // SAFETY: the name is a C string.
    let file = unsafe { libc::memfd_create(c"ulocks-trial".as_ptr(), libc::MFD_CLOEXEC) };
    ensure!(file >= 0, "memfd_create: {}", io::Error::last_os_error());
    // SAFETY: the descriptor is ours; a fresh mapping harms no other; the file may be closed once
    // it is mapped.
    let (base, error) = unsafe {
        let base = if libc::ftruncate(file, bytes as libc::off_t) == 0 {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, file, 0)
        } else {
            libc::MAP_FAILED
        };
        let error = io::Error::last_os_error();
        libc::close(file);
        (base, error)
    };
    ensure!(base != libc::MAP_FAILED, "cannot map {bytes} bytes: {error}");
    Ok(base.cast())
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

/// Shorthand for a single relaxed store of a result.
pub fn put(to: &AtomicU64, value: u64) {
    to.store(value, Relaxed);
}
