//! The C face of the family: `ulocks.h`, a shared and a static library.
//!
//! Each function of `include/ulocks.h` is written out here, because `cbindgen` reads the source and
//! does not expand macros. The doc comments are the header's comments. `cargo xtask header` writes
//! the header.

#![allow(non_camel_case_types)]
// The comments of the header say once, at its top, what every function asks of its pointers.
#![allow(clippy::missing_safety_doc)]

mod asym_mutex;
mod byte_mutex;
mod call;
mod calock;
mod condvar;
mod fair_mutex;
mod mutex;
mod pi_mutex;
mod region;
mod robust;
mod rwlock;
mod semaphore;
mod semarray;
mod shared;
mod throughput_mutex;
