//! The model worlds: the flags and variables with which a command is compiled in a world.
//!
//! A model is a test in a file `tests/NAME*.rs`, where `NAME` is the name of the world. This
//! program finds the packages that have models. A package may have models although its library has
//! no feature of that world. A world has a target directory of its own, because a change of
//! `RUSTFLAGS` rebuilds everything.

use crate::filters;
use crate::steps::Steps;
use crate::workspace::{LOCKS, Package, Workspace, dash_p, features};
use std::env;
use std::path::Path;
use xshell::{Cmd, Shell, cmd};

/// A model world of this workspace, selected by `--cfg ulocks_NAME` together with the feature
/// `NAME`.
pub struct World {
    name: String,
    rustflags: String,
    target: String,
}

impl World {
    /// The world of loom.
    pub fn loom(workspace: &Workspace) -> Self {
        Self::new("loom", &workspace.target())
    }

    /// The world of the virtual machine.
    pub fn vm(workspace: &Workspace) -> Self {
        Self::new("vm", &workspace.target())
    }

    /// The world `name`, built under `target`.
    pub fn new(name: &str, target: &Path) -> Self {
        let target = target.join(name).to_string_lossy().into_owned();
        let rustflags = with_flags("RUSTFLAGS", &format!("--cfg ulocks_{name}"));
        Self { name: name.to_owned(), rustflags, target }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The variables that select it.
    pub fn env(&self) -> [(&str, &str); 2] {
        [("RUSTFLAGS", &self.rustflags), ("CARGO_TARGET_DIR", &self.target)]
    }

    /// `-p NAME .. --features NAME/WORLD,..`: the feature of the world and the features that add a
    /// lock, where a package has them.
    pub fn args(&self, packages: &[&Package]) -> Vec<String> {
        let mut args = dash_p(packages);
        args.extend(features(packages, &[&[self.name.as_str()], &LOCKS[..]].concat()));
        args
    }

    fn has_models(&self, package: &Package) -> bool {
        !package.tests(&self.name).is_empty()
    }

    /// Runs clippy on all packages that have the feature or models of this world.
    pub fn check(&self, shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
        let name = self.name.as_str();
        let packages = workspace
            .select(&[], &format!("a part in {name}"), |p| p.has_feature(name) || self.has_models(p))?;
        let packages = &self.args(&packages);
        // Programs and the other tests are for the machine: in models a lock cannot be a plain
        // static.
        let models = format!("{name}*");
        // Tables have one place in the model worlds.
        let lints = ["-D", "warnings", "-A", "clippy::modulo_one"];
        let clippy =
            cmd!(shell, "cargo clippy --profile model {packages...} --lib --test {models} -- {lints...}");
        Ok(steps.run(&format!("clippy, {name}"), clippy, &self.env())?)
    }

    /// The command that builds all models. It needs [`World::env`].
    pub fn build<'a>(&self, shell: &'a Shell, workspace: &Workspace) -> anyhow::Result<Cmd<'a>> {
        Ok(self.test(&[], shell, workspace)?.arg("--no-run"))
    }

    /// `cargo test` for the models of the packages `names`, or of all.
    fn test<'a>(&self, names: &[String], shell: &'a Shell, workspace: &Workspace) -> anyhow::Result<Cmd<'a>> {
        let name = self.name.as_str();
        let packages = workspace.select(names, &format!("{name} models"), |p| self.has_models(p))?;
        let (packages, models) = (self.args(&packages), format!("{name}*"));
        Ok(cmd!(shell, "cargo test --profile model {packages...} --test {models} --no-fail-fast"))
    }

    /// Runs the models of the packages `names`, or of all, whose names contain one of `filter`.
    pub fn run_models(
        &self,
        names: &[String],
        filter: &[String],
        more_env: &[(&str, &str)],
        shell: &Shell,
        workspace: &Workspace,
        steps: &mut Steps,
    ) -> anyhow::Result<()> {
        let run = self.test(names, shell, workspace)?.arg("--").args(filter);
        filters::demand_tests(filter, steps, |steps| {
            Ok(steps.run(&self.name, run, &[&self.env(), more_env].concat())?)
        })
    }
}

/// The flags of the caller, and then our flags.
pub fn with_flags(variable: &str, ours: &str) -> String {
    match env::var(variable) {
        Ok(theirs) if !theirs.is_empty() => format!("{theirs} {ours}"),
        _ => ours.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_is_a_cfg_a_feature_and_a_directory() {
        let workspace = Workspace::load().unwrap();
        let vm = World::vm(&workspace);
        let [(_, flags), (_, target)] = vm.env();
        assert!(flags.ends_with("--cfg ulocks_vm"), "{flags}");
        assert!(target.ends_with("/vm"), "{target}");
        let packages = workspace.select(&["ulocks-core".into()], "the feature", |p| p.has_feature("vm"));
        assert_eq!(
            vm.args(&packages.unwrap()),
            ["-p", "ulocks-core", "--features", "ulocks-core/vm,ulocks-core/parking_lot"]
        );
    }

    #[test]
    fn the_virtual_machine_is_compared_with_loom_without_a_feature() {
        let workspace = Workspace::load().unwrap();
        let loom = World::loom(&workspace);
        let packages = workspace.select(&["ulocks-vm".into()], "loom models", |p| loom.has_models(p));
        assert_eq!(loom.args(&packages.unwrap()), ["-p", "ulocks-vm"]);
    }
}
