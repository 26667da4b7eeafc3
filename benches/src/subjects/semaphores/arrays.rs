//! What is measured: arrays of semaphores, and what has one semaphore at a time.

use super::Array;
use super::kernel_set::SemSet;
use crate::subjects::laps::{self, Cell};
use anyhow::{Result, ensure};
use crossbeam_utils::CachePadded;
use std::cell::{OnceCell, UnsafeCell};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Duration;
use std::{io, ptr};
use ulocks_semarray::{Builder, Fairness, Op, SemArray};
use ulocks_shm::{Joined, Region, SemError};

/// The kernel's, with SEM_UNDO or without.
pub struct Kernel<const UNDO: bool = false>(SemSet);

impl Kernel {
    /// An array with these values.
    pub fn new(values: &[u32]) -> Result<Self> {
        SemSet::new(values).map(Self)
    }

    /// The same, whose operations the kernel takes back when their process ends.
    pub fn undo(values: &[u32]) -> Result<Kernel<true>> {
        SemSet::new(values).map(Kernel)
    }
}

/// An operation as the kernel wants it. Indices and amounts of the benchmarks are small.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Sembuf<const UNDO: bool>(libc::sembuf);

impl<const UNDO: bool> From<Op> for Sembuf<UNDO> {
    #[inline]
    fn from(op: Op) -> Self {
        let no_wait = if op.is_no_wait() { libc::IPC_NOWAIT } else { 0 };
        let flags = no_wait | if UNDO { libc::SEM_UNDO } else { 0 };
        Self(libc::sembuf { sem_num: op.index() as u16, sem_op: op.change() as i16, sem_flg: flags as i16 })
    }
}

impl<const UNDO: bool> Array for Kernel<UNDO> {
    type Op = Sembuf<UNDO>;

    #[inline]
    fn apply(&self, set: &[Sembuf<UNDO>]) {
        // SAFETY: `Sembuf` is transparent around the other, so a slice of one is one of the other.
        let set = unsafe { std::slice::from_raw_parts(set.as_ptr().cast::<libc::sembuf>(), set.len()) };
        assert!(self.0.apply(set), "semop: a set that can proceed at once was refused");
    }

    fn values(&self) -> Vec<u32> {
        self.0.values().unwrap_or_else(|error| panic!("{error:#}"))
    }
}

/// Ours.
pub struct Ours(SemArray);

impl Ours {
    /// An array with these values.
    pub fn new(values: &[u32]) -> Result<Self> {
        Ok(Self(Builder::with_values(values).build()?))
    }

    /// The same, whose sleepers no set overtakes.
    pub fn strict(values: &[u32]) -> Result<Self> {
        let fairness = Fairness::Strict { after: Duration::ZERO };
        Ok(Self(Builder::with_values(values).fairness(fairness).build()?))
    }
}

impl Array for Ours {
    type Op = Op;

    #[inline]
    fn apply(&self, set: &[Op]) {
        self.0.apply(set).unwrap_or_else(|error| panic!("semarray: {error}"));
    }

    fn values(&self) -> Vec<u32> {
        self.0.values()
    }
}

/// POSIX semaphores, each on lines of its own. They hold nothing but their memory, so none need be
/// destroyed.
pub struct Posix(Box<[CachePadded<UnsafeCell<libc::sem_t>>]>);

// SAFETY: a semaphore is made to be called from several threads; only its functions touch it.
unsafe impl Send for Posix {}
// SAFETY: as above.
unsafe impl Sync for Posix {}

impl Posix {
    /// Semaphores with these values, private to the process.
    pub fn new(values: &[u32]) -> Result<Self> {
        // SAFETY: all-zero is a valid sem_t.
        let zero = |_: &u32| CachePadded::new(UnsafeCell::new(unsafe { std::mem::zeroed() }));
        let all: Box<[_]> = values.iter().map(zero).collect();
        for (semaphore, &value) in all.iter().zip(values) {
            // SAFETY: the semaphore is writable, no other code refers to it, and it stays there.
            let rc = unsafe { libc::sem_init(semaphore.get(), 0, value) };
            ensure!(rc == 0, "sem_init: {}", io::Error::last_os_error());
        }
        Ok(Self(all))
    }
}

impl Array for Posix {
    type Op = Op;
    const SETS: bool = false;

    #[inline]
    fn apply(&self, set: &[Op]) {
        for op in set {
            let semaphore = self.0[op.index()].get();
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

    fn values(&self) -> Vec<u32> {
        let one = |semaphore: &CachePadded<UnsafeCell<libc::sem_t>>| {
            let mut value = 0;
            // SAFETY: `new` initialised the semaphore, and `value` is writable.
            unsafe { libc::sem_getvalue(semaphore.get(), &mut value) };
            value as u32
        };
        self.0.iter().map(one).collect()
    }
}

/// A word a sleeper: one when it was posted to. A sleeper takes the post back when it comes out. A
/// futex between threads is private, as those of the family are: the kernel looks up its page
/// otherwise.
pub struct Sleepers<const PRIVATE: bool>(&'static [CachePadded<Cell>]);

impl<const PRIVATE: bool> Sleepers<PRIVATE> {
    const FLAG: libc::c_int = if PRIVATE { libc::FUTEX_PRIVATE_FLAG } else { 0 };

    /// Words with these values.
    pub fn new(values: &[u32]) -> Result<Self> {
        let words = laps::cells(values.len())?;
        words.iter().zip(values).for_each(|(cell, &value)| cell.word.store(value, Relaxed));
        Ok(Self(words))
    }
}

impl<const PRIVATE: bool> Array for Sleepers<PRIVATE> {
    type Op = Op;
    const SETS: bool = false;

    fn apply(&self, set: &[Op]) {
        for op in set {
            let word = &self.0[op.index()].word;
            if op.change() > 0 {
                word.store(1, Release);
                let wake = libc::FUTEX_WAKE | Self::FLAG;
                // SAFETY: a wake needs the address alone.
                unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wake, 1) };
                continue;
            }
            // Acquire: with the Release above.
            while word.load(Acquire) == 0 {
                let (wait, forever) = (libc::FUTEX_WAIT | Self::FLAG, ptr::null::<libc::timespec>());
                // SAFETY: the word lives as long as the process; without a timeout no other pointer
                // is followed.
                unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wait, 0, forever) };
            }
            word.store(0, Relaxed);
        }
    }

    fn values(&self) -> Vec<u32> {
        self.0.iter().map(|cell| cell.word.load(Relaxed)).collect()
    }
}

/// Words each on a line of its own, and nothing else: a compare-exchange for each operation, which
/// is what semaphores in user space come to at least, and no set.
pub struct Words(Box<[CachePadded<AtomicU32>]>);

impl Words {
    /// Words with these values.
    pub fn new(values: &[u32]) -> Result<Self> {
        Ok(Self(values.iter().map(|&value| CachePadded::new(AtomicU32::new(value))).collect()))
    }
}

impl Array for Words {
    type Op = Op;

    #[inline]
    fn apply(&self, set: &[Op]) {
        for op in set {
            let word = &self.0[op.index()];
            let sum = |now: u32| Some(now.wrapping_add_signed(op.change() as i32));
            let _ = word.fetch_update(AcqRel, Relaxed, sum);
        }
    }

    fn values(&self) -> Vec<u32> {
        self.0.iter().map(|word| word.load(Relaxed)).collect()
    }
}

/// Ours between processes, for 256 of them. A trial has one such array; its region stays until the
/// process ends, so that threads may be members of it without a lifetime.
pub struct Robust<const SEMS: usize, const OPS: usize>(&'static Region<ulocks_shm::SemArray<SEMS, 256, OPS>>);

thread_local! {
    /// This thread as a member. The thread that makes the array is none: it is going to fork.
    static ME: OnceCell<Joined<'static>> = const { OnceCell::new() };
}

impl<const SEMS: usize, const OPS: usize> Robust<SEMS, OPS> {
    /// An array that starts with these values.
    pub fn new(values: &[u32]) -> Result<Self> {
        ensure!(values.len() <= SEMS, "{} semaphores between processes; allowed: {SEMS}", values.len());
        let region =
            Region::<ulocks_shm::SemArray<SEMS, 256, OPS>>::options().participants(256).anonymous()?;
        let mut all = (0..).zip(values);
        region.with_member(|me| all.try_for_each(|(index, &value)| region.set(me, index, value)))??;
        Ok(Self(Box::leak(Box::new(region))))
    }

    /// Calls `act` with this thread as a member.
    #[inline]
    fn with_me<T>(&self, act: impl FnOnce(&Joined<'static>) -> Result<T, SemError>) -> T {
        // SAFETY: nothing is lent to the member. Permits are dropped where they were had, and give
        // access to no memory.
        let join = || unsafe { self.0.join() }.unwrap_or_else(|error| panic!("robust-semarray: {error}"));
        ME.with(|me| act(me.get_or_init(join))).unwrap_or_else(|error| panic!("robust-semarray: {error}"))
    }
}

impl<const SEMS: usize, const OPS: usize> Array for Robust<SEMS, OPS> {
    type Op = Op;

    fn apply(&self, set: &[Op]) {
        self.with_me(|me| self.0.apply(me, set));
    }

    /// With a permit, which comes back if the holder dies: as SEM_UNDO.
    #[inline]
    fn pair(&self, take: &[Op], _give: &[Op]) {
        self.with_me(|me| self.0.acquire(me, take).map(drop));
    }

    fn values(&self) -> Vec<u32> {
        self.0.values().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use ulocks_testkit::limit;

    /// Whether a sleeper is found by a wake of this kind, and by no other.
    fn is_woken_by<const PRIVATE: bool>(flag: libc::c_int) {
        let sleepers: &'static _ = Box::leak(Box::new(Sleepers::<PRIVATE>::new(&[0]).unwrap()));
        let word = &sleepers.0[0].word;
        let wake = |flag: libc::c_int| {
            // SAFETY: a wake needs the address alone.
            unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | flag, 1) }
        };
        let sleeper = thread::spawn(|| sleepers.apply(&[Op::sub(0, 1)]));
        // Its word is zero: so a sleeper that is woken goes back to sleep.
        limit::until("the sleeper", || {
            assert_eq!(wake(flag ^ libc::FUTEX_PRIVATE_FLAG), 0);
            wake(flag) == 1
        });
        sleepers.apply(&[Op::add(0, 1)]);
        sleeper.join().unwrap();
    }

    #[test]
    fn a_futex_between_threads_is_private() {
        is_woken_by::<true>(libc::FUTEX_PRIVATE_FLAG);
        is_woken_by::<false>(0);
    }
}
