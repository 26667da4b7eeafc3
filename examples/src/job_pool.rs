//! A pool of several kinds of things, from which a job takes all that it needs at once. It is an
//! array of semaphores.

use std::fmt;
use std::time::Duration;
use ulocks::semarray::{Builder, Error, Fairness, Op, Permit, SemArray, Set};

/// A pool of things of several kinds, with a number of each kind. A job takes all that it needs at
/// once, or nothing: for example two CPUs and a licence. Jobs that name the same things in another
/// order do not deadlock.
///
/// A [pause](Self::pause) waits until no job runs. Until it is over, no job starts.
///
/// # Fairness
/// An arriving job is tried first. Of the waiting jobs that can start, the oldest starts. So a job
/// that needs much may wait for ever while small jobs take turns.
/// [`with_fairness`](Self::with_fairness) makes pools that bound this wait.
///
/// # Examples
/// ```
/// use ulocks_examples::{JobPool, PoolError};
///
/// let [cpus, licences] = [0, 1];
/// let pool = JobPool::new(&[4, 1]);
/// let one = pool.take(&[(cpus, 2), (licences, 1)])?;
/// assert_eq!(pool.try_take(&[(licences, 1), (cpus, 1)]).err(), Some(PoolError::Busy));
/// assert_eq!(pool.free(), [2, 0]);
/// drop(one);
/// assert_eq!(pool.free(), [4, 1]);
/// # Ok::<_, PoolError>(())
/// ```
pub struct JobPool {
    /// The number of pauses, the number of running jobs, and how many of each kind are free.
    counts: SemArray,
    /// How many there are of each kind.
    sizes: Box<[u32]>,
}

/// The semaphore that counts pauses. Jobs start while it is zero.
const PAUSES: usize = 0;
/// The semaphore that counts running jobs. A pause begins when it is zero.
const JOBS: usize = 1;
/// The semaphore of the first kind.
const KINDS: usize = 2;

/// Why a job did not start. It has taken nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolError {
    /// Something that the job needs is not free, or there is a pause, and the call does not wait
    /// longer.
    Busy,
    /// The job needs more of a kind than the pool has.
    TooMuch {
        /// Which kind.
        kind: usize,
        /// How many the pool has: 0 of a kind that does not exist.
        size: u32,
    },
}

/// A running job. When it is dropped, it gives back what it has taken.
#[must_use = "a job that is dropped at once gives back at once"]
#[derive(Debug)]
pub struct Job<'a> {
    _taken: Permit<'a>,
}

/// No job runs until this is dropped.
#[must_use = "a pause that is dropped at once is over at once"]
#[derive(Debug)]
pub struct Pause<'a> {
    _permit: Permit<'a>,
}

impl JobPool {
    /// A pool with `sizes[kind]` things of each kind.
    ///
    /// # Panics
    /// If a size is greater than [`Builder::GREATEST_LIMIT`].
    pub fn new(sizes: &[u32]) -> Self {
        Self::with_fairness(sizes, Fairness::Barging)
    }

    /// As [`new`](Self::new), with a choice of fairness. [`Fairness::Strict`] is for pools in which
    /// some jobs need much and many jobs need little.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn with_fairness(sizes: &[u32], fairness: Fairness) -> Self {
        let values = [&[0, 0], sizes].concat();
        let counts = Builder::with_values(values).limit(Builder::GREATEST_LIMIT).fairness(fairness).build();
        let counts = counts.unwrap_or_else(|error| panic!("a pool of {sizes:?}: {error}"));
        Self { counts, sizes: sizes.into() }
    }

    /// Starts a job that needs `count` things of each `(kind, count)` in `needs`. Waits until all
    /// are free.
    ///
    /// # Errors
    /// [`PoolError::TooMuch`].
    pub fn take(&self, needs: &[(usize, u32)]) -> Result<Job<'_>, PoolError> {
        self.start(needs, |set| self.counts.acquire(set))
    }

    /// As [`take`](Self::take), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// [`PoolError::Busy`], [`PoolError::TooMuch`].
    pub fn take_timeout(&self, needs: &[(usize, u32)], timeout: Duration) -> Result<Job<'_>, PoolError> {
        self.start(needs, |set| self.counts.acquire_for(set, timeout))
    }

    /// As [`take`](Self::take), but does not wait.
    ///
    /// # Errors
    /// [`PoolError::Busy`], [`PoolError::TooMuch`].
    pub fn try_take(&self, needs: &[(usize, u32)]) -> Result<Job<'_>, PoolError> {
        self.start(needs, |set| self.counts.try_acquire(set))
    }

    fn start<'a>(
        &'a self,
        needs: &[(usize, u32)],
        acquire: impl Fn(Set) -> Result<Permit<'a>, Error>,
    ) -> Result<Job<'a>, PoolError> {
        self.check(needs)?;
        let kinds = needs.iter().map(|&(kind, count)| Op::sub(KINDS + kind, count));
        let begin = [Op::wait_zero(PAUSES), Op::add(JOBS, 1)];
        match acquire(begin.into_iter().chain(kinds).collect()) {
            Ok(taken) => Ok(Job { _taken: taken }),
            Err(Error::WouldBlock | Error::TimedOut) => Err(PoolError::Busy),
            Err(error) => panic!("a job that needs {needs:?}: {error}"),
        }
    }

    /// Waits until no job runs. No job starts until the returned pause is dropped.
    ///
    /// A thread that has a job must not call this: it would wait for itself.
    pub fn pause(&self) -> Pause<'_> {
        let permit = self.counts.acquire(Op::add(PAUSES, 1)).expect("there are not that many threads");
        self.counts.apply(&[Op::wait_zero(JOBS)]).expect("to wait for zero does not fail");
        Pause { _permit: permit }
    }

    /// How many things of each kind are free at this moment.
    pub fn free(&self) -> Vec<u32> {
        self.counts.values().split_off(KINDS)
    }

    fn check(&self, needs: &[(usize, u32)]) -> Result<(), PoolError> {
        needs.iter().try_for_each(|&(kind, _)| {
            let size = self.sizes.get(kind).copied().unwrap_or(0);
            let of_this_kind = needs.iter().filter(|need| need.0 == kind);
            let count: u64 = of_this_kind.map(|need| u64::from(need.1)).sum();
            let enough = kind < self.sizes.len() && count <= u64::from(size);
            if enough { Ok(()) } else { Err(PoolError::TooMuch { kind, size }) }
        })
    }
}

impl fmt::Debug for JobPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobPool").field("sizes", &self.sizes).finish_non_exhaustive()
    }
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => write!(f, "not all that the job needs is free"),
            Self::TooMuch { kind, size } => {
                write!(f, "the job needs more of kind {kind} than the {size} there are")
            }
        }
    }
}

impl std::error::Error for PoolError {}
