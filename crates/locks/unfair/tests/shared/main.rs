//! The locks between processes: policy `Shared`, in memory that forked children map too.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod asym;
mod barging;
