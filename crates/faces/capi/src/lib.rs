//! The C face of the family: `ulocks.h`, a shared and a static library.
//!
//! Locks of one kind differ in names: a macro has the functions of a kind, and the table in this
//! file names the locks. The doc comments are the header's comments. `cargo xtask header` expands
//! the macros, as `cbindgen` does not, and writes the header. Its functions stand in the order of
//! this file.

#![allow(non_camel_case_types)]
// The comments of the header say once, at its top, what every function asks of its pointers.
#![allow(clippy::missing_safety_doc)]

mod call;
#[macro_use]
mod mutex;

mutex! {
    /// A mutex. A thread may be overtaken for a tenth of a millisecond, but not for ever. It
    /// belongs to one process. A thread that locks a mutex that it holds waits for ever.
    ulocks_mutex: ulocks_mutex_t { _words: [u64; 1] }, ulocks_mutex_cond_t,
    ::ulocks_unfair::RawThroughputMutex
}

mutex! {
    /// A mutex of four bytes. Any thread may take it next: no order, and no bound on a wait. It may
    /// lie in memory that several processes map, at any addresses; so may its condition variable.
    /// If a process dies with it, it stays locked.
    ulocks_barging_mutex: ulocks_barging_mutex_t { _words: [u32; 1] }, ulocks_barging_mutex_cond_t,
    ::ulocks_unfair::RawBargingMutex<::ulocks_core::Shared>
}

mutex! {
    /// A mutex that threads get in the order in which they came. It belongs to one process.
    ulocks_fair_mutex: ulocks_fair_mutex_t { _words: [u64; 2] }, ulocks_fair_mutex_cond_t,
    ::ulocks_fair::RawFairMutex
}

mod pi_mutex;
mod region;
mod robust;
mod rwlock;
mod semaphore;
mod semarray;
