//! The locks between processes: policy `Shared`, in memory that forked children map too.
#![cfg(not(any(miri, ulocks_loom, ulocks_vm)))]

mod fork;
mod mutex;
