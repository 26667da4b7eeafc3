//! The C face of the family: `ulocks.h`, a shared and a static library.
//!
//! Locks of one kind differ in names: a macro has the functions of a kind, and this file names the
//! locks. The doc comments are the header's comments. `cargo xtask header` expands the macros, as
//! `cbindgen` does not, and writes the header. Its functions stand in the order of this file.

#![allow(non_camel_case_types)]
// The comments of the header say once, at its top, what every function asks of its pointers.
#![allow(clippy::missing_safety_doc)]

mod call;
#[macro_use]
mod mutex;
#[macro_use]
mod pi_mutex;
#[macro_use]
mod rwlock;
#[macro_use]
mod semaphore;

mutex! {
    /// A mutex for critical sections that are mostly free: one atomic operation for a lock and
    /// unlock instead of two. A thread that has to sleep pays for that. Any thread may take it
    /// next: no order, and no bound on a wait.
    ///
    /// The first unlocking of the process registers it with the kernel: quick with one thread, tens
    /// of milliseconds later.
    ///
    /// `ULOCKS_MUTEX_INIT`, or all bytes zero, is an unlocked mutex. It needs no destruction: the
    /// thread that unlocks it last may free its memory at once. It belongs to one process. A thread
    /// that locks a mutex that it holds waits for ever. Two copies of this library in one process
    /// (a plugin that links its own) must not share one.
    ulocks_asym_mutex: ulocks_asym_mutex_t { _words: [u64; 2] }, ulocks_asym_mutex_cond_t,
    ::ulocks_unfair::RawAsymMutex, "", ""
}

mutex! {
    /// A mutex of one byte, for a lock inside of every small object. Any thread may take it next.
    ///
    /// The lock uses two bits. The six bits of ULOCKS_BYTE_MUTEX_BITS belong to the program:
    /// ulocks_byte_mutex_bits and the like.
    ///
    /// Waiters queue in a table of the process. Unlike every other lock here, **a wait may
    /// allocate**: the table grows when more threads wait than ever before, and is never given
    /// back. So this mutex cannot guard an allocator. A signal handler may not use it at all. A
    /// child of fork may not wait for it, nor unlock one that threads waited for.
    ///
    /// `ULOCKS_MUTEX_INIT`, or all bytes zero, is an unlocked mutex. It needs no destruction: the
    /// thread that unlocks it last may free its memory at once. It belongs to one process. A thread
    /// that locks a mutex that it holds waits for ever.
    ulocks_byte_mutex: ulocks_byte_mutex_t { _bytes: [u8; 1] }, ulocks_byte_mutex_cond_t,
    ::ulocks_unfair::RawByteMutex, "", ""
}

mod byte_mutex;

mutex! {
    /// A mutex that a few threads pass around, while the others sleep. A sleeper is let in every
    /// ten milliseconds, so every thread gets the mutex at last.
    ///
    /// `ULOCKS_MUTEX_INIT`, or all bytes zero, is an unlocked mutex. It needs no destruction: the
    /// thread that unlocks it last may free its memory at once. It belongs to one process. A thread
    /// that locks a mutex that it holds waits for ever.
    ulocks_calock: ulocks_calock_t { _words: [u64; 1] }, ulocks_calock_cond_t,
    ::ulocks_calock::RawCalock, "", ""
}

mutex! {
    /// A mutex that threads get in the order in which they came.
    ///
    /// `ULOCKS_MUTEX_INIT`, or all bytes zero, is an unlocked mutex. It needs no destruction: the
    /// thread that unlocks it last may free its memory at once. It belongs to one process. A thread
    /// that locks a mutex that it holds waits for ever.
    ulocks_fair_mutex: ulocks_fair_mutex_t { _words: [u64; 2] }, ulocks_fair_mutex_cond_t,
    ::ulocks_fair::RawFairMutex, ", or another thread waits for it", ""
}

mutex! {
    /// A mutex of four bytes. Any thread may take it next: no order, and no bound on a wait.
    ///
    /// `ULOCKS_MUTEX_INIT`, or all bytes zero, is an unlocked mutex. It needs no destruction: the
    /// thread that unlocks it last may free its memory at once. It belongs to one process. A thread
    /// that locks a mutex that it holds waits for ever.
    ulocks_mutex: ulocks_mutex_t { _words: [u32; 1] }, ulocks_mutex_cond_t,
    ::ulocks_unfair::RawBargingMutex, "", ""
}

pi_mutex! {
    /// A mutex of four bytes with priority inheritance. The thread that holds it runs with the
    /// highest priority of those that wait for it.
    ///
    /// `ULOCKS_MUTEX_INIT`, or all bytes zero, is an unlocked mutex. It needs no destruction: the
    /// thread that unlocks it last may free its memory at once. It belongs to one process.
    ulocks_pi_mutex: ulocks_pi_mutex_t, ulocks_pi_mutex_cond_t, ::ulocks_core::Private, ""
}

mod region;
mod robust;

rwlock! {
    /// A reader-writer lock where readers and writers take turns, with three classes of readers.
    ///
    /// | functions | for |
    /// |---|---|
    /// | ulocks_rwlock_read_ | ordinary readers, which may take long |
    /// | ulocks_rwlock_urgent_ | readers with short sections: they wait for no ordinary reader, and not for a writer that waits for one |
    /// | ulocks_rwlock_nested_ | code that may run while its thread reads the lock already, by another class |
    /// | ulocks_rwlock_write_ | writers |
    /// | ulocks_rwlock_upgradable_ | a reader that may become a writer; one at a time, beside other readers |
    ///
    /// `ULOCKS_RWLOCK_INIT`, or all bytes zero, is an unlocked lock. It needs no destruction: the
    /// thread that unlocks it last may free its memory at once. It belongs to one process. A thread
    /// that asks for it again waits for ever, unless it reads already and asks for a later class of
    /// readers. More than 131072 readers at once, or 6000 that wait, end the process.
    ulocks_rwlock: ulocks_rwlock_t, ::ulocks_core::Private
}

semaphore! {
    /// A counting semaphore. Threads get permits in the order in which they came.
    ///
    /// `ULOCKS_SEMAPHORE_INIT(n)` has n permits, all bytes zero has none. It needs no destruction.
    /// Its memory may be freed when no thread is inside of one of its functions. It belongs to one
    /// process. At most 65535 threads may wait at once; one more ends the process.
    ulocks_semaphore: ulocks_semaphore_t
}

mod semarray;

mutex! {
    /// A mutex of four bytes. Any thread may take it next: no order, and no bound on a wait.
    ///
    /// `ULOCKS_MUTEX_INIT`, or all bytes zero, is an unlocked mutex. It needs no destruction: the
    /// thread that unlocks it last may free its memory at once. It may lie in memory that several
    /// processes map, at any addresses. If a process dies with it, it stays locked. A thread that
    /// locks a mutex that it holds waits for ever.
    ulocks_shared_mutex: ulocks_shared_mutex_t { _words: [u32; 1] }, ulocks_shared_mutex_cond_t,
    ::ulocks_unfair::RawBargingMutex<::ulocks_core::Shared>, "", " It may lie in memory that several processes map, at any addresses."
}

pi_mutex! {
    /// A mutex of four bytes with priority inheritance. The thread that holds it runs with the
    /// highest priority of those that wait for it.
    ///
    /// `ULOCKS_MUTEX_INIT`, or all bytes zero, is an unlocked mutex. It needs no destruction: the
    /// thread that unlocks it last may free its memory at once. It may lie in memory that several
    /// processes map, at any addresses. If a process dies with it, the next lock says so.
    ulocks_shared_pi_mutex: ulocks_shared_pi_mutex_t, ulocks_shared_pi_mutex_cond_t, ::ulocks_core::Shared, " It may lie in memory that several processes map, at any addresses."
}

rwlock! {
    /// A reader-writer lock where readers and writers take turns, with three classes of readers.
    ///
    /// | functions | for |
    /// |---|---|
    /// | ulocks_shared_rwlock_read_ | ordinary readers, which may take long |
    /// | ulocks_shared_rwlock_urgent_ | readers with short sections: they wait for no ordinary reader, and not for a writer that waits for one |
    /// | ulocks_shared_rwlock_nested_ | code that may run while its thread reads the lock already, by another class |
    /// | ulocks_shared_rwlock_write_ | writers |
    /// | ulocks_shared_rwlock_upgradable_ | a reader that may become a writer; one at a time, beside other readers |
    ///
    /// `ULOCKS_RWLOCK_INIT`, or all bytes zero, is an unlocked lock. It needs no destruction: the
    /// thread that unlocks it last may free its memory at once. It may lie in memory that several
    /// processes map, at any addresses. If a process dies with it, it stays locked. A thread that
    /// asks for it again waits for ever, unless it reads already and asks for a later class of
    /// readers. More than 131072 readers at once, or 6000 that wait, end the process.
    ulocks_shared_rwlock: ulocks_shared_rwlock_t, ::ulocks_core::Shared
}

mutex! {
    /// A mutex for many operations a second among many threads. A thread may be overtaken for a
    /// tenth of a millisecond, but not for ever.
    ///
    /// `ULOCKS_MUTEX_INIT`, or all bytes zero, is an unlocked mutex. It needs no destruction: the
    /// thread that unlocks it last may free its memory at once. It belongs to one process. A thread
    /// that locks a mutex that it holds waits for ever.
    ulocks_throughput_mutex: ulocks_throughput_mutex_t { _words: [u64; 1] }, ulocks_throughput_mutex_cond_t,
    ::ulocks_unfair::RawThroughputMutex, "", ""
}
