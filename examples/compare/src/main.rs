//! Small programs, right and wrong, before four checkers: what each of them says, after how many
//! executions, in which time.
//!
//! `cargo run --release` prints the table as Markdown. Each cell is a process of its own with a
//! limit of 20 seconds. `cargo run --release -- TOOL PROGRAM` makes one cell. Miri is run if the
//! nightly toolchain has it.
//!
//! A tool finds a program wrong if it panics, or reports undefined behaviour or a deadlock, in any
//! execution. The programs that are right show false alarms, and what it takes to come to an end.

mod tools;
mod worlds;

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => tools::table(),
        [tool, program] => return tools::one(tool, program),
        _ => {
            eprintln!("usage: compare [TOOL PROGRAM]");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
