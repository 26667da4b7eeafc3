//! Hashes of source code, by which a record says what it speaks of.
//!
//! A hash covers the tokens of the code, and neither comments, nor documentation, nor white space:
//! a changed comment makes no record stale. It also leaves out modules of unit tests.
//!
//! | hash | covers |
//! |---|---|
//! | of a package ([`Codes`]) | its `src`, its `build.rs`, and the features and dependencies of its manifest; and those of the packages that it needs, such as `ulocks-core` |
//! | of a file ([`of_file`]) | the file |
//!
//! A record does not cover the test itself, the test kit, and the virtual machine: they are tools.
//! So a changed test does not make the records of all other tests stale. Whoever changes a test
//! runs it.

use crate::mutants::source::{is_punct, is_word, tokens};
use anyhow::Context;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::Mutex;
use toml::Value;
use xtask::nightly::FUZZ;
use xtask::workspace::{Manifest, Package, Workspace, sources};

/// Packages that check locks, and are no part of one.
const TOOLS: [&str; 4] = ["ulocks-vm", "ulocks-vm-cost", "ulocks-loom", "ulocks-testkit"];

/// The hashes of the packages of a workspace.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Codes {
    of: BTreeMap<String, String>,
}

impl Codes {
    /// Reads the sources of all packages.
    pub fn load(workspace: &Workspace) -> anyhow::Result<Self> {
        let mut own = BTreeMap::new();
        for package in &workspace.packages {
            let mut texts = Vec::new();
            let mut read = |path: &Path| {
                let name = path.strip_prefix(&package.dir)?.to_string_lossy().into_owned();
                let text =
                    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
                texts.push((name, text));
                anyhow::Ok(())
            };
            let stem = |part: &OsStr| Path::new(part).file_stem().map(OsStr::to_owned);
            let is_of_lock = |path: &Path| {
                !path.iter().any(|part| stem(part).is_some_and(|stem| stem == "tests" || stem == "bin"))
            };
            let src = Some(package.dir.join("src")).filter(|src| src.is_dir());
            for path in src.map_or(Ok(Vec::new()), |src| sources(&src))? {
                if is_of_lock(path.strip_prefix(&package.dir)?) {
                    read(&path)?;
                }
            }
            let build = package.dir.join("build.rs");
            if build.is_file() {
                read(&build)?;
            }
            let mut hasher = of_texts(texts).with_context(|| package.name.clone())?;
            settings(&package.manifest, &mut hasher);
            own.insert(package.name.as_str(), hasher.finish());
        }
        let mut of = BTreeMap::new();
        for package in &workspace.packages {
            of.insert(package.name.clone(), text(whole(package, &own, workspace)));
        }
        let fuzz = workspace.root.join(FUZZ);
        if fuzz.is_dir() {
            let fuzz = Package::read(fuzz)?;
            // The targets are tests: their own code does not count.
            own.insert(&fuzz.name, 0);
            of.insert(String::new(), text(whole(&fuzz, &own, workspace)));
        }
        Ok(Self { of })
    }

    /// The hash of `package`. Fuzz targets have no package: the empty name stands for what they
    /// run.
    ///
    /// # Panics
    /// If there is no such package. The maps of checks name none.
    pub fn of(&self, package: &str) -> &str {
        self.of.get(package).unwrap_or_else(|| panic!("no package `{package}` in this workspace"))
    }

    /// Hashes that were not read from source.
    #[cfg(test)]
    pub fn fixed(of: &[(&str, &str)]) -> Self {
        Self { of: of.iter().map(|&(package, code)| (package.to_owned(), code.to_owned())).collect() }
    }
}

/// Hashes what a manifest says of the code that is built: features, and dependencies other than
/// development dependencies.
fn settings(manifest: &Manifest, hasher: &mut Fnv) {
    if let Some(features) = manifest.table("features") {
        features.iter().for_each(|(name, value)| hash_value(name, value, hasher));
    }
    for one in manifest.dependencies().filter(|one| !one.is_of_tests) {
        one.table.hash(hasher);
        hash_value(one.name, one.value, hasher);
    }
}

fn hash_value(name: &str, value: &Value, hasher: &mut Fnv) {
    name.hash(hasher);
    match value {
        Value::Table(table) => table.iter().for_each(|(name, value)| hash_value(name, value, hasher)),
        Value::Array(values) => values.iter().for_each(|value| hash_value("", value, hasher)),
        Value::Boolean(value) => value.hash(hasher),
        value => value.as_str().hash(hasher),
    }
}

/// The hash of `package` and of what it needs.
fn whole(package: &Package, own: &BTreeMap<&str, u64>, workspace: &Workspace) -> u64 {
    let takes = |package: &Package, other: &Package| {
        !TOOLS.contains(&other.name.as_str()) && package.needs(&other.name)
    };
    let reached = workspace.reached(package, takes).into_iter();
    let codes: BTreeMap<_, _> = reached.map(|name| (name, own[name])).collect();
    let mut hasher = Fnv::default();
    codes.hash(&mut hasher);
    hasher.finish()
}

/// The hash of the code of a file.
pub fn of_file(code: &str) -> Result<String, String> {
    let mut hasher = Fnv::default();
    hash_tokens(tokens(code)?, false, &mut hasher);
    Ok(text(hasher.finish()))
}

fn text(hash: u64) -> String {
    format!("{hash:016x}")
}

/// The hasher of files with these names and texts. `cargo xtask test` asks for the same seven
/// times, and to read all tokens takes 0.8 s.
fn of_texts(texts: Vec<(String, String)>) -> anyhow::Result<Fnv> {
    static KNOWN: Mutex<BTreeMap<Vec<(String, String)>, Fnv>> = Mutex::new(BTreeMap::new());
    if let Some(known) = KNOWN.lock().unwrap().get(&texts) {
        return Ok(*known);
    }
    let mut hasher = Fnv::default();
    for (name, text) in &texts {
        name.hash(&mut hasher);
        let code = tokens(text).map_err(|fault| anyhow::anyhow!("{name}: {fault}"))?;
        hash_tokens(code, false, &mut hasher);
    }
    KNOWN.lock().unwrap().insert(texts, hasher);
    Ok(hasher)
}

/// Hashes all tokens, except those of documentation, and, unless `with_tests`, of unit tests.
pub fn hash_tokens<H: Hasher>(tokens: TokenStream, with_tests: bool, hasher: &mut H) {
    let mut trees = tokens.into_iter().peekable();
    while let Some(tree) = trees.next() {
        if is_punct(&tree, '#') {
            trees.next_if(|next| is_punct(next, '!'));
            if trees.next_if(is_documentation).is_some() {
                continue;
            }
            if !with_tests && trees.next_if(is_of_tests).is_some() {
                skip_item(&mut trees);
                continue;
            }
        }
        match tree {
            TokenTree::Group(group) => {
                format!("{:?}", group.delimiter()).hash(hasher);
                hash_tokens(group.stream(), with_tests, hasher);
                0_u8.hash(hasher);
            }
            tree => tree.to_string().hash(hasher),
        }
    }
}

/// Skips what an attribute stands before: an item to its `;` or block, a field to its comma.
fn skip_item(trees: &mut impl Iterator<Item = TokenTree>) {
    let (mut angles, mut is_where, mut last) = (0, false, None);
    for tree in trees {
        // Not the `>` of an arrow.
        let is_arrow = last.as_ref().is_some_and(|last| is_punct(last, '-') || is_punct(last, '='));
        angles += i32::from(is_punct(&tree, '<')) - i32::from(is_punct(&tree, '>') && !is_arrow);
        is_where |= is_word(&tree, "where");
        let is_end_of_field = is_punct(&tree, ',') && angles == 0 && !is_where;
        if is_punct(&tree, ';') || is_block(&tree) || is_end_of_field {
            return;
        }
        last = Some(tree);
    }
}

fn is_documentation(tree: &TokenTree) -> bool {
    let TokenTree::Group(group) = tree else { return false };
    group.stream().into_iter().next().is_some_and(|first| is_word(&first, "doc"))
}

/// Whether `tree` is the inside of `#[cfg(test)]` or of `#[cfg(all(test, ..))]`.
pub fn is_of_tests(tree: &TokenTree) -> bool {
    let TokenTree::Group(group) = tree else { return false };
    if !group.stream().into_iter().next().is_some_and(|first| is_word(&first, "cfg")) {
        return false;
    }
    let text = group.stream().to_string().replace(' ', "");
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

fn is_block(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

/// FNV-1a, of 64 bits. Records are kept in git, and the hasher of the standard library may change
/// with its version.
#[derive(Clone, Copy)]
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_counts_and_comments_and_unit_tests_do_not() {
        let plain = of_file("fn f() { a(b) }").unwrap();
        let same = [
            "//! x\n\n/// y\nfn f() { // z\n    a(b) }",
            "fn f() { a(b) }\n#[cfg(test)]\nmod tests { fn g() {} }",
            "#[cfg(all(test, not(miri)))]\nmod tests;\nfn f() { a(b) }",
        ];
        for same in same {
            assert_eq!(of_file(same).unwrap(), plain, "{same}");
        }
        for other in ["fn f() { a(c) }", "fn f() { a b () }", "#[cfg(x)] fn f() { a(b) }"] {
            assert_ne!(of_file(other).unwrap(), plain, "{other}");
        }
        let field = of_file("struct S { b: B, c: fn() -> C } fn f() {}").unwrap();
        for same in
            ["#[cfg(test)] a: fn(X) -> A<X, Y>, b: B, c: fn() -> C", "b: B, #[cfg(test)] a: A, c: fn() -> C"]
        {
            assert_eq!(of_file(&format!("struct S {{ {same} }} fn f() {{}}")).unwrap(), field, "{same}");
        }
        let other = "struct S { #[cfg(test)] a: A, b: B2, c: fn() -> C } fn f() {}";
        assert_ne!(of_file(other).unwrap(), field, "what follows a field of the unit tests counts");
        let generic = "#[cfg(test)] fn g<A, B>(a: A) -> B where A: X, B: Y { a } fn f() { a(b) }";
        assert_eq!(of_file(generic).unwrap(), plain);
        assert_eq!(plain, "b5132634b9b411c6", "another hash makes all records stale");
    }

    #[test]
    fn features_and_dependencies_are_code_and_the_rest_of_a_manifest_is_not() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("src")).unwrap();
        let code = |manifest: &str| {
            let package = Package {
                name: "lock".into(),
                manifest: Manifest::parse(manifest).unwrap(),
                dir: dir.path().to_owned(),
            };
            Codes::load(&Workspace { root: dir.path().to_owned(), packages: vec![package] })
                .unwrap()
                .of("lock")
                .to_owned()
        };
        let plain = "[features]\ndefault = [\"a\"]\n[dependencies]\nlibc = \"1\"\n";
        let same = "[package]\nversion = \"2\"\n[dev-dependencies]\nx = \"1\"\n";
        assert_eq!(code(&format!("{same}# why\n{plain}")), code(plain));
        for (old, new) in [("[\"a\"]", "[]"), ("\"1\"", "\"2\""), ("[dep", "[target.x.dep")] {
            assert_ne!(code(&plain.replace(old, new)), code(plain), "{new}");
        }
    }

    #[test]
    fn a_package_has_the_code_of_what_it_needs_without_tools_and_tests() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
            fs::write(dir.path().join(path), text).unwrap();
        };
        let package = |name: &str, manifest: &str| {
            write(&format!("{name}/src/deep/x.rs"), "fn x() {}");
            Package {
                name: name.into(),
                manifest: Manifest::parse(manifest).unwrap(),
                dir: dir.path().join(name),
            }
        };
        let uses = "[dependencies]\ncore.workspace = true\nulocks-vm.workspace = true\n\
                    [dev-dependencies]\nbeside.workspace = true\n";
        let private = "[package]\npublish = false\n";
        let packages = vec![
            package("lock", uses),
            package("core", private),
            package("ulocks-vm", ""),
            package("beside", ""),
        ];
        let workspace = Workspace { root: dir.path().to_owned(), packages };
        let code = || Codes::load(&workspace).unwrap().of("lock").to_owned();
        let before = code();
        write("lock/src/deep/tests.rs", "fn y() {}");
        write("lock/src/bin/x.rs", "fn y() {}");
        write("lock/tests/vm.rs", "fn y() {}");
        write("ulocks-vm/src/deep/x.rs", "fn y() {}");
        write("beside/src/deep/x.rs", "fn y() {}");
        write("core/src/deep/x.rs", "/// New.\nfn x() {}");
        assert_eq!(code(), before);
        write("core/src/deep/x.rs", "fn y() {}");
        let changed = code();
        assert_ne!(changed, before);
        write("core/build.rs", "fn main() {}");
        assert_ne!(code(), changed);
    }
}
