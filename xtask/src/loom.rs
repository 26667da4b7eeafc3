//! `cargo xtask loom`: the models, in the world of `--cfg ulocks_loom`.
//!
//! A model is a test in a file `tests/loom*.rs`. The packages that have one are found, not listed. The loom world has
//! a target directory of its own, because a change of `RUSTFLAGS` rebuilds everything.

use crate::flags::Loom;
use crate::steps::Steps;
use crate::workspace::{Package, Workspace, dash_p};
use std::env;
use xshell::{Shell, cmd};

/// What a command needs to be compiled in the loom world.
pub struct World {
    rustflags: String,
    target: String,
}

impl World {
    /// The loom world of this workspace.
    pub fn new(workspace: &Workspace) -> Self {
        let target = workspace.target().join("loom").to_string_lossy().into_owned();
        Self { rustflags: with_flags("RUSTFLAGS", "--cfg ulocks_loom"), target }
    }

    /// The variables that select it.
    pub fn env(&self) -> [(&str, &str); 2] {
        [("RUSTFLAGS", &self.rustflags), ("CARGO_TARGET_DIR", &self.target)]
    }
}

/// The caller's own flags, and ours behind them.
pub fn with_flags(variable: &str, ours: &str) -> String {
    match env::var(variable) {
        Ok(theirs) if !theirs.is_empty() => format!("{theirs} {ours}"),
        _ => ours.to_owned(),
    }
}

/// `-p NAME .. --features NAME/loom,..`
pub fn packages_with_feature(packages: &[&Package]) -> Vec<String> {
    let features: Vec<String> = packages.iter().map(|package| format!("{}/loom", package.name)).collect();
    let mut args = dash_p(packages);
    args.extend(["--features".to_owned(), features.join(",")]);
    args
}

/// Runs the models.
pub fn run(flags: &Loom, shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    let packages = workspace
        .select(&flags.package, "loom models", |p| p.has_feature("loom") && !p.tests("loom").is_empty())?;
    let packages = packages_with_feature(&packages);
    let filter = &flags.filter;
    let world = World::new(workspace);
    let models =
        cmd!(shell, "cargo test --profile model {packages...} --test loom* --no-fail-fast -- {filter...}");
    Ok(steps.run("loom", models, &world.env())?)
}
