//! A law of what lies at the top of the repository.
//!
//! | law | where |
//! |---|---|
//! | a file that is named exists | every path in backticks that begins with a directory of the root |
//! | no record lies at the top level | `*.jsonl`: it belongs below what writes it |
//! | the Rust version is that of the workspace | the same files, and `RUST_VERSION` |
//! | README.md has a row for each feature of the facade | the table of crate features |
//! | what a page prints of a program is that program | blocks of `PRINTED` that begin with a path |

use anyhow::Context;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const FILES: [&str; 3] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];

/// What else names the Rust version: packages outside of the workspace, and a page about them.
const RUST_VERSION: [&str; 5] = [
    "crates/checker/loom/patch/Cargo.toml",
    "crates/checker/loom/patch05/Cargo.toml",
    "crates/faces/parking-lot/README.md",
    "crates/faces/parking-lot/patch/0.12/Cargo.toml",
    "crates/faces/parking-lot/patch/0.13/Cargo.toml",
];

/// Pages that print the sources of an example, and its folder.
const PRINTED: [(&str, &str); 1] = [("crates/checker/vm/guide/start.md", "examples/downstream")];

/// What these files name and the repository has not, and what lies at the top and should not.
pub fn faults(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut found = records(root)?;
    let read =
        |file: &str| fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"));
    for file in FILES {
        found.extend(missing_files(&read(file)?, root).into_iter().map(|what| format!("{file}: {what}")));
    }
    let manifest: toml::Table = read("Cargo.toml")?.parse()?;
    let version = manifest["workspace"]["package"]["rust-version"].as_str().context("no Rust version")?;
    for file in FILES.iter().chain(&RUST_VERSION) {
        let others = other_versions(&read(file)?, version);
        found.extend(
            others.into_iter().map(|other| format!("{file}: Rust {other}, but Cargo.toml has {version}")),
        );
    }
    let facade: toml::Table = read("crates/faces/ulocks/Cargo.toml")?.parse()?;
    let features = facade["features"].as_table().context("the facade has features")?;
    let features: BTreeSet<&str> = features.keys().map(String::as_str).collect();
    found.extend(wrong_features(&read("README.md")?, &features));
    for (page, folder) in PRINTED {
        let blocks = printed(&read(page)?);
        anyhow::ensure!(!blocks.is_empty(), "{page} prints nothing of {folder}");
        for (file, block) in blocks {
            let path = format!("{folder}/{file}");
            if read(&path)? != block {
                found.push(format!("{page}: the block of {file} is not {path}: copy the file into it"));
            }
        }
    }
    Ok(found)
}

/// Features that the table of the README has and the manifest has not, or the other way round.
fn wrong_features(readme: &str, features: &BTreeSet<&str>) -> Vec<String> {
    let (_, section) = readme.split_once("\n## Crate features\n").unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let cells = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let listed: BTreeSet<&str> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let wrong = listed.symmetric_difference(features);
    wrong.map(|name| format!("README.md: the table of features and Cargo.toml differ in `{name}`")).collect()
}

/// The blocks of a page that begin with the path of a Rust file in a comment: the path, and the
/// rest.
fn printed(page: &str) -> Vec<(String, String)> {
    let blocks = page.split("\n```").skip(1).step_by(2);
    let named = blocks.filter_map(|block| {
        let (_, text) = block.split_once('\n')?;
        let (path, text) = text.strip_prefix("// ")?.split_once('\n')?;
        path.ends_with(".rs").then(|| (path.to_owned(), format!("{text}\n")))
    });
    named.collect()
}

/// The Rust versions in a text that are not `version`.
fn other_versions(text: &str, version: &str) -> Vec<String> {
    let after = |mark: &'static str| text.match_indices(mark).map(move |(at, _)| &text[at + mark.len()..]);
    let named = ["Rust ", "rust-", "rust-version = \""].into_iter().flat_map(after).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest[..end].trim_end_matches('.')
    });
    named.filter(|named| !named.is_empty() && *named != version).map(str::to_owned).collect()
}

fn records(root: &Path) -> anyhow::Result<Vec<String>> {
    let names = fs::read_dir(root)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let names = names.collect::<anyhow::Result<Vec<_>>>()?;
    let records = names.iter().filter(|name| name.ends_with(".jsonl"));
    Ok(records
        .map(|name| format!("{name}: a record at the top level: move it below what writes it"))
        .collect())
}

fn missing_files(text: &str, root: &Path) -> Vec<String> {
    let is_path = |span: &&str| {
        let plain = span.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
        plain && span.split_once('/').is_some_and(|(first, _)| root.join(first).is_dir())
    };
    let paths = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).filter(is_path);
    // What is built is not there yet, and NAME stands for any name.
    let is_named = |path: &&str| !path.starts_with("target") && !path.contains("NAME");
    let missing = paths.filter(is_named).filter(|path| !root.join(path).exists());
    missing.map(|path| format!("`{path}` does not exist")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_gone_is_found() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let text =
            "`xtask/src/main.rs`, `xtask/src/none.rs`, `target/x`, `xtask/NAME` and `no/path`, `a | b`";
        assert_eq!(missing_files(text, root), ["`xtask/src/none.rs` does not exist"]);
    }

    #[test]
    fn another_rust_version_is_found() {
        let text = "![Rust 1.95+](badge/rust-1.95%2B-blue) Rust 1.96. Rust has no other rust-like\nrust-version = \"1.85\"";
        assert_eq!(other_versions(text, "1.95"), ["1.96", "1.85"]);
        assert!(other_versions("Rust 1.95; a release. Rust.", "1.95").is_empty());
    }

    #[test]
    fn the_sources_that_a_page_prints_are_found() {
        let page = "a\n```rust,ignore\n// src/lib.rs\nfn f() {}\n```\nb\n```toml\n# Cargo.toml\n```\n";
        assert_eq!(printed(page), [("src/lib.rs".to_owned(), "fn f() {}\n".to_owned())]);
    }

    #[test]
    fn a_feature_without_a_row_is_found() {
        let readme = "\n## Crate features\n\n| feature | gives |\n|---|---|\n| `a`, `b` | with `--cfg c` |\n\n## More\n| `d` |\n";
        assert!(wrong_features(readme, &BTreeSet::from(["a", "b"])).is_empty());
        let wrong = wrong_features(readme, &BTreeSet::from(["b", "e"]));
        assert_eq!(wrong.len(), 2);
        assert!(wrong[0].ends_with("`a`") && wrong[1].ends_with("`e`"), "{wrong:?}");
    }

    #[test]
    fn a_record_at_the_top_is_found() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("below")).unwrap();
        for file in ["a.jsonl", "b.json", "below/c.jsonl"] {
            fs::write(dir.path().join(file), "").unwrap();
        }
        let found = records(dir.path()).unwrap();
        assert_eq!(found, ["a.jsonl: a record at the top level: move it below what writes it"]);
    }
}
