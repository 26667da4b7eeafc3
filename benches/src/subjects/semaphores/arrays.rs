//! What is measured: arrays of semaphores, and what has one semaphore at a time.

use super::kernel_set::SemSet;
use super::{Array, PER_CALL};
use crate::subjects::laps::{self, Cell};
use anyhow::{Result, ensure};
use crossbeam_utils::CachePadded;
use std::cell::{OnceCell, UnsafeCell};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::{io, ptr};
use ulocks_semarray::{Builder, Fairness, Op, SemArray};
use ulocks_shm::robust::semarray::RobustSemArray;
use ulocks_shm::{Joined, Region};

/// The kernel's.
#[derive(Debug)]
pub struct Kernel(SemSet);

impl Kernel {
    /// An array with these values.
    pub fn new(values: &[u32]) -> Result<Self> {
        SemSet::new(values).map(Self)
    }
}

impl Array for Kernel {
    type Op = libc::sembuf;

    /// Indices and amounts of the benchmarks are small.
    #[inline]
    fn op(op: Op) -> libc::sembuf {
        let flags = if op.is_no_wait() { libc::IPC_NOWAIT } else { 0 };
        libc::sembuf { sem_num: op.index() as u16, sem_op: op.change() as i16, sem_flg: flags as i16 }
    }

    #[inline]
    fn apply(&self, set: &[libc::sembuf]) {
        assert!(self.0.apply(set), "semop: a set that can proceed at once was refused");
    }

    fn values(&self) -> Result<Vec<u32>> {
        self.0.values()
    }
}

/// Ours.
#[derive(Debug)]
pub struct Ours(SemArray);

impl Ours {
    /// An array with these values that serves in this order.
    pub fn new(values: &[u32], fairness: Fairness) -> Result<Self> {
        Ok(Self(Builder::with_values(values).fairness(fairness).build()?))
    }
}

impl Array for Ours {
    type Op = Op;

    #[inline]
    fn op(op: Op) -> Op {
        op
    }

    #[inline]
    fn apply(&self, set: &[Op]) {
        self.0.apply(set).unwrap_or_else(|error| panic!("semarray: {error}"));
    }

    fn values(&self) -> Result<Vec<u32>> {
        Ok(self.0.values())
    }
}

/// POSIX semaphores, each on lines of its own.
#[derive(Debug)]
pub struct Posix(Box<[OwnLine]>);

#[derive(Debug)]
struct OwnLine(CachePadded<UnsafeCell<libc::sem_t>>);

// SAFETY: a semaphore is made to be called from several threads; only its functions touch it.
unsafe impl Send for OwnLine {}
// SAFETY: as above.
unsafe impl Sync for OwnLine {}

impl Drop for OwnLine {
    fn drop(&mut self) {
        // SAFETY: `Posix::new` initialised it, and `&mut self` says that no thread waits on it.
        unsafe { libc::sem_destroy(self.0.get()) };
    }
}

impl Posix {
    /// Semaphores with these values, private to the process.
    pub fn new(values: &[u32]) -> Result<Self> {
        // SAFETY: all-zero is a valid sem_t.
        let zero = |_: &u32| OwnLine(CachePadded::new(UnsafeCell::new(unsafe { std::mem::zeroed() })));
        let all: Box<[OwnLine]> = values.iter().map(zero).collect();
        for (semaphore, &value) in all.iter().zip(values) {
            // SAFETY: the semaphore is writable, no other code refers to it, and it stays there.
            let rc = unsafe { libc::sem_init(semaphore.0.get(), 0, value) };
            ensure!(rc == 0, "sem_init: {}", io::Error::last_os_error());
        }
        Ok(Self(all))
    }
}

impl Array for Posix {
    type Op = Op;
    const SETS: bool = false;

    #[inline]
    fn op(op: Op) -> Op {
        op
    }

    #[inline]
    fn apply(&self, set: &[Op]) {
        for op in set {
            let semaphore = self.0[op.index()].0.get();
            // SAFETY: `new` initialised the semaphore, and it does not move any more.
            let step = || unsafe {
                if op.change() < 0 { libc::sem_wait(semaphore) } else { libc::sem_post(semaphore) }
            };
            while step() != 0 {
                let error = io::Error::last_os_error();
                assert!(error.kind() == io::ErrorKind::Interrupted, "sem_t: {error}");
            }
        }
    }

    fn values(&self) -> Result<Vec<u32>> {
        let one = |semaphore: &OwnLine| {
            let mut value = 0;
            // SAFETY: `new` initialised the semaphore, and `value` is writable.
            let rc = unsafe { libc::sem_getvalue(semaphore.0.get(), &mut value) };
            ensure!(rc == 0, "sem_getvalue: {}", io::Error::last_os_error());
            Ok(value as u32)
        };
        self.0.iter().map(one).collect()
    }
}

/// A word a sleeper: one when it was posted to. A sleeper takes the post back when it comes out.
#[derive(Debug)]
pub struct Sleepers(&'static [CachePadded<Cell>]);

impl Sleepers {
    /// Words with these values.
    pub fn new(values: &[u32]) -> Result<Self> {
        let words = laps::cells(values.len())?;
        words.iter().zip(values).for_each(|(cell, &value)| cell.word.store(value, Relaxed));
        Ok(Self(words))
    }
}

impl Array for Sleepers {
    type Op = Op;
    const SETS: bool = false;

    fn op(op: Op) -> Op {
        op
    }

    fn apply(&self, set: &[Op]) {
        for op in set {
            let word = &self.0[op.index()].word;
            if op.change() > 0 {
                word.store(1, Release);
                // SAFETY: a wake needs the address alone.
                unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
                continue;
            }
            // Acquire: with the Release above.
            while word.load(Acquire) == 0 {
                let forever = ptr::null::<libc::timespec>();
                // SAFETY: the word lives as long as the process; without a timeout no other pointer
                // is followed.
                unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, 0, forever) };
            }
            word.store(0, Relaxed);
        }
    }

    fn values(&self) -> Result<Vec<u32>> {
        Ok(self.0.iter().map(|cell| cell.word.load(Relaxed)).collect())
    }
}

/// Words each on a line of its own, and nothing else: a compare-exchange for each operation, which
/// is what semaphores in user space come to at least, and no set.
#[derive(Debug)]
pub struct Words(Box<[CachePadded<AtomicU32>]>);

impl Words {
    /// Words with these values.
    pub fn new(values: &[u32]) -> Result<Self> {
        Ok(Self(values.iter().map(|&value| CachePadded::new(AtomicU32::new(value))).collect()))
    }
}

impl Array for Words {
    /// An index, and what is added.
    type Op = (usize, u32);

    #[inline]
    fn op(op: Op) -> (usize, u32) {
        (op.index(), op.change() as u32)
    }

    #[inline]
    fn apply(&self, set: &[(usize, u32)]) {
        for (index, change) in set {
            let (word, mut now) = (&self.0[*index], self.0[*index].load(Relaxed));
            while let Err(other) = word.compare_exchange_weak(now, now.wrapping_add(*change), AcqRel, Relaxed)
            {
                now = other;
            }
        }
    }

    fn values(&self) -> Result<Vec<u32>> {
        Ok(self.0.iter().map(|word| word.load(Relaxed)).collect())
    }
}

/// Semaphores of our array between processes.
const SEMS: usize = 250;
type Shared = RobustSemArray<SEMS, 256, PER_CALL>;

/// Ours between processes. A trial has one such array; its region stays until the process ends, so
/// that threads may be members of it without a lifetime.
#[derive(Debug)]
pub struct Robust(&'static Region<Shared>);

thread_local! {
    /// This thread as a member. The thread that makes the array is none: it is going to fork.
    static ME: OnceCell<Joined<'static>> = const { OnceCell::new() };
}

impl Robust {
    /// An array that starts with these values.
    pub fn new(values: &[u32]) -> Result<Self> {
        ensure!(values.len() <= SEMS, "{} semaphores between processes; allowed: {SEMS}", values.len());
        let region = Region::<Shared>::options().participants(256).anonymous()?;
        let mut all = (0..).zip(values);
        region.with_member(|me| all.try_for_each(|(index, &value)| region.set(me, index, value)))??;
        Ok(Self(Box::leak(Box::new(region))))
    }
}

impl Array for Robust {
    type Op = Op;

    fn op(op: Op) -> Op {
        op
    }

    fn apply(&self, set: &[Op]) {
        // SAFETY: nothing is lent to the member: sets that are applied give no guards.
        let join = || unsafe { self.0.join() }.unwrap_or_else(|error| panic!("robust-semarray: {error}"));
        ME.with(|me| self.0.apply(me.get_or_init(join), set))
            .unwrap_or_else(|error| panic!("robust-semarray: {error}"));
    }

    fn values(&self) -> Result<Vec<u32>> {
        Ok(self.0.values().to_vec())
    }
}
