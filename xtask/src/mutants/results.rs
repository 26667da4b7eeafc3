//! The verdicts of earlier runs, with which an interrupted audit resumes where it stopped.
//!
//! `results.jsonl` has a line for each verdict, with a hash of the mutant and of the tokens of all
//! sources that its tests are built from. A line counts as long as this hash does not change. So a
//! changed comment makes no test run again.
//!
//! The line of a mutant also has the hash of its file's code. By that one `cargo xtask verify`
//! keeps verdicts in `verification.jsonl` (`standing.rs`).

use super::source;
use super::verdict::Verdict;
use crate::code;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;
use xtask::workspace::{Package, Workspace, files_below};

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The mutant and the tests.
    pub key: String,
    /// The hash of both.
    pub hash: u64,
    /// The verdict.
    pub verdict: Verdict,
    /// How long the tests ran.
    pub took: Duration,
    /// The test that failed.
    #[serde(default)]
    pub by: Option<String>,
    /// After how many executions.
    #[serde(default)]
    pub executions: Option<u64>,
    /// The hash of the code of a mutant's file, and for a planted bug of its specification.
    #[serde(default)]
    pub code: Option<String>,
}

/// The file of the records.
pub struct Results {
    known: BTreeMap<(String, u64), Record>,
    /// By the key and the hash of a file's code, the last of each.
    of_code: BTreeMap<(String, String), Record>,
    file: Mutex<File>,
}

impl Results {
    /// Reads the file at `path`. A line that an interrupted run has cut off is no record.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).unwrap_or_default();
        let records = text.lines().filter_map(|line| serde_json::from_str::<Record>(line).ok());
        let (mut known, mut of_code) = (BTreeMap::new(), BTreeMap::new());
        for record in records {
            if let Some(code) = &record.code {
                of_code.insert((record.key.clone(), code.clone()), record.clone());
            }
            known.insert((record.key.clone(), record.hash), record);
        }
        let mut file = File::options().create(true).append(true).open(path)?;
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n")?;
        }
        Ok(Self { known, of_code, file: Mutex::new(file) })
    }

    /// The record of `key`, if nothing has changed since.
    pub fn find(&self, key: &str, hash: u64) -> Option<&Record> {
        self.known.get(&(key.to_owned(), hash))
    }

    /// The last record of `key` while the file of the mutant had this code.
    pub fn find_of_code(&self, key: &str, code: &str) -> Option<&Record> {
        self.of_code.get(&(key.to_owned(), code.to_owned()))
    }

    /// Adds `record` to the file.
    pub fn add(&self, record: &Record) -> anyhow::Result<()> {
        let line = serde_json::to_string(record)? + "\n";
        Ok(self.file.lock().unwrap().write_all(line.as_bytes())?)
    }
}

/// The hashes of packages, with what they are built from.
pub struct Hashes<'a> {
    workspace: &'a Workspace,
    own: BTreeMap<&'a str, u64>,
}

impl<'a> Hashes<'a> {
    /// Reads the sources of all packages.
    pub fn new(workspace: &'a Workspace) -> anyhow::Result<Self> {
        let mut own = BTreeMap::new();
        for package in &workspace.packages {
            own.insert(package.name.as_str(), of_sources(package)?);
        }
        Ok(Self { workspace, own })
    }

    /// Whether the sources are still what they were.
    pub fn hold(&self) -> anyhow::Result<bool> {
        Ok(Self::new(self.workspace)?.own == self.own)
    }

    /// The hash of `more`, of the sources of `package`, and of the packages that it depends on.
    /// Development dependencies are built for its own tests only.
    pub fn of(&self, package: &str, more: impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        more.hash(&mut hasher);
        let takes = |from: &Package, other: &Package| match from.name == package {
            true => from.depends_on(&other.name),
            false => from.needs(&other.name),
        };
        let package = self.workspace.packages.iter().find(|known| known.name == package);
        for name in package.iter().flat_map(|package| self.workspace.reached(package, takes)) {
            (name, self.own[name]).hash(&mut hasher);
        }
        hasher.finish()
    }
}

fn of_sources(package: &Package) -> anyhow::Result<u64> {
    let mut paths = vec![package.dir.join("Cargo.toml")];
    paths.extend(Some(package.dir.join("build.rs")).filter(|build| build.is_file()));
    for dir in ["src", "tests"].map(|dir| package.dir.join(dir)).iter().filter(|dir| dir.is_dir()) {
        paths.extend(files_below(dir)?);
    }
    let mut hasher = DefaultHasher::new();
    for path in paths {
        path.strip_prefix(&package.dir)?.hash(&mut hasher);
        let content = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        let tokens = std::str::from_utf8(&content).ok().filter(|_| is_source).map(source::tokens);
        match tokens {
            Some(Ok(tokens)) => code::hash_tokens(tokens, true, &mut hasher),
            _ => content.hash(&mut hasher),
        }
    }
    Ok(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask::workspace::Manifest;

    fn record(key: &str, hash: u64) -> Record {
        let took = Duration::from_millis(1500);
        Record {
            key: key.into(),
            hash,
            verdict: Verdict::Caught,
            took,
            by: None,
            executions: Some(7),
            code: None,
        }
    }

    #[test]
    fn a_record_is_found_by_the_next_run_unless_its_hash_has_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results");
        let first = Results::open(&path).unwrap();
        assert_eq!(first.find("a", 1), None);
        first.add(&record("a", 1)).unwrap();
        File::options().append(true).open(&path).unwrap().write_all(b"{\"key\": \"cut").unwrap();

        let second = Results::open(&path).unwrap();
        assert_eq!(second.find("a", 1), Some(&record("a", 1)));
        assert_eq!(second.find("a", 2), None);
        second.add(&record("b", 3)).unwrap();
        let third = Results::open(&path).unwrap();
        assert_eq!(third.find("a", 1), Some(&record("a", 1)), "the cut line costs nothing else");
        assert_eq!(third.find("b", 3), Some(&record("b", 3)));
    }

    #[test]
    fn a_hash_covers_what_the_package_depends_on_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let package = |name: &str, manifest: &str| {
            fs::create_dir_all(dir.path().join(name).join("src/deep")).unwrap();
            fs::write(dir.path().join(name).join("Cargo.toml"), manifest).unwrap();
            fs::write(dir.path().join(name).join("src/deep/x.rs"), "fn x() {}").unwrap();
            Package {
                name: name.into(),
                manifest: Manifest::parse(manifest).unwrap(),
                dir: dir.path().join(name),
            }
        };
        let packages = vec![
            package("a", "[dev-dependencies]\nb.workspace = true\n"),
            package("b", "[dev-dependencies]\nc.workspace = true\n"),
            package("c", ""),
        ];
        let workspace = Workspace { root: dir.path().to_owned(), packages };
        let hash = || Hashes::new(&workspace).unwrap().of("a", "mutant");
        let before = hash();
        assert_ne!(Hashes::new(&workspace).unwrap().of("a", "other"), before);
        fs::write(dir.path().join("c/src/deep/x.rs"), "fn y() {}").unwrap();
        assert_eq!(hash(), before);
        let begun = Hashes::new(&workspace).unwrap();
        assert!(begun.hold().unwrap());
        fs::write(dir.path().join("b/src/deep/x.rs"), "fn y() {}").unwrap();
        let changed = hash();
        assert_ne!(changed, before);
        assert!(!begun.hold().unwrap(), "a source has changed meanwhile");
        fs::write(dir.path().join("b/build.rs"), "fn main() {}").unwrap();
        assert_ne!(hash(), changed);
    }
}
