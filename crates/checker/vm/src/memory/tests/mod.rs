//! The memory against the literature, and against a second, declarative account of the model.
//!
//! - `litmus`: the litmus tests of the literature. All outcomes of each were written down by hand,
//!   and are what the memory does in all interleavings and with all choices.
//! - `axioms`: RC11 as its authors write it, by enumeration of graphs; shares no code with the
//!   memory.
//! - `fuzz`: random little programs have the same outcomes by both. `ULOCKS_VM_FUZZ` is how many
//!   programs of each class, `ULOCKS_VM_SEED` which.
//! - `herd`: programs as litmus files for herd7, and its answers compared.
//! - `long`: executions of some sixty operations, each of which the axioms admit.
//! - `seeded`: bugs, and that the table and the random programs find each.
//! - `smoke`: faults, and what reports are told.

mod axioms;
mod fuzz;
mod herd;
mod litmus;
mod long;
mod op;
mod program;
mod seeded;
mod smoke;
