//! `cargo xtask publish-check`: checks whether crates.io would accept the public crates.

use crate::flags::PublishCheck;
use crate::steps::Steps;
use xshell::{Shell, cmd};

/// Packages every public crate, and builds it from its package with every feature.
pub fn run(flags: &PublishCheck, shell: &Shell, steps: &mut Steps) -> anyhow::Result<()> {
    let dirty = flags.allow_dirty.then_some("--allow-dirty");
    Ok(steps.run(
        "publish",
        cmd!(shell, "cargo publish --workspace --all-features --dry-run {dirty...}"),
        &[],
    )?)
}
