//! Runs the tests of the map, one by one, and reads their figures from what they print.

use super::map::{Check, Tool};
use super::records::Figures;
use crate::code::Codes;
use crate::fuzz;
use anyhow::{Context, bail, ensure};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use xshell::Shell;
use xtask::exec::{self, End, LIMIT};
use xtask::nightly::{self, Sanitizer};
use xtask::programs::{self, How};
use xtask::tools::Missing;
use xtask::workspace::LIB;
use xtask::workspace::{Package, Workspace};

/// The schedules of each test under Miri.
const SEEDS: u64 = 16;
/// How long a fuzz target runs.
const FUZZ_SECONDS: u64 = 60;
/// Miri is a hundred times as slow as the machine, and runs each test once for each schedule.
const MIRI_LIMIT: Duration = Duration::from_secs(1800);

/// What a test prints at the beginning of a line if the machine does not permit what it tests. The
/// test passes then, and has no result.
const NOT_TESTED: &str = "not tested:";

/// Runs the checks of one tool and one package, and begins none after `until`. Calls `note` with
/// each check and its figures, or with None if the check failed. A check that tests nothing on this
/// machine is not noted.
///
/// The figures have the hash of the code that was built.
///
/// # Errors
/// If a build fails: that says nothing of the checks. Or if the source changes during the build,
/// for the hash would be of other code.
pub fn run(
    workspace: &Workspace,
    tool: Tool,
    package: &str,
    checks: &[&Check],
    until: Option<Instant>,
    mut note: impl FnMut(&Check, Option<Figures>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let left = || until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
    if left().is_zero() {
        return Ok(());
    }
    let output = workspace.target().join("verify-output");
    let code = Code::read(workspace, package)?;
    let package = workspace.packages.iter().find(|known| known.name == package);
    let targets: BTreeSet<_> = checks.iter().map(|check| check.target.as_str()).collect();
    let built = match (how(tool), package) {
        (Some(how), Some(package)) => programs::build(workspace, how, &[package], &targets, left())?,
        _ => Some(Vec::new()),
    };
    let mut is_built = built.is_some();
    for mut command in builds(workspace, tool, package, &targets)? {
        is_built = is_built && build(&mut command, &output, left())?;
    }
    // None if the time was up before the programs were built.
    let Some(built) = built.filter(|_| is_built) else { return Ok(()) };
    code.demand_same(workspace)?;
    for check in checks {
        if left().is_zero() {
            return Ok(());
        }
        let (mut command, limit) = match (tool, package) {
            (Tool::Fuzz, _) => (fuzz_command(workspace, &check.target), LIMIT),
            (Tool::Miri, Some(package)) => (miri_command(workspace, package, check), MIRI_LIMIT),
            (_, Some(_)) => {
                let program = built.iter().find(|program| program.target == check.target);
                let mut command = program.context("cargo has built no such test")?.command();
                command.args(["--exact", &check.test, "--nocapture"]);
                (command, LIMIT)
            }
            (_, None) => bail!("no package `{}`", check.package),
        };
        let start = Instant::now();
        let ran = exec::finish(&mut command, &output, limit)?;
        let seconds = start.elapsed().as_secs_f64();
        let is_right = matches!(ran.end, End::Passed) && (tool == Tool::Fuzz || ran.tests().passed > 0);
        let not_tested = not_tested(&ran.output).filter(|_| is_right);
        println!("{tool}: {} {}/{}: {}, {seconds:.1} s", check.package, check.target, check.test, {
            not_tested.unwrap_or(if is_right { "ok" } else { "FAILED" })
        });
        if how(tool).is_none() {
            // Its command may have built the code anew.
            code.demand_same(workspace)?;
        }
        if not_tested.is_some() {
            continue;
        }
        let mut figures = None;
        if is_right {
            let seeds = (tool == Tool::Miri).then_some(SEEDS);
            let code = code.hash.clone();
            figures = Some(Figures { code, seeds, ..Figures::read(tool, &ran.output, Some(seconds)) });
        } else {
            println!("{}", ran.the_end());
        }
        note(check, figures)?;
    }
    Ok(())
}

/// The code of a package before a build.
struct Code<'a> {
    package: &'a str,
    hash: String,
}

impl<'a> Code<'a> {
    fn read(workspace: &Workspace, package: &'a str) -> anyhow::Result<Self> {
        // The manifests may have changed too.
        let codes = Codes::load(&Workspace::read(workspace.root.clone())?)?;
        Ok(Self { package, hash: codes.of(package).to_owned() })
    }

    /// Demands that the source is what it was.
    fn demand_same(&self, workspace: &Workspace) -> anyhow::Result<()> {
        let package = if self.package.is_empty() { "what the fuzz targets run" } else { self.package };
        let now = Self::read(workspace, self.package)?;
        ensure!(
            now.hash == self.hash,
            "the source of {package} has changed since the build began, so no record would be of known \
             code; to record it, run the command again"
        );
        Ok(())
    }
}

/// The line of `output` by which a test says that it tests nothing here.
pub fn not_tested(output: &str) -> Option<&str> {
    // With one thread libtest begins the line with the name of the test.
    let lines = output.lines().map(|line| match line.split_once(" ... ") {
        Some((name, said)) if name.starts_with("test ") => said,
        _ => line,
    });
    lines.into_iter().find(|line| line.starts_with(NOT_TESTED))
}

/// How the tests of `tool` are built. None if its own command builds them.
fn how(tool: Tool) -> Option<How> {
    match tool {
        Tool::Loom => Some(How::Loom),
        Tool::Vm => Some(How::Vm),
        Tool::Tsan => Some(How::Instrumented(Sanitizer::Thread)),
        Tool::Stress | Tool::Differential => Some(How::Native),
        Tool::Miri | Tool::Fuzz => None,
    }
}

/// The commands that build `targets`, if the command of `tool` builds what it runs. It would report
/// an error of the compiler as it reports a test that fails.
fn builds(
    workspace: &Workspace,
    tool: Tool,
    package: Option<&Package>,
    targets: &BTreeSet<&str>,
) -> anyhow::Result<Vec<Command>> {
    match (tool, package) {
        (Tool::Miri, Some(package)) => {
            let mut command = nightly::miri(workspace, &[package], 0..1);
            targets.iter().for_each(|target| select(target, &mut command));
            // Miri compiles a program only in order to run it: not with `--no-run`.
            command.args(["--", "--list"]);
            Ok(vec![command])
        }
        (Tool::Fuzz, _) => {
            let shell = Shell::new()?;
            shell.change_dir(&workspace.root);
            let command = |target: &&str| {
                let (cargo, rustflags) = fuzz::command("build", target, &shell, workspace)?;
                let mut command = Command::from(cargo);
                command.env("RUSTFLAGS", rustflags);
                Ok(command)
            };
            targets.iter().map(command).collect()
        }
        _ => Ok(Vec::new()),
    }
}

/// Runs a command that builds. Returns false if it takes longer than `limit`.
///
/// # Errors
/// If it fails.
fn build(command: &mut Command, output: &Path, limit: Duration) -> anyhow::Result<bool> {
    let ran = exec::finish(command, output, limit)?;
    match ran.end {
        End::Passed => Ok(true),
        End::OutOfTime => Ok(false),
        End::Failed => bail!("{command:?} fails:\n{}", ran.output),
    }
}

/// Selects a target of tests.
fn select(target: &str, command: &mut Command) {
    match target {
        LIB => command.arg("--lib"),
        target => command.args(["--test", target]),
    };
}

/// What `tool` needs, if it is not installed.
pub fn missing(tool: Tool) -> Option<Missing> {
    let there = match tool {
        Tool::Miri => nightly::needs_miri(),
        Tool::Tsan => Sanitizer::Thread.needs(),
        Tool::Fuzz => nightly::needs_fuzz(),
        _ => Ok(()),
    };
    there.err()
}

fn miri_command(workspace: &Workspace, package: &Package, check: &Check) -> Command {
    let mut command = nightly::miri(workspace, &[package], 0..SEEDS);
    select(&check.target, &mut command);
    command.args(["--", "--exact", &check.test, "--nocapture"]);
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
    use std::fs;

    #[test]
    fn a_change_of_the_source_after_the_begin_of_a_build_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| fs::write(root.path().join(file), text).unwrap();
        fs::create_dir_all(root.path().join("a/src")).unwrap();
        write("Cargo.toml", "[workspace]\nmembers = [\"a\"]\n");
        write("a/Cargo.toml", "[package]\nname = \"a\"\n");
        write("a/src/lib.rs", "fn f() {}");
        let workspace = Workspace::read(root.path().to_owned()).unwrap();
        let code = Code::read(&workspace, "a").unwrap();
        write("a/src/lib.rs", "/// The same code.\nfn f() {}");
        code.demand_same(&workspace).unwrap();
        write("a/src/lib.rs", "fn g() {}");
        let refused = code.demand_same(&workspace).unwrap_err().to_string();
        assert!(refused.starts_with("the source of a has changed"), "{refused}");
        write("a/src/lib.rs", "fn f() {}");
        write("a/Cargo.toml", "[package]\nname = \"a\"\n[features]\nb = []\n");
        assert!(code.demand_same(&workspace).is_err(), "a feature is code");
    }

    #[test]
    fn what_does_not_compile_is_an_error_and_no_failing_test() {
        let workspace = Workspace::load().unwrap();
        let package = workspace.packages.iter().find(|package| package.name == "ulocks-unfair");
        let shown = |tool, targets| {
            let commands = builds(&workspace, tool, package, &BTreeSet::from(targets)).unwrap();
            commands.iter().map(|command| format!("{command:?}")).collect::<Vec<_>>()
        };
        let miri = shown(Tool::Miri, [LIB, "miri"]);
        assert!(miri.len() == 1 && miri[0].ends_with(r#""--lib" "--test" "miri" "--" "--list""#), "{miri:?}");
        let fuzz = shown(Tool::Fuzz, ["schedules", "region"]);
        assert!(fuzz.len() == 2 && fuzz[0].contains(r#""fuzz" "build""#), "{fuzz:?}");
        assert!(fuzz[1].contains("--cfg ulocks_vm") && !fuzz[0].contains("--cfg ulocks_vm"), "{fuzz:?}");
        assert!(shown(Tool::Vm, ["vm", "lib"]).is_empty(), "`programs` builds it");

        let dir = tempfile::tempdir().unwrap();
        let script = |script: &str, limit| {
            build(Command::new("sh").args(["-c", script]), &dir.path().join("output"), limit)
                .map_err(|error| error.to_string())
        };
        assert_eq!(script("true", Duration::MAX), Ok(true));
        assert_eq!(script("sleep 3600", Duration::ZERO), Ok(false));
        let refused = script("echo error: no such function; exit 101", Duration::MAX).unwrap_err();
        assert!(refused.contains("error: no such function"), "{refused}");
    }

    #[test]
    fn a_test_that_says_so_has_no_result() {
        let said = "not tested: no priority";
        for output in [format!("\n{said}\ntest a ... ok\n"), format!("test a::b ... {said}\nok\n")] {
            assert_eq!(not_tested(&output), Some(said), "{output}");
        }
        assert_eq!(not_tested("test a ... ok\nwhat is not tested: nothing\n"), None);
    }
}
