//! The tests of a target, read from its source.
//!
//! libtest lists the same names, but only after everything is compiled. This scan takes
//! milliseconds, so that `cargo xtask tidy` can use it to report a test that was renamed.

use crate::workspace::LIB;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The tests of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tests {
    /// Their names, as libtest prints them.
    pub all: BTreeSet<String>,
    /// The words in calls of macros, with the names of their modules: some may be names of tests.
    possible: BTreeSet<String>,
    /// The tests in definitions of macros, whose calls put modules before their names.
    defined: BTreeSet<String>,
    /// All names in their source, and in the modules that it takes from elsewhere.
    words: BTreeSet<String>,
}

impl Tests {
    /// Whether there is a test `name`, or a macro may make one.
    pub fn has(&self, name: &str) -> bool {
        self.all.contains(name) || self.possible.contains(name)
    }

    /// Whether there is a test whose name contains `filter`, or a macro may make one.
    pub fn fits(&self, filter: &str) -> bool {
        let mut names = self.all.iter().chain(&self.possible).chain(&self.defined);
        names.any(|name| name.contains(filter))
    }

    /// Whether the source names `word`.
    pub fn names(&self, word: &str) -> bool {
        self.words.contains(word)
    }
}

/// The targets that were read before. A map names one target many times.
static KNOWN: Mutex<BTreeMap<PathBuf, Arc<Tests>>> = Mutex::new(BTreeMap::new());

/// The tests of the target `target` of the package in `dir`. The tests of `lib` are its unit tests.
pub fn tests(dir: &Path, target: &str) -> Result<Arc<Tests>, String> {
    let candidates = match target {
        LIB => vec!["src/lib.rs".to_owned()],
        target => vec![format!("tests/{target}.rs"), format!("tests/{target}/main.rs")],
    };
    let root = candidates.iter().map(|file| dir.join(file)).find(|path| path.is_file());
    let root = root.ok_or_else(|| format!("no {}", candidates.join(" and no ")))?;
    if let Some(known) = KNOWN.lock().unwrap().get(&root) {
        return Ok(Arc::clone(known));
    }
    let found = Arc::new(read_target(&root)?);
    KNOWN.lock().unwrap().insert(root, Arc::clone(&found));
    Ok(found)
}

fn read_target(root: &Path) -> Result<Tests, String> {
    let mut found = Tests::default();
    let children = root.parent().expect("a file is in a directory").to_owned();
    read(root, &children, "", &mut found)?;
    Ok(found)
}

/// Reads `file`, whose modules are in `children` and whose name in the target is `prefix`.
fn read(file: &Path, children: &Path, prefix: &str, found: &mut Tests) -> Result<(), String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let tokens: TokenStream = text.parse().map_err(|error| format!("{}: {error}", file.display()))?;
    words(tokens.clone(), &mut found.words);
    items(tokens, file, children, prefix, found)
}

/// Reads the words.
fn words(tokens: TokenStream, found: &mut BTreeSet<String>) {
    for tree in tokens {
        match tree {
            TokenTree::Ident(name) => _ = found.insert(name.to_string()),
            TokenTree::Group(group) => words(group.stream(), found),
            _ => {}
        }
    }
}

fn items(
    tokens: TokenStream,
    file: &Path,
    children: &Path,
    prefix: &str,
    found: &mut Tests,
) -> Result<(), String> {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let (mut is_test, mut path) = (false, None);
    let mut at = 0;
    while at < trees.len() {
        let (word, next) = (word(&trees[at]), trees.get(at + 1));
        match (&trees[at], next) {
            (TokenTree::Punct(punct), Some(TokenTree::Group(group))) if punct.as_char() == '#' => {
                let attribute = group.stream().to_string();
                is_test |= attribute == "test";
                path = path.or_else(|| path_of(&attribute));
                at += 2;
                continue;
            }
            (_, Some(TokenTree::Ident(name))) if word == Some("fn") => {
                if is_test {
                    found.all.insert(format!("{prefix}{name}"));
                }
                (is_test, path) = (false, None);
            }
            (_, Some(TokenTree::Ident(name))) if word == Some("mod") => {
                let name = name.to_string();
                let prefix = format!("{prefix}{name}::");
                match trees.get(at + 2) {
                    Some(TokenTree::Group(group)) => {
                        items(group.stream(), file, &children.join(&name), &prefix, found)?;
                    }
                    _ => module(&name, path.take(), file, children, &prefix, found)?,
                }
                (is_test, path) = (false, None);
                at += 2;
            }
            // A call of a macro of the test kit makes the tests that its definition names.
            (TokenTree::Ident(kit), _) if kit == KIT => {
                if let Some(call) = called(&trees[at + 1..]) {
                    let made = made_by(&call, file)?;
                    found.all.extend(made.iter().map(|name| format!("{prefix}{name}")));
                    // `::NAME!` and the group, whose words name no other tests.
                    at += CALL;
                }
            }
            (TokenTree::Ident(definition), _) if definition == "macro_rules" => {
                if let Some(TokenTree::Group(body)) = trees.get(at + 3) {
                    tests_within(body.stream(), &mut found.defined);
                }
            }
            // A call of a macro, but not its definition, in which a name stands before the group.
            (TokenTree::Punct(punct), Some(TokenTree::Group(group))) if punct.as_char() == '!' => {
                possible(group.stream(), prefix, found);
            }
            (TokenTree::Group(group), _) if group.delimiter() == Delimiter::Brace => {
                (is_test, path) = (false, None);
            }
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// The crate whose macros make tests.
const KIT: &str = "ulocks_testkit";

/// How many tokens [`called`] reads.
const CALL: usize = 5;

/// The name of the macro, if these are the tokens of `::NAME!`.
fn called(trees: &[TokenTree]) -> Option<String> {
    match trees {
        [
            TokenTree::Punct(_),
            TokenTree::Punct(_),
            TokenTree::Ident(name),
            TokenTree::Punct(call),
            TokenTree::Group(_),
            ..,
        ] if call.as_char() == '!' => Some(name.to_string()),
        _ => None,
    }
}

/// The names of the tests in the definition of the test kit's macro `name`. `file` is in a crate
/// beside the test kit.
fn made_by(name: &str, file: &Path) -> Result<BTreeSet<String>, String> {
    let suites = file.ancestors().map(|dir| dir.join("testkit/src/suite/mod.rs"));
    let suite = suites.into_iter().find(|path| path.is_file());
    let suite = suite.ok_or_else(|| format!("{}: no test kit beside this crate", file.display()))?;
    let text = fs::read_to_string(&suite).map_err(|error| format!("{}: {error}", suite.display()))?;
    let tokens: TokenStream = text.parse().map_err(|error| format!("{}: {error}", suite.display()))?;
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let mut made = BTreeSet::new();
    for window in trees.windows(4) {
        if let [TokenTree::Ident(word), _, TokenTree::Ident(of), TokenTree::Group(body)] = window
            && word == "macro_rules"
            && of == name
        {
            tests_within(body.stream(), &mut made);
        }
    }
    Ok(made)
}

/// The names after `#[test] fn`, in groups too.
fn tests_within(tokens: TokenStream, made: &mut BTreeSet<String>) {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, tree) in trees.iter().enumerate() {
        let TokenTree::Group(group) = tree else { continue };
        match (group.stream().to_string().as_str(), trees.get(at + 1), trees.get(at + 2)) {
            ("test", Some(next), Some(TokenTree::Ident(name))) if word(next) == Some("fn") => {
                made.insert(name.to_string());
            }
            _ => tests_within(group.stream(), made),
        }
    }
}

/// Reads the module `name` that stands in a file of its own.
fn module(
    name: &str,
    path: Option<String>,
    file: &Path,
    children: &Path,
    prefix: &str,
    found: &mut Tests,
) -> Result<(), String> {
    let beside = file.parent().expect("a file is in a directory");
    let candidates: Vec<PathBuf> = match path {
        Some(path) => vec![beside.join(path)],
        None => vec![children.join(format!("{name}.rs")), children.join(name).join("mod.rs")],
    };
    let missing = || format!("{}: no file for the module `{name}`", file.display());
    let child = candidates.into_iter().find(|path| path.is_file()).ok_or_else(missing)?;
    let of_child = if child.ends_with("mod.rs") {
        child.parent().expect("a file is in a directory").to_owned()
    } else {
        child.with_extension("")
    };
    read(&child, &of_child, prefix, found)
}

fn possible(tokens: TokenStream, prefix: &str, found: &mut Tests) {
    for tree in tokens {
        match tree {
            TokenTree::Ident(name) => _ = found.possible.insert(format!("{prefix}{name}")),
            TokenTree::Group(group) => possible(group.stream(), prefix, found),
            _ => {}
        }
    }
}

/// The file that an attribute `path = "FILE"` names.
fn path_of(attribute: &str) -> Option<String> {
    let value = attribute.strip_prefix("path")?.trim_start().strip_prefix('=')?;
    Some(value.trim().trim_matches('"').to_owned())
}

fn word(tree: &TokenTree) -> Option<&'static str> {
    match tree {
        TokenTree::Ident(ident) if ident == "fn" => Some("fn"),
        TokenTree::Ident(ident) if ident == "mod" => Some("mod"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(files: &[(&str, &str)]) -> Result<Arc<Tests>, String> {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join("tests").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        tests(dir.path(), "vm")
    }

    #[test]
    fn tests_have_the_names_of_their_modules() {
        let main = "mod a;\nmod b { #[test] fn c() {} fn d() {} }\n#[path = \"../common/x.rs\"]\nmod e;\n";
        let found = scan(&[
            ("vm/main.rs", main),
            ("vm/a.rs", "#[test]\n#[cfg(x)]\nfn one() {}\nfn two() {}\nmod deep;"),
            ("vm/a/deep.rs", "#[test]\nfn three() {}"),
            ("common/x.rs", "#[test]\n#[should_panic(expected = \"x\")]\nfn four() {}"),
        ])
        .unwrap();
        assert_eq!(Vec::from_iter(found.all.clone()), ["a::deep::three", "a::one", "b::c", "e::four"]);
        assert!(found.names("two") && found.names("four") && !found.names("five"));
    }

    #[test]
    fn a_target_may_be_a_file_with_modules_beside_it() {
        let found =
            scan(&[("vm.rs", "mod common; #[test] fn a() {}"), ("common/mod.rs", "#[test] fn b() {}")]);
        assert_eq!(Vec::from_iter(found.unwrap().all.clone()), ["a", "common::b"]);
    }

    #[test]
    fn names_that_are_given_to_a_macro_may_be_tests() {
        let text = "macro_rules! all { ($name:ident) => { #[test] fn $name() {} } }\nall!(one, two);";
        let found = scan(&[("vm.rs", text)]).unwrap();
        assert!(found.has("one") && found.has("two") && !found.has("three"));
        assert!(found.fits("on") && !found.fits("three"));
        assert_eq!(Vec::from_iter(found.all.clone()), [""; 0]);
        let text = "macro_rules! each { ($name:ident) => { mod $name { #[test] fn one() {} } } }\neach!(a);";
        let found = scan(&[("vm.rs", text)]).unwrap();
        assert!(found.fits("one") && !found.has("one") && !found.fits("two"));
    }

    #[test]
    fn macros_of_the_test_kit_make_the_tests_that_they_define() {
        let suite = "macro_rules! both { () => { #[test] fn one() {} #[test] fn two() {} fn no() {} } }\n\
                     macro_rules! other { () => { #[test] fn three() {} } }";
        let call = "mod a { ulocks_testkit::both! { X } } use ulocks_testkit::suite;";
        let found = scan(&[("testkit/src/suite/mod.rs", suite), ("vm.rs", call)]).unwrap();
        assert_eq!(Vec::from_iter(found.all.clone()), ["a::one", "a::two"]);
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(scan(&[("loom.rs", "")]).unwrap_err().contains("no tests/vm.rs"));
        assert!(scan(&[("vm.rs", "mod gone;")]).unwrap_err().contains("no file for the module `gone`"));
    }

    #[test]
    fn the_tests_of_all_packages_can_be_read() {
        let workspace = crate::workspace::Workspace::load().unwrap();
        for package in workspace.packages.iter().filter(|package| package.is_public()) {
            for target in package.tests("").into_iter().chain([LIB.to_owned()]) {
                assert_eq!(tests(&package.dir, &target).err(), None, "{}", package.name);
            }
        }
    }
}
