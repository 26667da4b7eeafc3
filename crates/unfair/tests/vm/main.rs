//! Models of the locks on the virtual machine: many threads, old values, deadlines, deaths; and of what each of them
//! would miss if it found nothing.
#![cfg(all(ulocks_vm, feature = "vm"))]

mod asym;
#[cfg(feature = "parking-lot")]
#[path = "../common/bits.rs"]
mod bits;
#[cfg(feature = "parking-lot")]
mod byte;
mod condvar;
mod deaths;
#[path = "../common/mutant.rs"]
mod mutant;
mod mutex;
#[path = "../common/overtaking.rs"]
mod overtaking;
mod throughput;
#[path = "../common/warm.rs"]
mod warm;
