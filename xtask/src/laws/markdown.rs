//! The law of Markdown: prose is at most 100 columns wide.
//!
//! Tables, fenced code and definitions of links are not prose. VERIFICATION.md is generated.

use super::{MAX_COLUMNS, wide};
use anyhow::{Context, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

const GENERATED: &str = "VERIFICATION.md";

/// The violations in all Markdown files that git knows.
pub fn faults(root: &Path) -> anyhow::Result<Vec<String>> {
    let listed = Command::new("git").args(["ls-files", "*.md"]).current_dir(root).output()?;
    ensure!(listed.status.success(), "`git ls-files` failed: {}", String::from_utf8_lossy(&listed.stderr));
    let mut faults = Vec::new();
    for file in String::from_utf8(listed.stdout)?.lines().filter(|file| *file != GENERATED) {
        let path = root.join(file);
        if !path.exists() {
            continue; // deleted, and not committed yet
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {file}"))?;
        faults.extend(
            wide(&text, prose).iter().map(|line| format!("{file}:{line}: wrap it at {MAX_COLUMNS} columns")),
        );
    }
    Ok(faults)
}

/// The text of a line, with a definition of a link as a table.
pub fn prose(line: &str) -> Option<&str> {
    Some(if line.starts_with('[') { "|" } else { line })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_git_knows_is_read() {
        let root = xtask::workspace::Workspace::load().unwrap().root;
        assert!(faults(&root).is_ok());
        assert!(faults(Path::new("/proc")).is_err());
    }
}
