//! The configuration of a lock: its one type parameter beside its data.

use crate::class::{BULK, NESTED, URGENT};
use crate::nesting::{InDebug, Nesting};
use crate::readers::{Biased, Readers};
use core::fmt;
use core::marker::PhantomData;
use ulocks_core::signal::{Mask, Soft};
use ulocks_core::{Policy, Private};

/// The configuration of a lock. Zero-sized; chosen by type. A policy is one, with the default of
/// everything else; [`Sifted`] chooses more.
///
/// It says which classes of readers a lock has, where the lock lives, which waiters a release
/// serves first, where readers are counted, how signals are masked, and what is checked.
pub trait Configuration: Send + Sync + 'static {
    /// The classes of readers, as bits: a sum of [`BULK`] and the like.
    const CLASSES: u8;
    /// Where the lock lives, how its waiters spin, what it counts.
    type Policy: Policy;
    /// Which waiters a release serves first.
    type Fairness: Fairness;
    /// Where [`Bulk`](crate::Bulk) readers are counted.
    type Readers: Readers;
    /// How a writer masks the signal handlers that might read.
    type Mask: Mask;
    /// Whether the lock looks for acquisitions that would wait for their own thread.
    type Nesting: Nesting;
}

/// A [`Configuration`]: the classes of readers, and five choices with a default each.
///
/// ```
/// use ulocks_psrwlock::{BULK, Central, HANDLER, PhaseFair, PsRwLockWith, Sifted, URGENT};
/// use ulocks_core::{Private, Shared};
///
/// /// Read by slow threads, by urgent ones, and in signal handlers.
/// static TABLE: PsRwLockWith<[u32; 8], Sifted<{ BULK | URGENT | HANDLER }>> = PsRwLockWith::new([0; 8]);
/// /// Between processes.
/// static SHARED: PsRwLockWith<u32, Sifted<{ BULK | URGENT }, Shared>> = PsRwLockWith::new(0);
/// /// Readers always counted in the state.
/// static LOG: PsRwLockWith<u32, Sifted<BULK, Private, PhaseFair, Central>> = PsRwLockWith::new(0);
///
/// assert_eq!(TABLE.read()[0] + *SHARED.read() + *LOG.read(), 0);
/// ```
pub struct Sifted<
    const CLASSES: u8 = { BULK | URGENT | NESTED },
    P = Private,
    F = PhaseFair,
    R = Biased,
    M = Soft,
    N = InDebug,
>(PhantomData<(P, F, R, M, N)>);

impl<const CLASSES: u8, P, F, R, M, N> Configuration for Sifted<CLASSES, P, F, R, M, N>
where
    P: Policy,
    F: Fairness,
    R: Readers,
    M: Mask,
    N: Nesting,
{
    const CLASSES: u8 = CLASSES;
    type Policy = P;
    type Fairness = F;
    type Readers = R;
    type Mask = M;
    type Nesting = N;
}

impl<P: Policy> Configuration for P {
    const CLASSES: u8 = BULK | URGENT | NESTED;
    type Policy = P;
    type Fairness = PhaseFair;
    type Readers = Biased;
    type Mask = Soft;
    type Nesting = InDebug;
}

impl<const CLASSES: u8, P, F, R, M, N> fmt::Debug for Sifted<CLASSES, P, F, R, M, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sifted<{CLASSES:#b}>")
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::PhaseFair {}
    impl Sealed for super::ReadersFirst {}
}

/// Whether a release serves queued readers or writers first.
pub trait Fairness: sealed::Sealed + Send + Sync + 'static {
    /// Whether readers join those that are inside, whatever writers wait.
    const READERS_FIRST: bool;
}

/// Readers and writers alternate: a queued reader is passed by one write phase at most, the present
/// one when it joins. The default.
///
/// # Timed writers
/// A writer that gives up has shut out readers without a write. Those readers are queued then, and
/// the next writer lets them in first. So a timed writer succeeds only if all of them get a CPU
/// before its deadline. Where readers use every CPU, that may take a time slice of the scheduler
/// for each. The table says in how many of a hundred attempts the writer wrote in time. Two CPUs,
/// readers of 5 us that do not pause, one writer that tries each half millisecond, on a shared
/// machine:
///
/// | timeout | 100 us | 300 us | 1 ms | 3 ms | 10 ms | 30 ms |
/// |---|---|---|---|---|---|---|
/// | 2 readers | 98 | 100 | 100 | 100 | 100 | 100 |
/// | 4 readers | 28 | 16 | 83 | 75 | 98 | 100 |
/// | 8 readers | 0 | 53 | 41 | 82 | 89 | 100 |
///
/// An attempt that fails returns late only if it spins, or does not get a CPU.
/// The rows of 8 readers have some thirty attempts a field, the others a hundred or more.
/// More is possible only past queued readers. `parking_lot`'s lock does not let them in first, and
/// was written in time by all but 4 of 4,970 attempts. So beside such readers a writer with a
/// deadline below some ten milliseconds needs readers that leave a CPU free.
#[derive(Debug)]
pub enum PhaseFair {}

/// A reader comes in as long as other readers are inside, whatever writers wait: writers starve
/// while readers overlap without a gap. For locks of one class, with readers counted in the state.
///
/// This is the order of glibc's default `pthread_rwlock_t`. Programs that rely on it make a reader
/// wait, inside, for another thread to read. When the last reader leaves, the writer that has the
/// write side gets the lock: a reader that comes after that waits for it. Which writer has the
/// write side is as with [`PhaseFair`]: an arriving writer may take it past sleeping ones.
///
/// ```
/// use ulocks_core::Private;
/// use ulocks_psrwlock::{BULK, PsRwLockWith, ReadersFirst, Sifted};
/// use std::thread;
///
/// static TABLE: PsRwLockWith<u32, Sifted<BULK, Private, ReadersFirst>> = PsRwLockWith::new(1);
/// let first = TABLE.read();
/// let writer = thread::spawn(|| *TABLE.write() += 1);
/// // Comes in, although it may be behind the writer.
/// assert_eq!(thread::spawn(|| *TABLE.read()).join().unwrap(), 1);
/// drop(first);
/// writer.join().unwrap();
/// assert_eq!(*TABLE.read(), 2);
/// ```
#[derive(Debug)]
pub enum ReadersFirst {}

impl Fairness for ReadersFirst {
    const READERS_FIRST: bool = true;
}

impl Fairness for PhaseFair {
    const READERS_FIRST: bool = false;
}
