//! `cargo xtask test`: runs everything that must pass before a merge.
//!
//! It needs the stable toolchain with rustfmt and clippy, a C compiler, git, and crates.io. It
//! needs no nightly, no root, and no network beyond the registry. One step needs the musl target of
//! the processor, and is left out without it. Cheap steps come first. One part of the planted bugs
//! runs, which the id of the commit chooses.
//!
//! The output of each step goes to a file in `target/xtask-test`. If a step fails, the messages of
//! its failures are printed.

use crate::built::{All, Kind};
use crate::verify::runs;
use crate::{header, laws, lean, mutants, pages, publish_check, vm};
use anyhow::Context;
use std::fs;
use std::path::Path;
use xshell::{Shell, cmd};
use xtask::steps::Steps;
use xtask::tools::need;
use xtask::workspace::Workspace;
use xtask::world::{World, with_flags};

/// The package that `cargo lab test` checks.
const LABORATORY: &str = "xtask-lab";
/// A test of `ulocks-debug` that runs on demand, and is no target of `--all-targets`.
const ON_DEMAND: &str = "instructions";
/// After this many minutes no further planted bug is begun. A part takes one or two minutes on two
/// CPUs that run nothing else.
const MUTANTS_MINUTES: u64 = 3;

/// Runs all steps.
pub fn run(shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    need("rustfmt", "rustup component add rustfmt", &["cargo", "fmt", "--version"])?;
    need("clippy", "rustup component add clippy", &["cargo", "clippy", "--version"])?;

    let logs = workspace.target().join("xtask-test");
    fs::create_dir_all(&logs).with_context(|| format!("cannot create {}", logs.display()))?;
    _ = fs::remove_file(runs::file(workspace));
    steps.log_to(logs.clone());

    laws::run(workspace, steps)?;
    header::check(workspace, steps)?;
    lean::run(shell, workspace, steps)?;
    steps.run("fmt", cmd!(shell, "cargo fmt --all --check"), &[])?;
    let all = ["--workspace", "--exclude", LABORATORY];
    // Tests have all features, here and below.
    let clippy =
        cmd!(shell, "cargo clippy {all...} --lib --bins --examples --test {ON_DEMAND} -- -D warnings");
    steps.run("clippy", clippy, &[])?;
    let clippy = cmd!(shell, "cargo clippy {all...} --all-targets --all-features -- -D warnings");
    steps.run("clippy, all features", clippy, &[])?;

    let deny = with_flags("RUSTDOCFLAGS", "-D warnings");
    let docs = cmd!(shell, "cargo doc {all...} --all-features --no-deps");
    let line = docs.to_string();
    steps.run("docs", docs, &[("RUSTDOCFLAGS", &deny)])?;
    pages::check(&line, workspace, steps)?;

    let built = All::build(&all, workspace, steps)?;
    built.run("tests", Kind::Tests, "cargo test --workspace --all-features --tests", &logs, steps)?;
    let doctests = cmd!(shell, "cargo test {all...} --all-features --doc --no-fail-fast");
    steps.run("doctests", doctests, &[])?;

    for world in [World::loom(workspace), World::vm(workspace)] {
        world.check(shell, workspace, steps)?;
        let name = world.name();
        let models = All::models(&world, shell, workspace, steps)?;
        models.run(name, Kind::Models, &format!("cargo xtask {name}"), &logs.join(name), steps)?;
    }
    vm::downstream(shell, workspace, steps)?;
    vm::loom_tests(shell, workspace, steps)?;
    patches(shell, workspace, steps)?;
    publish_check::builds(shell, workspace, steps)?;
    mutants::run_part(workspace, steps, MUTANTS_MINUTES)?;
    // An example ends by itself, and reports a failure by its exit code.
    let line = "cargo run --all-features --package NAME --example NAME";
    built.run("examples", Kind::Example, line, &logs, steps)?;
    musl(shell, workspace, steps)?;
    let line = "cargo test --workspace --all-features --benches";
    built.run("benches, once each", Kind::Bench, line, &logs, steps)
}

/// A feature of parking_lot that its replacement refuses.
const REFUSED: &str = "deadlock_detection";

/// Compiles what replaces parking_lot by a patch: packages outside of the workspace. They have the
/// feature that they refuse, since cargo would take the registry's parking_lot otherwise.
fn patches(shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    let target = workspace.target().join("patch");
    for version in ["0.12", "0.13"] {
        let manifest = format!("crates/faces/parking-lot/patch/{version}/Cargo.toml");
        let table: toml::Table = fs::read_to_string(workspace.root.join(&manifest))?.parse()?;
        let features = table["features"].as_table().context("a patch has features")?;
        let features = features.keys().map(String::as_str).filter(|&name| name != REFUSED);
        let features = features.collect::<Vec<_>>().join(",");
        let check = |features: &str| {
            cmd!(shell, "cargo check --manifest-path {manifest} --features {features} --target-dir {target}")
        };
        steps.run(&format!("patch of parking_lot {version}"), check(&features), &[])?;
        let refused = check(REFUSED).quiet().ignore_status();
        steps.check(&format!("patch of parking_lot {version}, refused"), &refused.to_string(), || {
            let output = refused.output()?;
            let says = String::from_utf8_lossy(&output.stderr);
            let is_right = !output.status.success() && says.contains("parking_lot/checked");
            if !is_right {
                eprintln!("the feature {REFUSED} is not refused with the way out:\n{says}");
            }
            Ok(is_right)
        })?;
    }
    Ok(())
}

/// Takes each lock in a static program that is optimised as a whole. The linker resolves names by
/// other rules there: a call of a function that the standard library names weakly may lead nowhere.
/// Without the target the step is left out.
fn musl(shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    let triple = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let libraries =
        cmd!(shell, "rustc --print target-libdir --target {triple}").quiet().ignore_stderr().read();
    if !libraries.is_ok_and(|folder| Path::new(&folder).is_dir()) {
        eprintln!("\n== static and optimised as a whole: SKIPPED, for the target {triple} is missing");
        eprintln!("get it with: rustup target add {triple}");
        return Ok(());
    }
    let target = workspace.target().join("musl");
    let run = cmd!(
        shell,
        "cargo run --quiet --release --target {triple} --target-dir {target} -p ulocks --example each_lock"
    );
    Ok(steps.run("static and optimised as a whole", run, &[("CARGO_PROFILE_RELEASE_LTO", "fat")])?)
}
