//! The audit of orderings: for each way to weaken a site, some model must fail.
//!
//! A mutant runs on the models of its lock that reach its site (`reach.rs`), the fastest first,
//! without the models that are only there for planted bugs. It runs on the virtual machine first,
//! and if it survives, under loom. The first model that fails ends the run. Each world has a record
//! of its own, so a run in one world is a part of the run in both. What has its models in other
//! packages has a record for each.

use super::audit::{Audit, Course, Needed, Store};
use super::build::Unit;
use super::models::{Models, WORLDS, models};
use super::orderings::{self, Constants, Site};
use super::plant::VARIABLE;
use super::reach::{self, Model, Reach};
use super::report::Row;
use super::results::Record;
use super::verdict::Verdict;
use crate::code;
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};
use xtask::exec::{self, End};
use xtask::workspace::{Workspace, sources};

/// The crates whose orderings are audited, with the parts of their sources.
const SCOPE: [(&str, &[&str]); 10] = [
    ("ulocks-core", &["lock/condvar", "lock/queue", "lock/sleep.rs", "sys/robust.rs", "sys/signal"]),
    ("ulocks-unfair", &[""]),
    ("ulocks-fair", &[""]),
    ("ulocks-pi", &[""]),
    ("ulocks-psrwlock", &[""]),
    ("ulocks-semarray", &[""]),
    ("ulocks-shm", &[""]),
    ("ulocks-debug", &["seen"]),
    ("ulocks-parking-lot", &[""]),
    (
        "ulocks-sysv",
        &["array/mod.rs", "lock.rs", "perform.rs", "queue.rs", "section.rs", "sleep.rs", "undo.rs", "world"],
    ),
];

/// What is audited, for a reader.
pub fn scope() -> String {
    let of_package = |(name, parts): (&str, &[&str])| match parts {
        [""] => format!("`{name}`"),
        parts => format!("`{name}` (`{}`)", parts.join("`, `")),
    };
    SCOPE.map(of_package).join(", ")
}

/// A model may take this many times as long with a mutant as without one, and [`MORE`].
const PATIENCE: u32 = 4;
const MORE: Duration = Duration::from_secs(20);

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
    /// The hash of its file's code.
    pub code: String,
}

/// A site weakened in one way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// The hash of its file's code.
    pub code: String,
    /// Why no model can report it.
    pub explained: Option<String>,
}

/// All sites of the workspace, and the faults of explanations.
pub fn load(workspace: &Workspace) -> anyhow::Result<(Vec<Placed>, Vec<String>)> {
    let (mut placed, mut faults) = (Vec::new(), Vec::new());
    for (name, parts) in SCOPE {
        let package = workspace.packages.iter().find(|package| package.name == name);
        let package = package.with_context(|| format!("the audit has no package {name}"))?;
        let mut paths = Vec::new();
        for part in parts {
            let found = sources(&package.dir.join("src").join(part))?;
            if found.is_empty() {
                bail!("the audit finds no source at {part} of {name}");
            }
            paths.extend(found);
        }
        // Neither unit tests nor bugs that are planted in them.
        paths.retain(|path| !path.iter().any(|part| part == "tests" || part == "tests.rs"));
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
            let code = code::of_file(&text).map_err(|fault| anyhow::anyhow!("{file}: {fault}"))?;
            let place = |(nth, site)| Placed {
                id: super::spec::number(&file, &format!("site {nth}")),
                site,
                file: file.clone(),
                package: name.to_owned(),
                code: code.clone(),
            };
            placed.extend((0..).zip(sites).map(place));
        }
    }
    Ok((placed, faults))
}

impl Placed {
    /// All ways to weaken it.
    pub fn weakenings(&self) -> impl Iterator<Item = Weakening> {
        let Self { id, site, file, package, code } = self;
        site.ways.iter().map(move |way| Weakening {
            value: format!("{id}:{}", way.letter),
            name: format!("{file}:{} {} -> {}", site.line, site.from, way.to),
            key: format!("{file} {id} {} -> {}", site.from, way.to),
            file: file.clone(),
            package: package.clone(),
            code: code.clone(),
            explained: way.explained.clone(),
        })
    }
}

/// The outcome of a run of models.
struct Outcome {
    verdict: Verdict,
    /// The model that has failed.
    by: Option<String>,
    executions: Option<u64>,
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
    /// Why it cannot be run.
    not: Option<String>,
}

/// The runs that the `chosen` weakenings still need, and the rows of the weakenings that are
/// explained or have a verdict.
pub fn pending<'a>(
    store: &Store<'_>,
    chosen: &'a [Weakening],
    world: Option<&str>,
) -> (Vec<Job<'a>>, Vec<Row>) {
    let (mut pending, mut rows) = (Vec::new(), Vec::new());
    for weakening in chosen {
        if let Some(why) = &weakening.explained {
            rows.push(Row::new(&weakening.name, "", Verdict::Explained, Duration::ZERO).with_note(why));
            continue;
        }
        let job = Job::new(store.scratch.workspace, weakening, world, |job, models| {
            let (key, hash) = job.key(store, models);
            store.earlier(&key, hash).cloned()
        });
        match job.deciding() {
            Some(record) if job.is_decided() => {
                rows.push(job.row(record.verdict).with_note("earlier").with_record(record));
            }
            _ => pending.push(job),
        }
    }
    (pending, rows)
}

/// The verdict of an earlier run on `weakening` in all worlds, while its file had the code that it
/// has now.
pub fn verdict(store: &Store<'_>, weakening: &Weakening) -> Option<Verdict> {
    let job = Job::new(store.scratch.workspace, weakening, None, |job, models| {
        let (key, hash) = job.key(store, models);
        let results = &store.results;
        results.find(&key, hash).or_else(|| results.find_of_code(&key, &weakening.code)).cloned()
    });
    job.deciding().filter(|_| job.is_decided()).map(|record| record.verdict)
}

/// Runs the jobs: those of one package after those of another, on the virtual machine, and what
/// survives there under loom. So the first verdict waits for one build.
pub fn run(course: &mut Course<'_>, jobs: Vec<Job<'_>>) -> anyhow::Result<Vec<Row>> {
    let mut of_packages = BTreeMap::<String, Vec<Job<'_>>>::new();
    for job in jobs {
        let package = job.models.first().map_or("", |models| &models.unit.package).to_owned();
        of_packages.entry(package).or_default().push(job);
    }
    let mut rows = Vec::new();
    for mut jobs in of_packages.into_values() {
        for world in WORLDS {
            let (now, later): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| job.needs(world));
            jobs = later;
            let mut needed = Needed::new();
            for models in now.iter().flat_map(|job| &job.models).filter(|models| models.unit.world == world) {
                needed.entry(models.unit.clone()).or_default().extend(models.tests.iter().cloned());
            }
            if now.is_empty() {
                continue;
            }
            let units = needed.clone();
            let done = course.stage(needed, now.len(), |audit| {
                let reach = reach::find(audit, &units)?;
                audit.on_all_cpus(now, |worker, mut job: Job<'_>| {
                    // The models of one package, then those of the next.
                    while job.needs(world) {
                        job.run(audit, world, &reach, worker)?;
                    }
                    Ok(job)
                })
            })?;
            jobs.extend(done.into_iter().flatten());
        }
        rows.extend(jobs.iter().map(Job::outcome));
    }
    Ok(rows)
}

impl<'a> Job<'a> {
    /// `find` finds the record of a world.
    fn new(
        workspace: &Workspace,
        weakening: &'a Weakening,
        world: Option<&str>,
        find: impl Fn(&Self, &Models) -> Option<Record>,
    ) -> Self {
        let all = models(workspace, weakening, world);
        let (models, found, not) = (Vec::new(), Vec::new(), None);
        let mut job = Self { weakening, worlds: shown(&all), models, found, not };
        for models in all {
            match find(&job, &models) {
                Some(record) => job.found.push(record),
                None => job.models.push(models),
            }
        }
        job
    }

    fn row(&self, verdict: Verdict) -> Row {
        let took = self.found.iter().map(|record| record.took).sum();
        Row::new(&self.weakening.name, &self.worlds, verdict, took)
    }

    /// The row of what is known.
    fn outcome(&self) -> Row {
        match (&self.not, self.deciding()) {
            (None, Some(record)) => self.row(record.verdict).with_record(record),
            (why, _) => self.row(Verdict::NotRun).with_note(why.as_deref().unwrap_or("it has no models")),
        }
    }

    /// The key and the hash of its record in one world, by the models of one package.
    fn key(&self, store: &Store<'_>, models: &Models) -> (String, u64) {
        let Unit { world, package } = &models.unit;
        let by = if *package == self.weakening.package { "" } else { package };
        let key = format!("{}, {world} {by}", self.weakening.key);
        let key = key.trim_end().to_owned();
        // The package of the models needs the other one.
        let hash = store.hashes.of(package, &key);
        (key, hash)
    }

    /// The record of the world that decides the verdict.
    fn deciding(&self) -> Option<&Record> {
        let verdicts = [Verdict::Caught, Verdict::OutOfTime, Verdict::Survived];
        verdicts.iter().find_map(|verdict| self.found.iter().find(|record| record.verdict == *verdict))
    }

    /// Whether no other world can change the verdict. One model that reports it is enough.
    fn is_decided(&self) -> bool {
        let is_caught = |record: &Record| record.verdict == Verdict::Caught;
        !self.found.is_empty() && (self.models.is_empty() || self.found.iter().any(is_caught))
    }

    /// Whether it has to run in `world`.
    fn needs(&self, world: &str) -> bool {
        let has_models = self.models.iter().any(|models| models.unit.world == world);
        has_models && self.not.is_none() && !self.is_decided()
    }

    /// Runs the models of `world`, of one package, and records what comes of it.
    fn run(&mut self, audit: &Audit<'_>, world: &str, reach: &Reach, worker: usize) -> anyhow::Result<()> {
        let value = &self.weakening.value;
        let nth = self.models.iter().position(|models| models.unit.world == world);
        let models = self.models.remove(nth.context("a weakening without models")?);
        self.not = audit.plan.alone.get(&id(value)).cloned();
        if self.not.is_none() {
            let start = Instant::now();
            let chosen = models.that_reach(id(value), reach);
            if chosen.is_empty() {
                let Unit { world, package } = &models.unit;
                println!("{}: no model of {package} for {world} reaches it", self.weakening.name);
            }
            let Outcome { verdict, by, executions } = outcome(audit, &models.unit, &chosen, value, worker)?;
            let (key, hash) = self.key(audit.store, &models);
            let code = Some(self.weakening.code.clone());
            let record = Record { key, hash, verdict, took: start.elapsed(), by, executions, code };
            audit.store.results.add(&record)?;
            self.found.push(record);
        }
        if self.not.is_some() || self.is_decided() {
            println!("{}", self.outcome().line());
        }
        Ok(())
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
    unit: &Unit,
    models: &[&Model],
    value: &str,
    worker: usize,
) -> anyhow::Result<Outcome> {
    let mut verdict = Verdict::Survived;
    for model in models {
        let mut command = model.command(audit, unit)?;
        command.env(VARIABLE, value);
        let ran = exec::finish(&mut command, &audit.output(worker), model.took * PATIENCE + MORE)?;
        match ran.end {
            End::Passed => {}
            End::Failed => {
                let (by, executions) = (Some(model.name.clone()), ran.executions());
                return Ok(Outcome { verdict: Verdict::Caught, by, executions });
            }
            // Another model may report it.
            End::OutOfTime => verdict = Verdict::OutOfTime,
        }
    }
    Ok(Outcome { verdict, by: None, executions: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

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
            // Loom has no priority inheritance and no processes. The checker has no models of it.
            let without_loom = ["ulocks-pi", "ulocks-shm", "ulocks-debug", "ulocks-sysv"];
            let worlds = if without_loom.contains(name) { 1 } else { 2 };
            assert_eq!(models(&workspace, &weakening, None).len(), worlds, "{name}");
            assert_eq!(models(&workspace, &weakening, Some("vm")).len(), 1, "{name}");
        }
    }
}
