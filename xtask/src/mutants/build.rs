//! Builds the test programs of the copy.

use super::plant::Plan;
use super::scratch::Scratch;
use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use xtask::exec::{self, End};
use xtask::programs::test_program;
use xtask::workspace::{LIB, Package};
use xtask::world::World;

/// The test targets of a package in a world: they are built by one command.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unit {
    /// One of [`super::spec::WORLDS`].
    pub world: String,
    /// The package.
    pub package: String,
}

/// What a build has made.
#[derive(Debug)]
pub enum Built {
    /// The program of each test target.
    Programs(BTreeMap<String, PathBuf>),
    /// The build has failed.
    Broken(Errors),
}

/// The errors of a build.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Errors {
    /// The files that have errors, and the places in them.
    pub places: Vec<(String, usize)>,
    /// The messages of the compiler.
    pub text: String,
}

impl Errors {
    /// The mutants that do not compile: the mutants at the places of the errors. If there are none,
    /// all mutants of these files.
    pub fn culprits(&self, plan: &Plan) -> BTreeSet<u32> {
        let at: BTreeSet<u32> = self.places.iter().filter_map(|(file, at)| plan.owner(file, *at)).collect();
        if at.is_empty() { self.places.iter().flat_map(|(file, _)| plan.owners(file)).collect() } else { at }
    }
}

impl Scratch<'_> {
    /// Builds the targets `tests` of `unit`.
    pub fn build(&self, unit: &Unit, tests: &BTreeSet<String>) -> anyhow::Result<Built> {
        let [messages, progress] = ["messages", "progress"].map(|name| self.base.join(name));
        let mut cargo = self.cargo_test(unit, tests)?;
        cargo.args(["--no-run", "--message-format=json"]);
        let ran = exec::finish_apart(&mut cargo, &messages, &progress, Duration::MAX)?;
        let messages: Vec<Value> =
            ran.output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if !matches!(ran.end, End::Passed) {
            let mut errors = errors(&messages);
            if errors.text.is_empty() {
                errors.text = std::fs::read_to_string(progress)?;
            }
            return Ok(Built::Broken(errors));
        }
        let programs: BTreeMap<_, _> = messages.iter().filter_map(test_program).collect();
        for test in tests {
            if !programs.contains_key(test) {
                bail!("cargo has built no test `{test}` of {}", unit.package);
            }
        }
        Ok(Built::Programs(programs))
    }

    /// `cargo test` for the targets `tests`, with the flags of their world. Native tests are built
    /// as in `cargo xtask test`.
    pub fn cargo_test(&self, unit: &Unit, tests: &BTreeSet<String>) -> anyhow::Result<Command> {
        let Unit { world, package } = unit;
        let mut cargo = Command::new("cargo");
        cargo.current_dir(&self.source).arg("test");
        // A mutant changes little of a test target, so an incremental build is faster. The profile
        // of models would compile the whole target.
        cargo.env("CARGO_INCREMENTAL", "1");
        if world == "native" {
            cargo.args(["-p", package, "--all-features"]).env("CARGO_TARGET_DIR", self.base.join(world));
        } else {
            let world = World::new(world, &self.base);
            cargo.args(["--profile", "model"]).args(world.args(&[self.package(package)?])).envs(world.env());
        }
        for test in tests {
            match test.as_str() {
                LIB => cargo.arg("--lib"),
                test => cargo.args(["--test", test]),
            };
        }
        Ok(cargo)
    }

    /// The package of this name.
    pub fn package(&self, name: &str) -> anyhow::Result<&Package> {
        let mut packages = self.workspace.packages.iter();
        packages.find(|package| package.name == name).with_context(|| format!("no package {name}"))
    }
}

fn errors(messages: &[Value]) -> Errors {
    let mut errors = Errors::default();
    let diagnostics = messages.iter().map(|message| &message["message"]);
    for diagnostic in diagnostics {
        if !diagnostic["level"].as_str().is_some_and(|level| level.starts_with("error")) {
            continue;
        }
        errors.text.extend(diagnostic["rendered"].as_str());
        for span in diagnostic["spans"].as_array().into_iter().flatten() {
            if span["is_primary"] == true
                && let Some(file) = span["file_name"].as_str()
            {
                let at = span["byte_start"].as_u64().unwrap_or_default();
                errors.places.push((file.to_owned(), at as usize));
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::plant::Planted;

    fn messages(lines: &[&str]) -> Vec<Value> {
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn an_error_belongs_to_the_mutant_at_its_place_or_to_those_of_its_file() {
        let line = |at: usize, level: &str| {
            let span = format!(r#"{{"file_name":"f.rs","byte_start":{at},"is_primary":true}}"#);
            format!(r#"{{"message":{{"level":"{level}","rendered":"text","spans":[{span}]}},"target":null}}"#)
        };
        let (first, second) = (line(12, "error"), line(99, "warning"));
        let inside = errors(&messages(&[&first, &second]));
        assert_eq!(inside, Errors { places: vec![("f.rs".into(), 12)], text: "text".into() });
        let outside = errors(&messages(&[&line(99, "error")]));
        let mut plan = Plan::default();
        let bodies = vec![(10..20, 7), (30..40, 8)];
        plan.files.insert("f.rs".into(), Planted { text: String::new(), bodies });
        assert_eq!(inside.culprits(&plan), [7].into());
        assert_eq!(outside.culprits(&plan), [7, 8].into());
        assert_eq!(Errors::default().culprits(&plan), [].into());
    }
}
