//! `cargo xtask mutants`: plants bugs and demands that the tests named for each report it.
//!
//! A model that has never failed proves nothing. There are two kinds of mutants. The bugs that the
//! models must report are kept beside the source, as replacements of text (`spec.rs` has the
//! format). The orderings that can be weaker are found in the source (`orderings.rs` says which).
//! This command plants both kinds in a copy of the workspace:
//!
//! | in `target/mutants` | what |
//! |---|---|
//! | `source/` | the tracked files, and the untracked files that git does not ignore, with all mutants |
//! | `native/`, `loom/`, `vm/` | the target directory of each world, kept from run to run |
//! | `messages`, `progress`, `output-N` | the output of the last commands |
//! | `output-N.reached` | the orderings that the last model has passed (`reach.rs`) |
//! | `results.jsonl` | the verdicts, each with a hash of the code that it belongs to |
//! | `report.txt` | the last table |
//! | `lock` | locked by the command that uses the folder |
//!
//! All mutants are in one copy. Each changed function chooses its body by the variable
//! `ULOCKS_MUTANT` (`plant.rs`), so a package is built once for each world, and its test programs
//! run once for each mutant. If a mutant cannot be chosen at run time, it gets a build of its own,
//! after the others. The table notes it as `alone`; a line above the table says why.
//!
//! A file of the copy is written only if its content differs, so cargo rebuilds only what has
//! changed. An interrupted run may leave a mutant that is alone in the copy; the next run
//! overwrites it. A mutant with a verdict is not run again (`results.rs`).
//!
//! The tests also run without any mutant. They must pass, and at least one test must run. Otherwise
//! a failure under a mutant would prove nothing: the test might always fail, or the filter might
//! select no test. For a planted bug such a run comes when it is first needed, so the first verdict
//! does not wait for the other crates. `cargo xtask test` leaves it out, since it has just run
//! these tests itself. For orderings it also tells which models reach which.

mod audit;
mod build;
mod logic;
mod models;
mod orderings;
mod part;
mod plant;
mod reach;
mod report;
mod results;
mod scratch;
pub mod source;
pub mod spec;
mod standing;
pub mod verdict;
pub mod weaken;

use crate::flags;
use crate::verify::{self, runs::Passed};
use anyhow::{Context, bail};
use audit::{Course, Effort, Store};
use report::{score, table};
use spec::{Mutant, Probe, WORLDS};
pub use standing::{Audited, Standing, Verdicts, collect, is_reported, standing};
use std::collections::BTreeSet;
use std::fs;
use std::thread;
use std::time::Duration;
use weaken::Placed;
pub use weaken::{Weakening, scope};
use xtask::steps::Steps;
use xtask::workspace::Workspace;

const KINDS: [&str; 2] = ["logic", "orderings"];

/// All mutants: the planted bugs, and the orderings that can be weakened.
struct All {
    mutants: Vec<Mutant>,
    sites: Vec<Placed>,
}

/// The mutants that `flags` select.
struct Chosen {
    mutants: Vec<Mutant>,
    weakenings: Vec<Weakening>,
}

/// All weakenings of the workspace.
pub fn weakenings(workspace: &Workspace) -> anyhow::Result<Vec<Weakening>> {
    Ok(weaken::load(workspace)?.0.iter().flat_map(Placed::weakenings).collect())
}

/// Checks all specifications, then runs the chosen mutants.
pub fn run(flags: &flags::Mutants, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    run_after(Passed::default(), flags, workspace, steps)
}

/// The same, where the tests that have `passed` need not pass again without a mutant.
fn run_after(
    passed: Passed,
    flags: &flags::Mutants,
    workspace: &Workspace,
    steps: &mut Steps,
) -> anyhow::Result<()> {
    let mut all = All { mutants: Vec::new(), sites: Vec::new() };
    steps.check("specifications", "cargo xtask mutants --list", || {
        let (mutants, mut faults) = spec::load(workspace)?;
        let (sites, wrong) = weaken::load(workspace)?;
        faults.extend(wrong);
        faults.extend(ambiguous(&mutants, &sites));
        faults.iter().for_each(|fault| eprintln!("{fault}"));
        all = All { mutants, sites };
        Ok(faults.is_empty())
    })?;
    let mut chosen = choose(&all, flags)?;
    if let Some(world) = &flags.world {
        chosen
            .weakenings
            .retain(|weakening| !models::models(workspace, weakening, Some(world.as_str())).is_empty());
    }
    if flags.stale {
        let (orderings, bugs) = verify::verdicts(workspace)?;
        let is_of_today = |weakening: &Weakening| {
            orderings.get(&weakening.key).is_some_and(|record| record.code == weakening.code)
        };
        chosen.mutants.retain(|mutant| !is_reported(mutant, &bugs));
        chosen.weakenings.retain(|weakening| weakening.explained.is_none() && !is_of_today(weakening));
    }
    if flags.list {
        list(&chosen);
        return Ok(());
    }
    let jobs = flags.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)).max(1);
    Ok(steps.check("mutants", &repeat(flags), || {
        let store = Store { passed, ..Store::open(workspace)? };
        let budget = flags.budget.map(|minutes| Duration::from_secs(60 * minutes));
        run_chosen(&store, &all, &chosen, flags, Effort { jobs, budget })
    })?)
}

/// Runs the part of the planted bugs that belongs to this commit, after all tests. Begins no test
/// later than `minutes` after the build, but at least one.
pub fn run_part(workspace: &Workspace, steps: &mut Steps, minutes: u64) -> anyhow::Result<()> {
    let part = part::of_commit(&workspace.root, &spec::load(workspace)?.0)?;
    println!("\npart {part} of the planted bugs; for all parts: cargo xtask mutants --kind logic");
    let line = ["mutants", "--part", &part, "--budget", &minutes.to_string()].map(Into::into);
    match flags::Xtask::from_vec(line.into())?.subcommand {
        flags::XtaskCmd::Mutants(flags) => run_after(Passed::load(workspace)?, &flags, workspace, steps),
        _ => bail!("the command `mutants` was not recognised"),
    }
}

/// Runs the chosen mutants. Returns whether each has the verdict that it should have.
fn run_chosen(
    store: &Store<'_>,
    all: &All,
    chosen: &Chosen,
    flags: &flags::Mutants,
    effort: Effort,
) -> anyhow::Result<bool> {
    let (bugs, mut logic) = logic::pending(store, &chosen.mutants);
    let world = flags.world.as_deref();
    let (weaker, mut orderings) = weaken::pending(store, &chosen.weakenings, world);
    let known = logic.len() + orderings.len();
    let asked = bugs.len() + weaker.len();
    println!("{asked} mutants to run; {known} are explained, or have a verdict");
    let mut course = Course::new(store, &all.mutants, &all.sites, effort);
    // The orderings come first: a mutant that is built alone changes the programs.
    orderings.extend(weaken::run(&mut course, weaker)?);
    logic.extend(logic::run(&mut course, &bugs)?);

    orderings.sort_by(|a, b| a.mutant.cmp(&b.mutant));
    let mut text = String::new();
    for rows in [&logic, &orderings] {
        if !rows.is_empty() {
            text += &format!("{}\n", table(rows));
        }
    }
    if let Some(score) = score(&orderings) {
        text += &format!("{score}\n");
    }
    if course.left > 0 {
        text += &format!("{} runs were not begun in time; to resume, run the command again\n", course.left);
    }
    // At least one run is begun, but an ordering may need a second world.
    let is_idle = asked > 0 && course.left >= asked;
    if is_idle {
        text += "none of the mutants has a verdict of this run\n";
    }
    print!("\n{text}");
    let path = store.scratch.base.join("report.txt");
    fs::write(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("the table is written to {}", path.display());
    Ok(!is_idle && logic.iter().chain(&orderings).all(|row| row.verdict.is_as_specified()))
}

/// Mutants whose number, which is a hash, is also that of another mutant.
fn ambiguous(mutants: &[Mutant], sites: &[Placed]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mutants = mutants.iter().map(|mutant| (mutant.id(), format!("{}: {}", mutant.spec, mutant.name)));
    let sites = sites.iter().map(|placed| (placed.id, format!("{}:{}", placed.file, placed.site.line)));
    let twice = mutants.chain(sites).filter(|(id, _)| !seen.insert(*id));
    twice.map(|(_, name)| format!("{name}: another mutant has the same number: rename this one")).collect()
}

/// The mutants that `flags` select, with the tests that they select.
fn choose(all: &All, flags: &flags::Mutants) -> anyhow::Result<Chosen> {
    let select = |what: &str, value: &Option<String>, known: &[&str]| match value {
        Some(value) if !known.contains(&value.as_str()) => {
            bail!("--{what} {value}: no such {what}; there are: {}", known.join(", "))
        }
        _ => Ok(()),
    };
    select("world", &flags.world, &WORLDS)?;
    select("kind", &flags.kind, &KINDS)?;
    let is_kind = |kind: &str| flags.kind.as_deref().is_none_or(|chosen| chosen == kind);
    let is_named = |name: &str, place: &str| {
        flags.only.as_deref().is_none_or(|only| name == only || place.contains(only))
    };

    let mut mutants = match &flags.part {
        Some(part) => part::choose(part, &all.mutants)?,
        None => all.mutants.clone(),
    };
    if let Some(world) = &flags.world {
        mutants.iter_mut().for_each(|mutant| mutant.found_by.retain(|probe| probe.world == *world));
    }
    mutants.retain(|mutant| {
        is_kind(KINDS[0]) && is_named(&mutant.name, &mutant.spec) && !mutant.found_by.is_empty()
    });
    let mut weakenings: Vec<_> = all.sites.iter().flat_map(Placed::weakenings).collect();
    weakenings.retain(|weakening| {
        let has_models = flags.world.as_deref() != Some("native");
        flags.part.is_none() && is_kind(KINDS[1]) && has_models && is_named("", &weakening.name)
    });
    if mutants.is_empty() && weakenings.is_empty() {
        let asked = repeat(flags);
        let asked = asked.trim_start_matches("cargo xtask mutants").trim();
        bail!("no mutant fits `{asked}`; `cargo xtask mutants --list` names all");
    }
    Ok(Chosen { mutants, weakenings })
}

fn list(chosen: &Chosen) {
    for Mutant { spec, name, breaks, property, found_by, sound, .. } in &chosen.mutants {
        println!("{spec}: {name}{}\n    {breaks}\n    {property}", if *sound { " (sound)" } else { "" });
        for Probe { world, package, test, filter, says } in found_by {
            let says = says.as_deref().map_or(String::new(), |says| format!(": \"{says}\""));
            println!("    {world}: {package}, {test}, {filter}{says}");
        }
    }
    for Weakening { name, explained, .. } in &chosen.weakenings {
        let explained = explained.as_deref().map_or(String::new(), |why| format!(" (explained: {why})"));
        println!("{name}{explained}");
    }
}

fn repeat(flags: &flags::Mutants) -> String {
    let mut line = "cargo xtask mutants".to_owned();
    let values = [
        ("--only", &flags.only),
        ("--world", &flags.world),
        ("--kind", &flags.kind),
        ("--part", &flags.part),
    ];
    for (flag, value) in values {
        line.extend(value.iter().map(|value| format!(" {flag} {value}")));
    }
    line + if flags.stale { " --stale" } else { "" }
}

#[cfg(test)]
mod tests;
