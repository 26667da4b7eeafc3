//! Where the files of a run go, and what they are called.

use super::progress::say;
use super::record::{Ended, Mode, Record, SCHEMA};
use anyhow::{Context, Result, anyhow, ensure};
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

/// The folder of records and pages: `ulocks-report` in the target directory.
///
/// That is the one that `CARGO_TARGET_DIR` names, else the nearest directory above this program
/// that cargo has marked as its own. A program that was copied elsewhere has neither, and writes
/// into the current directory. A relative `CARGO_TARGET_DIR` is relative to where cargo was
/// started, which a bench does not know.
pub fn folder() -> Result<PathBuf> {
    let program = std::env::current_exe().context("cannot find out where this program lies")?;
    let target = target(std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from), &program);
    let target = target.map_or_else(std::env::current_dir, Ok).context("there is no current directory")?;
    Ok(target.join("ulocks-report"))
}

fn target(given: Option<PathBuf>, program: &Path) -> Option<PathBuf> {
    // A directory that somebody else made for cargo has no tag.
    let marks = ["CACHEDIR.TAG", ".rustc_info.json"];
    let is_marked = |folder: &&Path| marks.iter().any(|mark| folder.join(mark).is_file());
    let above = || program.ancestors().skip(1).find(is_marked).map(PathBuf::from);
    given.filter(|given| given.is_absolute()).or_else(above)
}

/// The folder, once it is known that files can be made there: a run that could not leave its record
/// would be lost.
pub fn writable_folder() -> Result<PathBuf> {
    let folder = folder()?;
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let probe = folder.join(format!(".probe-{}", std::process::id()));
    std::fs::write(&probe, "").with_context(|| format!("cannot write into {}", folder.display()))?;
    std::fs::remove_file(&probe).with_context(|| format!("cannot remove {}", probe.display()))?;
    if folder.parent().is_some_and(|target| Some(target) == std::env::current_dir().ok().as_deref()) {
        say(&format!("records and pages go to {}", folder.display()));
    }
    Ok(folder)
}

/// Refuses a file that cannot be written, before anything is measured in vain. What it holds stays
/// until there is something better.
pub fn writable(option: &str, file: &Path) -> Result<()> {
    let opened = OpenOptions::new().append(true).create(true).open(file);
    opened.map(drop).map_err(|error| {
        anyhow!("{option}: cannot write {}: {error}; allowed: a file that can be created", file.display())
    })
}

/// What the files of a run are called.
pub fn stem(row: &str, mode: Mode) -> String {
    let of_mode = match mode {
        Mode::Full => "",
        Mode::Quick => "-quick",
        Mode::Smoke => "-smoke",
    };
    format!("{row}{of_mode}")
}

/// The record as JSON text, with a line of the text for each of its lines and its cells.
pub fn json(record: &Record) -> Result<String> {
    let mut value = serde_json::to_value(record)?;
    let parts = ["cells", "lines", "subjects"].map(|name| (name, value[name].take()));
    let mut text = serde_json::to_string_pretty(&value)?;
    for (name, part) in parts {
        let each = part.as_array().into_iter().flatten().map(|item| format!("    {item}"));
        let list = format!("\"{name}\": [\n{}\n  ]", each.collect::<Vec<_>>().join(",\n"));
        text = text.replacen(&format!("\"{name}\": null"), &list, 1);
    }
    Ok(text + "\n")
}

/// Reads a record. An error says in one line what is wrong with it.
pub fn read(path: &Path) -> Result<Record> {
    let at = || path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", at()))?;
    let value: serde_json::Value =
        serde_json::from_str(&text).with_context(|| format!("{} is not JSON", at()))?;
    let schema = value["schema"].as_str().unwrap_or("no schema");
    ensure!(schema == SCHEMA, "{} is a record of {schema}; this program reads {SCHEMA}", at());
    let record: Record =
        serde_json::from_value(value).with_context(|| format!("{} is a damaged record", at()))?;
    check(&record).with_context(|| format!("{} is a damaged record", at()))?;
    Ok(record)
}

/// What every reader of a record relies on. Whoever reads one from elsewhere asks this first.
pub fn check(record: &Record) -> Result<()> {
    let (schema, cells) = (&record.schema, record.cells.len());
    ensure!(schema == SCHEMA, "it is a record of {schema}; this program reads {SCHEMA}");
    let is_known = record.lines.iter().all(|line| line.cell < cells);
    ensure!(is_known, "it has a line of a cell that it has not");
    Ok(())
}

/// Writes `text`, all of it or nothing: what was there stays until the new one is complete.
pub fn write(path: &Path, text: &str) -> Result<()> {
    let new = path.with_extension("new");
    let written = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, path));
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Where the record of a run lies that ended so. That of an interrupted run replaces none of a
/// complete one.
fn place(folder: &Path, record: &Record, ended: Ended) -> PathBuf {
    let interrupted = if ended == Ended::Interrupted { "-interrupted" } else { "" };
    folder.join(format!("{}{interrupted}.json", stem(&record.row, record.mode)))
}

/// Writes the record into the folder, and says where. A complete one that was there stays as
/// `ROW.before.json`, for a verdict on this one.
pub fn keep(folder: &Path, record: &Record) -> Result<PathBuf> {
    let path = place(folder, record, record.ended);
    if record.ended != Ended::Interrupted && path.is_file() {
        let before = path.with_extension("before.json");
        std::fs::rename(&path, &before).with_context(|| format!("cannot write {}", before.display()))?;
    }
    write(&path, &json(record)?)?;
    Ok(path)
}

/// Removes what the run left when it was interrupted. It may have been killed, and left nothing.
pub fn remove_interrupted(folder: &Path, record: &Record) {
    let path = place(folder, record, Ended::Interrupted);
    for file in [path.with_extension("txt"), path] {
        let _ = std::fs::remove_file(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_copied_writes_where_it_is_started() {
        let program = std::env::current_exe().unwrap();
        let cargos = target(None, &program).unwrap();
        assert!(program.starts_with(&cargos) && !cargos.ends_with("deps"));
        assert_eq!(target(Some("relative".into()), &program), Some(cargos));
        assert_eq!(target(Some("/given".into()), &program), Some("/given".into()));
        assert_eq!(target(None, Path::new("/copied/ulocks")), None);
    }
}
