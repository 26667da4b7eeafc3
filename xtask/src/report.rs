//! `cargo xtask report`: draws the page of a record again, or of all records of the benches.

use crate::flags::Report;
use anyhow::bail;
use std::env;
use xshell::{Shell, cmd};
use xtask::steps::Steps;

/// Runs the program of the benches that draws pages.
pub fn run(flags: &Report, shell: &Shell, steps: &mut Steps) -> anyhow::Result<()> {
    let here = env::current_dir()?;
    let what = match &flags.json {
        Some(json) => vec![here.join(json)],
        None => vec!["index".into()],
    };
    if let Some(json) = flags.json.as_ref().map(|json| here.join(json)).filter(|json| !json.is_file()) {
        bail!("{}: no such file; `cargo bench` writes records to target/ulocks-report/", json.display());
    }
    let draw =
        cmd!(shell, "cargo run --quiet --release --package ulocks-benches --bin ulocks-report -- {what...}");
    Ok(steps.run("report", draw, &[])?)
}
