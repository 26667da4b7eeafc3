//! The one program: every row.

use std::process::ExitCode;
use ulocks_benches::{engine::program, rows};
use ulocks_testkit as _;

fn main() -> ExitCode {
    program::main(rows::ALL)
}
