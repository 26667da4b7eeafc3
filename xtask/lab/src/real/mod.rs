//! `cargo lab real [--minutes N] [--program NAME,..] [--locks A,B] [--suite DIR]`:
//! runs programs that other people wrote, on glibc and with the preload libraries.
//!
//! The subjects of a program are glibc and the locks of `LOCKS`. A round runs each subject once, in
//! an order that rotates from round to round. Ratios are those within rounds. A run that fails or
//! hangs, or that computes something else than glibc does, is a failure of the command.
//!
//! A program that is not installed is skipped, with the command that installs it. If nothing can
//! run, the exit code is 2. The command is no part of `cargo xtask test`: it needs programs from
//! outside, and minutes.

mod memcache;
mod process;
mod programs;
mod report;
mod servers;
/// The statistics of the benches.
#[path = "../../../../benches/src/statistics/mod.rs"]
#[allow(dead_code, reason = "the benches have more to say")]
mod statistics;
mod suite;

use crate::flags;
use anyhow::{Context, bail};
use programs::{Bench, Face, Outcome, REAL, Real};
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use xshell::{Shell, cmd};
use xtask::steps::Steps;
use xtask::workspace::Workspace;

const MINUTES: u64 = 10;
/// The sign test needs six rounds for an interval that covers 95 %.
const ROUNDS: usize = 6;
const MOST_ROUNDS: usize = 30;
/// How long one run should last: long enough for a server to be busy, short enough for many rounds.
const SHORTEST: u64 = 1;
const LONGEST: u64 = 10;

/// A choice of locks: a name, the library, and the variables that choose.
struct Lock {
    name: &'static str,
    face: Face,
    variables: &'static [(&'static str, &'static str)],
    by_default: bool,
}

#[rustfmt::skip]
const LOCKS: &[Lock] = &[
    Lock { name: "throughput", face: Face::Pthread, variables: &[("ULOCKS_MUTEX", "throughput")], by_default: true },
    Lock { name: "calock", face: Face::Pthread, variables: &[("ULOCKS_MUTEX", "calock")], by_default: true },
    Lock { name: "fair", face: Face::Pthread, variables: &[("ULOCKS_MUTEX", "fair")], by_default: true },
    Lock { name: "unfair", face: Face::Pthread, variables: &[("ULOCKS_MUTEX", "unfair")], by_default: false },
    Lock { name: "pi", face: Face::Pthread, variables: &[("ULOCKS_MUTEX", "pi")], by_default: false },
    Lock { name: "psrwlock", face: Face::Pthread, variables: &[("ULOCKS_MUTEX", "glibc"), ("ULOCKS_RWLOCK", "psrwlock")], by_default: false },
    Lock { name: "passed-on", face: Face::Pthread, variables: &[("ULOCKS_MUTEX", "glibc"), ("ULOCKS_RWLOCK", "glibc")], by_default: false },
    Lock { name: "sysv", face: Face::Sysv, variables: &[], by_default: true },
];

/// What one subject did in all rounds.
pub struct Subject {
    pub name: &'static str,
    pub rounds: Vec<Result<Outcome, String>>,
}

/// What all subjects of a program did; the first is glibc.
pub struct Measured {
    pub real: &'static Real,
    pub subjects: Vec<Subject>,
}

/// The libraries, as they were built.
struct Libraries {
    pthread: PathBuf,
    sysv: PathBuf,
}

impl Libraries {
    fn build(shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<Self> {
        let build = cmd!(shell, "cargo build --release -p ulocks-pthread -p ulocks-sysv");
        steps.run("build the libraries", build, &[])?;
        let dir = workspace.target().join("release");
        let there = |name: &str| {
            let path = dir.join(name);
            path.is_file()
                .then_some(path)
                .with_context(|| format!("cargo has built no {name} in {}", dir.display()))
        };
        Ok(Self { pthread: there("libulocks_pthread.so")?, sysv: there("libulocks_sysv.so")? })
    }

    /// The variables of a subject in a directory of its own; none are those of glibc.
    fn variables(&self, lock: Option<&Lock>, dir: &Path) -> Vec<(&'static str, String)> {
        let Some(lock) = lock else { return Vec::new() };
        let library = if lock.face == Face::Pthread { &self.pthread } else { &self.sysv };
        let mut variables = vec![("LD_PRELOAD", programs::path(library))];
        variables.extend(lock.variables.iter().map(|&(name, value)| (name, value.to_owned())));
        if lock.face == Face::Sysv {
            variables.push(("ULOCKS_SYSV_DIR", programs::path(dir)));
        }
        variables
    }
}

pub fn run(
    flags: &flags::Real,
    shell: &Shell,
    workspace: &Workspace,
    steps: &mut Steps,
) -> anyhow::Result<()> {
    let locks = chosen(flags.locks.as_deref(), "--locks", LOCKS, |lock| lock.name, |lock| lock.by_default)?;
    let reals = chosen(flags.program.as_deref(), "--program", REAL, |real| real.name, |_| true)?;
    if flags.minutes == Some(0) {
        bail!("--minutes 0: at least 1");
    }
    if let Some(dir) = &flags.suite {
        let suite = suite::Suite::load(dir, flags)?;
        let libraries = Libraries::build(shell, workspace, steps)?;
        return suite::run(&suite, &locks, &libraries, steps);
    }

    let (able, unable): (Vec<_>, Vec<_>) = reals.into_iter().partition(|real| real.missing().is_none());
    for real in &unable {
        eprintln!("skipped: {}: {}", real.name, real.missing().unwrap_or_default());
    }
    if able.is_empty() {
        let packages: BTreeSet<_> = unable.iter().flat_map(|real| real.packages.split(' ')).collect();
        let packages = packages.into_iter().collect::<Vec<_>>().join(" ");
        bail!("no program is installed; get them with: apt-get install {packages}");
    }
    let with_a_lock: Vec<_> =
        able.into_iter().filter(|real| locks.iter().any(|lock| lock.face == real.face)).collect();
    if with_a_lock.is_empty() {
        bail!("--locks: none of them is for these programs");
    }

    let libraries = Libraries::build(shell, workspace, steps)?;
    // It is the locks that are measured, and not the disk.
    let scratch = memory().join(format!("ulocks-real-{}", std::process::id()));
    let end = Instant::now() + Duration::from_secs(60 * flags.minutes.unwrap_or(MINUTES));
    let mut measured = Vec::new();
    let count = with_a_lock.len();
    for (nth, real) in with_a_lock.into_iter().enumerate() {
        let share = end.saturating_duration_since(Instant::now()) / u32::try_from(count - nth)?;
        let dir = scratch.join(real.name);
        fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        measured.push(measure(real, &locks, &libraries, &dir, share));
    }
    _ = fs::remove_dir_all(&scratch);

    let out = workspace.target().join("ulocks-real");
    report::write(&measured, &unable, &out)?;
    println!("\n{}", report::markdown(&measured, &unable));
    println!("{}", out.join("real.md").display());
    Ok(steps.check("real programs", "cargo lab real", || {
        let failures: Vec<_> = measured.iter().flat_map(report::failures).collect();
        failures.iter().for_each(|failure| eprintln!("{failure}"));
        Ok(failures.is_empty())
    })?)
}

/// A folder in memory, where there is one.
fn memory() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { env::temp_dir() }
}

/// The entries that a list with commas names, or those by default.
fn chosen<T>(
    list: Option<&str>,
    option: &str,
    all: &'static [T],
    name: impl Fn(&T) -> &'static str,
    by_default: impl Fn(&T) -> bool,
) -> anyhow::Result<Vec<&'static T>> {
    let Some(list) = list else { return Ok(all.iter().filter(|entry| by_default(entry)).collect()) };
    let known = || all.iter().map(&name).collect::<Vec<_>>().join(", ");
    list.split(',')
        .map(|word| {
            let found = all.iter().find(|entry| name(entry) == word.trim());
            found.with_context(|| format!("{option} {word}: it is one of {}", known()))
        })
        .collect()
}

/// Runs rounds until the time is up, but at least `ROUNDS`.
fn measure(
    real: &'static Real,
    locks: &[&'static Lock],
    libraries: &Libraries,
    dir: &Path,
    share: Duration,
) -> Measured {
    let locks: Vec<Option<&Lock>> = [None]
        .into_iter()
        .chain(locks.iter().copied().filter(|lock| lock.face == real.face).map(Some))
        .collect();
    let runs = u64::try_from(locks.len() * ROUNDS).unwrap_or(u64::MAX);
    let seconds = (share.as_secs() / runs).clamp(SHORTEST, LONGEST);
    let name = |lock: Option<&Lock>| lock.map_or("glibc", |lock| lock.name);
    let mut subjects: Vec<_> =
        locks.iter().map(|&lock| Subject { name: name(lock), rounds: Vec::new() }).collect();
    let end = Instant::now() + share;
    eprintln!("\n== {}: {}; runs of about {seconds} s", real.name, real.what);
    let mut round = 0;
    while round < ROUNDS || (round < MOST_ROUNDS && Instant::now() < end) {
        for nth in 0..locks.len() {
            let which = (nth + round) % locks.len();
            // What failed or hung once would only cost the time of the others.
            if subjects[which].rounds.iter().any(Result::is_err) {
                continue;
            }
            let variables = libraries.variables(locks[which], dir);
            let outcome = (real.run)(&Bench { dir: dir.to_owned(), variables, seconds });
            let outcome = outcome.map_err(|error| format!("{error:#}"));
            match &outcome {
                Ok(outcome) => eprintln!(
                    "round {}, {}: {:.0} {}",
                    round + 1,
                    subjects[which].name,
                    outcome.rate,
                    real.unit
                ),
                Err(error) => eprintln!("round {}, {}: FAILED: {error}", round + 1, subjects[which].name),
            }
            subjects[which].rounds.push(outcome);
        }
        round += 1;
        if subjects[0].rounds.iter().any(Result::is_err) {
            break;
        }
    }
    Measured { real, subjects }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locks(list: Option<&str>) -> anyhow::Result<Vec<&'static str>> {
        let chosen = chosen(list, "--locks", LOCKS, |lock| lock.name, |lock| lock.by_default)?;
        Ok(chosen.iter().map(|lock| lock.name).collect())
    }

    #[test]
    fn an_unknown_lock_is_named_with_those_that_exist() {
        let error = locks(Some("fair,quick")).unwrap_err().to_string();
        assert!(error.contains("quick") && error.contains("throughput, calock"), "{error}");
        assert_eq!(locks(Some("fair, calock")).unwrap(), ["fair", "calock"]);
        assert!(locks(None).unwrap().contains(&"sysv"));
    }

    #[test]
    fn every_program_has_a_lock_by_default() {
        for real in REAL {
            assert!(LOCKS.iter().any(|lock| lock.by_default && lock.face == real.face), "{}", real.name);
        }
    }
}
