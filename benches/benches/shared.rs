//! Locks between processes, and what the death of a holder costs: see
//! `ulocks_benches::programs::shared`.

use std::process::ExitCode;
use ulocks_benches::programs::shared::Shared;
use ulocks_benches::programs::{harness, scaling};

fn main() -> ExitCode {
    let code = harness::main::<Shared>();
    // This is the last bench in the order of their names, and the last line of all of them is the
    // path of the report.
    scaling::remind();
    code
}
