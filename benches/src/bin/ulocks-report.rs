//! What is made of records that are there: the page, the answer, tables, a comparison of two runs,
//! and records for the repository.

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use ulocks_benches::engine::{files, options, progress};
use ulocks_benches::report::{answer, page, tables};
use ulocks_benches::rows::Row;

/// Draws the page of the records of a folder, and prints answers, tables and comparisons of records.
#[derive(Parser)]
#[command(name = "ulocks-report", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Writes the page of all records of a folder
    Page {
        /// The folder [default: target/ulocks-report]
        folder: Option<PathBuf>,
    },
    /// Prints the answer of records
    Answer {
        /// Records, as runs leave them in target/ulocks-report
        #[arg(required = true)]
        records: Vec<PathBuf>,
    },
    /// Prints the tables of records
    Tables {
        /// Records, as runs leave them in target/ulocks-report
        #[arg(required = true)]
        records: Vec<PathBuf>,
    },
}

fn run(command: Command) -> Result<String> {
    let read = |paths: Vec<PathBuf>| paths.iter().map(|path| files::read(path)).collect::<Result<Vec<_>>>();
    Ok(match command {
        Command::Page { folder } => {
            let folder = folder.map_or_else(files::folder, Ok)?;
            format!("{}\n", page::write(&folder)?.display())
        }
        Command::Answer { records } => answer::screen(&read(records)?),
        Command::Tables { records } => {
            let mut out = String::new();
            for record in read(records)? {
                let row =
                    Row::find(&record.row).with_context(|| format!("there is no row '{}'", record.row))?;
                out += &tables::tables(&record, row);
            }
            out
        }
    })
}

fn main() -> ExitCode {
    let Cli { command } = options::parse();
    match run(command) {
        Ok(text) => progress::print(&text),
        Err(error) => {
            progress::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
