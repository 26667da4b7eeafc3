//! `cargo xtask loom`: the models in the world of loom, `tests/loom*.rs`.

use crate::flags::Loom;
use crate::steps::Steps;
use crate::workspace::Workspace;
use crate::world::World;
use xshell::Shell;

/// Runs the models.
pub fn run(flags: &Loom, shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    World::loom(workspace).run_models(&flags.package, &flags.filter, &[], shell, workspace, steps)
}
