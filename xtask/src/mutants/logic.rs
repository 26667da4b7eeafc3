//! The audit of the planted bugs in `crates/*/mutants`: the tests that a specification names run
//! with the bug.

use super::audit::{Audit, Course, Needed, Once, Store};
use super::build::{Built, Unit};
use super::plant::VARIABLE;
use super::report::Row;
use super::results::Record;
use super::scratch::renew_file;
use super::spec::{Mutant, Probe};
use super::verdict::{Verdict, judge};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use xtask::exec::{self, LIMIT};

/// How many runs a test outside of the models has to find a bug. The machine chooses the schedule,
/// and a loaded machine chooses another one.
const NATIVE_RUNS: u32 = 3;

/// A mutant and some of its tests.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    mutant: Option<&'a Mutant>,
    probe: &'a Probe,
}

/// The runs that the `chosen` mutants still need, and the rows of the runs that have a verdict.
pub fn pending<'a>(store: &Store<'_>, chosen: &'a [Mutant]) -> (Vec<Job<'a>>, Vec<Row>) {
    let (mut pending, mut rows) = (Vec::new(), Vec::new());
    for mutant in chosen {
        for probe in &mutant.found_by {
            let job = Job { mutant: Some(mutant), probe };
            let (key, hash) = job.key(store);
            match store.earlier(&key, hash) {
                Some(record) => rows.push(job.row(record.verdict, record.took).with_note("earlier")),
                None => pending.push(job),
            }
        }
    }
    (pending, rows)
}

/// The verdict of earlier runs with `mutant`, by each of its tests, while its file had the code
/// that it has now. None if a test has none, or had another than it should have.
pub fn verdict(store: &Store<'_>, mutant: &Mutant) -> Option<Verdict> {
    let verdicts = mutant.found_by.iter().map(|probe| {
        let (key, hash) = Job { mutant: Some(mutant), probe }.key(store);
        let results = &store.results;
        results
            .find(&key, hash)
            .or_else(|| results.find_of_code(&key, &mutant.code))
            .map(|record| record.verdict)
    });
    verdicts.collect::<Option<Vec<_>>>()?.first().copied()
}

/// Runs the tests of the jobs, and before the first job with some tests, these tests without a
/// mutant.
pub fn run(course: &mut Course<'_>, jobs: &[Job<'_>]) -> anyhow::Result<Vec<Row>> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let mut needed = Needed::new();
    for Job { probe, .. } in jobs {
        needed.entry(unit(probe)).or_default().insert(probe.test.clone());
    }
    Ok(course.stage(needed, jobs.len(), |audit| run_built(audit, jobs))?.unwrap_or_default())
}

fn run_built(audit: &Audit<'_>, jobs: &[Job<'_>]) -> anyhow::Result<Vec<Row>> {
    let mut printed = BTreeSet::new();
    for mutant in jobs.iter().filter_map(|job| job.mutant) {
        if let Some(why) = audit.plan.alone.get(&mutant.id())
            && printed.insert(mutant.id())
        {
            println!("{} gets a build of its own: {why}", mutant.name);
        }
    }
    let without = Once::new();
    let passes = |probe, worker| {
        let job = Job { mutant: None, probe };
        let row: Row = without.get(key(probe), || {
            let (key, hash) = job.key(audit.store);
            let has_passed = || audit.store.passed.has(probe.place(), &probe.filter);
            match audit.store.earlier(&key, hash) {
                Some(record) => Ok(job.row(record.verdict, record.took).with_note("earlier")),
                None if has_passed() => Ok(job.row(Verdict::Passes, Duration::ZERO).with_note("xtask test")),
                None => job.run(audit, worker),
            }
        })?;
        anyhow::Ok(row.verdict.is_as_specified())
    };
    // Jobs with the same tests stand together, so that few runs without a mutant come first.
    let mut jobs = jobs.to_vec();
    jobs.sort_by_key(|job| key(job.probe));
    let is_alone = |job: &Job<'_>| audit.plan.alone.contains_key(&job.mutant.map_or(0, Mutant::id));
    let (apart, together): (Vec<_>, Vec<_>) = jobs.into_iter().partition(is_alone);
    let mut rows = audit.on_all_cpus(together, |worker, job: Job<'_>| match passes(job.probe, worker)? {
        true => job.run(audit, worker),
        false => Ok(job.row(Verdict::NotRun, Duration::ZERO)),
    })?;
    // A mutant that is built alone changes the programs. So the runs without a mutant come before.
    let mut ready = Vec::new();
    for job in apart {
        if !audit.may_begin(rows.is_empty() && ready.is_empty()) {
            continue;
        }
        match passes(job.probe, 0)? {
            true => ready.push(job),
            false => rows.push(job.row(Verdict::NotRun, Duration::ZERO)),
        }
    }
    for job in ready {
        if audit.may_begin(rows.is_empty()) {
            rows.push(job.run_alone(audit)?.with_note("alone"));
        }
    }
    rows.splice(..0, without.into_known());
    Ok(rows)
}

impl Job<'_> {
    /// Runs the tests.
    fn run(&self, audit: &Audit<'_>, worker: usize) -> anyhow::Result<Row> {
        let command = audit.command(&unit(self.probe), &self.probe.test)?;
        self.finish(audit, command, worker)
    }

    /// Builds the mutant alone, and runs the tests.
    fn run_alone(&self, audit: &Audit<'_>) -> anyhow::Result<Row> {
        let mutant = self.mutant.expect("a run without a mutant needs no build of its own");
        let scratch = &audit.store.scratch;
        let original = fs::read_to_string(scratch.workspace.root.join(&mutant.file))?;
        let broken =
            mutant.applied(&original).map_err(|fault| anyhow::anyhow!("{}: {fault}", mutant.name))?;
        let path = scratch.source.join(&mutant.file);
        renew_file(broken.as_bytes(), &path)?;
        let row = match scratch.build(&unit(self.probe), &[self.probe.test.clone()].into())? {
            Built::Programs(programs) => {
                let command = scratch.command(&self.probe.package, &programs[&self.probe.test])?;
                self.finish(audit, command, 0)?
            }
            Built::Broken(errors) => {
                println!("{}:\n{}", mutant.name, errors.text);
                self.row(Verdict::DoesNotCompile, Duration::ZERO)
            }
        };
        let planted = audit.plan.files.get(&mutant.file);
        renew_file(planted.map_or(original.as_bytes(), |planted| planted.text.as_bytes()), Path::new(&path))?;
        Ok(row)
    }

    /// Runs the tests with `command`, records and prints the verdict.
    fn finish(&self, audit: &Audit<'_>, mut command: Command, worker: usize) -> anyhow::Result<Row> {
        command.arg(&self.probe.filter);
        if let Some(mutant) = self.mutant {
            command.env(VARIABLE, mutant.id().to_string());
        }
        let start = Instant::now();
        let says = self.mutant.filter(|mutant| !mutant.sound).and(self.probe.says.as_deref());
        let by_chance = self.probe.world == "native" && says.is_some();
        let mut runs = if by_chance { NATIVE_RUNS } else { 1 };
        let (ran, verdict) = loop {
            let ran = exec::finish(&mut command, &audit.output(worker), LIMIT)?;
            let verdict = judge(&ran, says);
            runs -= 1;
            if verdict != Verdict::Survived || runs == 0 {
                break (ran, verdict);
            }
        };
        let row = self.row(verdict, start.elapsed());
        let mut text = row.line();
        if row.verdict.is_as_specified() {
            let ((key, hash), verdict, took) = (self.key(audit.store), row.verdict, row.took);
            audit.store.results.add(&Record {
                key,
                hash,
                verdict,
                took,
                by: None,
                executions: None,
                code: self.mutant.map(|mutant| mutant.code.clone()),
            })?;
        } else {
            text += &format!("\n{}", ran.the_end());
        }
        println!("{text}");
        Ok(row)
    }

    /// Its key in the records, and its hash.
    fn key(&self, store: &Store<'_>) -> (String, u64) {
        let Probe { world, package, test, filter, says } = self.probe;
        let tests = format!("{world} {package} {test} {filter}");
        match self.mutant {
            None => (format!("no mutant, {tests}"), store.hashes.of(package, &tests)),
            Some(mutant) => {
                let hash = store.hashes.of(package, (&tests, says, mutant.sound, mutant.change()));
                (format!("{}, {tests}", mutant.key()), hash)
            }
        }
    }

    fn row(&self, verdict: Verdict, took: Duration) -> Row {
        let mutant = self.mutant.map_or("(no mutant)", |mutant| &mutant.name);
        let Probe { world, package, filter, .. } = self.probe;
        Row::new(mutant, &format!("{world}: {package} {filter}"), verdict, took)
    }
}

/// Two probes with the same key name the same tests.
fn key(probe: &Probe) -> ([&str; 3], &str) {
    (probe.place(), &probe.filter)
}

fn unit(probe: &Probe) -> Unit {
    Unit { world: probe.world.clone(), package: probe.package.clone() }
}
