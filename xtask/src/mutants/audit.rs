//! Builds the planted workspace, and runs the tests for each mutant.

use super::build::{Built, Unit};
use super::exec::{self, LIMIT, Verdict};
use super::plant::{Plan, VARIABLE};
use super::scratch::{Scratch, renew_file};
use super::spec::{Mutant, Probe};
use crate::workspace::Workspace;
use anyhow::bail;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// A line of the table.
pub struct Row {
    /// The mutant's name.
    pub mutant: String,
    /// The tests.
    pub tests: String,
    /// What became of it.
    pub verdict: Verdict,
    /// How long the tests ran.
    pub took: Duration,
    /// Whether it was not built together with the others.
    pub alone: bool,
}

/// The program of each test target that was built.
type Programs = BTreeMap<(Unit, String), PathBuf>;

/// A run of tests, with a mutant or without.
struct Job<'a> {
    mutant: Option<&'a Mutant>,
    probe: &'a Probe,
}

/// Plants `mutants`, all that there are, and runs the `chosen` ones.
pub fn run(
    workspace: &Workspace,
    mutants: &[Mutant],
    chosen: &[Mutant],
    jobs: usize,
) -> anyhow::Result<Vec<Row>> {
    let scratch = Scratch::open(workspace)?;
    let mut plan = Plan::new(workspace, mutants, BTreeMap::new())?;
    scratch.renew(&plan)?;
    let programs = build_all(&scratch, mutants, chosen, &mut plan)?;

    let mut rows = Vec::new();
    let probes: BTreeMap<_, _> =
        chosen.iter().flat_map(|mutant| &mutant.found_by).map(|probe| (key(probe), probe)).collect();
    let baseline = probes.values().map(|probe| Job { mutant: None, probe }).collect();
    rows.extend(run_jobs(&scratch, &programs, baseline, jobs)?);
    let sound: BTreeSet<_> =
        probes.keys().zip(&rows).filter(|(_, row)| row.verdict.is_as_said()).map(|(key, _)| *key).collect();

    let (mut together, mut apart, mut not_run) = (Vec::new(), Vec::new(), Vec::new());
    for mutant in chosen {
        let alone = plan.alone.contains_key(&mutant.id());
        for probe in &mutant.found_by {
            let job = Job { mutant: Some(mutant), probe };
            match sound.contains(&key(probe)) {
                false => not_run.push(job.row(Verdict::NotRun, Duration::ZERO)),
                true if alone => apart.push(job),
                true => together.push(job),
            }
        }
    }
    rows.extend(run_jobs(&scratch, &programs, together, jobs)?);
    rows.extend(not_run);
    rows.extend(run_alone(&scratch, &plan, apart)?);
    Ok(rows)
}

/// Builds what the `chosen` mutants need. A mutant that does not compile is made to stay alone.
fn build_all(
    scratch: &Scratch<'_>,
    mutants: &[Mutant],
    chosen: &[Mutant],
    plan: &mut Plan,
) -> anyhow::Result<Programs> {
    let mut units = BTreeMap::<Unit, BTreeSet<String>>::new();
    for probe in chosen.iter().flat_map(|mutant| &mutant.found_by) {
        units.entry(unit(probe)).or_default().insert(probe.test.clone());
    }
    let mut programs = Programs::new();
    for (unit, tests) in units {
        println!("\n-- builds {} for {}", unit.package, unit.world);
        let start = Instant::now();
        loop {
            match scratch.build(&unit, &tests)? {
                Built::Programs(built) => {
                    programs.extend(built.into_iter().map(|(test, path)| ((unit.clone(), test), path)));
                    break;
                }
                Built::Broken(errors) => {
                    let culprits = errors.culprits(plan);
                    if culprits.is_empty() {
                        bail!("{} does not compile for {}:\n{}", unit.package, unit.world, errors.text);
                    }
                    let mut alone = std::mem::take(&mut plan.alone);
                    let why = "it does not compile beside the others";
                    alone.extend(culprits.into_iter().map(|id| (id, why.to_owned())));
                    *plan = Plan::new(scratch.workspace, mutants, alone)?;
                    scratch.renew(plan)?;
                }
            }
        }
        println!("{:.1} s", start.elapsed().as_secs_f64());
    }
    for mutant in chosen {
        if let Some(why) = plan.alone.get(&mutant.id()) {
            println!("{} gets a build of its own: {why}", mutant.name);
        }
    }
    Ok(programs)
}

/// Runs `work` on `jobs` threads; the rows are in its order.
fn run_jobs(
    scratch: &Scratch<'_>,
    programs: &Programs,
    work: Vec<Job<'_>>,
    jobs: usize,
) -> anyhow::Result<Vec<Row>> {
    let work = Mutex::new(work.into_iter().enumerate());
    let done = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        let worker = |worker: usize| -> anyhow::Result<()> {
            loop {
                let Some((nth, job)) = work.lock().unwrap().next() else { return Ok(()) };
                let program = &programs[&(unit(job.probe), job.probe.test.clone())];
                let row = job.run(scratch, program, worker)?;
                done.lock().unwrap().insert(nth, row);
            }
        };
        let workers: Vec<_> = (0..jobs).map(|nth| scope.spawn(move || worker(nth))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })?;
    Ok(done.into_inner().unwrap().into_values().collect())
}

/// Builds and runs the mutants of `work` one after the other.
fn run_alone(scratch: &Scratch<'_>, plan: &Plan, work: Vec<Job<'_>>) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for job in work {
        let mutant = job.mutant.expect("a run without a mutant needs no build of its own");
        let original = fs::read_to_string(scratch.workspace.root.join(&mutant.file))?;
        let broken =
            mutant.applied(&original).map_err(|fault| anyhow::anyhow!("{}: {fault}", mutant.name))?;
        let path = scratch.source.join(&mutant.file);
        renew_file(broken.as_bytes(), &path)?;
        let unit = unit(job.probe);
        let row = match scratch.build(&unit, &[job.probe.test.clone()].into())? {
            Built::Programs(programs) => job.run(scratch, &programs[&job.probe.test], 0)?,
            Built::Broken(errors) => {
                println!("\n-- {}\n{}", mutant.name, errors.text);
                job.row(Verdict::DoesNotCompile, Duration::ZERO)
            }
        };
        rows.push(Row { alone: true, ..row });
        let text = plan.files.get(&mutant.file).map_or(original.as_str(), |planted| &planted.text);
        renew_file(text.as_bytes(), &path)?;
    }
    Ok(rows)
}

impl Job<'_> {
    /// Runs the tests in `program`, and prints the verdict.
    fn run(&self, scratch: &Scratch<'_>, program: &PathBuf, worker: usize) -> anyhow::Result<Row> {
        let mut command = command(scratch, program, self.probe)?;
        if let Some(mutant) = self.mutant {
            command.env(VARIABLE, mutant.id().to_string());
        }
        let start = Instant::now();
        let ran = exec::finish(&mut command, &scratch.base.join(format!("output-{worker}")), LIMIT)?;
        let says = self.mutant.filter(|mutant| !mutant.sound).and(self.probe.says.as_deref());
        let row = self.row(ran.judge(says), start.elapsed());
        let mut text =
            format!("{}, {}: {}, {:.1} s", row.mutant, row.tests, row.verdict, row.took.as_secs_f64());
        if !row.verdict.is_as_said() {
            text += &format!("\n{}", ran.the_end());
        }
        println!("{text}");
        Ok(row)
    }

    fn row(&self, verdict: Verdict, took: Duration) -> Row {
        let mutant = self.mutant.map_or("(no mutant)", |mutant| &mutant.name).to_owned();
        let Probe { world, package, filter, .. } = self.probe;
        Row { mutant, tests: format!("{world}: {package} {filter}"), verdict, took, alone: false }
    }
}

/// The tests of `probe` in `program`, in the directory where cargo would run it.
fn command(scratch: &Scratch<'_>, program: &PathBuf, probe: &Probe) -> anyhow::Result<Command> {
    let dir = &scratch.package(&probe.package)?.dir;
    let dir = scratch.source.join(dir.strip_prefix(&scratch.workspace.root)?);
    let mut command = Command::new(program);
    command.arg(&probe.filter).env("CARGO_MANIFEST_DIR", &dir).current_dir(dir).env_remove(VARIABLE);
    // A backtrace would push everything else out of the last lines.
    command.env("RUST_BACKTRACE", "0");
    Ok(command)
}

/// What makes the tests of two probes the same.
fn key(probe: &Probe) -> [&str; 4] {
    [&probe.world, &probe.package, &probe.test, &probe.filter]
}

fn unit(probe: &Probe) -> Unit {
    Unit { world: probe.world.clone(), package: probe.package.clone() }
}
