//! `cargo xtask miri`: looks for undefined behaviour, aliasing and leaks, under many schedules.
//!
//! It runs the unit tests of every public crate, and the integration tests in files
//! `tests/miri*.rs`. Miri knows futex wait, wake and their bitset forms. It does not know requeue,
//! priority inheritance, waitv and shared mappings, so their tests say `#[cfg_attr(miri, ignore)]`.
//! The virtual machine does not run under Miri, since Miri cannot switch stacks.

use crate::flags::Miri;
use anyhow::bail;
use xshell::{Shell, cmd};
use xtask::filters;
use xtask::nightly::{miri_args, needs_miri, packages_for_miri};
use xtask::steps::Steps;
use xtask::workspace::Workspace;

const SEEDS: u32 = 16;

/// Runs each test once for each seed.
pub fn run(flags: &Miri, shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    let seeds = flags.seeds.unwrap_or(SEEDS);
    if seeds == 0 {
        bail!("--seeds 0: give at least 1; a seed is one schedule");
    }
    let packages = packages_for_miri(workspace, &flags.package)?;
    needs_miri()?;

    let with_files = packages.iter().any(|package| !package.tests("miri").is_empty());
    let files: &[&str] = if with_files { &["--test", "miri*"] } else { &[] };
    let (args, miriflags) = miri_args(workspace, &packages, 0..seeds.into());
    let filter = &flags.filter;
    let test = cmd!(shell, "rustup {args...} --lib {files...} -- {filter...}");
    // Each schedule reports all tests again.
    filters::demand_tests(filter, steps, |steps| {
        Ok(steps.run_repeated("miri", test, &[("MIRIFLAGS", &miriflags)])?)
    })
}
