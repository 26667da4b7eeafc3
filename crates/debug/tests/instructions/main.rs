//! With checking off, `ulocks_debug::checked` has the code of the plain locks: the assembly of one
//! program is compared, compiled with the names of both.
//!
//! It builds the locks in release mode, twice. So `cargo test` runs it only if it is named:
//! `cargo test -p ulocks-debug --test instructions`.

#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::collections::{BTreeMap, BTreeSet, hash_map::DefaultHasher};
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use ulocks_testkit as _;

const PROGRAM: &str = "tests/instructions/program.rs";
/// The exported functions of the program.
const FUNCTIONS: usize = 25;

/// What stands where the locks come from.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Locks {
    Plain,
    /// `checked` in a release build.
    Off,
    /// `checked` in a release build of a checker with debug assertions.
    On,
}

/// Writes the manifest of a package of its own, as that of a user.
fn package(dir: &Path) {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let dependency = |folder: &str| {
        let name = folder.rsplit('/').next().unwrap_or(folder);
        format!("ulocks-{name} = {{ path = {:?} }}\n", crates.join(folder))
    };
    let families =
        ["core", "debug", "locks/calock", "locks/fair", "locks/pi", "locks/psrwlock", "locks/unfair"];
    let dependencies: String = families.map(dependency).concat();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join(PROGRAM);
    let manifest = format!(
        "[package]\nname = \"program\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         [lib]\npath = {program:?}\n\
         [dependencies]\n{dependencies}\
         [profile.release]\ncodegen-units = 1\n\
         [workspace]\n"
    );
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("Cargo.toml"), manifest).unwrap();
    // The versions of the workspace.
    fs::copy(crates.parent().unwrap().join("Cargo.lock"), dir.join("Cargo.lock")).unwrap();
}

fn compile(dir: &Path, locks: Locks) -> String {
    // If nothing has changed, cargo does not write it again.
    let assembly: PathBuf = dir.join(format!("{locks:?}.s"));
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(dir).args(["rustc", "--quiet", "--release", "--lib", "--target-dir", "target"]);
    if locks == Locks::On {
        cargo.args(["--config", "profile.release.package.ulocks-debug.debug-assertions=true"]);
    }
    cargo.arg("--").arg(format!("--emit=asm={}", assembly.display())).arg("--check-cfg=cfg(plain)");
    if locks == Locks::Plain {
        cargo.arg("--cfg=plain");
    }
    let output = cargo.output().expect("cargo is there where its tests run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read_to_string(assembly).unwrap()
}

/// The lines of each function, by its name.
type Functions = BTreeMap<String, Vec<String>>;

/// The functions of a file of assembly. The names of symbols lose the hash of their crate, and
/// labels are numbered in each function.
fn functions(assembly: &str) -> Functions {
    let mut all = BTreeMap::new();
    let mut current: Option<(String, Vec<String>)> = None;
    let mut labels: BTreeMap<String, usize> = BTreeMap::new();
    for line in assembly.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(name) = line.strip_suffix(':').filter(|name| !name.starts_with('.')) {
            labels.clear();
            current = Some((symbol(name), Vec::new()));
        } else if line.starts_with(".Lfunc_end") {
            all.extend(current.take());
        } else if let Some((_, body)) = &mut current
            && (!line.is_empty() && (!line.starts_with('.') || line.ends_with(':')))
        {
            body.push(normal(line, &mut labels));
        }
    }
    all
}

/// The same functions, where the name of another one of them is replaced by a hash of its lines.
/// The compiler keeps one of several functions that are alike, and which one depends on hashes.
fn resolved(all: &Functions) -> Functions {
    /// How deep calls are followed.
    const DEPTH: usize = 4;
    let mut hashes: BTreeMap<&String, u64> = all.keys().map(|name| (name, 0)).collect();
    let replaced = |body: &Vec<String>, hashes: &BTreeMap<&String, u64>| -> Vec<String> {
        let word = |word: &str| match hashes.get(&word.to_owned()) {
            Some(hash) => format!("<{hash:016x}>"),
            None => word.to_owned(),
        };
        body.iter().map(|line| words(line).map(word).collect()).collect()
    };
    for _ in 0..DEPTH {
        let hash = |body| {
            let mut hasher = DefaultHasher::new();
            replaced(body, &hashes).hash(&mut hasher);
            hasher.finish()
        };
        hashes = all.iter().map(|(name, body)| (name, hash(body))).collect();
    }
    all.iter().map(|(name, body)| (name.clone(), replaced(body, &hashes))).collect()
}

/// Splits into words of letters, digits, `_`, `.` and `$`, and what is between them.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let is_name = |c: char| c.is_alphanumeric() || "_.$".contains(c);
    let mut rest = line;
    std::iter::from_fn(move || {
        let first = is_name(rest.chars().next()?);
        let end = rest.find(|c| is_name(c) != first).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

fn normal(line: &str, labels: &mut BTreeMap<String, usize>) -> String {
    let word = |word: &str| {
        if word.starts_with(".L") {
            let next = labels.len();
            format!(".L{}", labels.entry(word.to_owned()).or_insert(next))
        } else {
            symbol(word)
        }
    };
    words(line).map(word).collect()
}

/// A symbol without its hash, `17h` and 16 digits, and without the numbers of crates, `Cs1a2b_`.
fn symbol(name: &str) -> String {
    if let Some(at) = name.rfind("17h").filter(|_| name.starts_with("_ZN")) {
        return name[..at].to_owned();
    }
    if !name.starts_with("_R") {
        return name.to_owned();
    }
    let mut parts = name.split("Cs");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + "C" + part.split_once('_').map_or(part, |(_, rest)| rest))
}

#[test]
fn with_checking_off_the_instructions_are_those_of_the_plain_locks() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("instructions");
    package(&dir);
    let all = [Locks::Plain, Locks::Off, Locks::On].map(|locks| functions(&compile(&dir, locks)));
    let [plain, off, on] = all.each_ref().map(resolved);
    let names: Vec<&String> = plain.keys().filter(|name| !name.starts_with('_')).collect();
    assert_eq!(names.len(), FUNCTIONS, "{names:?}");
    for name in &names {
        assert_eq!(plain[*name], off[*name], "`{name}` is not that of the plain lock");
        // The comparison would see a checker.
        assert_ne!(plain[*name], on[*name], "`{name}` has no checker with debug assertions");
    }
    // What they call, too.
    let [bodies, others] = [&plain, &off].map(|all| all.values().collect::<BTreeSet<_>>());
    assert_eq!(bodies, others);
    let count = |all: &Functions| all.values().map(Vec::len).sum::<usize>();
    println!(
        "{} functions of {} lines are alike; with a checker they have {} lines",
        bodies.len(),
        count(&plain),
        count(&on)
    );
}

#[test]
fn a_difference_is_seen_and_another_hash_is_none() {
    let program = |hash: &str, instruction: &str, label: &str| {
        functions(&format!(
            "f:\n\t.cfi_startproc\n\tmovl\t$1, %eax\n{label}:\n\t{instruction}\t_ZN4core3ops17h{hash}E@PLT\n\
             \tjne\t{label}\n\tcallq\t_RNvCsaB1_4core3fooCs{hash}_3bar\n.Lfunc_end0:\n"
        ))
    };
    let one = program("0123456789abcdef", "callq", ".LBB0_1");
    assert_eq!(one["f"].len(), 5, "{one:?}");
    assert_eq!(one, program("fedcba9876543210", "callq", ".LBB7_2"));
    assert_ne!(one, program("0123456789abcdef", "jmp", ".LBB0_1"));

    let calls = |callee: &str, constant: u32| {
        let callee = format!("_ZN{callee}17h0123456789abcdefE");
        let body = format!("{callee}:\n\tmovl\t${constant}, %eax\n\tretq\n.Lfunc_end0:\n");
        resolved(&functions(&format!("{body}f:\n\tjmp\t{callee}\n.Lfunc_end1:\n")))["f"].clone()
    };
    assert_eq!(calls("3one", 1), calls("5other", 1));
    assert_ne!(calls("3one", 1), calls("3one", 2));
}
