//! The harness of the one program: what a cell is, what a run leaves behind, which trials are run
//! in which order, and the command line.

pub mod cell;
pub mod figures;
pub mod files;
mod journal;
pub mod options;
pub mod plan;
pub mod program;
pub mod progress;
pub mod record;
pub mod run;
