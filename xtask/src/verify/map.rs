//! Which tests check which property of which lock: `crates/*/checks.toml`.
//!
//! ```toml
//! [[lock]]
//! name = "unfair::BargingMutex"
//! mutants = ["barging.toml"]
//!
//! [lock.exclusion]
//! vm = ["barging::at_most_one_is_inside"]
//! stress = ["barging::excludes", "shared/barging::processes_exclude_one_another"]
//!
//! [lock.order]
//! not = "a barging lock promises no order"
//! ```
//!
//! A property has tests for each tool, or `not`, the reason why it does not apply. It has both if
//! the tests check only a part of it. `mutants` names the files that plant bugs in this lock: files
//! of the crate's folder `mutants`, or of another crate's, as `core/condvar.toml`. `*` stands for
//! all files of the crate.
//!
//! A test has the name that libtest prints. If its target does not have the name of the tool, the
//! target stands before it: `TARGET/TEST`. `PACKAGE TARGET/TEST` is a test of another package.
//! `PART*` stands for all tests whose names begin with `PART`. The tool tsan is never named, since
//! it runs the tests of `stress*`.

use crate::mutants::spec::Mutant;
use anyhow::Context;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use xtask::scan;
use xtask::workspace::Workspace;

/// The properties, as the map and the table name them.
pub const PROPERTIES: [(&str, &str); 11] = [
    ("exclusion", "exclusion"),
    ("wake-up", "no lost wake-up"),
    ("order", "order"),
    ("bound", "bound"),
    ("timeout", "timeout and cancel"),
    ("last-touch", "last touch"),
    ("sifting", "sifting"),
    ("all-or-nothing", "all or nothing"),
    ("death", "death at each step"),
    ("signals", "signals"),
    ("fork", "fork"),
];

/// Every lock needs a check or a reason for each of these properties. One of `order` and `bound` is
/// enough.
const NEEDED: [&[&str]; 5] =
    [&["exclusion"], &["wake-up"], &["order", "bound"], &["timeout"], &["last-touch"]];

/// What runs a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// The models under loom.
    Loom,
    /// The models on the virtual machine.
    Vm,
    /// Miri.
    Miri,
    /// The stress tests under ThreadSanitizer.
    Tsan,
    /// The real code on the real kernel.
    Stress,
    /// A comparison with the same operation of the kernel, with a sequential model, or with the
    /// machine code of another build.
    Differential,
    /// libFuzzer.
    Fuzz,
}

impl Tool {
    /// All tools, as the columns of the table.
    pub const ALL: [Self; 7] =
        [Self::Loom, Self::Vm, Self::Miri, Self::Tsan, Self::Stress, Self::Differential, Self::Fuzz];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loom => "loom",
            Self::Vm => "vm",
            Self::Miri => "miri",
            Self::Tsan => "tsan",
            Self::Stress => "stress",
            Self::Differential => "differential",
            Self::Fuzz => "fuzz",
        }
    }

    /// The tool of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// The world in which mutants are planted for it. Miri, ThreadSanitizer and libFuzzer run
    /// without mutants.
    pub fn world(self) -> Option<&'static str> {
        match self {
            Self::Loom => Some("loom"),
            Self::Vm => Some("vm"),
            Self::Stress | Self::Differential => Some("native"),
            Self::Miri | Self::Tsan | Self::Fuzz => None,
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A test, and what runs it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Check {
    /// What runs it.
    pub tool: Tool,
    /// The package.
    pub package: String,
    /// The target, `tests/NAME.rs` or `tests/NAME/main.rs`; a fuzz target has no package and no
    /// test.
    pub target: String,
    /// Its name in the target.
    pub test: String,
}

/// The checks of one property.
#[derive(Debug, Default)]
pub struct Checked {
    /// The tests.
    pub tests: BTreeMap<Tool, Vec<Check>>,
    /// Why the property does not apply, or not in full.
    pub not: Option<String>,
}

/// A lock and its checks.
#[derive(Debug)]
pub struct Lock {
    /// Its name, as users write it.
    pub name: String,
    /// The files that specify its mutants, relative to the workspace.
    pub mutants: Vec<String>,
    /// Its properties, in the order of [`PROPERTIES`].
    pub properties: Vec<Checked>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    lock: Vec<toml::Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default)]
    loom: Vec<String>,
    #[serde(default)]
    vm: Vec<String>,
    #[serde(default)]
    miri: Vec<String>,
    #[serde(default)]
    stress: Vec<String>,
    #[serde(default)]
    differential: Vec<String>,
    #[serde(default)]
    fuzz: Vec<String>,
    not: Option<String>,
}

/// All locks of the workspace, and what is wrong with the maps, as `file: what`.
pub fn load(workspace: &Workspace) -> anyhow::Result<(Vec<Lock>, Vec<String>)> {
    let (mut locks, mut faults) = (Vec::<Lock>::new(), Vec::new());
    for package in &workspace.packages {
        let path = package.dir.join("checks.toml");
        if path.exists() {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let file = path.strip_prefix(&workspace.root).unwrap_or(&path).display().to_string();
            let (found, wrong) = parse(&text, &package.name, workspace);
            locks.extend(found);
            faults.extend(wrong.into_iter().map(|what| format!("{file}: {what}")));
        }
    }
    let mut names = BTreeSet::new();
    let twice = locks.iter().filter(|lock| !names.insert(&lock.name));
    faults.extend(twice.map(|lock| format!("lock `{}`: the name occurs twice", lock.name)));
    Ok((locks, faults))
}

/// The locks of one map, and what is wrong with it.
pub fn parse(text: &str, package: &str, workspace: &Workspace) -> (Vec<Lock>, Vec<String>) {
    let tables = match toml::from_str::<File>(text) {
        Ok(file) => file.lock,
        Err(error) => return (Vec::new(), vec![error.to_string()]),
    };
    let mut reader = Reader { workspace, package, faults: Vec::new() };
    let locks = (1..).zip(tables).map(|(nth, table)| reader.lock(nth, table)).collect();
    (locks, reader.faults)
}

struct Reader<'a> {
    workspace: &'a Workspace,
    package: &'a str,
    faults: Vec<String>,
}

impl Reader<'_> {
    fn lock(&mut self, nth: usize, mut table: toml::Table) -> Lock {
        let name = match table.remove("name") {
            Some(toml::Value::String(name)) => name,
            _ => {
                self.faults.push(format!("lock number {nth}: no `name`"));
                format!("number {nth}")
            }
        };
        let known = self.faults.len();
        let mutants = table.remove("mutants").map_or_else(Vec::new, |files| self.mutants(files));
        let mut properties = Vec::new();
        for (key, _) in PROPERTIES {
            properties.push(table.remove(key).map_or_else(Checked::default, |entry| self.entry(key, entry)));
        }
        for key in table.keys() {
            let all = PROPERTIES.map(|(key, _)| key).join(", ");
            self.faults.push(format!("no property `{key}`: take one of {all}"));
        }
        for keys in NEEDED {
            let has = |key: &&str| {
                let nth = PROPERTIES.iter().position(|(other, _)| other == key).expect("a known key");
                !properties[nth].tests.is_empty() || properties[nth].not.is_some()
            };
            if !keys.iter().any(has) {
                let keys = keys.join(" or ");
                self.faults.push(format!("no test checks {keys}: name a test, or give the reason as `not`"));
            }
        }
        for fault in &mut self.faults[known..] {
            *fault = format!("lock `{name}`: {fault}");
        }
        Lock { name, mutants, properties }
    }

    /// The paths of the files that specify mutants.
    fn mutants(&mut self, files: toml::Value) -> Vec<String> {
        let files: Vec<String> = match files.try_into() {
            Ok(files) => files,
            Err(error) => {
                self.faults.push(format!("mutants: {}", error.to_string().trim()));
                return Vec::new();
            }
        };
        let own = self.package.trim_start_matches("ulocks-");
        let mut paths = Vec::new();
        for file in files {
            let (krate, file) = file.split_once('/').unwrap_or((own, &file));
            let path = format!("{}/mutants/{file}", self.dir_of(krate));
            if file == "*" {
                paths.extend(self.all_mutants(krate));
                continue;
            }
            if !self.workspace.root.join(&path).is_file() {
                self.faults.push(format!("mutants: there is no {path}"));
            }
            paths.push(path);
        }
        paths
    }

    /// All files that specify mutants of the crate.
    fn all_mutants(&self, krate: &str) -> Vec<String> {
        let dir = format!("{}/mutants", self.dir_of(krate));
        let files = fs::read_dir(self.workspace.root.join(&dir));
        let names = files.into_iter().flatten().flatten().map(|entry| entry.file_name());
        names.map(|name| format!("{dir}/{}", name.to_string_lossy())).collect()
    }

    /// The directory of the package `ulocks-KRATE`, from the root.
    fn dir_of(&self, krate: &str) -> String {
        let name = format!("ulocks-{krate}");
        let package = self.workspace.packages.iter().find(|package| package.name == name);
        let dir = package.and_then(|package| package.dir.strip_prefix(&self.workspace.root).ok());
        dir.map_or_else(|| format!("crates/{krate}"), |dir| dir.display().to_string())
    }

    fn entry(&mut self, property: &str, entry: toml::Value) -> Checked {
        let entry: Entry = match entry.try_into() {
            Ok(entry) => entry,
            Err(error) => {
                self.faults.push(format!("{property}: {}", error.to_string().trim().replace('\n', ", ")));
                return Checked::default();
            }
        };
        let Entry { loom, vm, miri, stress, differential, fuzz, not } = entry;
        let named = [
            (Tool::Loom, loom),
            (Tool::Vm, vm),
            (Tool::Miri, miri),
            (Tool::Stress, stress),
            (Tool::Differential, differential),
            (Tool::Fuzz, fuzz),
        ];
        let mut tests = BTreeMap::new();
        for (tool, names) in named {
            let mut checks = Vec::new();
            for name in names {
                match self.checks(tool, &name) {
                    Ok(found) => checks.extend(found),
                    Err(fault) => self.faults.push(format!("{property}: {tool}: {fault}")),
                }
            }
            if !checks.is_empty() {
                tests.insert(tool, checks);
            }
        }
        let stress = tests.get(&Tool::Stress).into_iter().flatten();
        let instrumented: Vec<_> = stress
            .filter(|check| check.target.starts_with("stress"))
            .map(|check| Check { tool: Tool::Tsan, ..check.clone() })
            .collect();
        if !instrumented.is_empty() {
            tests.insert(Tool::Tsan, instrumented);
        }
        if not.as_deref().is_some_and(|not| not.trim().is_empty()) {
            self.faults.push(format!("{property}: `not` is empty: give the reason"));
        }
        Checked { tests, not }
    }

    /// The tests that `name` stands for.
    fn checks(&self, tool: Tool, name: &str) -> Result<Vec<Check>, String> {
        if tool == Tool::Fuzz {
            let path = format!("fuzz/fuzz_targets/{name}.rs");
            let (package, test) = (String::new(), String::new());
            return match self.workspace.root.join(&path).is_file() {
                true => Ok(vec![Check { tool, package, target: name.to_owned(), test }]),
                false => Err(format!("there is no {path}")),
            };
        }
        let (package, rest) = name.split_once(' ').unwrap_or((self.package, name));
        let (target, test) = rest.split_once('/').unwrap_or((tool.name(), rest));
        let found = self.workspace.packages.iter().find(|known| known.name == package);
        let found = found.ok_or_else(|| format!("no package `{package}`"))?;
        let known = scan::tests(&found.dir, target).map_err(|fault| format!("{package}: {fault}"))?;
        let check = |test: &str| Check {
            tool,
            package: package.to_owned(),
            target: target.to_owned(),
            test: test.to_owned(),
        };
        let found: Vec<_> = match test.strip_suffix('*') {
            Some(part) => {
                known.all.iter().filter(|test| test.starts_with(part)).map(|test| check(test)).collect()
            }
            None => known.has(test).then(|| check(test)).into_iter().collect(),
        };
        if found.is_empty() {
            return Err(format!("no test `{test}` in tests/{target} of {package}"));
        }
        Ok(found)
    }
}

impl Lock {
    /// The mutants among `all` that the tests `checks` must report. The filter of such a mutant
    /// selects tests of `checks` only. So one of these must fail, and no other test can report the
    /// mutant. Whether it was run is not asked here.
    pub fn shown_by<'a>(
        &self,
        checks: &[Check],
        all: &'a [Mutant],
        workspace: &Workspace,
    ) -> Vec<&'a Mutant> {
        let reports = |mutant: &&Mutant| {
            let is_own = self.mutants.contains(&mutant.spec);
            is_own
                && !mutant.sound
                && mutant.found_by.iter().any(|probe| {
                    let of_target = |check: &&Check| {
                        check.tool.world() == Some(probe.world.as_str())
                            && (&check.package, &check.target) == (&probe.package, &probe.test)
                    };
                    let own: BTreeSet<_> = checks.iter().filter(of_target).map(|check| &check.test).collect();
                    if own.is_empty() {
                        return false;
                    }
                    let mut packages = workspace.packages.iter();
                    let package = packages.find(|package| package.name == probe.package);
                    let known = package.and_then(|package| scan::tests(&package.dir, &probe.test).ok());
                    let known = known.unwrap_or_default();
                    let mut selected =
                        known.all.iter().filter(|test| test.contains(&probe.filter)).peekable();
                    selected.peek().is_some() && selected.all(|test| own.contains(test))
                })
        };
        all.iter().filter(reports).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::spec::PLANTED;

    const GOOD: &str = r#"
[[lock]]
name = "unfair::BargingMutex"
mutants = ["barging.toml", "core/condvar.toml"]
exclusion = { vm = ["barging::at_most_one_is_inside"], stress = ["barging::excludes", "shared/barging::*"] }
wake-up = { vm = ["barging::nobody_sleeps_for_ever"] }
order = { not = "no order is promised" }
timeout = { loom = ["barging::a_timeout_strands_nobody"] }
last-touch = { vm = ["barging::the_release_is_the_last_access"] }
"#;

    fn read(text: &str) -> (Vec<Lock>, Vec<String>) {
        parse(text, "ulocks-unfair", &Workspace::load().unwrap())
    }

    fn faults(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from));
        read(&GOOD.replace(from, to)).1.join("\n")
    }

    #[test]
    fn tests_are_found_by_their_names_and_stress_is_instrumented_too() {
        let (locks, wrong) = read(GOOD);
        assert_eq!(wrong, [""; 0]);
        let exclusion = &locks[0].properties[0];
        let tools: Vec<_> = exclusion.tests.keys().copied().collect();
        assert_eq!(tools, [Tool::Vm, Tool::Tsan, Tool::Stress]);
        let instrumented: Vec<_> = exclusion.tests[&Tool::Tsan].iter().map(|check| &check.target).collect();
        assert_eq!(instrumented, ["stress"], "the processes of `shared` are not");
        assert!(exclusion.tests[&Tool::Stress].len() > 2, "the star stands for several tests");
        assert_eq!(locks[0].mutants[1], "crates/core/mutants/condvar.toml");
        assert_eq!(locks[0].properties[2].not.as_deref(), Some("no order is promised"));
    }

    #[test]
    fn what_does_not_exist_is_named() {
        let fault = faults("at_most_one_is_inside", "at_most_two");
        let test = "no test `barging::at_most_two` in tests/vm of ulocks-unfair";
        assert_eq!(fault, format!("lock `unfair::BargingMutex`: exclusion: vm: {test}"));
        assert!(faults("shared/barging::*", "shared/bargings::*").contains("no test `bargings::*`"));
        assert!(faults("shared/barging", "shard/barging").contains("no tests/shard"));
        assert!(
            faults("barging.toml", "bargings.toml")
                .contains("there is no crates/locks/unfair/mutants/bargings.toml")
        );
        assert!(faults("vm = [\"barging::no", "vn = [\"barging::no").contains("unknown field `vn`"));
        assert!(faults("wake-up", "wakeup").contains("no property `wakeup`"));
        assert!(faults("name =", "nam =").contains("lock number 1: no `name`"));
    }

    #[test]
    fn a_property_that_every_lock_needs_is_missed() {
        assert!(faults("last-touch", "death").contains("no test checks last-touch"));
        assert!(faults("order =", "fork =").contains("no test checks order or bound"));
        assert_eq!(faults("order =", "bound ="), "", "one of the two is enough");
        assert!(faults("no order is promised", " ").contains("order: `not` is empty"));
    }

    #[test]
    fn a_mutant_counts_if_its_filter_selects_only_tests_of_the_cell() {
        let workspace = Workspace::load().unwrap();
        let (locks, _) = read(GOOD);
        let shown = |property: usize, tool: Tool| {
            let found = locks[0].shown_by(&locks[0].properties[property].tests[&tool], &PLANTED, &workspace);
            found.iter().map(|mutant| mutant.name.as_str()).collect::<Vec<_>>()
        };
        assert!(shown(1, Tool::Vm).contains(&"wakes-nobody"), "{:?}", shown(1, Tool::Vm));
        assert!(!shown(0, Tool::Vm).contains(&"wakes-nobody"), "another test reports it");
    }
}
