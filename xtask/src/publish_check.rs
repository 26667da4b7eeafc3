//! `cargo xtask publish-check`: packages the public crates, and builds and tests what was packaged.
//! `cargo xtask test` builds it only: the tests in the packages are those of the workspace.
//!
//! The crates lie in `target/packages` then, as somebody finds them who unpacks them from
//! crates.io, in a workspace of their own. What they need of crates.io is built where the workspace
//! has it.

use anyhow::{Context, bail};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use xshell::{Shell, cmd};
use xtask::steps::Steps;
use xtask::workspace::Workspace;

/// What each of them has.
const HAS: [&str; 4] = ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "src/lib.rs"];
/// What none of them has: it needs the repository.
const LACKS: [&str; 4] = ["tests", "mutants", "checks.toml", "patch"];

/// Packages every public crate, and runs the tests that are in the packages, with all features.
pub fn run(shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    pack(shell, workspace, steps)?;
    let target = workspace.target();
    let _there = shell.push_dir(target.join("packages"));
    let test = cmd!(shell, "cargo test --workspace --all-features --no-fail-fast --target-dir {target}");
    Ok(steps.run("packages, tests", test, &[])?)
}

/// Packages every public crate, and compiles what is in the packages, with all features.
pub fn builds(shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    pack(shell, workspace, steps)?;
    let target = workspace.target();
    let _there = shell.push_dir(target.join("packages"));
    let check = cmd!(shell, "cargo check --workspace --all-features --all-targets --target-dir {target}");
    Ok(steps.run("packages, check", check, &[])?)
}

/// Packages every public crate, and unpacks it.
fn pack(shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    let public: Vec<&str> = workspace
        .packages
        .iter()
        .filter(|package| package.is_public())
        .map(|package| package.name.as_str())
        .collect();
    let dir = workspace.target().join("packages");
    let packed = workspace.target().join("package");
    // An archive or a crate of another version would be taken for one of this version.
    empty(&packed)?;
    empty(&dir)?;
    let selected = public.iter().flat_map(|name| ["-p", name]);
    let pack = cmd!(shell, "cargo package --quiet --no-verify --allow-dirty {selected...}");
    steps.run("packages", pack, &[])?;

    let mut manifest = String::from("[workspace]\nresolver = \"3\"\nmembers = [\"*-*\"]\n");
    let profiles = fs::read_to_string(workspace.root.join("Cargo.toml"))?;
    let profiles = profiles.find("[profile.dev]").map(|at| &profiles[at..]).context("no profiles")?;
    let mut patch = String::from("\n[patch.crates-io]\n");
    for name in public {
        let version = unpack(shell, name, &packed, &dir)?;
        writeln!(patch, "{name} = {{ path = \"{version}\" }}")?;
    }
    write!(manifest, "{patch}\n{profiles}")?;
    fs::write(dir.join("Cargo.toml"), manifest)?;
    fs::copy(workspace.root.join("Cargo.lock"), dir.join("Cargo.lock"))?;
    Ok(())
}

/// Makes the folder `dir` anew.
fn empty(dir: &Path) -> anyhow::Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    Ok(fs::create_dir_all(dir)?)
}

/// Unpacks the package `name` of `packed` into a folder of `dir`, whose name it returns.
fn unpack(shell: &Shell, name: &str, packed: &Path, dir: &Path) -> anyhow::Result<String> {
    let is_of = |file: &str| {
        let rest = file.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
        rest.is_some_and(|rest| {
            rest.starts_with(|first: char| first.is_ascii_digit()) && rest.ends_with(".crate")
        })
    };
    let mut found = fs::read_dir(packed)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .filter(|file: &anyhow::Result<String>| file.as_ref().map_or(true, |file| is_of(file)));
    let file = found.next().with_context(|| format!("there is no package of {name}"))??;
    let folder = file.trim_end_matches(".crate").to_owned();
    let whole = dir.join(&folder);
    let file = packed.join(&file);
    // All files of an archive are of one day in 2006. Cargo would take what it has built of the
    // last archive for built of this one.
    cmd!(shell, "tar -xzmf {file} -C {dir}").quiet().run()?;
    for part in HAS {
        if !whole.join(part).is_file() {
            bail!("the package of {name} has no {part}");
        }
    }
    for part in LACKS {
        if whole.join(part).exists() {
            bail!(
                "the package of {name} has {part}, which needs the repository: see `include` in Cargo.toml"
            );
        }
    }
    Ok(folder)
}
