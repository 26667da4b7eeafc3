//! What is measured: arrays of semaphores, and what has one semaphore at a time.

use super::kernel_set::SemSet;
use anyhow::{Result, ensure};
use crossbeam_utils::CachePadded;
use std::cell::UnsafeCell;
use std::io;
use std::ops::Range;
use ulocks_semarray::{Builder, Fairness, Op, SemArray};

/// An array of semaphores on which sets of operations are performed.
pub trait Array: Send + Sync + Sized + 'static {
    /// An operation on one semaphore.
    type Op: Copy + Send + Sync + 'static;

    /// Adds `amount` to a semaphore.
    fn add(index: usize, amount: u32) -> Self::Op;
    /// The same in a set that does not wait.
    fn add_at_once(index: usize, amount: u32) -> Self::Op;
    /// Subtracts `amount` from a semaphore that is as great.
    fn sub(index: usize, amount: u32) -> Self::Op;
    /// Proceeds when a semaphore is zero.
    fn wait_zero(index: usize) -> Self::Op;

    /// Performs the set, waiting until that is possible.
    ///
    /// # Panics
    /// If it is refused for another reason, which is a mistake of the benchmark.
    fn apply(&self, set: &[Self::Op]);

    /// The values of all semaphores.
    fn values(&self) -> Result<Vec<u32>>;
}

/// Semaphores of which one is used at a time.
pub trait Singles: Send + Sync {
    /// Subtracts one from a semaphore, waiting until that is possible.
    fn down(&self, index: usize);
    /// Adds one to it.
    fn up(&self, index: usize);
    /// Adds one to each of these, and takes that back, in as few calls as there can be.
    fn poster(&self, semaphores: Range<usize>) -> Box<dyn FnMut() + '_>;
    /// The values of all semaphores.
    fn values(&self) -> Result<Vec<u32>>;
}

impl<A: Array> Singles for A {
    #[inline]
    fn down(&self, index: usize) {
        self.apply(&[A::sub(index, 1)]);
    }

    #[inline]
    fn up(&self, index: usize) {
        self.apply(&[A::add(index, 1)]);
    }

    fn poster(&self, semaphores: Range<usize>) -> Box<dyn FnMut() + '_> {
        let post: Vec<A::Op> = semaphores.clone().map(|index| A::add(index, 1)).collect();
        let take: Vec<A::Op> = semaphores.map(|index| A::sub(index, 1)).collect();
        Box::new(move || {
            self.apply(&post);
            self.apply(&take);
        })
    }

    fn values(&self) -> Result<Vec<u32>> {
        Array::values(self)
    }
}

/// The kernel's.
#[derive(Debug)]
pub struct Kernel(SemSet);

impl Kernel {
    /// An array with these values.
    pub fn new(values: &[u32]) -> Result<Self> {
        SemSet::new(values).map(Self)
    }
}

/// One operation as the kernel wants it. Indices and amounts of the benchmarks are small.
fn sembuf(index: usize, change: i32, flags: libc::c_int) -> libc::sembuf {
    libc::sembuf { sem_num: index as u16, sem_op: change as i16, sem_flg: flags as i16 }
}

impl Array for Kernel {
    type Op = libc::sembuf;

    #[inline]
    fn add(index: usize, amount: u32) -> libc::sembuf {
        sembuf(index, amount as i32, 0)
    }

    #[inline]
    fn add_at_once(index: usize, amount: u32) -> libc::sembuf {
        sembuf(index, amount as i32, libc::IPC_NOWAIT)
    }

    #[inline]
    fn sub(index: usize, amount: u32) -> libc::sembuf {
        sembuf(index, -(amount as i32), 0)
    }

    #[inline]
    fn wait_zero(index: usize) -> libc::sembuf {
        sembuf(index, 0, 0)
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
    fn add(index: usize, amount: u32) -> Op {
        Op::add(index, amount)
    }

    #[inline]
    fn add_at_once(index: usize, amount: u32) -> Op {
        Op::add(index, amount).no_wait()
    }

    #[inline]
    fn sub(index: usize, amount: u32) -> Op {
        Op::sub(index, amount)
    }

    #[inline]
    fn wait_zero(index: usize) -> Op {
        Op::wait_zero(index)
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
        let one = |&value: &u32| {
            // SAFETY: all-zero is a valid sem_t, which is initialised where it will stay.
            OwnLine(CachePadded::new(UnsafeCell::new(unsafe { std::mem::zeroed() }))).with_value(value)
        };
        let all: Vec<OwnLine> = values.iter().map(one).collect::<Result<_>>()?;
        Ok(Self(all.into()))
    }

    fn get(&self, index: usize) -> *mut libc::sem_t {
        self.0[index].0.get()
    }
}

impl OwnLine {
    /// glibc's semaphore may be moved as long as no thread uses it: it holds no address.
    fn with_value(self, value: u32) -> Result<Self> {
        // SAFETY: the semaphore is writable and no other code refers to it.
        let rc = unsafe { libc::sem_init(self.0.get(), 0, value) };
        ensure!(rc == 0, "sem_init: {}", io::Error::last_os_error());
        Ok(self)
    }
}

impl Singles for Posix {
    #[inline]
    fn down(&self, index: usize) {
        // SAFETY: `new` initialised the semaphore, and it does not move any more.
        while unsafe { libc::sem_wait(self.get(index)) } != 0 {
            let error = io::Error::last_os_error();
            assert!(error.kind() == io::ErrorKind::Interrupted, "sem_wait: {error}");
        }
    }

    #[inline]
    fn up(&self, index: usize) {
        // SAFETY: `new` initialised the semaphore, and it does not move any more.
        unsafe { libc::sem_post(self.get(index)) };
    }

    fn poster(&self, semaphores: Range<usize>) -> Box<dyn FnMut() + '_> {
        Box::new(move || {
            semaphores.clone().for_each(|index| self.up(index));
            semaphores.clone().for_each(|index| self.down(index));
        })
    }

    fn values(&self) -> Result<Vec<u32>> {
        let one = |index| {
            let mut value = 0;
            // SAFETY: `new` initialised the semaphore, and `value` is writable.
            let rc = unsafe { libc::sem_getvalue(self.get(index), &mut value) };
            ensure!(rc == 0, "sem_getvalue: {}", io::Error::last_os_error());
            Ok(value as u32)
        };
        (0..self.0.len()).map(one).collect()
    }
}
