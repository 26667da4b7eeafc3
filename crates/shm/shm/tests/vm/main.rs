//! Models of the robust locks on the virtual machine: deaths at each step, under the rules of each
//! kernel.
#![cfg(all(ulocks_vm, feature = "vm"))]

mod condvar;
mod directory;
mod fair_mutex;
mod map;
mod mutex;
mod place;
mod queue;
mod rwlock;
mod semarray;
mod slots;
