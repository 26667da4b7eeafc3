//! The packages of the workspace, read from the manifests.

use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{env, fs};
use toml::{Table, Value};

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
        Self::read(root.context("no Cargo.lock above this program's manifest")?.to_owned())
    }

    /// Reads the manifest in `root` and the manifests of all members.
    pub fn read(root: PathBuf) -> anyhow::Result<Self> {
        let manifest = Manifest::read(&root)?;
        let members = manifest.get("workspace", "members").context("no members in the root manifest")?;
        let mut dirs = Vec::new();
        for member in members.as_array().into_iter().flatten().filter_map(Value::as_str) {
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
        Ok(Self { name: name.as_str().context("a name that is no text")?.to_owned(), manifest, dir })
    }

    /// Whether it goes to crates.io.
    pub fn is_public(&self) -> bool {
        self.manifest.get("package", "publish").and_then(Value::as_bool) != Some(false)
    }

    /// Whether it has the feature `name`.
    pub fn has_feature(&self, name: &str) -> bool {
        self.manifest.get("features", name).is_some()
    }

    /// Its features, except for those of the model worlds.
    pub fn features_on_the_machine(&self) -> impl Iterator<Item = &str> {
        let names = self.manifest.table("features").into_iter().flatten();
        names.map(|(name, _)| name.as_str()).filter(|name| !["loom", "vm"].contains(name))
    }

    /// Whether one of its dependencies is `name`.
    pub fn depends_on(&self, name: &str) -> bool {
        self.manifest.dependencies().any(|dependency| dependency.name == name)
    }

    /// Whether `name` is one of its dependencies, other than a development dependency.
    pub fn needs(&self, name: &str) -> bool {
        self.manifest.dependencies().any(|dependency| dependency.name == name && !dependency.is_of_tests)
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

/// A manifest.
#[derive(Default)]
pub struct Manifest(Table);

/// A dependency.
pub struct Dependency<'a> {
    /// The table that it is in, with the target: `cfg(unix) dev-dependencies`.
    pub table: String,
    /// Its name, as code writes it.
    pub name: &'a str,
    /// How it is declared.
    pub value: &'a Value,
    /// Whether it is a development dependency.
    pub is_of_tests: bool,
}

impl Manifest {
    /// Reads the manifest in `dir`.
    pub fn read(dir: &Path) -> anyhow::Result<Self> {
        let path = dir.join("Cargo.toml");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    /// The manifest with this text.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        Ok(Self(text.parse()?))
    }

    /// The value of `key` in the table `section`.
    pub fn get(&self, section: &str, key: &str) -> Option<&Value> {
        self.0.get(section)?.get(key)
    }

    /// The table `name`.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.0.get(name)?.as_table()
    }

    /// All dependencies, those of single targets too.
    pub fn dependencies(&self) -> impl Iterator<Item = Dependency<'_>> {
        let of_targets = self.table("target").into_iter().flatten();
        let of_targets = of_targets.filter_map(|(target, table)| Some((target.as_str(), table.as_table()?)));
        [("", &self.0)].into_iter().chain(of_targets).flat_map(|(target, tables)| {
            let tables = tables.iter().filter(|(name, _)| name.ends_with("dependencies"));
            tables.flat_map(move |(table, entries)| {
                let is_of_tests = table == "dev-dependencies";
                let table = format!("{target} {table}");
                let entries = entries.as_table().into_iter().flatten();
                entries.map(move |(name, value)| Dependency {
                    table: table.clone(),
                    name,
                    value,
                    is_of_tests,
                })
            })
        })
    }

    /// The targets of a kind that are declared: `[[bin]]`.
    pub fn declared(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.0.get(kind).and_then(Value::as_array).into_iter().flatten()
    }

    /// The targets of a kind: the targets `found` in its directory, and those that are only
    /// declared.
    pub fn target_names(&self, kind: &str, mut found: Vec<String>) -> Vec<String> {
        let declared = self.declared(kind).filter_map(|target| target.get("name")?.as_str());
        found.extend(declared.map(str::to_owned));
        found.sort();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_and_targets_are_read_from_all_tables() {
        let text = "[dependencies]\na.workspace = true\n[target.'cfg(x)'.dev-dependencies]\nb = \"1\"\n\
                    [[bin]]\nname = \"x\"\n[[bin]]\nname = \"y\"\nbench = false\n[lib]\nbench = false\n";
        let manifest = Manifest::parse(text).unwrap();
        let all: Vec<_> = manifest.dependencies().map(|one| (one.name, one.is_of_tests, one.table)).collect();
        let tables = [" dependencies", "cfg(x) dev-dependencies"].map(str::to_owned);
        let [a, b] = tables;
        assert_eq!(all, [("a", false, a), ("b", true, b)]);
        assert_eq!(manifest.target_names("bin", vec!["z".into(), "x".into()]), ["x", "y", "z"]);
        assert_eq!(manifest.get("lib", "bench"), Some(&Value::Boolean(false)));
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
