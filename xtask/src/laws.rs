//! `cargo xtask tidy`: the laws that can be checked by reading the source.
//!
//! Each law is a function that scans text. Comments do not count. This file contains the forbidden
//! words, so it is not scanned for them.
//!
//! | law | where |
//! |---|---|
//! | one door: no world `cfg`, no atomics of `core` or `std`, no yield | `src` of the lock crates |
//! | `SeqCst` only on fences: loom treats `SeqCst` accesses as `AcqRel` | `src` of the lock crates |
//! | a node that a queue may name is made only inside `without_unwinding` ([`nodes`]) | `src` of the lock crates |
//! | no unfinished code: no ignored test, no `todo!`, no `unimplemented!` | every source file |
//! | a file begins with prose, `tests.rs` beside its code excepted, and has at most 500 lines below its header | every source file |
//! | prose in comments is at most 100 columns wide; tables, code in fences and explained mutants are not prose | every source file |
//! | prose is at most 100 columns wide ([`markdown`]) | every Markdown file |
//! | a crate has a README and a `lib.rs` | public crates |
//! | each lock has models, stress, a test of its layout, planted bugs, and a row of checks ([`locks`]) | lock crates |
//! | a mutant applies, and the tests that must find it exist | `crates/*/mutants` |
//! | what explains a weaker ordering stands at one that can become weaker | `src` of the lock crates and core |
//! | a property of a lock has tests or a reason; the table is up to date | `crates/*/checks.toml` |
//! | a label names one transition; a state word is not public | `src` of the lock crates and core |
//! | tests have a limit ([`limits`]) | the roots of tests |
//! | a file that is named exists, and no record lies at the top ([`house`]) | the documents at the top |
//! | what has lines of its own is in a `CachePadded` ([`padding`]) | every source file |
//! | each dependency is used ([`dependencies`]) | every manifest |
//! | workspace lints; no lib or bin is a bench; every bench has its own `main` | every manifest |

mod dependencies;
mod house;
mod limits;
mod locks;
mod markdown;
mod nodes;
mod padding;

use crate::mutants::{spec, weaken};
use crate::verify;
use anyhow::Context;
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use toml::Value;
use xtask::steps::Steps;
use xtask::tools::need;
use xtask::workspace::{Manifest, Package, Workspace, sources, targets};

const MAX_LINES: usize = 500;
const MAX_COLUMNS: usize = 100;
const THIS_FILE: &str = "xtask/src/laws.rs";

/// Crates that are not lock crates: the door, its virtual machine, what stands on that, and the
/// test kit.
const NOT_LOCKS: [&str; 5] = ["ulocks-core", "ulocks-vm", "ulocks-vm-cost", "ulocks-loom", "ulocks-testkit"];

/// Checks all laws, and prints each violation as `file:line: what`.
pub fn run(workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    need("git", "apt-get install git", &["git", "--version"])?;
    Ok(steps.check("tidy", "cargo xtask tidy", || {
        let findings = check(workspace)?;
        for finding in &findings {
            eprintln!("{finding}");
        }
        Ok(findings.is_empty())
    })?)
}

fn check(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let mut findings = Vec::new();
    for package in &workspace.packages {
        let is_lock = is_lock_crate(package, workspace);
        let manifest = shown(&package.dir.join("Cargo.toml"), &workspace.root);
        findings.extend(manifest_laws(package).into_iter().map(|what| format!("{manifest}: {what}")));

        let (mut files, mut texts) = (Vec::new(), Vec::new());
        for path in sources(&package.dir)? {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let file = shown(&path, &workspace.root);
            let in_lock = is_lock && path.starts_with(package.dir.join("src"));
            findings.extend(file_laws(&path, &text).into_iter().map(|what| format!("{file}: {what}")));
            if path.starts_with(package.dir.join("src")) && package.is_public() {
                let found = labels_twice(&text).into_iter().chain(public_states(&text));
                findings.extend(found.map(|(line, what)| format!("{file}:{line}: {what}")));
            }
            let padded = padding::by_hand(&file, &text).into_iter();
            findings.extend(padded.map(|(line, what)| format!("{file}:{line}: {what}")));
            if file != THIS_FILE {
                let found = code_laws(&text, in_lock);
                findings.extend(found.into_iter().map(|(line, what)| format!("{file}:{line}: {what}")));
            }
            findings.extend(
                wide(&text, comment)
                    .into_iter()
                    .map(|line| format!("{file}:{line}: wrap it at {MAX_COLUMNS} columns")),
            );
            if in_lock {
                files.push(file);
                texts.push(text);
            }
        }
        let unguarded = nodes::unguarded(&texts).into_iter();
        findings.extend(unguarded.map(|(nth, line, what)| format!("{}:{line}: {what}", files[nth])));
        let dir = shown(&package.dir, &workspace.root);
        findings.extend(limits::missing(package)?.into_iter().map(|what| format!("{dir}/{what}")));
        if package.is_public() {
            findings.extend(missing_files_of(&package.dir).into_iter().map(|what| format!("{dir}: {what}")));
        }
    }
    findings.extend(spec::load(workspace)?.1);
    findings.extend(weaken::load(workspace)?.1);
    findings.extend(dependencies::faults(workspace)?);
    findings.extend(locks::faults(workspace)?);
    findings.extend(verify::faults(workspace)?);
    findings.extend(house::faults(&workspace.root)?);
    findings.extend(markdown::faults(&workspace.root)?);
    Ok(findings)
}

fn is_lock_crate(package: &Package, workspace: &Workspace) -> bool {
    package.dir.starts_with(workspace.root.join("crates")) && !NOT_LOCKS.contains(&package.name.as_str())
}

/// Laws of code, line by line; `in_lock` adds those of the lock crates.
fn code_laws(text: &str, in_lock: bool) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let code = without_comment(line);
        found.extend(left_open(code).map(|what| (number, what)));
        if in_lock {
            found.extend(beside_the_door(code).map(|what| (number, what)));
            found.extend(seq_cst_access(code).map(|what| (number, what)));
        }
    }
    found
}

/// The lines whose prose is too wide. `prose` reads it from a line; None ends a fence too.
fn wide(text: &str, prose: fn(&str) -> Option<&str>) -> Vec<usize> {
    let (mut found, mut in_code) = (Vec::new(), false);
    for (number, line) in (1..).zip(text.lines()) {
        let Some(prose) = prose(line.trim_start()) else {
            in_code = false;
            continue;
        };
        in_code ^= prose.starts_with("```");
        if !in_code && !prose.starts_with('|') && line.chars().count() > MAX_COLUMNS {
            found.push(number);
        }
    }
    found
}

/// The text of a comment on a line of its own, with explained mutants as a table. A comment behind
/// code does not count.
fn comment(line: &str) -> Option<&str> {
    let text = line.strip_prefix("//")?.trim_start_matches(['/', '!']).trim_start();
    Some(if text.starts_with("Mutant: ") { "|" } else { text })
}

/// Rows of a table of transitions whose label another row has.
fn labels_twice(text: &str) -> Vec<(usize, String)> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let row = line.trim_start().trim_start_matches(['/', '!']).trim_start();
        let Some(label) = row.strip_prefix("| (").and_then(|row| row.split_once(") |")) else { continue };
        if !seen.insert(label.0.to_owned()) {
            found.push((number, format!("the label ({}) names another transition too", label.0)));
        }
    }
    found
}

/// State words that a user could name: they freeze the layout of a lock.
fn public_states(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut hidden = false;
    for (number, line) in (1..).zip(text.lines()) {
        let names = line.strip_prefix("pub use ").unwrap_or_default();
        let mut words = names.split(|c: char| !c.is_alphanumeric());
        if !hidden && words.any(|word| word.ends_with("State")) {
            found.push((number, "a state word is not public: #[doc(hidden)]".to_owned()));
        }
        hidden = line.trim() == "#[doc(hidden)]";
    }
    found
}

fn left_open(code: &str) -> Option<&'static str> {
    if code.contains("#[ignore") {
        Some("an ignored test: make it run, or delete it")
    } else if has_word(code, "todo!") || has_word(code, "unimplemented!") {
        Some("unfinished code: write it, or delete it")
    } else {
        None
    }
}

fn beside_the_door(code: &str) -> Option<&'static str> {
    let atomics = has_word(code, "core::sync::atomic")
        || has_word(code, "std::sync::atomic")
        || (has_word(code, "atomic")
            && (code.contains("use std::sync::{") || code.contains("use core::sync::{")));
    let world = has_word(code, "ulocks_loom")
        || has_word(code, "ulocks_vm")
        || code.contains("world = \"")
        || code.contains("feature = \"loom\"")
        || code.contains("feature = \"vm\"");
    if atomics {
        Some("atomics come from `ulocks_core::sync`")
    } else if world {
        Some("only `ulocks-core` may name a world")
    } else if has_word(code, "sched_yield") || has_word(code, "thread::yield_now") {
        Some("no yield: wait with `ulocks_core::sync::spin_until` or a futex")
    } else {
        None
    }
}

fn seq_cst_access(code: &str) -> Option<&'static str> {
    let is_import = code.trim_start().trim_start_matches("pub ").starts_with("use ");
    (has_word(code, "SeqCst") && !code.contains("fence(") && !is_import)
        .then_some("a SeqCst access: use a read-modify-write of one word, or an explicit `fence(SeqCst)`")
}

/// Laws of a source file as a whole.
fn file_laws(path: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let is_header = |line: &&str| line.starts_with("//!") || line.is_empty();
    let lines = text.lines().skip_while(is_header).count();
    if lines > MAX_LINES {
        found.push(format!("{lines} lines below its header, but at most {MAX_LINES} are allowed: split it"));
    }
    if !has_header(text) && !path.ends_with("tests.rs") {
        found.push("begins without documentation (`//!`): say what the file is for".into());
    }
    found
}

/// Whether the first thing in a file, plain comments and other inner attributes aside, is its
/// documentation.
fn has_header(text: &str) -> bool {
    let is_prose = |line: &str| line.starts_with("//!") || line.starts_with("#![doc");
    let may_precede = |line: &str| line.is_empty() || line.starts_with("//") || line.starts_with("#![");
    text.lines().map(str::trim).find(|line| is_prose(line) || !may_precede(line)).is_some_and(is_prose)
}

/// The files that a public crate must have and lacks.
fn missing_files_of(dir: &Path) -> Vec<&'static str> {
    let mut missing = Vec::new();
    if !dir.join("README.md").exists() {
        missing.push("no README.md");
    }
    if !dir.join("src/lib.rs").exists() {
        missing.push("no src/lib.rs");
    }
    missing
}

/// Laws of a manifest.
fn manifest_laws(package: &Package) -> Vec<String> {
    let manifest = &package.manifest;
    let mut found = Vec::new();
    if manifest.get("lints", "workspace") != Some(&Value::Boolean(true)) {
        found.push("does not inherit the workspace's lints: [lints] workspace = true".into());
    }
    if package.dir.join("src/lib.rs").exists() && manifest.get("lib", "bench") != Some(&Value::Boolean(false))
    {
        found.push("the library is a bench target: [lib] bench = false".into());
    }
    for bin in package.bins() {
        if !declares(manifest, "bin", &bin, "bench") {
            found.push(format!("binary `{bin}` is a bench target: [[bin]] name = \"{bin}\", bench = false"));
        }
    }
    for bench in manifest.target_names("bench", targets(&package.dir.join("benches"))) {
        if !declares(manifest, "bench", &bench, "harness") {
            found.push(format!(
                "bench `{bench}` would swallow options: [[bench]] name = \"{bench}\", harness = false"
            ));
        }
    }
    found
}

/// Whether the target `name` of a kind says `key = false`.
fn declares(manifest: &Manifest, kind: &str, name: &str, key: &str) -> bool {
    let mut of_kind = manifest.declared(kind);
    of_kind.any(|target| {
        target.get("name").and_then(Value::as_str) == Some(name)
            && target.get(key) == Some(&Value::Boolean(false))
    })
}

fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

/// The line up to its comment. A `//` after a colon is an address in a string.
fn without_comment(line: &str) -> &str {
    let start = line.match_indices("//").find(|&(at, _)| !line[..at].ends_with(':'));
    start.map_or(line, |(at, _)| &line[..at])
}

/// Whether `word` occurs in `code` and is not the end of a longer name.
fn has_word(code: &str, word: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let after = &code[at + word.len()..];
        !code[..at].ends_with(part_of_name) && !after.starts_with(part_of_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn lines_that_break_a_law_are_found_where_it_holds() {
        let in_locks = [
            "use core::sync::atomic::AtomicU32;",
            "let x = std::sync::atomic::AtomicBool::new(true);",
            "use std::sync::{Arc, atomic::AtomicU32};",
            "#[cfg(ulocks_loom)]",
            "#[cfg(not(all(ulocks_loom, feature = \"loom\")))]",
            "if cfg!(ulocks_vm) {",
            "#[cfg(world = \"machine\")]",
            "#[cfg(feature = \"loom\")]",
            "libc::sched_yield();",
            "std::thread::yield_now()",
            "self.state.swap(0, SeqCst);",
            "self.state.load(Ordering::SeqCst)",
        ];
        let nowhere = ["    todo!()", "    unimplemented!(\"later\")", "#[ignore]", "#[ignore = \"slow\"]"];
        let everywhere = [
            "use ulocks_core::sync::AtomicU32;",
            "use ulocks_core::sync::atomic::AtomicU32;",
            "//! never `core::sync::atomic`",
            "//! RUSTFLAGS='--cfg ulocks_loom' cargo test",
            "sync::yield_now()",
            "fence(SeqCst); // Dekker: (S1) against (S2)",
            "use ulocks_core::sync::{Acquire, SeqCst, fence};",
            "#[cfg_attr(miri, ignore)]",
            "// todo!() would not do",
        ];
        for line in in_locks.iter().chain(&nowhere) {
            assert_eq!(code_laws(line, true).len(), 1, "{line}");
        }
        for line in in_locks.iter().chain(&everywhere) {
            assert_eq!(code_laws(line, false), [], "{line}");
        }
        assert!(everywhere.iter().all(|line| code_laws(line, true).is_empty()));
        let found = code_laws("fn f() {\n    todo!()\n}\n", false);
        assert_eq!(found, [(2, "unfinished code: write it, or delete it")]);
    }

    #[test]
    fn wide_prose_is_found_and_wide_tables_code_and_reasons_are_not() {
        let x = "x".repeat(100);
        let code = |text: String| wide(&text, comment);
        assert_eq!(code(format!("//! {x}\n    /// {x}\n// short\n// {x}\n")), [1, 2, 4]);
        assert_eq!(code(format!("//! | {x} |\n// Mutant: {x}\nlet a = 1; // {x}\n")), [0; 0]);
        assert_eq!(code(format!("/// ```\n/// {x}\n/// ```\n/// {x}\n")), [4]);
        let text = format!("{x}.\n| {x} |\n[a]: {x}\n```\n{x}.\n```\n  {x}\n");
        assert_eq!(wide(&text, markdown::prose), [1, 7]);
    }

    #[test]
    fn a_label_of_two_transitions_is_found() {
        let text = "//! | label | from |\n//! | (A) | x |\n//! | (B) | x |\n//! | (A) | y |\n";
        assert_eq!(labels_twice(text).len(), 1);
        assert_eq!(labels_twice(text)[0].0, 4);
    }

    #[test]
    fn a_public_state_word_is_found() {
        assert_eq!(public_states("pub use word::State;\npub use raw::{Raw, ByteState};\n").len(), 2);
        assert!(public_states("#[doc(hidden)]\npub use word::State;\npub use x::Stated;\n").is_empty());
    }

    #[test]
    fn long_files_and_files_without_a_header_are_found() {
        let laws = |text: &str| file_laws(Path::new("src/raw.rs"), text);
        let line = "//! x\n";
        let code = |count| format!("{}{}", line.repeat(100), "f();\n".repeat(count));
        assert!(laws(&code(MAX_LINES)).is_empty());
        assert!(laws(&code(MAX_LINES + 1))[0].starts_with("501 lines"));
        assert!(laws("#![cfg(ulocks_loom)]\n\n//! Models.\n").is_empty());
        assert!(laws("#![doc = include_str!(\"../README.md\")]\n").is_empty());
        assert!(
            laws("// Not documentation.\nuse std::fmt;\n")[0].starts_with("begins without documentation")
        );
        assert!(file_laws(Path::new("src/raw/tests.rs"), "use super::*;\n").is_empty());
    }

    /// A package with these files in a directory of its own.
    fn package(name: &str, files: &[(&str, &str)]) -> (TempDir, Package) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let manifest = files.iter().find(|(path, _)| *path == "Cargo.toml").map_or("", |(_, text)| text);
        let manifest = Manifest::parse(manifest).unwrap();
        let package = Package { name: name.into(), manifest, dir: dir.path().to_owned() };
        (dir, package)
    }

    #[test]
    fn manifests_that_break_a_law_are_found() {
        let (_dir, bad) = package(
            "bad",
            &[
                ("src/lib.rs", ""),
                ("src/main.rs", ""),
                ("src/bin/tool.rs", ""),
                ("benches/speed.rs", ""),
                ("Cargo.toml", ""),
            ],
        );
        let found = manifest_laws(&bad);
        for what in ["lints", "the library", "`bad`", "`tool`", "`speed`"] {
            assert!(found.iter().any(|finding| finding.contains(what)), "{what} is not in {found:?}");
        }
        assert_eq!(found.len(), 5);
    }

    #[test]
    fn a_manifest_that_keeps_them_passes() {
        let text = "[lib]\nbench = false\n[[bin]]\nname = \"good\"\nbench = false\n[[bench]]\nname = \"speed\"\n\
                    harness = false\n[lints]\nworkspace = true\n";
        let files = [("src/lib.rs", ""), ("src/main.rs", ""), ("benches/speed.rs", ""), ("Cargo.toml", text)];
        let (_dir, good) = package("good", &files);
        assert_eq!(manifest_laws(&good), [""; 0]);
    }

    #[test]
    fn a_crate_without_its_rooms_is_found() {
        let (_dir, bare) = package("bare", &[]);
        assert_eq!(missing_files_of(&bare.dir).len(), 2);
        let (_dir, full) = package("full", &[("README.md", ""), ("src/lib.rs", "")]);
        assert_eq!(missing_files_of(&full.dir), [""; 0]);
    }
}
