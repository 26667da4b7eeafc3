//! `cargo xtask miri`: looks for undefined behaviour, aliasing and leaks, under many schedules.
//!
//! It runs the unit tests of every public crate, and the integration tests in files
//! `tests/miri*.rs`. Miri knows futex wait, wake and their bitset forms. It does not know requeue,
//! priority inheritance, waitv and shared mappings, so their tests say `#[cfg_attr(miri, ignore)]`.
//! The virtual machine does not run under Miri, since Miri cannot switch stacks.

use crate::filters;
use crate::flags::Miri;
use crate::steps::Steps;
use crate::tools::{Missing, need, need_toolchain};
use crate::workspace::{LOCKS, Package, Workspace, dash_p, features};
use crate::world::with_flags;
use anyhow::bail;
use xshell::{Shell, cmd};

const SEEDS: u32 = 16;
/// The packages whose threads are coroutines.
const SWITCH_STACKS: [&str; 2] = ["ulocks-vm", "ulocks-vm-cost"];

/// Runs each test once for each seed.
pub fn run(flags: &Miri, shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    let toolchain = flags.toolchain.as_deref().unwrap_or("nightly");
    let seeds = flags.seeds.unwrap_or(SEEDS);
    if seeds == 0 {
        bail!("--seeds 0: give at least 1; a seed is one schedule");
    }
    let packages = packages(workspace, &flags.package)?;
    filters::check(&flags.filter, &packages, "miri", true)?;
    needs(toolchain)?;

    let with_files = packages.iter().any(|package| !package.tests("miri").is_empty());
    let files: &[&str] = if with_files { &["--test", "miri*"] } else { &[] };
    let packages = [dash_p(&packages), features(&packages, &LOCKS)].concat();
    let filter = &flags.filter;
    let miriflags = with_flags("MIRIFLAGS", &format!("-Zmiri-many-seeds=0..{seeds}"));
    let target = workspace.target().join("miri");
    let test = cmd!(
        shell,
        "rustup run {toolchain} cargo miri test --target-dir {target} {packages...} --lib {files...} -- {filter...}"
    );
    // Each schedule reports all tests again.
    filters::demand_tests(filter, steps, |steps| {
        Ok(steps.run_repeated("miri", test, &[("MIRIFLAGS", &miriflags)])?)
    })
}

/// The packages `names`, or all that Miri can run.
pub fn packages<'a>(workspace: &'a Workspace, names: &[String]) -> anyhow::Result<Vec<&'a Package>> {
    workspace.select(names, "tests for Miri", |p| p.is_public() && !SWITCH_STACKS.contains(&p.name.as_str()))
}

/// Demands Miri.
pub fn needs(toolchain: &str) -> Result<(), Missing> {
    need_toolchain(toolchain)?;
    let get = format!("rustup component add miri rust-src --toolchain {toolchain}");
    need("Miri", get, &["rustup", "run", toolchain, "cargo", "miri", "--version"])
}
