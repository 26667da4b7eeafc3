//! `ulocks-report`: pages, comparisons and kept files of records.

use anyhow::{Context as _, Result, ensure};
use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use ulocks_benches::engine::record::Record;
use ulocks_benches::engine::{files, options, progress};
use ulocks_benches::report::{answer, compare, kept, page, tables};

/// Draws the page of records that `cargo bench` left, compares two of them, or packs them
#[derive(Parser)]
#[command(
    name = "ulocks-report",
    version,
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = true
)]
struct Cli {
    /// Records, or packed files of records
    #[arg(required = true, value_name = "RECORD")]
    records: Vec<PathBuf>,
    /// Where to write the page [default: beside the first record, ending in .html]
    #[arg(short, long, value_name = "PAGE")]
    output: Option<PathBuf>,
    /// Print the tables, too
    #[arg(long)]
    tables: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Compares two records of a row, cell by cell, with a verdict for each
    Compare {
        /// The record of before
        before: PathBuf,
        /// The record of after
        after: PathBuf,
    },
    /// Writes one page of all records in folders
    Index {
        /// Folders of records [default: target/ulocks-report]
        #[arg(value_name = "FOLDER")]
        folders: Vec<PathBuf>,
        /// Where to write the page [default: index.html in the first folder]
        #[arg(short, long, value_name = "PAGE")]
        output: Option<PathBuf>,
    },
    /// Packs records of one machine into one small file
    Keep {
        /// Records, one for each row
        #[arg(required = true, value_name = "RECORD")]
        records: Vec<PathBuf>,
        /// The file
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
}

fn read(paths: &[PathBuf]) -> Result<Vec<Record>> {
    let records: Result<Vec<Vec<Record>>> = paths.iter().map(|path| kept::read(path)).collect();
    Ok(records?.into_iter().flatten().collect())
}

/// The texts of the rows that two files have in common.
fn compared(before: &Path, after: &Path) -> Result<String> {
    let [before, after] = [kept::read(before)?, kept::read(after)?];
    let pair = |new: &Record| {
        let old = before.iter().find(|old| old.row == new.row)?;
        Some(format!("{}\n{}", new.row, compare::compare(old, new)))
    };
    let texts: Vec<String> = after.iter().filter_map(pair).collect();
    ensure!(!texts.is_empty(), "the two have no row in common");
    Ok(texts.join("\n"))
}

/// Writes a page, and says where it is.
fn drawn(paths: &[PathBuf], page: &Path) -> Result<String> {
    page::write_to(paths, page)?;
    Ok(format!("{}\n", page.display()))
}

fn run(cli: Cli) -> Result<String> {
    match cli.command {
        Some(Command::Compare { before, after }) => compared(&before, &after),
        Some(Command::Index { mut folders, output }) => {
            if folders.is_empty() {
                folders.push(files::folder()?);
            }
            drawn(&folders, &output.unwrap_or_else(|| folders[0].join("index.html")))
        }
        Some(Command::Keep { records, output }) => {
            let text = kept::pack(&read(&records)?)?;
            std::fs::write(&output, text).with_context(|| format!("cannot write {}", output.display()))?;
            Ok(String::new())
        }
        None => {
            let records = read(&cli.records)?;
            let page = cli.output.unwrap_or_else(|| cli.records[0].with_extension("html"));
            let page = drawn(&cli.records, &page)?;
            let shown = records.iter().filter(|_| cli.tables);
            let tables = shown.filter_map(|of| Some(tables::tables(of, kept::row_of(&of.row)?)));
            Ok(tables.collect::<String>() + &answer::screen(&records) + "\n" + &page)
        }
    }
}

fn main() -> ExitCode {
    match run(options::parse()) {
        Ok(text) => progress::print(&text),
        Err(error) => {
            progress::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
