//! `cargo lab long --minutes N`: runs all tools that look for bugs by chance, one part after the
//! other, for a stated time.
//!
//! | part | what |
//! |---|---|
//! | mutants | the planted bugs, then the weakened orderings; mutants with a verdict do not run again |
//! | vm | each model on the virtual machine, with a large budget, from a new seed |
//! | miri | unit tests and `tests/miri*` of every public crate, with schedules of a new seed |
//! | tsan, asan | the stress tests, instrumented, again and again |
//! | fuzz | the fuzz targets |
//! | soak | the tests `stress*`, `shared*` and `many*`, optimised, with more threads than CPUs, again and again |
//!
//! Each part has a share of the time that is left. If a part uses less, the later parts have more.
//! If the tool of a part is missing, the part is skipped, and the table says how to install the
//! tool. A run that fails or hangs is a finding. Its output and the command that repeats it are
//! printed, and the parts go on. If there was a finding, the exit code is 1. A run that is stopped
//! because the time is up is no finding.

use crate::flags;
use anyhow::bail;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use xtask::exec::{self, End};
use xtask::nightly::{Sanitizer, fuzz_targets, miri, needs_fuzz, needs_miri, packages_for_miri};
use xtask::programs::{self, How, Program};
use xtask::steps::Steps;
use xtask::tools::Missing;
use xtask::workspace::{Package, Workspace};

/// A part of a run.
struct Part {
    name: &'static str,
    /// Its share of the time, beside those of the others.
    weight: u32,
    /// Demands its tool.
    needs: fn() -> Result<(), Missing>,
    run: fn(&Long<'_>) -> anyhow::Result<Did>,
}

/// The parts in their order.
#[rustfmt::skip]
const PARTS: [Part; 7] = [
    Part { name: "mutants", weight: 30, needs: || Ok(()), run: |long| long.mutants() },
    Part { name: "vm", weight: 25, needs: || Ok(()), run: |long| long.vm() },
    Part { name: "miri", weight: 15, needs: needs_miri, run: |long| long.miri() },
    Part { name: "tsan", weight: 8, needs: || Sanitizer::Thread.needs(), run: |long| long.tsan() },
    Part { name: "asan", weight: 6, needs: || Sanitizer::Address.needs(), run: |long| long.asan() },
    Part { name: "fuzz", weight: 8, needs: needs_fuzz, run: |long| long.fuzz() },
    Part { name: "soak", weight: 8, needs: || Ok(()), run: |long| long.soak() },
];

/// A run that takes longer counts as a hang. The slowest model with the largest budget takes a
/// small part of this time.
const HANG: Duration = Duration::from_secs(1800);
/// Executions of each exploration in the first round. It is ten times the usual number of a model
/// with many threads.
const EXECUTIONS: u64 = 20_000;
/// Schedules of each test in a round under Miri.
const SCHEDULES: u64 = 32;
/// How many tests of the soak run at once. Each test has threads and processes of its own.
const SOAK_TESTS: &str = "4";
/// The tests of the soak.
const SOAKED: [&str; 3] = ["stress*", "shared*", "many*"];
/// How many processes a test of random kills ends in the soak. It took 30 s at 15 ms a kill, of the
/// 120 s after which a watchdog ends a test.
const SOAK_KILLS: &str = "2000";
/// The time in which the fuzz targets are built. It is subtracted, since a target ends by itself.
const FUZZ_BUILD: Duration = Duration::from_secs(90);

/// What a part did.
#[derive(Debug, Default, PartialEq, Eq)]
struct Did {
    runs: u64,
    findings: u64,
    note: String,
}

impl Did {
    fn text(&self) -> String {
        let Self { runs, findings, note } = self;
        let found = match findings {
            0 => "no finding".to_owned(),
            1 => "1 FINDING".to_owned(),
            n => format!("{n} FINDINGS"),
        };
        let note = if note.is_empty() { String::new() } else { format!(", {note}") };
        match runs {
            0 => format!("NOTHING WAS RUN{note}"),
            runs => format!("{runs} runs, {found}{note}"),
        }
    }
}

/// Runs the parts that `flags` select, and prints what each did.
pub fn run(flags: &flags::Long, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    if flags.minutes == 0 {
        bail!("--minutes 0: give at least 1");
    }
    let parts = select(flags.only.as_deref())?;
    let until = Instant::now() + Duration::from_secs(60 * flags.minutes);
    let seed = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() / 60;
    println!("the seed of this run is {seed}");
    let (mut lines, mut first) = (Vec::new(), Ok(()));
    for (nth, Part { name, weight, needs, run }) in parts.iter().enumerate() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            lines.push(format!("{name:8} {:>8}  not begun: the time is up", ""));
            continue;
        }
        if let Err(missing) = needs() {
            println!("\npart {name} is skipped: {missing}");
            lines.push(format!("{name:8} {:>8}  skipped: {missing}", ""));
            continue;
        }
        let weights: u32 = parts[nth..].iter().map(|part| part.weight).sum();
        let share = left * *weight / weights;
        let mut did = Did::default();
        let start = Instant::now();
        let repeat = format!("cargo lab long --minutes {} --only {name}", flags.minutes);
        let ran = steps.check(name, &repeat, || {
            println!("this part runs for {} s", share.as_secs());
            let long = Long { workspace, until: start + share, seed };
            did = run(&long)?;
            Ok(did.findings == 0)
        });
        lines.push(format!("{name:8} {:>6.0} s  {}", start.elapsed().as_secs_f64(), did.text()));
        if let (Ok(()), Err(failed)) = (&first, ran) {
            first = Err(failed);
        }
    }
    println!("\npart         time  what it did");
    lines.iter().for_each(|line| println!("{line}"));
    Ok(first?)
}

/// The parts that `only` names, or all.
fn select(only: Option<&str>) -> anyhow::Result<Vec<Part>> {
    let Some(only) = only else { return Ok(PARTS.into()) };
    let names: Vec<_> = only.split(',').collect();
    let known = PARTS.map(|part| part.name);
    if let Some(name) = names.iter().find(|name| !known.contains(name)) {
        bail!("--only {name}: no such part; there are: {}", known.join(", "));
    }
    Ok(PARTS.into_iter().filter(|part| names.contains(&part.name)).collect())
}

/// A command that runs once in each round, with the number of the round.
struct Job<'a> {
    name: String,
    command: Box<dyn Fn(u64) -> Command + 'a>,
}

/// The part that is running.
struct Long<'a> {
    workspace: &'a Workspace,
    until: Instant,
    seed: u64,
}

impl Long<'_> {
    fn tsan(&self) -> anyhow::Result<Did> {
        self.tests(How::Instrumented(Sanitizer::Thread), &["stress*"], |_| {})
    }

    fn asan(&self) -> anyhow::Result<Did> {
        let (name, value) = Sanitizer::NO_LEAKS;
        let how = How::Instrumented(Sanitizer::Address);
        self.tests(how, &["stress*"], |command| _ = command.env(name, value))
    }

    fn soak(&self) -> anyhow::Result<Did> {
        self.tests(How::Optimised, &SOAKED, |command| {
            command.args(["--test-threads", SOAK_TESTS]).env("ULOCKS_KILLS", SOAK_KILLS);
        })
    }

    /// Runs the planted bugs first, since they are few. The audit of the orderings resumes where
    /// the last one ended.
    fn mutants(&self) -> anyhow::Result<Did> {
        let mut did = Did::default();
        let half = Instant::now() + self.left() / 2;
        for (kind, until) in [("logic", half), ("orderings", self.until)] {
            let left = until.saturating_duration_since(Instant::now());
            // A test may begin just before the budget ends, and take minutes more.
            let minutes = (left.as_secs() * 3 / 4 / 60).max(1).to_string();
            let name = format!("mutants, {kind}");
            let command = self.xtask(&["mutants", "--kind", kind, "--budget", &minutes]);
            self.once(&name, command, &mut did)?;
        }
        did.note = "see target/mutants/report.txt".into();
        Ok(did)
    }

    fn vm(&self) -> anyhow::Result<Did> {
        let Some(built) = self.build(How::Vm, &["vm*"])? else { return Ok(out_of_time()) };
        let mut jobs = Vec::new();
        for program in &built {
            for test in program.tests()? {
                jobs.push(Job {
                    name: format!("{} {}", program.package, test),
                    command: Box::new(move |round| {
                        let mut command = program.command();
                        command.args(["--exact", &test]);
                        command.env("ULOCKS_VM_EXECUTIONS", (EXECUTIONS << round.min(10)).to_string());
                        command.env("ULOCKS_VM_SEED", (self.seed + round).to_string());
                        command
                    }),
                });
            }
        }
        self.cycle(jobs)
    }

    fn miri(&self) -> anyhow::Result<Did> {
        let packages = packages_for_miri(self.workspace, &[])?;
        let jobs = packages.into_iter().map(|package| Job {
            name: format!("miri {}", package.name),
            command: Box::new(move |round| {
                // These schedules come after those of `cargo xtask miri`.
                let first = (self.seed % 1_000_000 + round) * SCHEDULES;
                let mut command = miri(self.workspace, &[package], first..first + SCHEDULES);
                command.arg("--lib");
                if !package.tests("miri").is_empty() {
                    command.args(["--test", "miri*"]);
                }
                command
            }),
        });
        self.cycle(jobs.collect())
    }

    /// Runs all tests of the targets `targets`, one program at a time.
    fn tests(&self, how: How, targets: &[&str], with: impl Fn(&mut Command)) -> anyhow::Result<Did> {
        let Some(built) = self.build(how, targets)? else { return Ok(out_of_time()) };
        let jobs = built.iter().map(|program| Job {
            name: format!("{} {}", program.package, program.target),
            command: Box::new(|_| {
                let mut command = program.command();
                with(&mut command);
                command
            }),
        });
        self.cycle(jobs.collect())
    }

    fn fuzz(&self) -> anyhow::Result<Did> {
        let targets = fuzz_targets(self.workspace)?;
        let mut did = Did::default();
        for (nth, target) in targets.iter().enumerate() {
            let share = self.left() / (targets.len() - nth) as u32;
            let seconds = share.saturating_sub(FUZZ_BUILD).as_secs().max(10).to_string();
            self.once(
                &format!("fuzz {target}"),
                self.xtask(&["fuzz", "--seconds", &seconds, target]),
                &mut did,
            )?;
        }
        Ok(did)
    }

    /// Builds the targets `targets`. Returns None if the time is up before the end of the build.
    fn build(&self, how: How, targets: &[&str]) -> anyhow::Result<Option<Vec<Program>>> {
        let (packages, all) = self.packages(targets)?;
        let all = all.iter().map(String::as_str).collect();
        programs::build(self.workspace, how, &packages, &all, self.left())
    }

    /// The packages that have one of `targets`, and these targets.
    fn packages(&self, targets: &[&str]) -> anyhow::Result<(Vec<&Package>, BTreeSet<String>)> {
        let of = |package: &Package| {
            let named = targets.iter().flat_map(|target| package.tests(target.trim_end_matches('*')));
            named.collect::<BTreeSet<_>>()
        };
        let crates = self.workspace.root.join("crates");
        let has = |package: &Package| package.dir.starts_with(&crates) && !of(package).is_empty();
        let packages = self.workspace.select(&[], &format!("tests {}", targets.join(" ")), has)?;
        let all = packages.iter().flat_map(|package| of(package)).collect();
        Ok((packages, all))
    }

    /// Runs `jobs` one after the other until the time is up. Each round has the next number.
    fn cycle(&self, mut jobs: Vec<Job<'_>>) -> anyhow::Result<Did> {
        let mut did = Did::default();
        if jobs.is_empty() {
            bail!("this part has no tests");
        }
        // A short run should not begin with the same jobs every time.
        let places = jobs.len() as u64;
        jobs.rotate_left((self.seed % places) as usize);
        for round in 0.. {
            for (nth, job) in jobs.iter().enumerate() {
                if self.left().is_zero() {
                    did.note = format!("{nth} of {places} in round {}", round + 1);
                    return Ok(did);
                }
                self.once(&job.name, (job.command)(round), &mut did)?;
            }
        }
        Ok(did)
    }

    /// Runs `command` to its end, or until the time is up.
    fn once(&self, name: &str, mut command: Command, did: &mut Did) -> anyhow::Result<()> {
        let start = Instant::now();
        let limit = self.left().min(HANG);
        let ran = exec::finish(&mut command, &self.output(), limit)?;
        let seconds = start.elapsed().as_secs_f64();
        let result = match ran.end {
            End::Passed => "ok",
            End::OutOfTime if limit < HANG => "stopped, the time is up",
            End::OutOfTime => "HANGS",
            End::Failed => "FAILED",
        };
        println!("{name}: {result}, {seconds:.1} s");
        did.runs += 1;
        if matches!(result, "HANGS" | "FAILED") {
            did.findings += 1;
            let kept = self.keep(&ran.output, did.findings)?;
            println!(
                "{}    to repeat it: {command:?}\n    all of its output: {}",
                ran.the_end(),
                kept.display()
            );
        }
        Ok(())
    }

    /// Keeps the output of a finding.
    fn keep(&self, output: &str, nth: u64) -> anyhow::Result<PathBuf> {
        let dir = self.workspace.target().join("long");
        fs::create_dir_all(&dir)?;
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let path = dir.join(format!("finding-{seconds}-{nth}"));
        fs::write(&path, output)?;
        Ok(path)
    }

    fn xtask(&self, args: &[&str]) -> Command {
        let mut command = Command::new("cargo");
        command.arg("xtask").args(args).current_dir(&self.workspace.root);
        command
    }

    fn output(&self) -> PathBuf {
        self.workspace.target().join("long-output")
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}

fn out_of_time() -> Did {
    Did { note: "the time was up before everything was built".into(), ..Did::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    const FAR: Duration = Duration::from_secs(3600);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn jobs_are_run_in_turn_until_the_time_is_up() {
        let workspace = Workspace::load().unwrap();
        let ran = RefCell::new(Vec::new());
        let noted = &ran;
        let job = |name: &'static str| Job {
            name: name.into(),
            command: Box::new(move |round| {
                noted.borrow_mut().push((name, round));
                // That there is no such program ends the turns.
                if (name, round) == ("b", 1) { Command::new("/no/such/program") } else { shell("true") }
            }),
        };
        let long = |left, seed| Long { workspace: &workspace, until: Instant::now() + left, seed };
        assert!(long(FAR, 3).cycle(vec![job("a"), job("b"), job("c")]).is_err());
        let turns = [("a", 0), ("b", 0), ("c", 0), ("a", 1), ("b", 1)];
        assert_eq!(*ran.borrow(), turns);
        let did = long(Duration::ZERO, 0).cycle(vec![job("a"), job("b")]).unwrap();
        assert_eq!(did.text(), "NOTHING WAS RUN, 0 of 2 in round 1");
    }

    #[test]
    fn a_failure_is_a_finding_and_what_is_cut_off_is_none() {
        let workspace = Workspace::load().unwrap();
        let (mut did, now) = (Did::default(), Instant::now());
        let mut once = |script: &str, until| {
            let long = Long { workspace: &workspace, until, seed: 0 };
            long.once(script, shell(script), &mut did).unwrap();
            did.text()
        };
        assert_eq!(once("true", now + FAR), "1 runs, no finding");
        assert_eq!(once("sleep 3600", now), "2 runs, no finding");
        assert_eq!(once("echo the reason; exit 3", now + FAR), "3 runs, 1 FINDING");
    }

    #[test]
    fn a_package_without_stress_has_its_processes_in_the_soak() {
        let workspace = Workspace::load().unwrap();
        let long = Long { workspace: &workspace, until: Instant::now(), seed: 0 };
        let (packages, targets) = long.packages(&SOAKED).unwrap();
        let sysv = packages.iter().find(|package| package.name == "ulocks-sysv").unwrap();
        assert!(sysv.tests("stress").is_empty() && targets.contains("shared") && targets.contains("stress"));
        let (packages, targets) = long.packages(&["stress*"]).unwrap();
        assert!(packages.iter().all(|package| package.name != "ulocks-sysv"));
        assert!(targets.iter().all(|target| target.starts_with("stress")));
    }

    #[test]
    fn a_part_that_does_not_exist_is_refused_with_those_that_do() {
        assert_eq!(select(None).unwrap().len(), PARTS.len());
        let some: Vec<_> = select(Some("soak,vm")).unwrap().into_iter().map(|part| part.name).collect();
        assert_eq!(some, ["vm", "soak"]);
        let refused = select(Some("vm,sock")).err().unwrap().to_string();
        assert_eq!(
            refused,
            "--only sock: no such part; there are: mutants, vm, miri, tsan, asan, fuzz, soak"
        );
    }
}
