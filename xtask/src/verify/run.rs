//! Runs the tests of the map, one by one, and reads their figures from what they print.

use super::map::{Check, Tool};
use super::records::Figures;
use crate::mutants::exec::{self, End, LIMIT};
use crate::mutants::spec::LIB;
use crate::tools::Missing;
use crate::workspace::{LOCKS, Package, Workspace, features};
use crate::world::{World, with_flags};
use crate::{fuzz, miri, tsan};
use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const NIGHTLY: &str = "nightly";
/// The schedules of each test under Miri.
const SEEDS: u64 = 16;
/// How long a fuzz target runs.
const FUZZ_SECONDS: u64 = 60;
/// Miri is a hundred times as slow as the machine, and runs each test once for each schedule.
const MIRI_LIMIT: Duration = Duration::from_secs(1800);

/// Runs the checks of one tool and one package, and calls `note` with each and its figures, or None if it failed.
pub fn run(
    workspace: &Workspace,
    tool: Tool,
    package: &str,
    checks: &[&Check],
    mut note: impl FnMut(&Check, Option<Figures>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let output = workspace.target().join("verify-output");
    let package = workspace.packages.iter().find(|known| known.name == package);
    let programs = match (tool, package) {
        (Tool::Miri | Tool::Fuzz, _) | (_, None) => BTreeMap::new(),
        (_, Some(package)) => {
            let targets = checks.iter().map(|check| check.target.as_str()).collect();
            programs(build_command(workspace, tool, package)?, &targets)?
        }
    };
    for check in checks {
        let (mut command, limit) = match (tool, package) {
            (Tool::Fuzz, _) => (fuzz_command(workspace, &check.target), LIMIT),
            (Tool::Miri, Some(package)) => (miri_command(workspace, package, check), MIRI_LIMIT),
            (_, Some(package)) => {
                let program = programs.get(&check.target).context("cargo has built no such test")?;
                let mut command = Command::new(program);
                command.args(["--exact", &check.test, "--nocapture"]);
                command.env("CARGO_MANIFEST_DIR", &package.dir).current_dir(&package.dir);
                (command, LIMIT)
            }
            (_, None) => bail!("no package `{}`", check.package),
        };
        let start = Instant::now();
        let ran = exec::finish(&mut command, &output, limit)?;
        let seconds = start.elapsed().as_secs_f64();
        let is_right = matches!(ran.end, End::Passed) && (tool == Tool::Fuzz || ran.tests().passed > 0);
        println!("{tool}: {} {}/{}: {}, {seconds:.1} s", check.package, check.target, check.test, {
            if is_right { "ok" } else { "FAILED" }
        });
        let mut figures = None;
        if is_right {
            let seeds = (tool == Tool::Miri).then_some(SEEDS);
            figures = Some(Figures { seeds, ..Figures::read(tool, &ran.output, seconds) });
        } else {
            println!("{}", ran.the_end());
        }
        note(check, figures)?;
    }
    Ok(())
}

/// What `tool` needs and does not find.
pub fn missing(tool: Tool) -> Option<Missing> {
    let there = match tool {
        Tool::Miri => miri::needs(NIGHTLY),
        Tool::Tsan => tsan::needs(NIGHTLY),
        Tool::Fuzz => fuzz::needs(NIGHTLY),
        _ => Ok(()),
    };
    there.err()
}

/// `cargo test` for the tests of a package, in the world of `tool`.
fn build_command(workspace: &Workspace, tool: Tool, package: &Package) -> anyhow::Result<Command> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&workspace.root);
    match tool {
        Tool::Loom | Tool::Vm => {
            let world = World::new(tool.name(), &workspace.target());
            cargo.args(["test", "--profile", "model"]).args(world.args(&[package])).envs(world.env());
        }
        Tool::Tsan => {
            cargo = Command::new("rustup");
            cargo.current_dir(&workspace.root);
            cargo
                .args(["run", NIGHTLY, "cargo", "test"])
                .args(tsan::cargo_args(NIGHTLY, &workspace.target())?);
            cargo.args(["-p", &package.name]).args(features(&[package], &LOCKS));
            cargo.env("RUSTFLAGS", tsan::rustflags());
        }
        _ => _ = cargo.args(["test", "-p", &package.name, "--all-features"]),
    }
    Ok(cargo)
}

/// Builds `targets` with `cargo`, and returns their programs.
fn programs(mut cargo: Command, targets: &BTreeSet<&str>) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    for target in targets {
        match *target {
            LIB => cargo.arg("--lib"),
            target => cargo.args(["--test", target]),
        };
    }
    cargo.args(["--no-run", "--message-format=json-render-diagnostics"]).stderr(Stdio::inherit());
    let built = cargo.stdin(Stdio::null()).output()?;
    if !built.status.success() {
        bail!("{cargo:?} fails");
    }
    Ok(String::from_utf8_lossy(&built.stdout).lines().filter_map(program).collect())
}

/// The test program in a message of cargo.
fn program(line: &str) -> Option<(String, PathBuf)> {
    let message: Value = serde_json::from_str(line).ok()?;
    let program = PathBuf::from(message["executable"].as_str()?);
    if !message["profile"]["test"].as_bool()? {
        return None;
    }
    match message["target"]["kind"][0].as_str()? {
        "test" => Some((message["target"]["name"].as_str()?.to_owned(), program)),
        "lib" => Some((LIB.to_owned(), program)),
        _ => None,
    }
}

fn miri_command(workspace: &Workspace, package: &Package, check: &Check) -> Command {
    let mut command = Command::new("rustup");
    command.current_dir(&workspace.root).args(["run", NIGHTLY, "cargo", "miri", "test", "--target-dir"]);
    command
        .arg(workspace.target().join("miri"))
        .args(["-p", &package.name])
        .args(features(&[package], &LOCKS));
    match check.target.as_str() {
        LIB => command.arg("--lib"),
        target => command.args(["--test", target]),
    };
    command.args(["--", "--exact", &check.test]);
    command.env("MIRIFLAGS", with_flags("MIRIFLAGS", &format!("-Zmiri-many-seeds=0..{SEEDS}")));
    command
}

fn fuzz_command(workspace: &Workspace, target: &str) -> Command {
    let mut command = Command::new("cargo");
    let seconds = FUZZ_SECONDS.to_string();
    command.current_dir(&workspace.root).args(["xtask", "fuzz", "--seconds", &seconds, target]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_read_from_the_messages_of_cargo() {
        let artifact = |kind: &str, test: bool| {
            format!(
                r#"{{"target":{{"kind":["{kind}"],"name":"n"}},"profile":{{"test":{test}}},"executable":"/p"}}"#
            )
        };
        assert_eq!(program(&artifact("test", true)), Some(("n".into(), "/p".into())));
        assert_eq!(program(&artifact("lib", true)), Some(("lib".into(), "/p".into())));
        assert_eq!(program(&artifact("bin", true)), None);
        assert_eq!(program(&artifact("lib", false)), None);
        assert_eq!(program(r#"{"reason":"build-finished"}"#), None);
    }
}
