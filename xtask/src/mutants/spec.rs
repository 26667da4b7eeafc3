//! What a mutant is: one planted bug, specified beside the lock it breaks, in
//! `crates/*/mutants/*.toml`.
//!
//! ```toml
//! file = "crates/locks/unfair/src/barging/raw.rs"
//!
//! [[mutant]]
//! name = "wakes-nobody"
//! breaks = "The release wakes nobody."
//! property = "A waiter that sleeps while the mutex becomes free is woken."
//! find = '''text that occurs exactly once in the file'''
//! replace = '''the broken text'''
//! found-by = [{ test = "vm", filter = "mutex", as = "lost wake" }]
//! ```
//!
//! A mutant of another file has its own `file`, and a test of another package than the folder is of
//! its `package`. The world of a test is in the name `test`. `filter` is a part of the names of the
//! tests, as for libtest. `as` is a text that the output of the failing run contains; `as = "hang"`
//! demands that the run does not end. `sound = true` marks a change that breaks nothing: the named
//! tests must pass, and `as` is left out.
//!
//! If a bug is in several places of one file, it has `also = [{ find = "..", replace = ".." }]`. If
//! a bug needs another change, such as smaller sizes, it has `on = "NAME"`. Then the mutant `NAME`
//! is planted first, which stands before it in the same specification.
//!
//! All specifications are checked before anything is built. The check is cheap, so `cargo xtask
//! tidy` also makes it, and reports a mutant that no longer applies.

use crate::code;
use anyhow::Context;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Component, Path, PathBuf};
use xtask::scan;
use xtask::workspace::{LIB, Package, Workspace};

/// The worlds in which a test can find a mutant.
pub const WORLDS: [&str; 3] = ["native", "loom", "vm"];
/// What `as` says of a run that must not end.
pub const HANG: &str = "hang";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Specification {
    /// That of a mutant which names none.
    file: Option<String>,
    #[serde(default)]
    mutant: Vec<toml::Table>,
}

/// A replacement of text that occurs exactly once.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    find: String,
    replace: String,
}

/// Replacements of text in one file of the workspace.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Mutant {
    /// The file that specifies it.
    #[serde(skip)]
    pub spec: String,
    /// Its name in that file.
    pub name: String,
    /// What it does wrong.
    pub breaks: String,
    /// The property that it breaks.
    pub property: String,
    /// The file it changes.
    pub file: String,
    find: String,
    replace: String,
    /// More replacements, for a bug in several places.
    #[serde(default)]
    also: Vec<Edit>,
    /// The mutant that is planted first.
    on: Option<String>,
    /// The replacements of that mutant.
    #[serde(skip)]
    first: Vec<Edit>,
    /// The tests that must fail, or pass if it is sound.
    pub found_by: Vec<Probe>,
    /// A variant that breaks nothing.
    #[serde(default)]
    pub sound: bool,
    /// The hash of its file's code, and of what it does to that and is found by.
    #[serde(skip)]
    pub code: String,
}

/// The tests of one target in one world, and what they must say.
#[derive(Clone, Debug, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// One of [`WORLDS`].
    pub world: String,
    /// The package of the tests.
    pub package: String,
    /// Their target, `tests/NAME.rs` or `tests/NAME/main.rs`.
    pub test: String,
    /// A part of their names.
    pub filter: String,
    /// What the output of the failing run contains.
    #[serde(rename = "as")]
    pub says: Option<String>,
}

impl Probe {
    /// Where the tests are: a world, a package and a target.
    pub fn place(&self) -> [&str; 3] {
        [&self.world, &self.package, &self.test]
    }
}

impl Mutant {
    /// Its number. It is the same in every run and does not depend on other mutants, so that builds
    /// stay valid.
    pub fn id(&self) -> u32 {
        number(&self.spec, &self.name)
    }

    /// Its name among those of all files.
    pub fn key(&self) -> String {
        format!("{}: {}", self.spec, self.name)
    }

    /// The hash of all that it says, and of the hash of its file's code.
    fn hash(&self, code: &str) -> String {
        let mut hasher = DefaultHasher::new();
        (code, self.change(), self.sound, &self.found_by).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    /// What it changes, and how: its file, and the two texts of each replacement.
    pub fn change(&self) -> Vec<String> {
        let texts = self.edits().into_iter().flat_map(|Edit { find, replace }| [find, replace]);
        [self.file.clone()].into_iter().chain(texts).collect()
    }

    /// The text of its file with the change made, or why the change cannot be made.
    pub fn applied(&self, text: &str) -> Result<String, String> {
        self.edits().iter().try_fold(text.to_owned(), |text, Edit { find, replace }| {
            match text.matches(find).count() {
                1 if find == replace => Err("`replace` equals `find`: write the broken text".into()),
                1 => Ok(text.replacen(find, replace, 1)),
                0 => Err(format!("`find` does not occur in {}: copy the text as it is now", self.file)),
                n => {
                    let file = &self.file;
                    Err(format!("`find` occurs {n} times in {file}: include more of the lines around it"))
                }
            }
        })
    }

    /// All its replacements, in their order.
    fn edits(&self) -> Vec<Edit> {
        let own = Edit { find: self.find.clone(), replace: self.replace.clone() };
        self.first.iter().cloned().chain([own]).chain(self.also.iter().cloned()).collect()
    }

    /// Takes over the replacements of the mutant that is planted first, which is among `before`.
    fn plant_on(&mut self, before: &[Self]) -> Result<(), String> {
        if let Some(on) = &self.on {
            let first = before.iter().find(|mutant| mutant.name == *on && mutant.file == self.file);
            let missing = || format!("no mutant `{on}` of {} stands before it", self.file);
            self.first = first.ok_or_else(missing)?.edits();
        }
        Ok(())
    }

    /// What is wrong with it.
    fn faults(&self, workspace: &Workspace) -> Vec<String> {
        let mut faults: Vec<String> = self.fault_of_change(&workspace.root).into_iter().collect();
        if self.found_by.is_empty() {
            faults.push("`found-by` is empty: name a test".into());
        }
        for probe in &self.found_by {
            faults.extend(probe.faults(workspace, self.sound));
        }
        faults
    }

    fn fault_of_change(&self, root: &Path) -> Option<String> {
        if !Path::new(&self.file).components().all(|part| matches!(part, Component::Normal(_))) {
            return Some(format!("`file` {}: write it relative to the workspace", self.file));
        }
        match fs::read_to_string(root.join(&self.file)) {
            Ok(text) => self.applied(&text).err(),
            Err(error) => Some(format!("`file` {}: {error}; write it relative to the workspace", self.file)),
        }
    }
}

/// The number of the mutant or site `name` in `file`: not 0, and the same in every run.
pub fn number(file: &str, name: &str) -> u32 {
    // FNV-1a.
    let bytes = file.bytes().chain([0]).chain(name.bytes());
    let hash = bytes.fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash.max(1)
}

/// Fills in what `table`, a mutant, leaves out.
fn complete(table: &mut toml::Table, file: Option<&str>, package: Option<&str>) {
    if let Some(file) = file {
        table.entry("file").or_insert(file.into());
    }
    let probes = table.get_mut("found-by").and_then(toml::Value::as_array_mut);
    for probe in probes.into_iter().flatten().filter_map(toml::Value::as_table_mut) {
        if let Some(test) = probe.get("test").and_then(toml::Value::as_str) {
            let is_of = |world: &&&str| test.split('_').next() == Some(**world);
            let world = WORLDS.iter().find(is_of).unwrap_or(&WORLDS[0]);
            probe.entry("world").or_insert((*world).into());
        }
        if let Some(package) = package {
            probe.entry("package").or_insert(package.into());
        }
    }
}

impl Probe {
    fn faults(&self, workspace: &Workspace, sound: bool) -> Vec<String> {
        let mut faults = Vec::new();
        if !WORLDS.contains(&self.world.as_str()) {
            faults.push(format!("no world `{}`: take one of {}", self.world, WORLDS.join(", ")));
        }
        match workspace.packages.iter().find(|package| package.name == self.package) {
            None => faults.push(format!("no package `{}` in this workspace", self.package)),
            Some(package) => {
                let known = package.tests("");
                if self.test != LIB && !known.contains(&self.test) {
                    let known = known.join(", ");
                    faults.push(format!("no test `{}` in {}; there are: {known}", self.test, self.package));
                } else {
                    faults.extend(self.fault_of_filter(package));
                }
            }
        }
        match self.says.as_deref() {
            None | Some("") if !sound => faults.push("no `as`: name a text of the failing output".into()),
            Some(_) if sound => faults.push("`as` in a sound mutant, whose tests pass: leave it out".into()),
            _ => {}
        }
        faults
    }

    /// What is wrong if its target has no test that the filter selects.
    fn fault_of_filter(&self, package: &Package) -> Option<String> {
        let Self { test, filter, .. } = self;
        match scan::tests(&package.dir, test) {
            Ok(tests) if tests.fits(filter) => None,
            Ok(_) => {
                Some(format!("`filter` {filter}: no test of {} {test} has that in its name", self.package))
            }
            Err(fault) => Some(format!("{}: {fault}", self.package)),
        }
    }
}

/// All mutants of the workspace, and what is wrong with them, as `file: what`.
pub fn load(workspace: &Workspace) -> anyhow::Result<(Vec<Mutant>, Vec<String>)> {
    let (mut mutants, mut faults, mut codes) = (Vec::new(), Vec::new(), BTreeMap::new());
    for path in specifications(workspace)? {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let spec = path.strip_prefix(&workspace.root).unwrap_or(&path).display().to_string();
        let (mut found, wrong) = parse(&spec, &text, workspace);
        for mutant in &mut found {
            let of_file = || {
                let text = fs::read_to_string(workspace.root.join(&mutant.file)).unwrap_or_default();
                code::of_file(&text).unwrap_or(text)
            };
            let code: &String = codes.entry(mutant.file.clone()).or_insert_with(of_file);
            mutant.code = mutant.hash(code);
        }
        mutants.extend(found);
        faults.extend(wrong);
    }
    Ok((mutants, faults))
}

/// The mutants of this workspace, read once for all tests: that takes seconds.
#[cfg(test)]
pub static PLANTED: std::sync::LazyLock<Vec<Mutant>> =
    std::sync::LazyLock::new(|| load(&Workspace::load().unwrap()).unwrap().0);

fn specifications(workspace: &Workspace) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for dir in workspace.packages.iter().map(|package| package.dir.join("mutants")) {
        if dir.is_dir() {
            for entry in fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))? {
                found.push(entry?.path());
            }
        }
    }
    found.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    found.sort();
    Ok(found)
}

/// The mutants of one file, and what is wrong with them.
fn parse(spec: &str, text: &str, workspace: &Workspace) -> (Vec<Mutant>, Vec<String>) {
    let Specification { file, mutant: tables } = match toml::from_str::<Specification>(text) {
        Ok(found) if found.mutant.is_empty() => {
            return (Vec::new(), vec![format!("{spec}: no mutant: write one, or delete the file")]);
        }
        Ok(found) => found,
        Err(error) => return (Vec::new(), vec![format!("{spec}: {error}")]),
    };
    let path = workspace.root.join(spec);
    let is_in = |package: &&Package| path.starts_with(package.dir.join("mutants"));
    let package = workspace.packages.iter().find(is_in).map(|package| package.name.as_str());
    let (mut mutants, mut faults) = (Vec::<Mutant>::new(), Vec::new());
    for (number, mut table) in (1..).zip(tables) {
        complete(&mut table, file.as_deref(), package);
        // Read one by one: an error then belongs to a mutant that has a name.
        let name = table.get("name").and_then(toml::Value::as_str);
        let name = name.map_or_else(|| format!("number {number}"), |name| format!("`{name}`"));
        let wrong = match table.try_into::<Mutant>() {
            Err(error) => vec![error.to_string().trim().replace('\n', ", ")],
            Ok(mut mutant) => {
                let mut wrong: Vec<_> = mutant.plant_on(&mutants).err().into_iter().collect();
                wrong.extend(mutant.faults(workspace));
                if mutants.iter().any(|other| other.name == mutant.name) {
                    wrong.push("the name occurs twice: choose another".into());
                }
                mutants.push(Mutant { spec: spec.to_owned(), ..mutant });
                wrong
            }
        };
        faults.extend(wrong.into_iter().map(|what| format!("{spec}: mutant {name}: {what}")));
    }
    (mutants, faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
[[mutant]]
name = "one"
breaks = "b"
property = "p"
file = "xtask/src/tools.rs"
find = '''
need("false", "", &["false"])'''
replace = "x"
found-by = [{ world = "native", package = "ulocks-core", test = "TEST", filter = "f", as = "a" }]
"#;

    /// A specification that has nothing wrong with it but what `change` does to it.
    fn faults(change: impl Fn(&str) -> String) -> Vec<String> {
        let workspace = Workspace::load().unwrap();
        let core = workspace.packages.iter().find(|package| package.name == "ulocks-core").unwrap();
        let text = change(&GOOD.replace("TEST", &core.tests("")[0]));
        parse("m.toml", &text, &workspace).1
    }

    fn with(from: &str, to: &str) -> Vec<String> {
        assert!(GOOD.contains(from));
        faults(|good| good.replace(from, to))
    }

    #[test]
    fn a_good_specification_has_no_faults_and_changes_the_one_place() {
        assert_eq!(with("one", "two"), [""; 0]);
        let (mutants, _) = parse("m.toml", GOOD, &Workspace::load().unwrap());
        let text = "assert!(need(\"false\", \"\", &[\"false\"]).is_err());";
        assert_eq!(mutants[0].applied(text).unwrap(), "assert!(x.is_err());");
        assert_eq!(mutants[0].spec, "m.toml");
    }

    #[test]
    fn what_is_left_out_is_that_of_the_specification() {
        let place = r#"world = "native", package = "ulocks-core", test = "TEST""#;
        let short = GOOD.replace("file = \"xtask/src/tools.rs\"\n", "");
        let short = short.replace(place, r#"test = "vm_futex""#);
        let (text, spec) = (format!("file = \"xtask/src/tools.rs\"\n{short}"), "crates/core/mutants/m.toml");
        let (mutants, _) = parse(spec, &text, &Workspace::load().unwrap());
        assert_eq!(mutants[0].file, "xtask/src/tools.rs");
        assert_eq!(mutants[0].found_by[0].place(), ["vm", "ulocks-core", "vm_futex"]);
        let (native, _) = parse(spec, &text.replace("vm_futex", "time"), &Workspace::load().unwrap());
        assert_eq!(native[0].found_by[0].place(), ["native", "ulocks-core", "time"]);
        let (_, faults) = parse(spec, &short, &Workspace::load().unwrap());
        assert!(faults[0].contains("mutant `one`: missing field `file`"), "{faults:?}");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_mutant() {
        let find = "need(\"false\", \"\"";
        for (from, to, fault) in [
            ("breaks =", "braeks =", "mutant `one`: unknown field `braeks`, expected one of"),
            ("filter =", "fliter =", "mutant `one`: unknown field `fliter`, expected one of"),
            ("property = \"p\"\n", "", "mutant `one`: missing field `property`"),
            ("name = \"one\"\n", "", "mutant number 1: missing field `name`"),
            ("[[mutant]]", "[[mutants]]", "unknown field `mutants`"),
            ("replace = \"x\"", "replace =", "line"),
            (
                find,
                "need(\"False\", \"\"",
                "`find` does not occur in xtask/src/tools.rs: copy the text as it is",
            ),
            ("need(\"false\", \"\", &[\"false\"])", "need(", "`find` occurs"),
            ("replace = \"x\"", "replace = 'need(\"false\", \"\", &[\"false\"])'", "equals"),
            ("tools.rs", "no-such.rs", "relative to the workspace"),
            ("xtask/src", "../xtask/src", "relative to the workspace"),
            ("\"native\"", "\"lom\"", "no world `lom`: take one of native, loom, vm"),
            ("ulocks-core", "ulocks-cro", "no package `ulocks-cro` in this workspace"),
            ("\"f\"", "\"no_such_test\"", "`filter` no_such_test: no test of ulocks-core"),
            ("found-by = [", "found-by = [] # ", "name a test"),
            (", as = \"a\"", "", "no `as`"),
            ("as = \"a\"", "as = \"\"", "no `as`"),
            ("name =", "sound = true\nname =", "leave it out"),
        ] {
            let found = with(from, to);
            assert!(found[0].starts_with("m.toml: ") && found[0].contains(fault), "{from}: {found:?}");
        }
        let hash = |text: &str, code| parse("m.toml", text, &Workspace::load().unwrap()).0[0].hash(code);
        for (from, to) in [("\"x\"", "\"y\""), ("\"a\"", "\"b\""), ("tools.rs", "steps.rs")] {
            assert_ne!(hash(GOOD, "now"), hash(&GOOD.replace(from, to), "now"), "{from}");
        }
        assert_ne!(hash(GOOD, "now"), hash(GOOD, "then"));
        assert_eq!(hash(GOOD, "now"), hash(&GOOD.replace("breaks = \"b\"", "breaks = \"c\""), "now"));
        let second =
            faults(|good| format!("{good}{}", good.replace("one", "two").replace("breaks =", "x =")));
        assert!(second[0].starts_with("m.toml: mutant `two`: unknown field `x`"), "{second:?}");
        assert_eq!(faults(|_| String::new()), ["m.toml: no mutant: write one, or delete the file"]);
        let twice = faults(|good| good.repeat(2));
        assert_eq!(twice, ["m.toml: mutant `one`: the name occurs twice: choose another"]);
        let found = faults(|_| GOOD.to_owned());
        assert!(found[0].contains("no test `TEST` in ulocks-core; there are: "), "{found:?}");
        let sound = faults(|good| good.replace(", as = \"a\"", "").replace("name =", "sound = true\nname ="));
        assert_eq!(sound, [""; 0]);
    }

    #[test]
    fn a_bug_in_several_places_is_planted_on_another_one() {
        let also = r#"also = [{ find = "pub fn today(", replace = "fn y(" }]"#;
        let one = GOOD.replace("found-by", &format!("{also}\nfound-by"));
        let find = "need(\"false\", \"\", &[\"false\"])";
        let two = GOOD.replace("\"one\"", "\"two\"\non = \"one\"").replace(find, "fn y(");
        let (mutants, faults) = parse("m.toml", &(one + &two), &Workspace::load().unwrap());
        assert!(faults.iter().all(|fault| fault.contains("`TEST`")), "{faults:?}");
        let text = r#"pub fn today( need("false", "", &["false"])"#;
        assert_eq!(mutants[0].applied(text).unwrap(), "fn y( x");
        assert_eq!(mutants[1].applied(text).unwrap(), "x x");
        assert_eq!(mutants[0].change()[3..], ["pub fn today(", "fn y("]);
        let [first, second] = [&mutants[0], &mutants[1]].map(Mutant::change);
        assert_eq!(second, [&first[..], &["fn y(".to_owned(), "x".to_owned()]].concat());
        let found = with("name =", "on = \"two\"\nname =");
        assert_eq!(found, ["m.toml: mutant `one`: no mutant `two` of xtask/src/tools.rs stands before it"]);
    }
}
