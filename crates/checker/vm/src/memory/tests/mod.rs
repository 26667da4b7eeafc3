//! The memory against the literature, and against a second, declarative account of the model.
//!
//! - `litmus`: the litmus tests of the literature, a `table`. All outcomes of each were written
//!   down by hand, and are what the memory does in all interleavings and with all choices.
//! - `axioms`: RC11 as its authors write it, by enumeration of graphs; shares no code with the
//!   memory.
//! - `fuzz`: `random` little programs have the same outcomes by both. `ULOCKS_VM_FUZZ` is how many
//!   programs of each class, `ULOCKS_VM_SEED` which.
//! - `long`: executions of some sixty operations, each of which the axioms admit.
//! - `smoke`: faults, and what reports are told.
//!
//! `tests/axioms` holds the whole explorer against the same table, programs and axioms.
//!
//! `mutants/memory.toml` plants bugs, which the table and the random programs find.

mod axioms;
mod fuzz;
mod litmus;
mod long;
mod op;
mod program;
mod random;
mod relation;
mod smoke;
mod table;
