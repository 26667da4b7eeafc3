//! Test programs: cargo builds them without running them, and its messages say where they are.

use crate::exec::{self, End};
use crate::nightly::{NIGHTLY, Sanitizer};
use crate::workspace::{LIB, LOCKS, Package, Workspace, dash_p, features};
use crate::world::World;
use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The arguments of rustup that run the cargo of this toolchain.
const RUN: [&str; 4] = ["run", NIGHTLY, "cargo", "test"];

/// How test programs are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// As `cargo xtask test` builds them.
    Native,
    /// As `cargo xtask test` builds them, but optimised.
    Optimised,
    /// Optimised, for another target of Rust.
    For(&'static str),
    /// For loom.
    Loom,
    /// For the virtual machine.
    Vm,
    /// With a sanitizer.
    Instrumented(Sanitizer),
}

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its package.
    pub package: String,
    /// The target, or [`LIB`].
    pub target: String,
    /// The file.
    pub path: PathBuf,
    /// Where cargo would run it.
    dir: PathBuf,
}

impl Program {
    /// A program that cargo has built for a target of `package`, whose directory is `dir`.
    pub fn new(package: &str, target: &str, path: PathBuf, dir: PathBuf) -> Self {
        Self { package: package.into(), target: target.into(), path, dir }
    }

    /// Where cargo would run it.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A command that runs it as cargo does.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.env("CARGO_MANIFEST_DIR", &self.dir).current_dir(&self.dir);
        command
    }

    /// The names of its tests.
    pub fn tests(&self) -> anyhow::Result<Vec<String>> {
        let printed = self.command().args(["--list", "--format", "terse"]).output()?;
        Ok(listed(&printed.stdout))
    }
}

/// The names of tests that `--list --format terse` has printed.
pub fn listed(printed: &[u8]) -> Vec<String> {
    let lines = String::from_utf8_lossy(printed);
    lines.lines().filter_map(|line| Some(line.strip_suffix(": test")?.to_owned())).collect()
}

/// Builds the targets `targets` of `packages`. A target may be a pattern. Returns None if the build
/// takes longer than `limit`.
pub fn build(
    workspace: &Workspace,
    how: How,
    packages: &[&Package],
    targets: &BTreeSet<&str>,
    limit: Duration,
) -> anyhow::Result<Option<Vec<Program>>> {
    let mut cargo = command(workspace, how, packages)?;
    for target in targets {
        match *target {
            LIB => cargo.arg("--lib"),
            target => cargo.args(["--test", target]),
        };
    }
    println!(
        "-- building for {how:?}: {}",
        packages.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(" ")
    );
    finish(cargo, workspace, limit)
}

/// Runs `cargo`, and reads which programs it has built.
fn finish(
    mut cargo: Command,
    workspace: &Workspace,
    limit: Duration,
) -> anyhow::Result<Option<Vec<Program>>> {
    cargo.arg("--no-run");
    let Some(messages) = messages(cargo, workspace, limit)? else { return Ok(None) };
    Ok(Some(messages.iter().filter_map(|message| program(message, workspace)).collect()))
}

/// Runs `cargo` to its end, and returns what it says of its work. None if it takes longer than
/// `limit`.
pub fn messages(
    mut cargo: Command,
    workspace: &Workspace,
    limit: Duration,
) -> anyhow::Result<Option<Vec<Value>>> {
    cargo.arg("--message-format=json-render-diagnostics");
    // Another command may run in the same target directory.
    let own = std::process::id();
    let files =
        ["messages", "progress"].map(|name| workspace.target().join(format!("programs-{name}-{own}")));
    fs::create_dir_all(workspace.target())?;
    let said = said(&mut cargo, &files, limit);
    files.iter().for_each(|file| _ = fs::remove_file(file));
    said
}

/// As [`messages`], with the output of `cargo` in two files.
fn said(
    cargo: &mut Command,
    [output, errors]: &[PathBuf; 2],
    limit: Duration,
) -> anyhow::Result<Option<Vec<Value>>> {
    let ran = exec::finish_apart(cargo, output, errors, limit)?;
    match ran.end {
        End::OutOfTime => Ok(None),
        End::Failed => bail!("{cargo:?} fails:\n{}", fs::read_to_string(errors)?),
        End::Passed => Ok(Some(read(&ran.output)?)),
    }
}

/// The messages of cargo in `output`. Other lines are not of cargo.
fn read(output: &str) -> anyhow::Result<Vec<Value>> {
    let lines = output.lines().filter(|line| line.starts_with('{'));
    let message = |line| serde_json::from_str(line).with_context(|| format!("no message of cargo: {line}"));
    lines.map(message).collect()
}

/// `cargo test` for `packages`.
fn command(workspace: &Workspace, how: How, packages: &[&Package]) -> anyhow::Result<Command> {
    let target = workspace.target();
    let mut cargo = Command::new(if matches!(how, How::Instrumented(_)) { "rustup" } else { "cargo" });
    cargo.current_dir(&workspace.root);
    let with_locks = [dash_p(packages), features(packages, &LOCKS)].concat();
    match how {
        How::Native => _ = cargo.arg("test").args(dash_p(packages)).arg("--all-features"),
        How::Optimised => {
            cargo.args(["test", "--profile", "model"]).args(dash_p(packages)).arg("--all-features");
        }
        How::For(target) => {
            cargo.args(["test", "--profile", "model", "--target", target]);
            if let Some((name, linker)) = linker(target) {
                cargo.env(name, linker);
            }
            cargo.args(dash_p(packages));
            // The model worlds do not compile for each target.
            let of = |package: &&Package| {
                let names = package.features_on_the_machine();
                names.map(|name| format!("{}/{name}", package.name)).collect::<Vec<_>>()
            };
            let features: Vec<_> = packages.iter().flat_map(of).collect();
            cargo.args(["--features", &features.join(",")]);
        }
        How::Loom | How::Vm => {
            let world = World::new(if how == How::Vm { "vm" } else { "loom" }, &target);
            cargo.args(["test", "--profile", "model"]).args(world.args(packages)).envs(world.env());
        }
        How::Instrumented(sanitizer) => {
            cargo.args(RUN).args(sanitizer.cargo_args(&target)?).args(with_locks);
            cargo.env("RUSTFLAGS", sanitizer.rustflags());
        }
    }
    Ok(cargo)
}

/// The variable that names the linker for `target`, and the linker, if this machine's own links
/// nothing for its processor.
fn linker(target: &str) -> Option<(String, String)> {
    let processor = target.split('-').next()?.trim_end_matches("gc");
    let variable = format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_"));
    (processor != std::env::consts::ARCH).then(|| (variable, format!("{processor}-linux-gnu-gcc")))
}

/// The target of a test, or [`LIB`], and its program, in a message of cargo.
pub fn test_program(message: &Value) -> Option<(String, PathBuf)> {
    let path = PathBuf::from(message["executable"].as_str()?);
    let target = match message["target"]["kind"][0].as_str()? {
        "test" | "bench" => message["target"]["name"].as_str()?.to_owned(),
        "bin" | "example" | "custom-build" => return None,
        // A library has several kinds: lib, rlib, cdylib, staticlib, proc-macro.
        _ => LIB.to_owned(),
    };
    message["profile"]["test"].as_bool()?.then_some((target, path))
}

/// The test program in a message of cargo.
fn program(message: &Value, workspace: &Workspace) -> Option<Program> {
    let (target, path) = test_program(message)?;
    let dir = Path::new(message["manifest_path"].as_str()?).parent()?;
    let package = workspace.packages.iter().find(|package| package.dir == dir)?;
    Some(Program { package: package.name.clone(), target, path, dir: dir.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_read_from_the_messages_of_cargo() {
        let workspace = Workspace::load().unwrap();
        let manifest = workspace.root.join("crates/locks/unfair/Cargo.toml");
        let artifact = |kind: &str, test: bool| {
            let target = format!(r#""target":{{"kind":["{kind}"],"name":"n"}}"#);
            let rest = format!(r#""profile":{{"test":{test}}},"executable":"/p""#);
            let line = format!(r#"{{{target},{rest},"manifest_path":"{}"}}"#, manifest.display());
            let message = serde_json::from_str(&line).unwrap();
            program(&message, &workspace).map(|program| (program.package, program.target))
        };
        assert_eq!(artifact("test", true), Some(("ulocks-unfair".into(), "n".into())));
        for kind in ["lib", "cdylib", "proc-macro"] {
            assert_eq!(artifact(kind, true), Some(("ulocks-unfair".into(), "lib".into())), "{kind}");
        }
        assert_eq!(artifact("bin", true), None);
        assert_eq!(artifact("lib", false), None);
        assert_eq!(program(&serde_json::json!({"reason": "build-finished"}), &workspace), None);
    }

    #[test]
    fn a_message_that_is_cut_off_is_an_error_and_no_missing_program() {
        assert_eq!(read("what a build script says\n{\"reason\":\"x\"}\n").unwrap().len(), 1);
        assert!(read("{\"reason\":\"x\"}\n{\"reason\":\"y").unwrap_err().to_string().ends_with("\"y"));
    }

    #[test]
    fn the_messages_of_two_commands_are_in_files_of_their_own() {
        let root = tempfile::tempdir().unwrap();
        let workspace = Workspace { root: root.path().to_owned(), packages: Vec::new() };
        let other = workspace.target().join("programs-messages");
        fs::create_dir_all(workspace.target()).unwrap();
        fs::write(&other, "of another command").unwrap();
        let mut cargo = Command::new("sh");
        cargo.args(["-c", "echo '{\"reason\":\"x\"}'"]);
        assert_eq!(messages(cargo, &workspace, Duration::MAX).unwrap().unwrap().len(), 1);
        assert_eq!(fs::read_to_string(&other).unwrap(), "of another command");
        let own = workspace.target().join(format!("programs-messages-{}", std::process::id()));
        assert!(!own.exists(), "it is removed");
        fs::remove_file(other).unwrap();
    }

    #[test]
    fn each_way_to_build_has_its_flags() {
        let workspace = Workspace::load().unwrap();
        let packages = workspace.select(&["ulocks-unfair".into()], "a manifest", |_| true).unwrap();
        let shown = |how| format!("{:?}", command(&workspace, how, &packages).unwrap());
        assert!(shown(How::Native).ends_with(r#""test" "-p" "ulocks-unfair" "--all-features""#));
        assert!(shown(How::Optimised).contains(r#""--profile" "model""#));
        let linker = linker("riscv64gc-unknown-linux-gnu").unwrap();
        assert_eq!(linker.0, "CARGO_TARGET_RISCV64GC_UNKNOWN_LINUX_GNU_LINKER");
        assert_eq!(linker.1, "riscv64-linux-gnu-gcc");
        assert!(shown(How::Vm).contains("--cfg ulocks_vm") && shown(How::Loom).contains("--cfg ulocks_loom"));
    }
}
