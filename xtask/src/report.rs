//! `cargo xtask report`: rebuilds the HTML report of a benchmark run from its JSON.

use crate::flags::Report;
use anyhow::{Context, bail};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{env, fs};
use xshell::{Shell, cmd};
use xtask::steps::Steps;
use xtask::workspace::Workspace;

/// Runs the program of the benches that writes the report.
pub fn run(flags: &Report, shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    let here = env::current_dir()?;
    let json = match &flags.json {
        Some(json) => here.join(json),
        None => {
            let dir = workspace.target().join("ulocks-report");
            newest_json(&dir)
                .with_context(|| format!("no record in {}: `cargo bench` writes one", dir.display()))?
        }
    };
    if !json.is_file() {
        bail!("{}: no such file; `cargo bench` writes records to target/ulocks-report/", json.display());
    }
    let draw =
        cmd!(shell, "cargo run --quiet --release --package ulocks-benches --bin ulocks-report -- {json}");
    Ok(steps.run("report", draw, &[])?)
}

/// The record written last.
fn newest_json(dir: &Path) -> Option<PathBuf> {
    let paths = fs::read_dir(dir).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let records = paths.filter(|path| path.extension() == Some(OsStr::new("json")));
    records.max_by_key(|path| path.metadata().and_then(|data| data.modified()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn the_newest_record_is_taken_and_other_files_are_not() {
        let dir = env::temp_dir().join(format!("ulocks-report-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        assert_eq!(newest_json(&dir), None);
        for (name, age) in [("old.json", 60), ("new.json", 30), ("new.html", 0)] {
            let file = fs::File::create(dir.join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        }
        assert_eq!(newest_json(&dir), Some(dir.join("new.json")));
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(newest_json(&dir), None);
    }
}
