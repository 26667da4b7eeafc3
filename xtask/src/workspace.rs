//! The packages of the workspace, read from the manifests.
//!
//! Our manifests are simple, so a scanner of sections and `key = value` lines is enough. The
//! specifications of mutants contain source text, so a TOML parser reads them (`mutants/spec.rs`).

use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The repository.
pub struct Workspace {
    /// Where the root manifest is.
    pub root: PathBuf,
    /// Its members, in the order of their directories.
    pub packages: Vec<Package>,
}

/// A member.
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its directory.
    pub dir: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
}

impl Workspace {
    /// Reads the root manifest and the manifests of all members.
    pub fn load() -> anyhow::Result<Self> {
        // The value at run time comes first: two checkouts may share a target directory, and so
        // this program.
        let here = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&here).ancestors().find(|dir| dir.join("Cargo.lock").is_file());
        let root = root.context("no Cargo.lock above this program's manifest")?.to_owned();
        let manifest = Manifest::read(&root)?;
        let members = manifest.get("workspace", "members").context("no members in the root manifest")?;
        let mut dirs = Vec::new();
        for member in strings(members) {
            match member.strip_suffix("/*") {
                Some(parent) => dirs.extend(children(&root.join(parent))?),
                None => dirs.push(root.join(member)),
            }
        }
        dirs.retain(|dir| dir.join("Cargo.toml").exists());
        dirs.sort();
        let packages = dirs.into_iter().map(Package::read).collect::<anyhow::Result<_>>()?;
        Ok(Self { root, packages })
    }

    /// Where cargo puts what it builds.
    pub fn target(&self) -> PathBuf {
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| self.root.join("target"), |dir| self.root.join(dir))
    }

    /// The names of `package` and of all packages that it reaches by `takes`.
    pub fn reached<'a>(
        &'a self,
        package: &'a Package,
        takes: impl Fn(&Package, &Package) -> bool,
    ) -> BTreeSet<&'a str> {
        let (mut reached, mut open) = (BTreeSet::new(), vec![package]);
        while let Some(package) = open.pop() {
            if reached.insert(package.name.as_str()) {
                open.extend(self.packages.iter().filter(|other| takes(package, other)));
            }
        }
        reached
    }

    /// The packages that `has` selects. If `names` is not empty, only the packages of these names.
    pub fn select(
        &self,
        names: &[String],
        what: &str,
        has: impl Fn(&Package) -> bool,
    ) -> anyhow::Result<Vec<&Package>> {
        let all: Vec<&Package> = self.packages.iter().filter(|package| has(package)).collect();
        if all.is_empty() {
            bail!("no package has {what}");
        }
        for name in names {
            if !all.iter().any(|package| package.name == *name) {
                let known: Vec<&str> = all.iter().map(|package| package.name.as_str()).collect();
                bail!(
                    "-p {name}: no package of that name has {what}; these packages have: {}",
                    known.join(", ")
                );
            }
        }
        Ok(all.into_iter().filter(|package| names.is_empty() || names.contains(&package.name)).collect())
    }
}

impl Package {
    /// The package in `dir`.
    pub fn read(dir: PathBuf) -> anyhow::Result<Self> {
        let manifest = Manifest::read(&dir)?;
        let name = manifest.get("package", "name").context("a package without a name")?;
        Ok(Self { name: unquoted(name).to_owned(), manifest, dir })
    }

    /// Whether it goes to crates.io.
    pub fn is_public(&self) -> bool {
        self.manifest.get("package", "publish") != Some("false")
    }

    /// Whether it has the feature `name`.
    pub fn has_feature(&self, name: &str) -> bool {
        self.manifest.get("features", name).is_some()
    }

    /// Its features, except for those of the model worlds.
    pub fn features_on_the_machine(&self) -> impl Iterator<Item = &str> {
        let sections = self.manifest.sections.iter().filter(|section| section.name == "features");
        let names = sections.flat_map(|section| &section.entries).map(|(key, _)| key.as_str());
        names.filter(|name| !["loom", "vm"].contains(name))
    }

    /// Whether one of its dependencies is `name`.
    pub fn depends_on(&self, name: &str) -> bool {
        let of_dependencies =
            self.manifest.sections.iter().filter(|section| section.name.ends_with("dependencies"));
        let mut keys = of_dependencies.flat_map(|section| &section.entries).map(|(key, _)| key);
        keys.any(|key| key.split('.').next() == Some(name))
    }

    /// Whether `name` is one of its dependencies, other than a development dependency.
    pub fn needs(&self, name: &str) -> bool {
        let of_dependencies = self.manifest.sections.iter().filter(|section| {
            section.name.ends_with("dependencies") && !section.name.ends_with("dev-dependencies")
        });
        let mut keys = of_dependencies.flat_map(|section| &section.entries).map(|(key, _)| key);
        keys.any(|key| key.split('.').next() == Some(name))
    }

    /// What its manifest says of the code that is built: features, and dependencies other than
    /// development dependencies, without comments.
    pub fn build_settings(&self) -> impl Iterator<Item = (&str, &[(String, String)])> {
        let sections = self.manifest.sections.iter().filter(|section| {
            let is_of_tests = section.name.contains("dev-dependencies");
            section.name == "features" || section.name.contains("dependencies") && !is_of_tests
        });
        sections.map(|section| (section.name.as_str(), section.entries.as_slice()))
    }

    /// The names of the integration tests that begin with `prefix`.
    pub fn tests(&self, prefix: &str) -> Vec<String> {
        let mut names = targets(&self.dir.join("tests"));
        names.retain(|name| name.starts_with(prefix));
        names
    }

    /// The names of its programs.
    pub fn bins(&self) -> Vec<String> {
        let mut found = targets(&self.dir.join("src/bin"));
        if self.dir.join("src/main.rs").exists() {
            found.push(self.name.clone());
        }
        self.manifest.target_names("bin", found)
    }

    /// The names of its examples.
    pub fn examples(&self) -> Vec<String> {
        self.manifest.target_names("example", targets(&self.dir.join("examples")))
    }
}

/// `-p NAME` for each of `packages`.
pub fn dash_p(packages: &[&Package]) -> Vec<String> {
    packages.iter().flat_map(|package| ["-p".to_owned(), package.name.clone()]).collect()
}

/// The name that stands for the unit tests of a package where a test target is named.
pub const LIB: &str = "lib";

/// The features that add a lock.
pub const LOCKS: [&str; 1] = ["parking_lot"];

/// `--features NAME/FEATURE,..` for each of `features` that each of `packages` has.
pub fn features(packages: &[&Package], features: &[&str]) -> Vec<String> {
    let all = packages.iter().flat_map(|package| features.iter().map(move |feature| (package, feature)));
    let named: Vec<String> = all
        .filter(|(package, feature)| package.has_feature(feature))
        .map(|(package, feature)| format!("{}/{feature}", package.name))
        .collect();
    if named.is_empty() { Vec::new() } else { vec!["--features".to_owned(), named.join(",")] }
}

/// The targets that cargo finds in `dir` by itself: `NAME.rs` and `NAME/main.rs`.
pub fn targets(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = children(dir)
        .unwrap_or_default()
        .into_iter()
        .filter(|path| path.extension() == Some(OsStr::new("rs")) || path.join("main.rs").exists())
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    names
}

/// All files below `dir`, which may be one, in the order of their paths, without what is built.
pub fn files_below(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let (mut found, mut open) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(path) = open.pop() {
        if !path.is_dir() {
            found.push(path);
        } else if path.file_name() != Some(OsStr::new("target")) {
            open.extend(children(&path)?);
        }
    }
    found.sort();
    Ok(found)
}

/// The Rust sources below `dir`.
pub fn sources(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = files_below(dir)?;
    found.retain(|path| path.extension() == Some(OsStr::new("rs")));
    Ok(found)
}

fn children(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    Ok(entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?)
}

/// A manifest as sections of `key = value` lines.
#[derive(Default)]
pub struct Manifest {
    /// In their order. Each entry of an array of tables (`[[bin]]`) is a section.
    pub sections: Vec<Section>,
}

/// A section: its header without brackets, and its lines.
#[derive(Default)]
pub struct Section {
    /// `package`, `bin`, `workspace.dependencies`, ..
    pub name: String,
    /// Its keys and their values, as written.
    pub entries: Vec<(String, String)>,
}

impl Manifest {
    /// Reads the manifest in `dir`.
    pub fn read(dir: &Path) -> anyhow::Result<Self> {
        let path = dir.join("Cargo.toml");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self::parse(&text))
    }

    /// Reads sections and entries. A value ends where its brackets are closed.
    pub fn parse(text: &str) -> Self {
        let mut sections = vec![Section::default()];
        let mut open: Option<(String, String)> = None;
        for line in text.lines().map(|line| without_comment(line).trim()) {
            let section = sections.last_mut().expect("there is always one");
            let (key, value) = match open.take() {
                Some((key, value)) => (key, value + line),
                None if line.starts_with('[') => {
                    let name = line.trim_matches(['[', ']']).to_owned();
                    sections.push(Section { name, entries: Vec::new() });
                    continue;
                }
                None => match line.split_once('=') {
                    Some((key, value)) => (key.trim().to_owned(), value.trim().to_owned()),
                    None => continue,
                },
            };
            if value.matches('[').count() > value.matches(']').count() {
                open = Some((key, value));
            } else {
                section.entries.push((key, value));
            }
        }
        Self { sections }
    }

    /// The first value of `key` in a section called `section`.
    pub fn get(&self, section: &str, key: &str) -> Option<&str> {
        self.sections.iter().filter(|s| s.name == section).find_map(|s| s.get(key))
    }

    /// The targets of a kind: the targets `found` in its directory, and the targets that are only
    /// declared in the manifest.
    pub fn target_names(&self, kind: &str, mut found: Vec<String>) -> Vec<String> {
        let declared = self.sections.iter().filter(|section| section.name == kind);
        found
            .extend(declared.filter_map(|section| section.get("name")).map(|name| unquoted(name).to_owned()));
        found.sort();
        found.dedup();
        found
    }
}

impl Section {
    /// The value of `key`, as written.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.entries.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }
}

/// A string value without its quotes.
pub fn unquoted(value: &str) -> &str {
    value.trim_matches('"')
}

fn strings(array: &str) -> Vec<&str> {
    array.split('"').skip(1).step_by(2).collect()
}

fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    for (at, c) in line.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '#' if !quoted => return &line[..at],
            _ => {}
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_are_read_as_sections_and_values() {
        let manifest = Manifest::parse(
            "[package]\nname = \"a#b\" # not a comment inside\nversion.workspace = true\n\n[[bin]]\nname = \"x\"\n\
             [[bin]]\nname = \"y\"\nbench = false\n[workspace]\nmembers = [\n  \"crates/*\", # all\n  \"xtask\",\n]\n",
        );
        assert_eq!(manifest.get("package", "name"), Some("\"a#b\""));
        assert_eq!(manifest.get("package", "version.workspace"), Some("true"));
        assert_eq!(manifest.sections.iter().filter(|s| s.name == "bin").count(), 2);
        assert_eq!(manifest.get("bin", "bench"), Some("false"));
        assert_eq!(manifest.target_names("bin", vec!["z".into(), "x".into()]), ["x", "y", "z"]);
        assert_eq!(strings(manifest.get("workspace", "members").unwrap()), ["crates/*", "xtask"]);
        assert_eq!(manifest.get("package", "publish"), None);
    }

    #[test]
    fn this_workspace_has_its_members() {
        let workspace = Workspace::load().unwrap();
        let names: Vec<&str> = workspace.packages.iter().map(|package| package.name.as_str()).collect();
        for name in ["ulocks-core", "ulocks", "ulocks-benches", "xtask"] {
            assert!(names.contains(&name), "{name} is not among {names:?}");
        }
        let xtask = workspace.packages.iter().find(|package| package.name == "xtask").unwrap();
        assert!(!xtask.is_public());
    }

    #[test]
    fn features_are_asked_for_where_they_are() {
        let workspace = Workspace::load().unwrap();
        let names = ["ulocks-testkit".to_owned(), "ulocks-unfair".to_owned()];
        let packages = workspace.select(&names, "a manifest", |_| true).unwrap();
        let asked = "ulocks-unfair/vm,ulocks-unfair/parking_lot,ulocks-testkit/vm";
        assert_eq!(features(&packages, &["vm", "parking_lot"]), ["--features", asked]);
        assert_eq!(features(&packages, &["no-such-feature"]), [""; 0]);
    }

    #[test]
    fn an_unknown_package_is_answered_with_the_known_ones() {
        let workspace = Workspace::load().unwrap();
        let select = |name: &str| workspace.select(&[name.to_owned()], "a manifest", |p| p.name == "xtask");
        assert_eq!(select("xtask").map(|packages| packages.len()).ok(), Some(1));
        let error = select("xtusk").map(|_| ()).unwrap_err().to_string();
        assert_eq!(error, "-p xtusk: no package of that name has a manifest; these packages have: xtask");
    }
}
