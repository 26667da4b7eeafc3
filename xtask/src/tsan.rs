//! `cargo xtask tsan`: the stress tests under ThreadSanitizer.
//!
//! ThreadSanitizer does not understand `atomic::fence`. If a lock needs a fence, its stress test
//! says what it does instead.

use crate::flags::Tsan;
use xshell::{Shell, cmd};
use xtask::filters;
use xtask::nightly::{NIGHTLY, Sanitizer};
use xtask::steps::Steps;
use xtask::workspace::{LOCKS, Workspace, dash_p, features};

/// Runs the stress tests under ThreadSanitizer.
pub fn run(flags: &Tsan, shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    let packages = workspace.select(&flags.package, "stress tests", |p| !p.tests("stress").is_empty())?;
    Sanitizer::Thread.needs()?;
    let rustflags = Sanitizer::Thread.rustflags();
    let args = Sanitizer::Thread.cargo_args(&workspace.target())?;
    let packages = [dash_p(&packages), features(&packages, &LOCKS)].concat();
    let filter = &flags.filter;
    let test = cmd!(
        shell,
        "rustup run {NIGHTLY} cargo test {args...} {packages...} --test stress* --no-fail-fast -- {filter...}"
    );
    filters::demand_tests(filter, steps, |steps| Ok(steps.run("tsan", test, &[("RUSTFLAGS", &rustflags)])?))
}
