//! `ulocks-report FILE.json [-o PAGE.html]`: draws the page of a recorded run of `scaling` again,
//! and prints its answer. `ulocks-report compare A.json B.json`: what changed between two runs.
//! `ulocks-report index`: one page of all figures. `ulocks-report keep`: records for the
//! repository.

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use ulocks_benches::programs::{evidence, options};
use ulocks_benches::report::{self, Report};

/// Draws the page of a recorded run of `scaling` again, or compares two records.
#[derive(Parser)]
#[command(
    name = "ulocks-report",
    version,
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = true
)]
struct Cli {
    /// A record, as `scaling` leaves it in target/ulocks-report or writes it with --json
    #[arg(required = true)]
    record: Option<PathBuf>,
    /// Where to write the page [default: beside the record, ending in .html]
    #[arg(short, long, value_name = "PAGE")]
    output: Option<PathBuf>,
    /// Print the tables on standard output, too
    #[arg(long)]
    tables: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Compares the rates of two records, cell by cell, with a verdict for each
    Compare {
        /// The record of before, or of the one machine
        a: PathBuf,
        /// The record of after, or of the other machine
        b: PathBuf,
    },
    /// Writes one page of all figures, and the same in Markdown beside it
    Index {
        /// Folders of records [default: target/ulocks-report]
        folders: Vec<PathBuf>,
        /// Where to write the page [default: index.html in the first folder]
        #[arg(short, long, value_name = "PAGE")]
        output: Option<PathBuf>,
    },
    /// Packs the records of one machine into one small file, without their trials
    Keep {
        /// Records: DAY-MACHINE-psrw.json is kept as psrw
        #[arg(required = true)]
        records: Vec<PathBuf>,
        /// The file: DAY-MACHINE.json
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
}

fn read(path: &Path) -> anyhow::Result<Report> {
    let mut record = Report::read(path)?;
    record.summary = report::summarise(&record);
    Ok(record)
}

fn run(cli: Cli) -> anyhow::Result<()> {
    match cli.command {
        Some(Command::Compare { a, b }) => {
            print!("{}", report::compare(&read(&a)?, &read(&b)?));
            return Ok(());
        }
        Some(Command::Index { mut folders, output }) => {
            if folders.is_empty() {
                folders.push(evidence::folder()?);
            }
            let page = output.unwrap_or_else(|| folders[0].join("index.html"));
            evidence::write(&folders, &page)?;
            println!("{}", page.display());
            return Ok(());
        }
        Some(Command::Keep { records, output }) => {
            let text = report::kept::pack(&records, &output)?;
            return std::fs::write(&output, text)
                .with_context(|| format!("cannot write {}", output.display()));
        }
        None => {}
    }
    let path = cli.record.context("no record is given")?;
    let record = read(&path)?;
    let page = cli.output.unwrap_or_else(|| path.with_extension("html"));
    evidence::write_one(&path, &page)?;
    if cli.tables {
        print!("{}", report::tables(&record));
    }
    println!("{}\n{}", report::answer(&record), page.display());
    Ok(())
}

fn main() -> ExitCode {
    match run(options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ulocks-report: {error:#}");
            ExitCode::FAILURE
        }
    }
}
