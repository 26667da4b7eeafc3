//! Which model reaches which ordering: each model runs once without a mutant, by itself, and the
//! planted functions write down the sites that it passes.
//!
//! A weakened ordering runs only on the models that reach it. Most of the others are slow ones.

use super::audit::{Audit, Needed};
use super::build::Unit;
use super::models::Models;
use super::plant::{REACHED, VARIABLE};
use super::verdict::{Verdict, judge};
use anyhow::{Context, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};
use xtask::exec;
use xtask::programs::listed;

/// A model that passes without a mutant.
pub struct Model {
    /// Its test target.
    target: String,
    /// Its name there.
    pub name: String,
    /// How long it takes.
    pub took: Duration,
    /// The sites that it reaches.
    sites: BTreeSet<u32>,
}

/// The models of each unit, the fastest first.
pub type Reach = BTreeMap<Unit, Vec<Model>>;

impl Model {
    /// A command that runs it.
    pub fn command(&self, audit: &Audit<'_>, unit: &Unit) -> anyhow::Result<Command> {
        let mut command = audit.command(unit, &self.target)?;
        command.args(["--nocapture", "--test-threads=1", "--exact", &self.name]);
        Ok(command)
    }
}

impl Models {
    /// Those of `reach` that are among these models and reach the site `id`.
    pub fn that_reach<'a>(&self, id: u32, reach: &'a Reach) -> Vec<&'a Model> {
        let all = reach.get(&self.unit).into_iter().flatten();
        let is_left_out = |model: &Model| self.without.iter().any(|part| model.name.contains(part.as_str()));
        let is_ours = |model: &&Model| self.tests.contains(&model.target) && !is_left_out(model);
        all.filter(is_ours).filter(|model| model.sites.contains(&id)).collect()
    }
}

/// Runs all models of the targets once. The budget does not cut it short, since without it no
/// mutant gets a verdict.
pub fn find(audit: &Audit<'_>, units: &Needed) -> anyhow::Result<Reach> {
    let mut all = Vec::new();
    for (unit, targets) in units {
        for target in targets {
            for name in names(audit, unit, target)? {
                let (took, sites) = (Duration::ZERO, BTreeSet::new());
                all.push((unit, Model { target: target.clone(), name, took, sites }));
            }
        }
    }
    let (asked, start) = (all.len(), Instant::now());
    let run = |worker, (unit, model)| Ok((unit, run(audit, unit, model, worker)?));
    let done = audit.each(all, |_| true, run)?;
    let mut reach = Reach::new();
    for (unit, model) in done {
        reach.entry(unit.clone()).or_default().extend(model);
    }
    reach.values_mut().for_each(|models| models.sort_by_key(|model| model.took));
    println!("   which of {asked} models reach which orderings: {:.1} s", start.elapsed().as_secs_f64());
    Ok(reach)
}

/// The names of the tests of a target, without those that are there for planted bugs.
fn names(audit: &Audit<'_>, unit: &Unit, target: &str) -> anyhow::Result<Vec<String>> {
    let printed = audit.command(unit, target)?.args(["--list", "--format", "terse"]).output()?;
    let mut names = listed(&printed.stdout);
    if !printed.status.success() || names.is_empty() {
        bail!("{target} of {} lists no models", unit.package);
    }
    names.retain(|name| !name.contains("bugs::"));
    Ok(names)
}

/// Runs a model. None if it is ignored.
fn run(audit: &Audit<'_>, unit: &Unit, model: Model, worker: usize) -> anyhow::Result<Option<Model>> {
    let path = audit.output(worker).with_extension("reached");
    fs::write(&path, "")?;
    let mut command = model.command(audit, unit)?;
    command.env(VARIABLE, "reach").env(REACHED, &path);
    let start = Instant::now();
    let ran = exec::finish(&mut command, &audit.output(worker), Duration::MAX)?;
    match judge(&ran, None) {
        Verdict::Passes => {}
        Verdict::NoTest => return Ok(None),
        _ => bail!("{} of {} fails without a mutant\n{}", model.name, unit.package, ran.the_end()),
    }
    let sites = fs::read_to_string(&path)?.lines().map(str::parse).collect::<Result<_, _>>();
    Ok(Some(Model { took: start.elapsed(), sites: sites.context("a site that is no number")?, ..model }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordering_has_the_models_of_its_lock_that_reach_it_the_fastest_first() {
        let unit = Unit { world: "vm".into(), package: "p".into() };
        let model = |name: &str, target: &str, sites: &[u32]| Model {
            target: target.into(),
            name: name.into(),
            took: Duration::ZERO,
            sites: sites.iter().copied().collect(),
        };
        let known = vec![
            model("fast::a", "vm", &[7]),
            model("other::b", "vm", &[7]),
            model("c", "vm", &[8]),
            model("d", "vm", &[7, 8]),
            model("e", "more", &[7]),
        ];
        let reach = Reach::from([(unit.clone(), known)]);
        let models = Models { unit, tests: vec!["vm".into()], without: vec!["other::".into()] };
        let names =
            |id| models.that_reach(id, &reach).iter().map(|model| model.name.as_str()).collect::<Vec<_>>();
        assert_eq!(names(7), ["fast::a", "d"]);
        assert_eq!(names(9), [""; 0]);
    }
}
