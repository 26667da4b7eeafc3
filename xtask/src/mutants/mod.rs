//! `cargo xtask mutants`: plants bugs and demands that the tests named for each report it.
//!
//! A model that has never failed proves nothing. The bugs that the models must report are kept
//! beside the source, as replacements of text (`spec.rs` has the format). This command plants them
//! in a copy of the workspace:
//!
//! | in `target/mutants` | what |
//! |---|---|
//! | `source/` | the tracked files, and the untracked files that git does not ignore, with all mutants |
//! | `native/`, `loom/`, `vm/` | the target directory of each world, kept from run to run |
//! | `messages`, `progress`, `output-N` | the output of the last commands |
//! | `lock` | held by the command that works here |
//!
//! All mutants are in one copy. Each changed function chooses its body by the variable
//! `ULOCKS_MUTANT` (`plant.rs`), so a package is built once for each world, and its test programs
//! run once for each mutant. A mutant that cannot be chosen at run time gets a build of its own
//! behind the others; the table calls it `alone`, and says why above.
//!
//! A file of the copy is written only if its content differs, so cargo rebuilds only what has
//! changed. An interrupted run may leave a mutant that is alone in the copy; the next run overwrites
//! it.
//!
//! The named tests first run without any mutant. They must pass, and at least one test must run.
//! Otherwise a failure under a mutant would prove nothing: the test might always fail, or the
//! filter might select no test.

mod audit;
mod build;
mod exec;
mod plant;
mod scratch;
mod source;
pub mod spec;

use crate::flags;
use crate::steps::Steps;
use crate::workspace::Workspace;
use anyhow::bail;
use audit::Row;
use spec::{Mutant, Probe, WORLDS};
use std::thread;

/// Checks all specifications, then runs the chosen mutants.
pub fn run(flags: &flags::Mutants, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    let mut mutants = Vec::new();
    steps.check("specifications", "cargo xtask mutants --list", || {
        let (found, faults) = spec::load(workspace)?;
        faults.iter().for_each(|fault| eprintln!("{fault}"));
        mutants = found;
        Ok(faults.is_empty())
    })?;
    let chosen = choose(mutants.clone(), flags)?;
    if flags.list {
        list(&chosen);
        return Ok(());
    }
    Ok(steps.check("mutants", &repeat(flags), || {
        let rows = audit::run(workspace, &mutants, &chosen, jobs(flags))?;
        print_table(&rows);
        Ok(rows.iter().all(|row| row.verdict.is_as_said()))
    })?)
}

/// How many tests run at once.
fn jobs(flags: &flags::Mutants) -> usize {
    let all = thread::available_parallelism().map_or(1, usize::from);
    flags.jobs.map_or(all, |jobs| jobs.max(1))
}

/// The mutants that `flags` select, with the tests that they select.
fn choose(mut mutants: Vec<Mutant>, flags: &flags::Mutants) -> anyhow::Result<Vec<Mutant>> {
    if let Some(world) = &flags.world {
        if !WORLDS.contains(&world.as_str()) {
            bail!("--world {world}: no such world; there are: {}", WORLDS.join(", "));
        }
        mutants.iter_mut().for_each(|mutant| mutant.found_by.retain(|probe| probe.world == *world));
    }
    if let Some(only) = &flags.only {
        mutants.retain(|mutant| mutant.name == *only || mutant.spec.contains(only.as_str()));
    }
    mutants.retain(|mutant| !mutant.found_by.is_empty());
    if mutants.is_empty() {
        bail!("no mutant is selected; `cargo xtask mutants --list` names all");
    }
    Ok(mutants)
}

fn list(mutants: &[Mutant]) {
    for Mutant { spec, name, breaks, property, found_by, sound, .. } in mutants {
        println!("{spec}: {name}{}\n    {breaks}\n    {property}", if *sound { " (sound)" } else { "" });
        for Probe { world, package, test, filter, says } in found_by {
            let says = says.as_deref().map_or(String::new(), |says| format!(": \"{says}\""));
            println!("    {world}: {package}, {test}, {filter}{says}");
        }
    }
}

fn repeat(flags: &flags::Mutants) -> String {
    let mut line = "cargo xtask mutants".to_owned();
    for (flag, value) in [("--only", &flags.only), ("--world", &flags.world)] {
        line.extend(value.iter().map(|value| format!(" {flag} {value}")));
    }
    line
}

fn print_table(rows: &[Row]) {
    let width = |column: fn(&Row) -> usize| rows.iter().map(column).max().unwrap_or(0);
    let (mutants, tests) = (width(|row| row.mutant.len()), width(|row| row.tests.len()));
    println!("\n{:mutants$}  {:tests$}  {:>8}  verdict", "mutant", "tests", "time");
    for Row { mutant, tests: named, verdict, took, alone } in rows {
        let alone = if *alone { ", alone" } else { "" };
        println!("{mutant:mutants$}  {named:tests$}  {:>6.1} s  {verdict}{alone}", took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests;
