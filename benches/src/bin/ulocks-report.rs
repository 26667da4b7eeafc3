//! `ulocks-report FILE.json [-o PAGE.html]`: draws the page of a recorded run of `scaling` again.

use anyhow::Context;
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use ulocks_benches::programs::options;
use ulocks_benches::report::{self, Report};

/// Draws the page of a recorded run of `scaling` again.
#[derive(Parser)]
#[command(name = "ulocks-report", version)]
struct Cli {
    /// A record, as `scaling` leaves it in target/ulocks-report or writes it with --json
    record: PathBuf,
    /// Where to write the page [default: beside the record, ending in .html]
    #[arg(short, long, value_name = "PAGE")]
    output: Option<PathBuf>,
    /// Print the tables on standard output, too
    #[arg(long)]
    tables: bool,
}

fn main() -> ExitCode {
    let cli: Cli = options::parse();
    let run = || -> anyhow::Result<()> {
        let mut record = Report::read(&cli.record)?;
        record.summary = report::summarise(&record);
        let page = cli.output.clone().unwrap_or_else(|| cli.record.with_extension("html"));
        std::fs::write(&page, report::render(&record))
            .with_context(|| format!("cannot write {}", page.display()))?;
        if cli.tables {
            print!("{}", report::tables(&record));
        }
        println!("{}", page.display());
        Ok(())
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ulocks-report: {error:#}");
            ExitCode::FAILURE
        }
    }
}
