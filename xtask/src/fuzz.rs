//! `cargo xtask fuzz`: libFuzzer chooses executions of the virtual machine, whose every choice its
//! input answers, and what a hostile process writes into a region on the machine.
//!
//! The targets are built without sanitizers. The virtual machine checks its memory itself, and
//! sanitizers do not know that its coroutines switch stacks.

use crate::flags::Fuzz;
use anyhow::bail;
use xshell::{Cmd, Shell, cmd};
use xtask::nightly::{FUZZ, NIGHTLY, fuzz_targets, needs_fuzz};
use xtask::steps::Steps;
use xtask::workspace::Workspace;
use xtask::world::with_flags;

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
    let targets = select(fuzz_targets(workspace)?, flags.target.as_deref())?;
    needs_fuzz()?;

    let limits =
        [format!("-max_total_time={seconds}"), format!("-max_len={MAX_BYTES}"), format!("-timeout={HANGS}")];
    for target in targets {
        let (fuzz, rustflags) = command("run", &target, shell, workspace)?;
        steps.run(&format!("fuzz {target}"), fuzz.arg("--").args(&limits), &[("RUSTFLAGS", &rustflags)])?;
    }
    Ok(())
}

/// `cargo fuzz build` or `cargo fuzz run` for a target, and its `RUSTFLAGS`.
pub fn command<'a>(
    does: &str,
    target: &str,
    shell: &'a Shell,
    workspace: &Workspace,
) -> anyhow::Result<(Cmd<'a>, String)> {
    let source = workspace.root.join(FUZZ).join("fuzz_targets").join(target).with_extension("rs");
    let of_machine = shell.read_file(source)?.contains(OF_MACHINE);
    let (world, cfg) = if of_machine { ("machine", "") } else { ("vm", "--cfg ulocks_vm") };
    let build = workspace.target().join("fuzz").join(world);
    let cargo = cmd!(
        shell,
        "rustup run {NIGHTLY} cargo fuzz {does} --fuzz-dir {FUZZ} --target-dir {build} --sanitizer none {target}"
    );
    Ok((cargo, with_flags("RUSTFLAGS", cfg)))
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
}
