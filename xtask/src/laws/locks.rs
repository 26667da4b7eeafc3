//! A law of the lock crates: each lock is checked, and not only each crate.
//!
//! A lock is a type that implements `RawMutex`, `RawRwLock` or `RawRobust` of this family, or a
//! public type `RawNAME` in a file `raw.rs`, such as a semaphore or a condition variable. A type
//! that is generic over another lock is none: it is checked with that lock.
//!
//! | what a lock needs | where |
//! |---|---|
//! | a row of checks, with a model on the virtual machine and a stress test | `checks.toml`: `[[lock]]`, whose name ends in `NAME` |
//! | models | `tests/vm*`; and a few, of exclusion or lost wake-ups, in `tests/loom*` |
//! | a stress test | `tests/stress*` |
//! | a test of its layout | `tests/layout` |
//! | a planted bug in the folder of its source | the files of `mutants` that its row names |
//!
//! The folder of `src/raw.rs` is the whole crate: there any planted bug of the row will do, which
//! is right for a crate with one lock.
//!
//! A test of a lock names its type: `NAME`, `RawNAME`, `NAMEWith` or `NAMEOf`. The law does not see
//! whether the test does anything with it.

use crate::code::is_of_tests;
use crate::mutants::source::{is_punct, is_word, tokens};
use crate::mutants::spec::{self, Mutant};
use crate::verify::map::{self, Lock, Tool};
use anyhow::Context;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeMap;
use std::fs;
use xtask::scan;
use xtask::workspace::{Package, Workspace};

/// The traits of a raw lock.
const TRAITS: [&str; 3] = ["RawMutex", "RawRwLock", "RawRobust"];
/// Types that are a part of a lock, or a face of one: the package, the type, and why.
const PARTS: [(&str, &str); 1] = [
    // A mutex of the C library or ours: its tests are programs in C.
    ("ulocks-pthread", "Waitable"),
];
/// Packages whose locks loom cannot run: it has neither priority inheritance nor processes.
const WITHOUT_LOOM: [&str; 2] = ["ulocks-pi", "ulocks-shm"];
/// Locks that users know by another name.
const NAMES: [(&str, &str); 1] = [("RecursiveRwLock", "RwLock")];

/// A lock.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    /// The type.
    name: String,
    /// Where it is declared.
    file: String,
}

/// What the locks of the workspace lack.
pub fn faults(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let (rows, _) = map::load(workspace)?;
    let (mutants, _) = spec::load(workspace)?;
    let mut faults = Vec::new();
    for package in workspace.packages.iter().filter(|package| super::is_lock_crate(package, workspace)) {
        let mut files = Vec::new();
        for path in xtask::workspace::sources(&package.dir.join("src"))? {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            files.push((super::shown(&path, &workspace.root), text));
        }
        for lock in locks(&package.name, &files)? {
            faults.extend(missing(&lock, package, &rows, &mutants));
        }
    }
    Ok(faults)
}

/// The locks in `files`, the sources of `package`.
fn locks(package: &str, files: &[(String, String)]) -> anyhow::Result<Vec<Found>> {
    let (mut found, mut declared) = (BTreeMap::new(), BTreeMap::new());
    for (file, text) in files {
        // Few files have a lock, and most of the time would go into tokens.
        if !TRAITS.iter().any(|name| text.contains(name)) && !text.contains("struct ") {
            continue;
        }
        let tokens = tokens(text).map_err(|fault| anyhow::anyhow!("{file}: {fault}"))?;
        let is_raw = file.ends_with("/raw.rs");
        let mut types = Vec::new();
        scan_items(tokens, &mut types);
        for item in types {
            match item {
                Item::Declared(name) => {
                    if is_raw && name.starts_with("Raw") {
                        found.entry(name.clone()).or_insert_with(|| file.clone());
                    }
                    declared.entry(name).or_insert_with(|| file.clone());
                }
                Item::Implements(name) => _ = found.entry(name).or_insert_with(|| file.clone()),
            }
        }
    }
    found.retain(|name, _| !PARTS.contains(&(package, name.as_str())));
    let place = |(name, file): (String, String)| {
        let file = declared.get(&name).cloned().unwrap_or(file);
        Found { name, file }
    };
    Ok(found.into_iter().map(place).collect())
}

enum Item {
    /// `pub struct NAME`
    Declared(String),
    /// `impl .. TRAIT for NAME`
    Implements(String),
}

fn scan_items(tokens: TokenStream, found: &mut Vec<Item>) {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let mut of_tests = false;
    for (at, tree) in trees.iter().enumerate() {
        match (tree, trees.get(at + 1)) {
            (sign, Some(attribute)) if is_punct(sign, '#') => of_tests |= is_of_tests(attribute),
            (end, _) if is_punct(end, ';') => of_tests = false,
            (TokenTree::Group(group), _) if is_block(tree) => {
                let is_module = at >= 2 && is_word(&trees[at - 2], "mod");
                if is_module && !of_tests {
                    scan_items(group.stream(), found);
                }
                of_tests = false;
            }
            (word, Some(TokenTree::Ident(name))) if is_word(word, "struct") => {
                found.push(Item::Declared(name.to_string()));
            }
            (word, _) if is_word(word, "impl") => found.extend(implements(&trees[at..])),
            _ => {}
        }
    }
}

/// The type that an `impl` at the beginning of `trees` makes a lock.
fn implements(trees: &[TokenTree]) -> Option<Item> {
    let end = trees.iter().position(|tree| matches!(tree, TokenTree::Group(_) if is_block(tree)))?;
    let head = &trees[..end];
    // The bounds of the generics may have a `for<'a>`.
    let is_trait = |tree: &TokenTree| TRAITS.iter().any(|name| is_word(tree, name));
    let at = (1..head.len()).find(|&at| is_word(&head[at], "for") && is_trait(&head[at - 1]))?;
    let name = head[at + 1..].iter().find_map(|tree| match tree {
        TokenTree::Ident(name) => Some(name.to_string()),
        _ => None,
    })?;
    // Before `for`: the generics, which may have bounds, and then the path of the trait.
    let is_foreign = head[..at].iter().any(|tree| is_word(tree, "lock_api"));
    let mut path = at - 1;
    while path >= 3 && is_punct(&head[path - 1], ':') && is_punct(&head[path - 2], ':') {
        path -= 3;
    }
    // A bound of a parameter names another lock.
    let is_adapter = head[..path].iter().any(|tree| tree.to_string().starts_with("Raw"));
    (!is_foreign && !is_adapter).then_some(Item::Implements(name))
}

fn is_block(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Group(group) if group.delimiter() == proc_macro2::Delimiter::Brace)
}

/// What `lock` of `package` lacks.
fn missing(lock: &Found, package: &Package, rows: &[Lock], mutants: &[Mutant]) -> Vec<String> {
    let Found { name, file } = lock;
    let plain = name.strip_prefix("Raw").unwrap_or(name);
    let called = NAMES.iter().find(|(own, _)| own == name).map_or(plain, |(_, called)| *called);
    let names = [name.clone(), plain.to_owned(), format!("{plain}With"), format!("{plain}Of")];
    let mut missing = Vec::new();

    let all = ["vm", "loom", "stress", "layout"].map(|prefix| (prefix, package.tests(prefix)));
    for (prefix, targets) in all {
        if prefix == "loom" && WITHOUT_LOOM.contains(&package.name.as_str()) {
            continue;
        }
        let is_named = |target: &String| {
            scan::tests(&package.dir, target).is_ok_and(|tests| names.iter().any(|name| tests.names(name)))
        };
        if !targets.iter().any(is_named) {
            let what = match prefix {
                "vm" => "no model on the virtual machine",
                "loom" => "no model under loom",
                "stress" => "no stress test",
                _ => "no test of the layout",
            };
            missing.push(format!("{what} names it: add one to tests/{prefix}"));
        }
    }

    let of_row = |row: &&Lock| {
        let (_, own) = row.name.rsplit_once("::").unwrap_or(("", &row.name));
        own.split(',').next() == Some(called)
    };
    let rows: Vec<_> = rows.iter().filter(of_row).collect();
    if rows.is_empty() {
        let krate = package.name.trim_start_matches("ulocks-").replace('-', "_");
        missing.push(format!("checks.toml has no row for it: add a [[lock]] named `{krate}::{called}`, with its planted bugs as `mutants`"));
        return numbered(lock, missing);
    }
    let tools = |tool| rows.iter().flat_map(|row| &row.properties).any(|row| row.tests.contains_key(&tool));
    if !tools(Tool::Vm) {
        missing.push("its row in checks.toml names no model on the virtual machine".to_owned());
    }
    if !tools(Tool::Stress) {
        missing.push("its row in checks.toml names no stress test".to_owned());
    }
    let folder = file.rfind('/').map_or("", |slash| &file[..=slash]);
    let plants = |mutant: &&Mutant| rows.iter().any(|row| row.mutants.contains(&mutant.spec));
    if !mutants.iter().filter(plants).any(|mutant| mutant.file.starts_with(folder)) {
        missing.push(format!("no planted bug of its row in checks.toml is in {folder}: add one to mutants/"));
    }
    numbered(lock, missing)
}

fn numbered(Found { name, file }: &Found, missing: Vec<String>) -> Vec<String> {
    missing.into_iter().map(|what| format!("{file}: the lock `{name}`: {what}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask::workspace::Manifest;

    fn found(text: &str) -> Vec<String> {
        let files = [("crates/x/src/tas/raw.rs".to_owned(), text.to_owned())];
        locks("ulocks-x", &files).unwrap().into_iter().map(|lock| lock.name).collect()
    }

    #[test]
    fn what_implements_a_raw_lock_is_a_lock_and_what_wraps_one_is_none() {
        assert_eq!(found("unsafe impl<P: Policy> raw::RawMutex for RawTasMutex<P> {}"), ["RawTasMutex"]);
        assert_eq!(found("impl RawRwLock for Flag { fn f() {} }"), ["Flag"]);
        assert_eq!(found("impl<F: for<'a> Fn(&'a u8)> RawMutex for RawCalled<F> {}"), ["RawCalled"]);
        assert_eq!(found("mod a { pub(crate) mod b { impl RawMutex for Deep {} } }"), ["Deep"]);
        assert_eq!(found("#[cfg(test)] mod tests; mod a { impl RawMutex for Next {} }"), ["Next"]);
        assert_eq!(found("pub struct RawEvent<P> where P: Policy { x: u8 }"), ["RawEvent"]);
        for other in [
            "unsafe impl<R: raw::RawMutex<Scope = Private>> RawMutex for Checked<R> {}",
            "unsafe impl<L: RawMutex> RawMutex for Wrapped<L> {}",
            "unsafe impl lock_api::RawMutex for Face {}",
            "unsafe impl<P: Policy> raw::RawMutexFair for RawTasMutex<P> {}",
            "impl<L: RawMutex> Default for Other<L> {}",
            "fn f(lock: impl Fn()) { for x in RawMutex {} }",
            "pub struct Node;",
            "#[cfg(test)]\nmod tests { impl RawMutex for OfTests {} }",
            "fn f() { impl RawMutex for Local {} }",
        ] {
            assert_eq!(found(other), [""; 0], "{other}");
        }
    }

    const ROW: &str = "
[[lock]]
name = \"x::TasMutex\"
mutants = [\"barging.toml\"]
exclusion = { vm = [\"ulocks-unfair vm/barging::at_most_one_is_inside\"] }
wake-up = { not = \"x\" }
order = { not = \"x\" }
timeout = { not = \"x\" }
last-touch = { stress = [\"ulocks-unfair stress/barging::excludes\"] }
";

    /// What the lock `RawTasMutex` in a crate with these tests and rows lacks.
    fn lacks(tests: &[(&str, &str)], rows: &str) -> String {
        lacks_at("crates/locks/unfair/src/barging/raw.rs", tests, rows)
    }

    fn lacks_at(file: &str, tests: &[(&str, &str)], rows: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        for (target, text) in tests {
            fs::create_dir_all(dir.path().join("tests")).unwrap();
            fs::write(dir.path().join("tests").join(target).with_extension("rs"), text).unwrap();
        }
        let package =
            Package { name: "ulocks-x".into(), manifest: Manifest::default(), dir: dir.path().to_owned() };
        let workspace = Workspace::load().unwrap();
        let (rows, faults) = map::parse(rows, "ulocks-unfair", &workspace);
        assert_eq!(faults, [""; 0]);
        let lock = Found { name: "RawTasMutex".into(), file: file.into() };
        missing(&lock, &package, &rows, &spec::PLANTED).join("\n")
    }

    #[test]
    fn a_lock_beside_a_tested_one_needs_tests_of_its_own() {
        let of_other = [("vm", "RawMutex"), ("loom", "RawMutex"), ("stress", ""), ("layout", "TasMutexes")];
        let missing = lacks(&of_other, "lock = []");
        for what in [
            "crates/locks/unfair/src/barging/raw.rs: the lock `RawTasMutex`: no model on the virtual machine names it",
            "no model under loom names it",
            "no stress test names it",
            "no test of the layout names it",
            "checks.toml has no row for it: add a [[lock]] named `x::TasMutex`, with its planted bugs",
        ] {
            assert!(missing.contains(what), "{what} is not in:\n{missing}");
        }
        assert_eq!(missing.lines().count(), 5, "{missing}");
    }

    #[test]
    fn a_lock_with_tests_a_row_and_a_planted_bug_passes() {
        let own = [
            ("vm", "vm_models! { [RawTasMutex] }"),
            ("loom", "x::<TasMutex>()"),
            ("stress", "x(TasMutex)"),
            ("layout", "TasMutexWith"),
        ];
        assert_eq!(lacks(&own, ROW), "");
        assert!(lacks(&[own[0], own[2], own[3]], ROW).contains("no model under loom names it"));
        let beside = "crates/locks/unfair/src/mut/raw.rs";
        assert!(lacks_at(beside, &own, ROW).contains("is in crates/locks/unfair/src/mut/: add one"));
        let no_bug = ROW.replace("barging.toml", "asym.toml");
        assert!(lacks(&own, &no_bug).contains("no planted bug of its row in checks.toml is in"));
        let no_stress = ROW.replace("stress = [\"ulocks-unfair stress/barging::excludes\"]", "not = \"x\"");
        assert!(lacks(&own, &no_stress).contains("its row in checks.toml names no stress test"));
    }
}
