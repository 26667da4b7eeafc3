//! Which lock?
//!
//! Begin with [`Mutex`](crate::Mutex), [`RwLock`](crate::RwLock), [`Condvar`](crate::Condvar) and
//! [`Semaphore`](crate::Semaphore). If a line of this list is true, take the lock that it names.
//! The first one counts.
//!
//! 1. *A holder that panics must make the data unusable*: [`std::sync::Mutex`], which poisons
//!    itself. The locks of this family do not. std also has [`Once`](std::sync::Once) and
//!    [`Barrier`](std::sync::Barrier), of which this family has none.
//! 2. *It is held for a few instructions on one word*: no lock, but an atomic.
//! 3. *Threads of different real-time priority want it*, and an urgent one must not wait for one
//!    that cannot run: [`pi::PiMutex`](crate::pi::PiMutex).
//! 4. *The first to come must be served first*: [`fair::FairMutex`](crate::fair::FairMutex), and
//!    [`fair::Semaphore`](crate::fair::Semaphore) where it is not one but several permits that are
//!    handed out. The order costs a wake-up an acquisition as soon as there are more threads than
//!    CPUs.
//! 5. *Some thread keeps it busy, and others must still get their turn*:
//!    [`unfair::ThroughputMutex`](crate::unfair::ThroughputMutex), within milliseconds for each
//!    waiter before it.
//! 6. *Many more threads want it than there are CPUs*: [`calock::Calock`](crate::calock::Calock),
//!    which lets as many go round as can run and leaves the others asleep, so that a thousand cost
//!    what a few cost. Each gets its turn, within tens of milliseconds for each waiter before it.
//! 7. *It is locked very often, nearly always by one thread at a time, in one process*:
//!    [`unfair::AsymMutex`](crate::unfair::AsymMutex), whose release is a plain store.
//! 8. *It is in every one of a million small objects*: `unfair::ByteMutex`, with the feature
//!    `parking_lot`.
//! 9. *It must be small, and the order and the longest wait do not matter*:
//!    [`unfair::BargingMutex`](crate::unfair::BargingMutex), of four bytes.
//! 10. *Many readers, all alike, with short sections*: a mutex, or
//!     [`std::sync::RwLock`].
//! 11. *Readers of which some are slow and some must not wait; readers that come in again on a
//!     thread that reads already; readers in signal handlers; many readers on many CPUs*:
//!     [`psrwlock::PsRwLock`](crate::psrwlock::PsRwLock).
//! 12. *Several things at once, all of them or none*:
//!     [`semarray::SemArray`](crate::semarray::SemArray), whose sets of operations subtract from
//!     several counts, add to others, and wait until others are zero. Where programs use `semop(2)`
//!     between the threads of one process, it is that in user space. Between processes it is
//!     `RobustSemArray` of the crate `ulocks-shm`.
//! 13. *A process that shares the lock may be killed while it holds it*: the robust locks of the
//!     crate `ulocks-shm`.
//! 14. *The holder locks it again*: `ulocks::ReentrantMutex`.
//!
//! To wait until something is true under one of these mutexes, each has a condition variable beside
//! it: [`unfair::BargingCondvar`](crate::unfair::BargingCondvar),
//! [`fair::FairCondvar`](crate::fair::FairCondvar), [`pi::PiCondvar`](crate::pi::PiCondvar) and so
//! on.
//!
//! # Then choose a policy
//!
//! The parameter after the data says where the lock lives, how long it spins before it sleeps, and
//! what it counts:
//!
//! | type | meaning |
//! |---|---|
//! | `Mutex<T>` | threads of this process, spinning as long as measurement found best, no counters |
//! | `MutexWith<T, Shared>` | every process that maps the lock; not of each lock |
//! | `MutexWith<T, Private<NoSpin>>` | sleep at once: for holds far longer than a wake-up, or when CPU time is dear |
//! | `MutexWith<T, Private<Patience<3_000>>>` | spin for up to 3 us: enough to cover a hold of that length |
//! | `MutexWith<T, Private<Adaptive, Counted>>` | count acquisitions, contention, sleeps and wake-ups in the lock |
//!
//! A policy is part of the type, so it costs nothing to look up, and two locks with different
//! policies are two types.
//!
//! # Then measure
//!
//! Which lock is fast depends on how long it is held, how often it is wanted, and on the machine.
//! Describe your case to the benchmarks and look at throughput, the longest wait, and CPU time
//! together:
//!
//! ```console
//! $ cargo bench -- --hold 3us --non-hold 7us --threads 1,2,4..64
//! ```
