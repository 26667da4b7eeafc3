//! Locks between processes, and what the death of a holder costs: see
//! `ulocks_benches::programs::shared`.

use std::process::ExitCode;
use ulocks_benches::programs::shared::Shared;
use ulocks_benches::programs::{evidence, harness, scaling};

fn main() -> ExitCode {
    let code = harness::main::<Shared>();
    // This is the last bench in the order of their names, and the last lines of all of them
    // are the answer and the path of the page with all figures.
    scaling::remind();
    evidence::remind();
    code
}
