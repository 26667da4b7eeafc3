//! Which lock?
//!
//! Begin with [`Mutex`](crate::Mutex), [`RwLock`](crate::RwLock), [`Condvar`](crate::Condvar) and
//! [`Semaphore`](crate::Semaphore). If a line of this list is true, take the lock that it names.
//! The first one counts.
//!
//! 1. *A holder that panics must make the data unusable*: [`std::sync::Mutex`], which poisons
//!    itself. The locks of this family do not. For [`Once`](std::sync::Once) and
//!    [`Barrier`](std::sync::Barrier), too, take std's: [`migrate`](crate::migrate) says why.
//! 2. *It is held for a few instructions on one word*: no lock, but an atomic.
//! 3. *Threads of different real-time priority want it*, and an urgent one must not wait for one
//!    that cannot run: [`pi::PiMutex`](crate::pi::PiMutex).
//! 4. *The first to come must be served first*: [`fair::FairMutex`](crate::fair::FairMutex), and
//!    [`fair::Semaphore`](crate::fair::Semaphore) where it is not one but several permits that are
//!    handed out. The order costs a wake-up an acquisition as soon as there are more threads than
//!    CPUs.
//! 5. *Some thread keeps it busy, and others must still get their turn*: [`Mutex`](crate::Mutex)
//!    itself, within some hundred microseconds and a few sections for each waiter before it.
//! 6. *Many more threads want it than there are CPUs*: [`calock::Calock`](crate::calock::Calock),
//!    which lets as many go round as can run, or one, and leaves the others asleep. A thousand take
//!    no more CPU time than a few. Each gets its turn, within tens of milliseconds for each waiter
//!    before it.
//! 7. *It is locked very often, nearly always by one thread at a time, in one process*:
//!    [`unfair::AsymMutex`](crate::unfair::AsymMutex), whose release is a plain store.
//! 8. *It is in every one of a million small objects*: `unfair::ByteMutex`, with the feature
//!    `parking_lot`.
//! 9. *It must be small, and the order and the longest wait do not matter*:
//!    [`unfair::BargingMutex`](crate::unfair::BargingMutex), of four bytes.
//! 10. *Readers that are all alike, with short sections, on few CPUs*: a mutex, or
//!     [`std::sync::RwLock`].
//! 11. *Readers of which some are slow and some must not wait; readers that come in again on a
//!     thread that reads already; readers in signal handlers; many readers on many CPUs*:
//!     [`psrwlock::PsRwLock`](crate::psrwlock::PsRwLock).
//! 12. *Several things at once, all of them or none*:
//!     [`semarray::SemArray`](crate::semarray::SemArray), whose sets of operations subtract from
//!     several counts, add to others, and wait until others are zero. Where programs use `semop(2)`
//!     between the threads of one process, it is that in user space. Between processes it is
//!     `ulocks_shm::SemArray`.
//! 13. *A process that shares the lock may be killed while it holds it*: the robust locks of the
//!     crate `ulocks-shm`.
//! 14. *The holder locks it again*: [`ReentrantMutex`](crate::ReentrantMutex).
//!
//! To wait until something is true under one of these mutexes, each has a condition variable beside
//! it: [`unfair::BargingCondvar`](crate::unfair::BargingCondvar),
//! [`fair::FairCondvar`](crate::fair::FairCondvar), [`pi::PiCondvar`](crate::pi::PiCondvar) and so
//! on.
//!
//! # All locks
//!
//! The last column is the size without the data. *Shared* says whether processes may share the lock
//! in mapped memory, by the policy `Shared`.
//!
//! | lock | order | a waiter waits | timed | shared | size |
//! |---|---|---|---|---|---|
//! | [`ulocks::Mutex`], which is [`ulocks::unfair::ThroughputMutex`] | barging, until it is owed to a waiter | bounded by the number of waiters ahead | yes | no | 8 B |
//! | [`ulocks::unfair::BargingMutex`] | barging | unbounded | yes | yes | 4 B |
//! | [`ulocks::unfair::AsymMutex`] | barging; the release is a plain store | unbounded | yes | yes, with the release of `BargingMutex` | 4 B |
//! | `ulocks::unfair::ByteMutex`, with the feature `parking_lot` | barging | unbounded | yes | no | 1 B |
//! | [`ulocks::fair::FairMutex`] | strict FIFO | bounded by the position in the queue | yes | no | 16 B |
//! | [`ulocks::calock::Calock`] | barging among a few threads, until a waiter is promoted | bounded by the number of waiters ahead | yes | no | 8 B |
//! | [`ulocks::pi::PiMutex`] | priority, inherited by the holder | unbounded for low priorities | yes | yes | 4 B |
//! | [`ulocks::RwLock`], which is [`ulocks::psrwlock::PsRwLock`] | readers by class; readers and writers in turn | a queued reader: for one writer, never for readers of a lower class | yes | yes | 16 B |
//! | [`ulocks::Semaphore`], which is [`ulocks::fair::Semaphore`] | strict FIFO | bounded by the position in the queue | yes | no | 24 B |
//! | [`ulocks::semarray::SemArray`] | an arriving thread, then the oldest waiter that can proceed | unbounded; bounded if you choose so | yes | no | 128 B a semaphore |
//! | [`ulocks::Condvar`], for [`ulocks::Mutex`]; the other mutexes have their own | none promised | until notified | yes | as its mutex | 16 B |
//! | [`ulocks::pi::PiCondvar`] | priority | until notified | yes | yes | 8 B |
//!
//! A lock with a queue is not shared: a process that is killed would keep its place. The crate
//! `ulocks-shm` has robust locks of each kind, for processes that may be killed.
//!
//! [`ulocks::Mutex`]: crate::Mutex
//! [`ulocks::unfair::ThroughputMutex`]: crate::unfair::ThroughputMutex
//! [`ulocks::unfair::BargingMutex`]: crate::unfair::BargingMutex
//! [`ulocks::unfair::AsymMutex`]: crate::unfair::AsymMutex
//! [`ulocks::fair::FairMutex`]: crate::fair::FairMutex
//! [`ulocks::calock::Calock`]: crate::calock::Calock
//! [`ulocks::pi::PiMutex`]: crate::pi::PiMutex
//! [`ulocks::RwLock`]: crate::RwLock
//! [`ulocks::psrwlock::PsRwLock`]: crate::psrwlock::PsRwLock
//! [`ulocks::Semaphore`]: crate::Semaphore
//! [`ulocks::fair::Semaphore`]: crate::fair::Semaphore
//! [`ulocks::semarray::SemArray`]: crate::semarray::SemArray
//! [`ulocks::Condvar`]: crate::Condvar
//! [`ulocks::pi::PiCondvar`]: crate::pi::PiCondvar
//!
//! # Then choose a policy
//!
//! The parameter after the data says where the lock lives, how long it spins before it sleeps, and
//! what it counts:
//!
//! | type | meaning |
//! |---|---|
//! | `BargingMutex<T>` | threads of this process, spinning as long as measurement found best, no counters |
//! | `BargingMutexWith<T, Shared>` | every process that maps the lock; not of each lock |
//! | `BargingMutexWith<T, Private<NoSpin>>` | sleep at once: for holds far longer than a wake-up, or when CPU time is dear |
//! | `BargingMutexWith<T, Private<Patience<3_000>>>` | spin for up to 3 us: enough to cover a hold of that length |
//! | `BargingMutexWith<T, Private<Adaptive, Counted>>` | count acquisitions, contention, sleeps and wake-ups in the lock |
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
//! $ cargo bench -- scaling --hold 3us --think 7us --threads 1,2,4..64
//! ```
