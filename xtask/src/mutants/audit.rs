//! What both audits share: the build, the verdicts of earlier runs, and the work on all CPUs.

use super::build::{Built, Unit};
use super::plant::{Plan, VARIABLE};
use super::results::{Hashes, Record, Results};
use super::scratch::Scratch;
use super::spec::Mutant;
use super::weaken::Placed;
use crate::verify::runs::Passed;
use anyhow::{Context, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use xtask::workspace::Workspace;

/// For how many seconds a test waits before it counts as hung: a third of what it is given
/// elsewhere.
const PATIENCE: &str = "40";

/// The test targets to build.
pub type Needed = BTreeMap<Unit, BTreeSet<String>>;

/// The verdicts of earlier runs, to which this run adds its own.
pub struct Store<'a> {
    /// The copy of the workspace.
    pub scratch: Scratch<'a>,
    /// The hashes of the packages.
    pub hashes: Hashes<'a>,
    /// The records.
    pub results: Results,
    /// The tests that this command has run before without a mutant, and that have passed.
    pub passed: Passed,
}

impl<'a> Store<'a> {
    /// Opens the copy of `workspace`, and the records beside it.
    pub fn open(workspace: &'a Workspace) -> anyhow::Result<Self> {
        let scratch = Scratch::open(workspace)?;
        let results = Results::open(&scratch.base.join("results.jsonl"))?;
        Ok(Self { hashes: Hashes::new(workspace)?, results, passed: Passed::default(), scratch })
    }

    /// The record of an earlier run.
    pub fn earlier(&self, key: &str, hash: u64) -> Option<&Record> {
        self.results.find(key, hash)
    }
}

/// How to run.
#[derive(Clone, Copy)]
pub struct Effort {
    /// How many tests run at once.
    pub jobs: usize,
    /// The time after the first build in which runs with mutants are begun.
    pub budget: Option<Duration>,
}

/// The stages of a command, one after the other. Each builds only what it needs.
pub struct Course<'a> {
    /// The verdicts of earlier runs.
    pub store: &'a Store<'a>,
    mutants: &'a [Mutant],
    sites: &'a [Placed],
    effort: Effort,
    /// The end of the budget, which begins after the first build.
    until: Option<Instant>,
    /// Mutants that do not compile beside the others, and why.
    alone: BTreeMap<u32, String>,
    /// How many runs were not begun in time.
    pub left: usize,
}

impl<'a> Course<'a> {
    /// No stage has run. `mutants` and `sites` are planted in all stages.
    pub fn new(store: &'a Store<'a>, mutants: &'a [Mutant], sites: &'a [Placed], effort: Effort) -> Self {
        Self { store, mutants, sites, effort, until: None, alone: BTreeMap::new(), left: 0 }
    }

    /// Builds the tests that are `needed`, and calls `run`. None if the time is up. Then the `runs`
    /// of the stage are counted as not begun.
    pub fn stage<R>(
        &mut self,
        needed: Needed,
        runs: usize,
        run: impl FnOnce(&Audit<'_>) -> anyhow::Result<R>,
    ) -> anyhow::Result<Option<R>> {
        if self.until.is_some_and(|until| Instant::now() >= until) {
            self.left += runs;
            return Ok(None);
        }
        let alone = std::mem::take(&mut self.alone);
        let mut audit = Audit::prepare(self.store, self.mutants, self.sites, needed, self.effort, alone)?;
        self.until = self.until.or_else(|| self.effort.budget.map(|budget| Instant::now() + budget));
        audit.until = self.until;
        let done = run(&audit)?;
        self.left += audit.left.into_inner();
        self.alone = audit.plan.alone;
        Ok(Some(done))
    }
}

/// What is found out once, when it is first asked for.
pub struct Once<K, V>(Mutex<BTreeMap<K, Arc<Mutex<Option<V>>>>>);

impl<K: Ord, V: Clone> Once<K, V> {
    /// Nothing is known.
    pub fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// What is known of `key`, or what `find` finds. Others that ask for the same wait meanwhile.
    pub fn get(&self, key: K, find: impl FnOnce() -> anyhow::Result<V>) -> anyhow::Result<V> {
        let cell = Arc::clone(self.0.lock().unwrap().entry(key).or_default());
        let mut cell = cell.lock().unwrap();
        if cell.is_none() {
            *cell = Some(find()?);
        }
        Ok(cell.clone().expect("it was found"))
    }

    /// All that was found out.
    pub fn into_known(self) -> Vec<V> {
        let cells = self.0.into_inner().unwrap().into_values();
        cells.filter_map(|cell| cell.lock().unwrap().clone()).collect()
    }
}

/// The planted workspace with what is built of it.
pub struct Audit<'a> {
    /// The verdicts of earlier runs.
    pub store: &'a Store<'a>,
    /// What is planted.
    pub plan: Plan,
    effort: Effort,
    /// The time after which no run with a mutant is begun, other than the first.
    until: Option<Instant>,
    programs: BTreeMap<(Unit, String), PathBuf>,
    /// How many runs were not begun in time.
    left: AtomicUsize,
}

impl<'a> Audit<'a> {
    /// Plants all mutants and sites, and builds the tests that are `needed`. If a mutant does not
    /// compile beside the others, it gets a build of its own.
    fn prepare(
        store: &'a Store<'a>,
        mutants: &[Mutant],
        sites: &[Placed],
        needed: Needed,
        effort: Effort,
        alone: BTreeMap<u32, String>,
    ) -> anyhow::Result<Self> {
        let Store { scratch, .. } = store;
        let mut plan = Plan::new(scratch.workspace, mutants, sites, alone)?;
        scratch.renew(&plan)?;
        if !store.hashes.hold()? {
            bail!("the source has changed since this command began: run it again");
        }
        let mut programs = BTreeMap::new();
        for (unit, tests) in needed {
            println!("-- building {} for {}", unit.package, unit.world);
            let start = Instant::now();
            loop {
                let errors = match scratch.build(&unit, &tests)? {
                    Built::Programs(built) => {
                        programs.extend(built.into_iter().map(|(test, path)| ((unit.clone(), test), path)));
                        break;
                    }
                    Built::Broken(errors) => errors,
                };
                let culprits = errors.culprits(&plan);
                if culprits.is_empty() {
                    bail!("{} does not compile for {}:\n{}", unit.package, unit.world, errors.text);
                }
                println!("   building again without the mutants that do not compile beside the others");
                let mut alone = std::mem::take(&mut plan.alone);
                let why = "it does not compile beside the others";
                alone.extend(culprits.into_iter().map(|id| (id, why.to_owned())));
                plan = Plan::new(scratch.workspace, mutants, sites, alone)?;
                scratch.renew(&plan)?;
            }
            println!("   {:.1} s", start.elapsed().as_secs_f64());
        }
        Ok(Self { store, plan, effort, until: None, programs, left: AtomicUsize::new(0) })
    }

    /// Calls `run` for each item of `work`, on several threads. Returns the results in the order of
    /// `work`. The first argument of `run` is the number of the thread. The first item is run even
    /// if the time is up.
    pub fn on_all_cpus<T: Send, R: Send>(
        &self,
        work: Vec<T>,
        run: impl Fn(usize, T) -> anyhow::Result<R> + Sync,
    ) -> anyhow::Result<Vec<R>> {
        self.each(work, |nth| self.may_begin(nth == 0), run)
    }

    /// As [`on_all_cpus`](Self::on_all_cpus), for those items that `may` begin.
    pub fn each<T: Send, R: Send>(
        &self,
        work: Vec<T>,
        may: impl Fn(usize) -> bool + Sync,
        run: impl Fn(usize, T) -> anyhow::Result<R> + Sync,
    ) -> anyhow::Result<Vec<R>> {
        let (work, done) = (Mutex::new(work.into_iter().enumerate()), Mutex::new(BTreeMap::new()));
        let (may, run, work, done_) = (&may, &run, &work, &done);
        thread::scope(|scope| {
            let worker = move |worker: usize| -> anyhow::Result<()> {
                loop {
                    let Some((nth, item)) = work.lock().unwrap().next() else { return Ok(()) };
                    if !may(nth) {
                        continue;
                    }
                    let result = run(worker, item)?;
                    done_.lock().unwrap().insert(nth, result);
                }
            };
            let workers: Vec<_> = (0..self.effort.jobs).map(|nth| scope.spawn(move || worker(nth))).collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
        })?;
        Ok(done.into_inner().unwrap().into_values().collect())
    }

    /// Whether to begin the next run: it is the first, or there is time. If not, the run is
    /// counted.
    pub fn may_begin(&self, is_first: bool) -> bool {
        let may = may_begin(self.until, is_first);
        self.left.fetch_add(usize::from(!may), Ordering::Relaxed);
        may
    }

    /// A command that runs the test program `test` of `unit`, in the directory where cargo would
    /// run it.
    pub fn command(&self, unit: &Unit, test: &str) -> anyhow::Result<Command> {
        let program = self.programs.get(&(unit.clone(), test.to_owned()));
        self.store.scratch.command(&unit.package, program.context("a program that was not built")?)
    }

    /// Where the thread `worker` keeps the output of its run.
    pub fn output(&self, worker: usize) -> PathBuf {
        self.store.scratch.base.join(format!("output-{worker}"))
    }
}

fn may_begin(until: Option<Instant>, is_first: bool) -> bool {
    is_first || until.is_none_or(|until| Instant::now() < until)
}

impl Scratch<'_> {
    /// A command that runs `program` as cargo runs the tests of `package`, without a mutant.
    pub fn command(&self, package: &str, program: &PathBuf) -> anyhow::Result<Command> {
        let dir = &self.package(package)?.dir;
        let dir = self.source.join(dir.strip_prefix(&self.workspace.root)?);
        let mut command = Command::new(program);
        command.env("CARGO_MANIFEST_DIR", &dir).current_dir(dir).env_remove(VARIABLE);
        // With a backtrace the last lines of the output would contain nothing else.
        command.env("RUST_BACKTRACE", "0");
        // Many a planted bug makes its test hang. Without a bug the test has to pass within the
        // same patience.
        command.env("ULOCKS_PATIENCE", PATIENCE);
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_run_is_begun_even_if_the_time_is_up() {
        let (past, later) = (Instant::now(), Instant::now() + Duration::from_secs(3600));
        assert!(may_begin(Some(past), true) && !may_begin(Some(past), false));
        assert!(may_begin(Some(later), false) && may_begin(None, false));
    }
}
