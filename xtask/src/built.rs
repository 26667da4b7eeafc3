//! Runs what one build of the workspace has made: its tests, examples and benches.
//!
//! `cargo test` and `cargo run` would compile the workspace anew for each package, since the
//! features of one package alone are others than those of all. And `cargo test` runs one test
//! program after the other, although most of them sleep for most of their time. Here four run at
//! once, the longest first. (Two CPUs of an EPYC, once each, `cargo xtask test`: 208 s, and 244 s
//! where those that load every CPU ran last, two at once.)
//!
//! A test target of the workspace that cargo has not built is an error, and so is a program of
//! models without a test: what is never run would be green.
//!
//! Models load every CPU, but the last model of a program has one CPU. So two programs run at once.
//!
//! Each program that has ended is noted with its log and the hash of its code, from which `cargo
//! xtask verify --table` takes records.

use crate::code::Codes;
use crate::verify::runs::{self, Run};
use anyhow::{Context, bail, ensure};
use serde_json::Value as Message;
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};
use toml::Value;
use xshell::Shell;
use xtask::exec::{self, End};
use xtask::programs;
use xtask::steps::{Steps, Tally, command_line, failures};
use xtask::tools::today;
use xtask::workspace::{Package, Workspace};
use xtask::world::World;

/// What takes longest, and so begins first: no program is to run alone at the end.
const LONGEST: [&str; 10] = [
    "ulocks-shm test vm",
    "ulocks-psrwlock test vm",
    "ulocks-pthread test differential",
    "ulocks-sysv test signals",
    "ulocks-shm test region",
    "ulocks-shm test stress",
    "ulocks-fair test stress",
    "ulocks-unfair test many",
    "ulocks-capi test capi",
    "ulocks-sysv test shared",
];
/// A program that takes longer hangs.
const HANGS: Duration = Duration::from_secs(1200);

/// What a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Unit tests of a library or of a program, or the tests of a target.
    Tests,
    /// Models of a world.
    Models,
    /// A bench, which without options runs each path once and measures nothing.
    Bench,
    /// An example.
    Example,
}

/// A program that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Built {
    kind: Kind,
    package: String,
    /// The option of cargo that selects its target.
    target: String,
    path: PathBuf,
    /// Where cargo would run it.
    dir: PathBuf,
}

/// Programs of one world.
pub struct All {
    programs: Vec<Built>,
    world: String,
    /// The code that was built, and where runs of it are noted. None if the code has changed during
    /// the build: no record would be of known code.
    noted: Option<(Codes, PathBuf)>,
}

impl All {
    /// Builds all targets with the options `args` of cargo, which may exclude packages.
    pub fn build(args: &[&str], workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<Self> {
        let args = [&["build"], args, &["--all-targets", "--all-features"]].concat();
        let codes = Codes::load(workspace)?;
        let mut found = Vec::new();
        steps.check("build", &format!("cargo {}", args.join(" ")), || {
            let mut cargo = Command::new("cargo");
            cargo.args(&args).current_dir(&workspace.root);
            found = read(cargo, workspace)?;
            let packages = workspace.packages.iter().filter(|one| !args.contains(&one.name.as_str()));
            demand_all(packages, "", &found)?;
            Ok(true)
        })?;
        Self::of(runs::NATIVE, found, codes, workspace)
    }

    /// Builds the models of a world.
    pub fn models(
        world: &World,
        shell: &Shell,
        workspace: &Workspace,
        steps: &mut Steps,
    ) -> anyhow::Result<Self> {
        let mut found = Vec::new();
        let codes = Codes::load(workspace)?;
        let cargo = world.build(shell, workspace)?;
        steps.check(&format!("build, {}", world.name()), &command_line(&cargo, &world.env()), || {
            let mut cargo = Command::from(cargo);
            cargo.envs(world.env());
            found = read(cargo, workspace)?;
            demand_all(&workspace.packages, world.name(), &found)?;
            found.iter_mut().for_each(|built| built.kind = Kind::Models);
            Ok(true)
        })?;
        Self::of(world.name(), found, codes, workspace)
    }

    /// `programs`, which were built after `codes` was read.
    fn of(world: &str, programs: Vec<Built>, codes: Codes, workspace: &Workspace) -> anyhow::Result<Self> {
        let now = Codes::load(&Workspace::read(workspace.root.clone())?)?;
        let noted = (codes == now).then(|| (codes, runs::file(workspace)));
        Ok(Self { programs, world: world.to_owned(), noted })
    }

    /// Notes that `program` has run to its end.
    fn note(&self, program: &Built, log: &Path) -> anyhow::Result<()> {
        let Some((codes, file)) = self.noted.as_ref().filter(|_| program.kind != Kind::Bench) else {
            return Ok(());
        };
        let run = Run {
            world: self.world.clone(),
            package: program.package.clone(),
            target: program.target.trim_start_matches("--test ").trim_start_matches("--").to_owned(),
            code: codes.of(&program.package).to_owned(),
            date: today(),
            log: log.to_owned(),
        };
        run.append(file)
    }

    /// Runs the programs of one kind, as the step `name`. `repeat` is a command line that does the
    /// same. The output of each goes to a file in `logs`.
    pub fn run(
        &self,
        name: &str,
        kind: Kind,
        repeat: &str,
        logs: &Path,
        steps: &mut Steps,
    ) -> anyhow::Result<()> {
        let mut programs: Vec<&Built> = self.programs.iter().filter(|built| built.kind == kind).collect();
        programs.sort_by_key(|program| program.place());
        if programs.is_empty() {
            bail!("nothing was built for the step `{name}`");
        }
        fs::create_dir_all(logs).with_context(|| format!("cannot create {}", logs.display()))?;
        Ok(steps.count(name, repeat, |tests| {
            let mut failed = Vec::new();
            for at_once in [4, 2, 1] {
                let programs = programs.iter().copied().filter(|one| one.at_once() == at_once).collect();
                failed.extend(self.run_all(programs, at_once, logs, tests)?);
            }
            failed.iter().for_each(|failure| eprintln!("{failure}"));
            Ok(failed.is_empty())
        })?)
    }

    /// Runs `programs`, some at once. Returns what has failed.
    fn run_all(
        &self,
        programs: Vec<&Built>,
        at_once: usize,
        logs: &Path,
        tests: &mut Tally,
    ) -> anyhow::Result<Vec<String>> {
        let (work, done) = (Mutex::new(VecDeque::from(programs)), Mutex::new((tests, Vec::new())));
        let next = || work.lock().unwrap().pop_front();
        let worker = || -> anyhow::Result<()> {
            while let Some(program) = next() {
                let start = Instant::now();
                let log = logs.join(format!("{}.log", program.name().replace([' ', '-'], "_")));
                let ran = exec::finish(&mut program.command(), &log, HANGS)?;
                // Outside of its world a program of models is empty, and passes.
                let has_ended = matches!(ran.end, End::Passed);
                let is_empty = has_ended && program.kind == Kind::Models && ran.tests().passed == 0;
                let (took, passed) = (start.elapsed().as_secs_f64(), has_ended && !is_empty);
                let mut done = done.lock().unwrap();
                ran.output.lines().for_each(|line| done.0.read(line));
                let result = match ran.end {
                    End::OutOfTime => "HANGS: ",
                    _ if passed => "",
                    _ => "FAILED: ",
                };
                println!("{took:>6.1} s  {result}{}", program.name());
                self.note(program, &log)?;
                if !passed {
                    let lines: Vec<_> =
                        failures(&ran.output).iter().map(|line| format!("> {line}\n")).collect();
                    let (repeat, log) = (program.repeat(), log.display());
                    let why = if is_empty { "> no test has run\n" } else { "" };
                    done.1.push(format!(
                        "\n{}{why}whole output: {log}; to repeat it: {repeat}",
                        lines.concat()
                    ));
                }
            }
            Ok(())
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(worker)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
        })?;
        Ok(done.into_inner().unwrap().1)
    }
}

/// The programs that `cargo` builds.
fn read(cargo: Command, workspace: &Workspace) -> anyhow::Result<Vec<Built>> {
    let messages = programs::messages(cargo, workspace, Duration::MAX)?.context("the build has no limit")?;
    Ok(messages.iter().filter_map(|message| Built::read(message, workspace)).collect())
}

/// Demands that each test target of `packages` whose name begins with `prefix` is among `found`.
fn demand_all<'a>(
    packages: impl IntoIterator<Item = &'a Package>,
    prefix: &str,
    found: &[Built],
) -> anyhow::Result<()> {
    let mut missing = Vec::new();
    for package in packages {
        let runs = |test: &Value| test.get("test").and_then(Value::as_bool) != Some(false);
        let is_left_out = |name: &str| {
            let mut declared = package.manifest.declared("test");
            declared.any(|test| test.get("name").and_then(Value::as_str) == Some(name) && !runs(test))
        };
        for name in package.tests(prefix).into_iter().filter(|name| !is_left_out(name)) {
            let target = format!("--test {name}");
            if !found.iter().any(|one| one.package == package.name && one.target == target) {
                missing.push(format!("{} {name}", package.name));
            }
        }
    }
    ensure!(missing.is_empty(), "cargo has built no program of the tests {}", missing.join(", "));
    Ok(())
}

impl Built {
    /// The program in a message of cargo.
    fn read(message: &Message, workspace: &Workspace) -> Option<Self> {
        let path = PathBuf::from(message["executable"].as_str()?);
        let is_test = message["profile"]["test"].as_bool()?;
        let (of_kind, name) = (message["target"]["kind"][0].as_str()?, message["target"]["name"].as_str()?);
        let (kind, target) = match of_kind {
            "bench" => (Kind::Bench, format!("--bench {name}")),
            "example" if !is_test => (Kind::Example, format!("--example {name}")),
            _ if !is_test => return None,
            "test" | "bin" => (Kind::Tests, format!("--{of_kind} {name}")),
            "example" => return None,
            _ => (Kind::Tests, "--lib".to_owned()),
        };
        let package = Path::new(message["manifest_path"].as_str()?).parent()?;
        let found = workspace.packages.iter().find(|known| known.dir == package)?;
        let dir = if kind == Kind::Example { &workspace.root } else { &found.dir }.clone();
        Some(Self { kind, package: found.name.clone(), target, path, dir })
    }

    fn name(&self) -> String {
        format!("{} {}", self.package, self.target.trim_start_matches('-'))
    }

    /// Its place among those that run at once.
    fn place(&self) -> usize {
        let name = self.name();
        LONGEST.iter().position(|longest| *longest == name).unwrap_or(LONGEST.len())
    }

    /// How many of its like run at once.
    fn at_once(&self) -> usize {
        match self.kind {
            Kind::Tests => 4,
            Kind::Models => 2,
            Kind::Bench | Kind::Example => 1,
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.dir).env("CARGO_MANIFEST_DIR", &self.dir);
        if matches!(self.kind, Kind::Tests | Kind::Models) {
            // A model prints how many executions it has had.
            command.arg("--show-output");
        }
        command
    }

    fn repeat(&self) -> String {
        if self.kind == Kind::Models {
            // The world is not known here, but the name of the target begins with it.
            let world = self.target.trim_start_matches("--test ").split('_').next().unwrap_or_default();
            return format!("cargo xtask {world} -p {}", self.package);
        }
        let does = if self.kind == Kind::Example { "run" } else { "test" };
        format!("cargo {does} -p {} --all-features {}", self.package, self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(kind: Kind, target: &str, script: &str) -> Built {
        let path = std::env::temp_dir().join(format!("ulocks-built-{}-{target}", std::process::id()));
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&path, mode).unwrap();
        Built { kind, package: "p".into(), target: format!("--test {target}"), path, dir: "/".into() }
    }

    fn all(programs: Vec<Built>) -> All {
        All { programs, world: "native".into(), noted: None }
    }

    #[test]
    fn each_program_runs_and_its_tests_are_counted() {
        let ok = "echo 'test result: ok. 2 passed; 0 failed'";
        let programs = [
            built(Kind::Tests, "stress_all", ok),
            built(Kind::Tests, "one", ok),
            built(Kind::Tests, "two", &format!("{ok}; echo the reason; exit 1")),
            built(Kind::Bench, "b", "exit 1"),
            built(Kind::Models, "vm_rw", "exit 1"),
        ];
        assert_eq!(programs[4].repeat(), "cargo xtask vm -p p");
        let all = all(programs.into());
        assert_eq!(all.programs.iter().map(Built::at_once).collect::<Vec<_>>(), [4, 4, 4, 1, 2]);
        let logs = tempfile::tempdir().unwrap();
        let mut steps = Steps::default();
        let failed = all.run("tests", Kind::Tests, "cargo test", logs.path(), &mut steps);
        assert!(failed.unwrap_err().to_string().contains("step `tests` failed"));
        assert_eq!(steps.last_tests().passed, 6);
        let log = fs::read_to_string(logs.path().join("p_test_two.log")).unwrap();
        assert!(log.contains("the reason"), "{log}");
        assert!(
            all.run("examples", Kind::Example, "", logs.path(), &mut steps).is_err(),
            "nothing was built"
        );
        all.programs.iter().for_each(|one| fs::remove_file(&one.path).unwrap());
    }

    #[test]
    fn a_program_of_models_without_a_test_fails() {
        let empty = "echo 'test result: ok. 0 passed; 0 failed'";
        let all = all(vec![built(Kind::Models, "vm_none", empty), built(Kind::Tests, "none", empty)]);
        let logs = tempfile::tempdir().unwrap();
        let mut steps = Steps::default();
        assert!(all.run("vm", Kind::Models, "cargo xtask vm", logs.path(), &mut steps).is_err());
        assert!(all.run("tests", Kind::Tests, "cargo test", logs.path(), &mut steps).is_ok());
        all.programs.iter().for_each(|one| fs::remove_file(&one.path).unwrap());
    }

    #[test]
    fn a_target_that_was_not_built_is_named() {
        let workspace = Workspace::load().unwrap();
        let packages = || workspace.packages.iter().filter(|one| one.name == "ulocks-debug");
        let package = packages().next().unwrap();
        let mut found: Vec<_> = package.tests("").iter().map(|name| built(Kind::Tests, name, "")).collect();
        found.iter_mut().for_each(|one| one.package = package.name.clone());
        found.iter().for_each(|one| fs::remove_file(&one.path).unwrap());
        demand_all(packages(), "", &found).unwrap();
        found.retain(|one| one.target != "--test vm" && one.target != "--test instructions");
        demand_all(packages(), "loom", &found).unwrap();
        let fault = demand_all(packages(), "", &found).unwrap_err().to_string();
        assert!(fault.ends_with("of the tests ulocks-debug vm"), "it is run on demand: {fault}");
    }

    #[test]
    fn what_takes_longest_is_a_target_of_the_workspace() {
        let workspace = Workspace::load().unwrap();
        for name in LONGEST {
            let (package, test) = name.split_once(" test ").unwrap();
            let dir = &workspace.packages.iter().find(|known| known.name == package).unwrap().dir;
            let sources = [format!("tests/{test}.rs"), format!("tests/{test}/main.rs")];
            assert!(sources.iter().any(|source| dir.join(source).is_file()), "{name}");
        }
    }

    #[test]
    fn the_kind_of_a_program_is_that_of_its_target() {
        let workspace = Workspace::load().unwrap();
        let manifest = workspace.root.join("crates/locks/unfair/Cargo.toml");
        let read = |kind: &str, test: bool| {
            let target = serde_json::json!({"kind": [kind], "name": "n"});
            let message = serde_json::json!({"target": target, "profile": {"test": test}, "executable": "/p",
                "manifest_path": manifest});
            Built::read(&message, &workspace).map(|built| (built.kind, built.target))
        };
        assert_eq!(read("test", true), Some((Kind::Tests, "--test n".into())));
        assert_eq!(read("bin", true), Some((Kind::Tests, "--bin n".into())));
        assert_eq!(read("proc-macro", true), Some((Kind::Tests, "--lib".into())));
        assert_eq!(read("bench", true), Some((Kind::Bench, "--bench n".into())));
        assert_eq!(read("example", false), Some((Kind::Example, "--example n".into())));
        assert_eq!(read("bin", false), None);
    }
}
