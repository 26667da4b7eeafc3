//! `cargo xtask fuzz`: libFuzzer chooses executions of the virtual machine, whose every choice its
//! input answers, and what a hostile process writes into a region on the machine.
//!
//! The targets are built without sanitizers. The virtual machine checks its memory itself, and
//! sanitizers do not know that its coroutines switch stacks.

use crate::flags::Fuzz;
use crate::steps::Steps;
use crate::tools::{Missing, need, need_toolchain};
use crate::workspace::{Package, Workspace};
use crate::world::with_flags;
use anyhow::bail;
use xshell::{Shell, cmd};

/// The workspace of the fuzz targets.
const DIR: &str = "fuzz";
const SECONDS: u32 = 60;
/// Longer inputs answer choices that no execution of the targets asks for.
const MAX_BYTES: u32 = 1_024;
/// An input that takes longer, in seconds, hangs.
const HANGS: u32 = 60;
/// What stands in a target that is built for the machine.
const OF_MACHINE: &str = "#[cfg(ulocks_vm)]";

/// Runs the fuzz targets one after the other, each for the same time.
pub fn run(flags: &Fuzz, shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    let seconds = flags.seconds.unwrap_or(SECONDS);
    if seconds == 0 {
        bail!("--seconds 0: at least 1; without a limit, run `cargo fuzz` itself");
    }
    let targets = select(targets(workspace)?, flags.target.as_deref())?;

    let toolchain = flags.toolchain.as_deref().unwrap_or("nightly");
    needs(toolchain)?;

    let limits =
        [format!("-max_total_time={seconds}"), format!("-max_len={MAX_BYTES}"), format!("-timeout={HANGS}")];
    for target in targets {
        let source = workspace.root.join(DIR).join("fuzz_targets").join(&target).with_extension("rs");
        let of_machine = shell.read_file(source)?.contains(OF_MACHINE);
        let (world, cfg) = if of_machine { ("machine", "") } else { ("vm", "--cfg ulocks_vm") };
        let rustflags = with_flags("RUSTFLAGS", cfg);
        let build = workspace.target().join("fuzz").join(world);
        let limits = &limits;
        let fuzz = cmd!(
            shell,
            "rustup run {toolchain} cargo fuzz run --fuzz-dir {DIR} --target-dir {build} --sanitizer none {target} -- {limits...}"
        );
        steps.run_uncounted(&format!("fuzz {target}"), fuzz, &[("RUSTFLAGS", &rustflags)])?;
    }
    Ok(())
}

/// All fuzz targets.
pub fn targets(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    Ok(Package::read(workspace.root.join(DIR))?.bins())
}

/// Demands cargo-fuzz, and the toolchain that it needs.
pub fn needs(toolchain: &str) -> Result<(), Missing> {
    need_toolchain(toolchain)?;
    need("cargo-fuzz", "cargo install cargo-fuzz", &["cargo", "fuzz", "--version"])
}

/// The target `name`, or all targets.
fn select(known: Vec<String>, name: Option<&str>) -> anyhow::Result<Vec<String>> {
    match name {
        None => Ok(known),
        Some(name) if known.iter().any(|target| target == name) => Ok(vec![name.to_owned()]),
        Some(name) => bail!("{name}: no fuzz target of that name; there are: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_does_not_exist_is_refused_with_those_that_do() {
        let known = || vec!["one".to_owned(), "two".to_owned()];
        assert_eq!(select(known(), None).unwrap(), known());
        assert_eq!(select(known(), Some("two")).unwrap(), ["two"]);
        let refusal = select(known(), Some("three")).unwrap_err().to_string();
        assert_eq!(refusal, "three: no fuzz target of that name; there are: one, two");
    }

    #[test]
    fn the_targets_are_those_of_the_manifest() {
        let workspace = Workspace::load().unwrap();
        let targets = targets(&workspace).unwrap();
        assert!(targets.contains(&"schedules".to_owned()), "{targets:?}");
    }
}
