//! The audit of orderings: for each way to weaken a site, some model must fail.
//!
//! A mutant runs on the models of its lock, without the models that are only there for planted
//! bugs. It runs on the virtual machine first, and if it survives, under loom. The first test that
//! fails ends the run. If a mutant survives a world, it runs there once more, to find out whether
//! any model reaches its site at all. Each world has a record of its own, so a run in one world is
//! a part of the run in both.

use super::audit::{Audit, Needed, Store};
use super::build::Unit;
use super::exec::{self, End, LIMIT, Verdict};
use super::orderings::{self, Constants, Site};
use super::plant::VARIABLE;
use super::report::Row;
use super::results::Record;
use crate::workspace::{Package, Workspace};
use anyhow::Context;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The crates whose orderings are audited, with the parts of their sources.
const SCOPE: [(&str, &[&str]); 9] = [
    ("ulocks-core", &["lock/condvar", "lock/inflated.rs", "sys/robust.rs", "sys/signal"]),
    ("ulocks-unfair", &[""]),
    ("ulocks-fair", &[""]),
    ("ulocks-calock", &[""]),
    ("ulocks-pi", &[""]),
    ("ulocks-psrwlock", &[""]),
    ("ulocks-semarray", &[""]),
    ("ulocks-shm", &["slots", "robust", "directory"]),
    ("ulocks-parking-lot", &[""]),
];
/// What has its models in another package.
const MODELS_ELSEWHERE: [(&str, &str); 1] = [("crates/core/src/sys/robust.rs", "ulocks-shm")];
/// The worlds with a model of memory, the faster one first.
const WORLDS: [&str; 2] = ["vm", "loom"];
/// A run with a mutant may take this many times as long as a run without one.
const PATIENCE: u32 = 4;

/// A site, and where it is.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Its number.
    pub id: u32,
    /// The site in its file.
    pub site: Site,
    /// Its file.
    pub file: String,
    /// Its package.
    pub package: String,
}

/// A site weakened in one way.
#[derive(Clone, Debug)]
pub struct Weakening {
    /// The site's number, and the letter.
    pub value: String,
    /// Its place and the change, for a reader.
    pub name: String,
    /// Its file, its number and the change: a name that stays the same if lines move.
    pub key: String,
    /// Its file.
    pub file: String,
    /// Its package.
    pub package: String,
    /// Why no model can report it.
    pub explained: Option<String>,
}

/// All sites of the workspace, and the faults of explanations.
pub fn load(workspace: &Workspace) -> anyhow::Result<(Vec<Placed>, Vec<String>)> {
    let (mut placed, mut faults) = (Vec::new(), Vec::new());
    for (name, parts) in SCOPE {
        let Some(package) = workspace.packages.iter().find(|package| package.name == name) else { continue };
        let mut paths = Vec::new();
        for part in parts {
            sources(&package.dir.join("src").join(part), &mut paths)?;
        }
        paths.sort();
        let (mut texts, mut constants) = (Vec::new(), Constants::new());
        for path in paths {
            let file = path.strip_prefix(&workspace.root)?.to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {file}"))?;
            orderings::constants(&text, &mut constants)
                .map_err(|fault| anyhow::anyhow!("{file}: {fault}"))?;
            texts.push((file, text));
        }
        for (file, text) in texts {
            let (sites, wrong) =
                orderings::find(&text, &constants).map_err(|fault| anyhow::anyhow!("{file}: {fault}"))?;
            faults.extend(wrong.into_iter().map(|(line, what)| format!("{file}:{line}: {what}")));
            let place = |(nth, site)| Placed {
                id: super::spec::number(&file, &format!("site {nth}")),
                site,
                file: file.clone(),
                package: name.to_owned(),
            };
            placed.extend((0..).zip(sites).map(place));
        }
    }
    Ok((placed, faults))
}

/// The sources at `path`, except tests and bugs that are planted in the source.
fn sources(path: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    if name == "tests" {
        return Ok(());
    }
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            sources(&entry?.path(), found)?;
        }
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        found.push(path.to_owned());
    }
    Ok(())
}

impl Placed {
    /// All ways to weaken it.
    pub fn weakenings(&self) -> impl Iterator<Item = Weakening> {
        let Self { id, site, file, package } = self;
        site.ways.iter().map(move |way| Weakening {
            value: format!("{id}:{}", way.letter),
            name: format!("{file}:{} {} -> {}", site.line, site.from, way.to),
            key: format!("{file} {id} {} -> {}", site.from, way.to),
            file: file.clone(),
            package: package.clone(),
            explained: way.explained.clone(),
        })
    }
}

/// The models of a lock in a world: some of the tests of a package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Models {
    /// Their package, and their world.
    pub unit: Unit,
    /// Their targets.
    pub tests: Vec<String>,
    /// Parts of the names of tests that are left out.
    pub without: Vec<String>,
}

impl Models {
    /// The models for `file` in `world`.
    fn new(package: &Package, file: &str, world: &str) -> Self {
        let unit = Unit { world: world.to_owned(), package: package.name.clone() };
        let within = file.split_once("/src/").map_or(file, |(_, within)| within);
        let part = within.split(['/', '.']).next().unwrap_or_default();
        if package.name == "ulocks-core" {
            // Its two halves are folders.
            let part = within.split(['/', '.']).nth(1).unwrap_or_default();
            let test = format!("{world}_{part}");
            let tests = package.tests(world).into_iter().filter(|known| *known == test).collect();
            return Self { unit, tests, without: Vec::new() };
        }
        let is_lock = |part: &str| package.dir.join(format!("tests/{world}/{part}.rs")).is_file();
        let others = fs::read_dir(package.dir.join("src")).into_iter().flatten().flatten();
        let others = others.filter(|entry| entry.path().join("mod.rs").is_file());
        let mut without: Vec<String> = others
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            // The models of a condition variable are also models of the mutexes. A folder that has
            // no models of its own is a part of all locks.
            .filter(|other| is_lock(part) && other != part && other != "condvar")
            .map(|other| format!("{other}::"))
            .collect();
        without.push("bugs::".into());
        without.sort();
        Self { unit, tests: package.tests(world), without }
    }

    fn shown(&self) -> String {
        format!("{}: {} {}", self.unit.world, self.unit.package, self.tests.join(" "))
    }
}

/// The models for `weakening`, in the worlds that `world` selects.
pub fn models(workspace: &Workspace, weakening: &Weakening, world: Option<&str>) -> Vec<Models> {
    let elsewhere = MODELS_ELSEWHERE.iter().find(|(file, _)| *file == weakening.file);
    let name = elsewhere.map_or(weakening.package.as_str(), |(_, package)| package);
    let package = workspace.packages.iter().find(|package| package.name == name);
    let worlds = WORLDS.into_iter().filter(|name| world.is_none_or(|world| world == *name));
    let models = worlds.flat_map(|world| Some(Models::new(package?, &weakening.file, world)));
    models.filter(|models| !models.tests.is_empty()).collect()
}

/// The outcome of a run of models.
struct Outcome {
    verdict: Verdict,
    by: Option<String>,
    executions: Option<u64>,
    passed: u64,
}

/// A weakening that has to be run.
pub struct Job<'a> {
    weakening: &'a Weakening,
    /// The worlds.
    worlds: String,
    /// The models in the worlds that have no record.
    models: Vec<Models>,
    /// The records of the other worlds.
    found: Vec<Record>,
}

/// The runs that the `chosen` weakenings still need, and the rows of the weakenings that are
/// explained or have a verdict.
pub fn pending<'a>(
    store: &Store<'_>,
    chosen: &'a [Weakening],
    world: Option<&str>,
    with_explained: bool,
) -> (Vec<Job<'a>>, Vec<Row>) {
    let (mut pending, mut rows) = (Vec::new(), Vec::new());
    for weakening in chosen {
        if let Some(why) = weakening.explained.as_ref().filter(|_| !with_explained) {
            rows.push(Row::new(&weakening.name, "", Verdict::Explained, Duration::ZERO).with_note(why));
            continue;
        }
        let all = models(store.scratch.workspace, weakening, world);
        let mut job = Job { weakening, worlds: shown(&all), models: Vec::new(), found: Vec::new() };
        for models in all {
            let (key, hash) = job.key(store, &models);
            match store.earlier(&key, hash) {
                Some(record) => job.found.push(record.clone()),
                None => job.models.push(models),
            }
        }
        match job.deciding() {
            Some(record) if record.verdict == Verdict::Caught || job.models.is_empty() => {
                rows.push(job.row(record.verdict).with_note("earlier").with_record(record));
            }
            _ => pending.push(job),
        }
    }
    (pending, rows)
}

/// Adds the models of the jobs to `needed`.
pub fn need(jobs: &[Job<'_>], needed: &mut Needed) {
    for models in jobs.iter().flat_map(|job| &job.models) {
        needed.entry(models.unit.clone()).or_default().extend(models.tests.iter().cloned());
    }
}

/// Runs the models of `jobs` without a mutant, and then the jobs.
pub fn run(audit: &Audit<'_>, jobs: Vec<Job<'_>>) -> anyhow::Result<Vec<Row>> {
    let needed: BTreeSet<Models> = jobs.iter().flat_map(|job| job.models.iter().cloned()).collect();
    let without = audit.on_all_cpus(needed.into_iter().collect(), |worker, models: Models| {
        let took = without_mutant(audit, &models, worker)?;
        Ok((models, took))
    })?;
    let without: BTreeMap<Models, Option<Duration>> = without.into_iter().collect();
    audit.on_all_cpus(jobs, |worker, job: Job<'_>| {
        let row = job.run(audit, &without, worker)?;
        println!("{}", row.line());
        Ok(row)
    })
}

/// How long the models take without a mutant. None if they do not pass.
fn without_mutant(audit: &Audit<'_>, models: &Models, worker: usize) -> anyhow::Result<Option<Duration>> {
    let key = format!("no mutant, {} without {}", models.shown(), models.without.join(" "));
    let hash = audit.store.hashes.of(&models.unit.package, &key);
    if let Some(record) = audit.store.earlier(&key, hash) {
        return Ok(Some(record.took));
    }
    let start = Instant::now();
    let outcome = outcome(audit, models, None, Duration::MAX, worker)?;
    let took = start.elapsed();
    let verdict = match outcome.verdict {
        Verdict::Survived if outcome.passed == 0 => Verdict::NoTest,
        Verdict::Survived => Verdict::Passes,
        // There is no mutant to catch.
        Verdict::Caught => Verdict::Wrong,
        verdict => verdict,
    };
    let failed = outcome.by.map_or(String::new(), |by| format!(", {by} fails"));
    println!("(no mutant), {}: {verdict}{failed}, {:.1} s", models.shown(), took.as_secs_f64());
    if verdict != Verdict::Passes {
        return Ok(None);
    }
    audit.store.results.add(&Record { key, hash, verdict, took, by: None, executions: None })?;
    Ok(Some(took))
}

impl Job<'_> {
    fn row(&self, verdict: Verdict) -> Row {
        let took = self.found.iter().map(|record| record.took).sum();
        Row::new(&self.weakening.name, &self.worlds, verdict, took)
    }

    /// The key and the hash of its record in one world.
    fn key(&self, store: &Store<'_>, models: &Models) -> (String, u64) {
        let key = format!("{}, {}", self.weakening.key, models.unit.world);
        let hash = store.hashes.of(&self.weakening.package, &key);
        (key, hash)
    }

    /// The record of the world that decides the verdict.
    fn deciding(&self) -> Option<&Record> {
        let verdicts = [Verdict::Caught, Verdict::OutOfTime, Verdict::Survived, Verdict::NotReached];
        verdicts.iter().find_map(|verdict| self.found.iter().find(|record| record.verdict == *verdict))
    }

    fn run(
        mut self,
        audit: &Audit<'_>,
        without: &BTreeMap<Models, Option<Duration>>,
        worker: usize,
    ) -> anyhow::Result<Row> {
        let value = &self.weakening.value;
        if let Some(why) = audit.plan.alone.get(&id(value)) {
            return Ok(self.row(Verdict::NotRun).with_note(why));
        }
        for models in std::mem::take(&mut self.models) {
            let Some(Some(passes)) = without.get(&models) else {
                return Ok(self.row(Verdict::NotRun).with_note("its models fail without a mutant"));
            };
            let start = Instant::now();
            let limit = LIMIT.max(*passes * PATIENCE);
            let Outcome { mut verdict, by, executions, .. } =
                outcome(audit, &models, Some(value), limit, worker)?;
            let took = start.elapsed();
            if verdict == Verdict::Survived && !self.is_reached(audit, &models, worker)? {
                verdict = Verdict::NotReached;
            }
            let (key, hash) = self.key(audit.store, &models);
            let record = Record { key, hash, verdict, took, by, executions };
            audit.store.results.add(&record)?;
            self.found.push(record);
            if verdict == Verdict::Caught {
                break;
            }
        }
        let record = self.deciding().context("a weakening without models")?;
        Ok(self.row(record.verdict).with_record(record))
    }

    /// Whether some of the models run the site.
    fn is_reached(&self, audit: &Audit<'_>, models: &Models, worker: usize) -> anyhow::Result<bool> {
        let value = format!("{}:!", id(&self.weakening.value));
        for test in &models.tests {
            let mut command = command(audit, models, test, Some(&value))?;
            let ran = exec::finish(&mut command, &audit.output(worker), Duration::MAX)?;
            if ran.output.contains("the mutant is reached") {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn shown(models: &[Models]) -> String {
    models.iter().map(|models| models.unit.world.as_str()).collect::<Vec<_>>().join(" ")
}

/// The number in a value.
fn id(value: &str) -> u32 {
    value.split(':').next().and_then(|id| id.parse().ok()).unwrap_or_default()
}

fn outcome(
    audit: &Audit<'_>,
    models: &Models,
    value: Option<&str>,
    limit: Duration,
    worker: usize,
) -> anyhow::Result<Outcome> {
    let (start, mut passed) = (Instant::now(), 0);
    for test in &models.tests {
        let mut command = command(audit, models, test, value)?;
        let left = limit.saturating_sub(start.elapsed());
        let ran = exec::finish_or_fail(&mut command, &audit.output(worker), left)?;
        let verdict = match ran.end {
            End::Passed => {
                passed += ran.tests().passed;
                continue;
            }
            End::Failed => Verdict::Caught,
            End::OutOfTime => Verdict::OutOfTime,
        };
        return Ok(Outcome { verdict, by: ran.failed_test(), executions: ran.executions(), passed });
    }
    Ok(Outcome { verdict: Verdict::Survived, by: None, executions: None, passed })
}

fn command(audit: &Audit<'_>, models: &Models, test: &str, value: Option<&str>) -> anyhow::Result<Command> {
    let mut command = audit.command(&models.unit, test)?;
    // One after the other, so that the output says which test runs.
    command.args(["--nocapture", "--test-threads=1"]);
    command.args(models.without.iter().flat_map(|part| ["--skip", part.as_str()]));
    if let Some(value) = value {
        command.env(VARIABLE, value);
    }
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sites_of_this_workspace_have_numbers_of_their_own_and_models() {
        let workspace = Workspace::load().unwrap();
        let (placed, faults) = load(&workspace).unwrap();
        assert_eq!(faults, [""; 0]);
        assert!(placed.len() > 100, "{}", placed.len());
        let numbers: BTreeSet<u32> = placed.iter().map(|placed| placed.id).collect();
        assert_eq!(numbers.len(), placed.len());
        for (name, _) in SCOPE.iter().filter(|(name, _)| *name != "ulocks-core") {
            let of_package = placed.iter().find(|placed| placed.package == *name);
            let weakening = of_package.and_then(|placed| placed.weakenings().next());
            let weakening = weakening.unwrap_or_else(|| panic!("no site in {name}"));
            // Loom has no priority inheritance and no processes.
            let worlds = if ["ulocks-pi", "ulocks-shm"].contains(name) { 1 } else { 2 };
            assert_eq!(models(&workspace, &weakening, None).len(), worlds, "{name}");
            assert_eq!(models(&workspace, &weakening, Some("vm")).len(), 1, "{name}");
        }
    }

    #[test]
    fn the_models_of_a_lock_are_those_of_its_crate_without_those_of_other_locks() {
        let workspace = Workspace::load().unwrap();
        let package = |name: &str| workspace.packages.iter().find(|package| package.name == name).unwrap();
        let unfair = Models::new(package("ulocks-unfair"), "crates/unfair/src/mutex/raw.rs", "vm");
        assert_eq!(unfair.without, ["asym::", "biased::", "bugs::", "byte::", "throughput::"]);
        assert_eq!(unfair.tests, ["vm"]);
        let queue = Models::new(package("ulocks-fair"), "crates/fair/src/queue/mod.rs", "vm");
        assert_eq!(queue.without, ["bugs::"], "the queue is a part of both locks");
        let core = Models::new(package("ulocks-core"), "crates/core/src/lock/condvar/raw.rs", "loom");
        assert_eq!(core.tests, ["loom_condvar"]);
        assert_eq!(core.without, [""; 0]);
        let calock = Models::new(package("ulocks-calock"), "crates/calock/src/raw.rs", "vm");
        assert_eq!(calock.without, ["bugs::"]);
    }
}
