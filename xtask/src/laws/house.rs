//! Compares ARCHITECTURE.md with the source.
//!
//! | law | where |
//! |---|---|
//! | a file that is named exists | every path in backticks that begins with a directory of the root |
//! | a map of a crate names all of its files | the table after a heading that names a `src` directory |
//! | the table of type parameters is right | all public types of the lock crates with a type parameter `T` |
//! | the picture is as the manifests are | `ARCHITECTURE.svg` |

use crate::picture;
use crate::workspace::Workspace;
use anyhow::Context;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const FILE: &str = "ARCHITECTURE.md";

/// What ARCHITECTURE.md says and the source does not.
pub fn faults(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let read = |path: &str| fs::read_to_string(workspace.root.join(path));
    let text = read(FILE).with_context(|| format!("cannot read {FILE}"))?;
    let mut found = missing_files(&text, &workspace.root);
    found.extend(wrong_maps(&text, &workspace.root)?);
    found.extend(wrong_parameters(&text, &aliases(workspace)?));
    if read(picture::FILE).unwrap_or_default() != picture::svg(workspace) {
        found.push("the picture of the crates is out of date: cargo xtask picture".to_owned());
    }
    Ok(found.into_iter().map(|what| format!("{FILE}: {what}")).collect())
}

/// The code spans of a line of Markdown.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn missing_files(text: &str, root: &Path) -> Vec<String> {
    let is_path = |span: &str| {
        let plain = span.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
        plain && span.split_once('/').is_some_and(|(first, _)| root.join(first).is_dir())
    };
    let paths = text.lines().flat_map(spans).filter(|span| is_path(span));
    let missing = paths.filter(|path| !root.join(path).exists());
    missing.map(|path| format!("`{path}` does not exist")).collect()
}

/// The maps: the directory that a heading names, and the first cells of the table after it.
fn maps(text: &str) -> Vec<(&str, BTreeSet<&str>)> {
    let mut maps: Vec<(&str, BTreeSet<&str>)> = Vec::new();
    let mut is_map = false;
    for line in text.lines() {
        if line.starts_with('#') {
            let dir = spans(line).find(|span| span.ends_with("src"));
            is_map = dir.is_some();
            maps.extend(dir.map(|dir| (dir, BTreeSet::new())));
        } else if is_map
            && let Some(row) = line.strip_prefix('|')
            && let Some((_, files)) = maps.last_mut()
        {
            files.extend(spans(row.split('|').next().unwrap_or_default()));
        }
    }
    maps
}

fn wrong_maps(text: &str, root: &Path) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for (dir, named) in maps(text) {
        let mut there = BTreeSet::new();
        for entry in fs::read_dir(root.join(dir)).with_context(|| format!("cannot read {dir}"))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let named = if path.is_dir() { format!("{name}/") } else { name };
            there.insert(named);
        }
        let of_map: BTreeSet<String> = named.iter().map(|&file| file.to_owned()).collect();
        found.extend(
            of_map.difference(&there).map(|file| format!("the map of {dir} has {file}, which is not there")),
        );
        found.extend(there.difference(&of_map).map(|file| format!("the map of {dir} lacks {file}")));
    }
    Ok(found)
}

/// The public types `NAME<.., T, ..>` of the lock crates, and how many parameters each has beside
/// `T` and lifetimes.
fn aliases(workspace: &Workspace) -> anyhow::Result<BTreeMap<String, usize>> {
    let mut found = BTreeMap::new();
    for package in &workspace.packages {
        if !super::is_lock_crate(package, workspace) {
            continue;
        }
        for path in super::sources(&package.dir.join("src"))? {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            found.extend(text.lines().filter_map(alias));
        }
    }
    Ok(found)
}

fn alias(line: &str) -> Option<(String, usize)> {
    let item = line.strip_prefix("pub type ").or_else(|| line.strip_prefix("pub struct "))?;
    let (name, rest) = item.split_once('<')?;
    let parameters: Vec<&str> = rest.split_once('>')?.0.split(',').map(str::trim).collect();
    let is_data = |name: &&str| *name == "T" || name.starts_with("T:");
    let is_lock = parameters.iter().any(is_data) && !parameters.iter().any(|name| name.starts_with('\''));
    is_lock.then(|| (name.to_owned(), parameters.len() - 1))
}

/// Rows `| .. `NAME` .. | N | ..` below the heading of type parameters, against the aliases.
fn wrong_parameters(text: &str, aliases: &BTreeMap<String, usize>) -> Vec<String> {
    let section =
        text.split("\n## ").find(|section| section.starts_with("Type parameters")).unwrap_or_default();
    let mut told: BTreeMap<String, usize> = BTreeMap::new();
    for row in section.lines().filter_map(|line| line.strip_prefix('|')) {
        let mut cells = row.split('|');
        let (Some(names), Some(Ok(count))) = (cells.next(), cells.next().map(|cell| cell.trim().parse()))
        else {
            continue;
        };
        told.extend(spans(names).map(|name| (name.to_owned(), count)));
    }
    let mut found = Vec::new();
    for (name, count) in aliases {
        match told.remove(name) {
            Some(told) if told == *count => {}
            Some(told) => {
                found.push(format!("`{name}` has {count} type parameters beside its data, not {told}"))
            }
            None => found.push(format!("`{name}` is not in the table of type parameters: it has {count}")),
        }
    }
    found.extend(told.keys().map(|name| format!("there is no type `{name}`")));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_gone_is_found() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let text = "`xtask/src/main.rs`, `xtask/src/none.rs` and `no/path`, `a | b`";
        assert_eq!(missing_files(text, root), ["`xtask/src/none.rs` does not exist"]);
    }

    #[test]
    fn a_map_names_all_files_and_no_other() {
        let text = "## A map\n\n### `xtask/src`\n\n| file | what |\n|---|---|\n| `main.rs`, `laws/` | x |\n| `none.rs` | `y` |\n\n## Next\n| `z` |\n";
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert_eq!(maps(text), [("xtask/src", BTreeSet::from(["main.rs", "laws/", "none.rs"]))]);
        let found = wrong_maps(text, root).unwrap();
        assert!(found.contains(&"the map of xtask/src has none.rs, which is not there".to_owned()));
        assert!(found.contains(&"the map of xtask/src lacks laws.rs".to_owned()));
        assert!(!found.iter().any(|what| what.contains("main.rs")), "{found:?}");
    }

    #[test]
    fn a_wrong_number_of_parameters_is_found() {
        let aliases: BTreeMap<_, _> = [
            "pub type Mutex<T> = X;",
            "pub type MutexWith<T, P> = api::Mutex<Raw<P>, T>;",
            "pub type Guard<'a, T, P = Private> = X;",
            "pub type Calock<T, P, I = Every> = X;",
        ]
        .into_iter()
        .filter_map(alias)
        .collect();
        assert_eq!(aliases.len(), 3);
        let text = "\n## Type parameters\n| lock | n |\n|---|---|\n| `Mutex` | 0 |\n| `MutexWith`, `Gone` | 2 |\n\n## Next\n| `Calock` | 2 |\n";
        let found = wrong_parameters(text, &aliases);
        assert_eq!(found.len(), 3, "{found:?}");
        for what in ["`MutexWith` has 1", "`Calock` is not in the table", "no type `Gone`"] {
            assert!(found.iter().any(|found| found.contains(what)), "{what} is not in {found:?}");
        }
    }
}
