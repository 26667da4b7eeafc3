//! A pool of several kinds of things, from which a job takes all it needs at once: an array of
//! semaphores.

use std::fmt;
use std::time::Duration;
use ulocks::semarray::{Builder, Error, Fairness, Op, Permit, SemArray, Set};

/// Things of several kinds, so and so many of each, from which a job takes all it needs at once, or
/// nothing: two CPUs and a licence, say. Jobs that need the same things in another order do not
/// deadlock.
///
/// A [pause](Self::pause) waits until no job runs, and lets none start until it is over.
///
/// # Fairness
/// Of the jobs that wait and can start the one starts that has waited longest, and whoever comes is
/// tried first. So a job that needs much may wait for ever while small ones take turns;
/// [`with_fairness`](Self::with_fairness) makes pools that bound it.
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
///
/// The parameter `BUG` is for the models in `tests`: a pool with one of the [`seeded`] bugs.
pub struct JobPool<const BUG: u8 = { seeded::NOTHING }> {
    /// The pauses, the jobs that run, and what is free of each kind.
    counts: SemArray,
    /// How many there are of each kind.
    sizes: Box<[u32]>,
}

/// How many pauses there are. Jobs start while it is zero.
const PAUSES: usize = 0;
/// How many jobs run. Pauses begin when it is zero.
const JOBS: usize = 1;
/// The semaphore of the first kind.
const KINDS: usize = 2;

/// Bugs that people make in such a pool, for the models to find.
pub mod seeded {
    /// No bug.
    pub const NOTHING: u8 = 0;
    /// A job takes one kind after the other.
    pub const ONE_BY_ONE: u8 = 1;
    /// A job looks whether there is a pause, and then takes what it needs.
    pub const LOOKS_FIRST: u8 = 2;
    /// A pause waits until no job runs, and then keeps others from starting.
    pub const PAUSES_LATE: u8 = 3;
}

/// Why a job did not start. It has taken nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolError {
    /// Not all was free that it needs, or there was a pause, for as long as the caller wanted to
    /// wait.
    Busy,
    /// It needs more than there is of a kind.
    TooMuch {
        /// Which kind.
        kind: usize,
        /// How many there are: none of a kind that does not exist.
        size: u32,
    },
}

/// What a job has taken, until it is dropped.
#[must_use = "a job that is dropped at once gives back at once"]
#[derive(Debug)]
pub struct Job<'a> {
    /// More than one only with a bug.
    _taken: Vec<Permit<'a>>,
}

/// No job runs until this is dropped.
#[must_use = "a pause that is dropped at once is over at once"]
#[derive(Debug)]
pub struct Pause<'a> {
    _permit: Permit<'a>,
}

impl JobPool {
    /// A pool of as many kinds as there are `sizes`, so many things of each.
    ///
    /// # Panics
    /// If a size is greater than [`Builder::GREATEST_LIMIT`].
    pub fn new(sizes: &[u32]) -> Self {
        Self::with_fairness(sizes, Fairness::Barging)
    }

    /// As [`new`](Self::new); [`Fairness::Strict`] is for pools in which some jobs need much, and
    /// many little.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn with_fairness(sizes: &[u32], fairness: Fairness) -> Self {
        Self::with_bug(sizes, fairness)
    }
}

impl<const BUG: u8> JobPool<BUG> {
    /// As [`JobPool::with_fairness`], with the bug that the type names.
    #[doc(hidden)]
    pub fn with_bug(sizes: &[u32], fairness: Fairness) -> Self {
        let values = [&[0, 0], sizes].concat();
        let counts = Builder::with_values(values).limit(Builder::GREATEST_LIMIT).fairness(fairness).build();
        let counts = counts.unwrap_or_else(|error| panic!("a pool of {sizes:?}: {error}"));
        Self { counts, sizes: sizes.into() }
    }

    /// Starts a job that needs so many of each kind, waiting until all are free.
    ///
    /// # Errors
    /// [`PoolError::TooMuch`].
    pub fn take(&self, needs: &[(usize, u32)]) -> Result<Job<'_>, PoolError> {
        self.start(needs, |set| self.counts.acquire(set))
    }

    /// Starts a job that needs so many of each kind, waiting until all are free, but no longer than
    /// `timeout`.
    ///
    /// # Errors
    /// [`PoolError::Busy`], [`PoolError::TooMuch`].
    pub fn take_timeout(&self, needs: &[(usize, u32)], timeout: Duration) -> Result<Job<'_>, PoolError> {
        self.start(needs, |set| self.counts.acquire_for(set, timeout))
    }

    /// Starts a job that needs so many of each kind, if all are free now.
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
        let kinds = || needs.iter().map(|&(kind, count)| Op::sub(KINDS + kind, count));
        let begin = [Op::wait_zero(PAUSES), Op::add(JOBS, 1)];
        let taken = match BUG {
            seeded::ONE_BY_ONE => begin.into_iter().chain(kinds()).map(|op| acquire(op.into())).collect(),
            seeded::LOOKS_FIRST => {
                let looked = acquire(Op::wait_zero(PAUSES).into());
                looked.and_then(|_| Ok(vec![acquire(begin.into_iter().skip(1).chain(kinds()).collect())?]))
            }
            _ => acquire(begin.into_iter().chain(kinds()).collect()).map(|permit| vec![permit]),
        };
        match taken {
            Ok(taken) => Ok(Job { _taken: taken }),
            Err(Error::WouldBlock | Error::TimedOut) => Err(PoolError::Busy),
            Err(error) => panic!("a job that needs {needs:?}: {error}"),
        }
    }

    /// Waits until no job runs; none starts until what it returns is dropped.
    ///
    /// Who has a job must not wait for a pause.
    pub fn pause(&self) -> Pause<'_> {
        let idle = || self.counts.apply(&[Op::wait_zero(JOBS)]).expect("to wait for zero does not fail");
        if BUG == seeded::PAUSES_LATE {
            idle();
        }
        let permit = self.counts.acquire(Op::add(PAUSES, 1)).expect("there are not that many threads");
        if BUG != seeded::PAUSES_LATE {
            idle();
        }
        Pause { _permit: permit }
    }

    /// How many are free of each kind at this moment.
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

impl<const BUG: u8> fmt::Debug for JobPool<BUG> {
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
