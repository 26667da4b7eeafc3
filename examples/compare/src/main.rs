//! Small programs, right and wrong, before four checkers: what each of them says, after how many
//! executions, in which time.
//!
//! | command | what |
//! |---|---|
//! | `cargo run --release` | prints the tables as Markdown |
//! | `cargo run --release -- --write` | writes them into the guide of `ulocks-vm` |
//! | `cargo run --release -- TOOL PROGRAM` | makes one cell |
//!
//! Each cell is a process of its own with a limit of 10 seconds. Miri is run if the nightly
//! toolchain has it, and else the page says how to get it.
//!
//! A tool finds a program wrong if it panics, or reports undefined behaviour or a deadlock, in any
//! execution. The programs that are right show false alarms, and what it takes to come to an end.

mod table;
mod tools;
mod worlds;

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => print!("{}", table::tables()),
        ["--write"] => table::write(),
        [tool, program] => return tools::one(tool, program),
        _ => {
            eprintln!("usage: compare [--write | TOOL PROGRAM]");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
