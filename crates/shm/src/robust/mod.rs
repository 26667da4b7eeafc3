//! Robust locks: a thread that dies with one leaves it to the next, which is told.

pub mod mutex;
