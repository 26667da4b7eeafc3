//! `cargo xtask vm`: runs the models in the world of the virtual machine, `tests/vm*.rs`. With
//! `--cost` it predicts what the locks would cost on machines with many CPUs.
//!
//! Each model says how many executions it runs. `--budget` replaces that number.

use crate::flags::{Loom, Vm};
use anyhow::bail;
use xshell::{Shell, cmd};
use xtask::steps::Steps;
use xtask::workspace::Workspace;
use xtask::world::{World, with_flags};

/// The variable from which the harness reads the number of executions.
const BUDGET: &str = "ULOCKS_VM_EXECUTIONS";
/// The package and the program that predict costs.
const COST: (&str, &str) = ("ulocks-cost", "ulocks-cost");

/// `cargo xtask loom`: runs the models in the world of loom, `tests/loom*.rs`.
pub fn loom(flags: &Loom, shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    World::loom(workspace).run_models(&flags.package, &flags.filter, &[], shell, workspace, steps)
}

/// Runs the models, or predicts what the locks cost.
pub fn run(flags: &Vm, shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    check(flags)?;
    if flags.cost {
        return cost(flags, shell, workspace, steps);
    }
    let budget = flags.budget.map(|executions| executions.to_string());
    let env: Vec<_> = budget.iter().map(|executions| (BUDGET, executions.as_str())).collect();
    World::vm(workspace).run_models(&flags.package, &flags.filter, &env, shell, workspace, steps)?;
    if flags.package.is_empty() && flags.filter.is_empty() {
        downstream(shell, workspace, steps)?;
        loom_tests(shell, workspace, steps)?;
    }
    Ok(())
}

/// Runs the models of a crate outside of this workspace, by the steps that the README of
/// `ulocks-vm` gives.
pub fn downstream(shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    let world = World::vm(workspace);
    let run = cmd!(
        shell,
        "cargo test --manifest-path examples/downstream/Cargo.toml --profile model --features vm"
    );
    Ok(steps.run("downstream, vm", run, &world.env())?)
}

/// Runs the loom tests of a crate outside of this workspace, with the patch that the README of
/// `ulocks-loom` gives. What the machine keeps for their objects is no leak of theirs.
pub fn loom_tests(shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    let target = workspace.target().join("loom-tests");
    let manifest = "examples/loom-tests/Cargo.toml";
    let run = cmd!(
        shell,
        "cargo test --manifest-path {manifest} --profile model --target-dir {target} --test loom"
    );
    let flags = with_flags("RUSTFLAGS", "--cfg loom");
    Ok(steps.run("loom tests of a user, patched", run, &[("RUSTFLAGS", &flags), ("ULOCKS_VM_LEAKS", "1")])?)
}

/// Refuses options that exclude each other.
fn check(flags: &Vm) -> anyhow::Result<()> {
    if flags.budget == Some(0) {
        bail!("--budget 0: give at least 1; a budget is a number of executions");
    }
    if flags.cost {
        if flags.budget.is_some() || !flags.package.is_empty() {
            bail!("--cost runs no models: leave out --budget and -p");
        }
    } else if flags.cpus.is_some() || flags.locks.is_some() {
        bail!("--cpus and --locks need --cost: cargo xtask vm --cost --cpus 1..256");
    }
    Ok(())
}

/// Runs the program that predicts costs, with the options of the caller.
fn cost(flags: &Vm, shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    let (package, program) = COST;
    let packages = workspace.select(&[package.to_owned()], &format!("the program `{program}`"), |p| {
        p.bins().contains(&program.to_owned())
    })?;
    let world = World::vm(workspace);
    let packages = world.args(&packages);
    let mut args = Vec::new();
    for (name, value) in [("--cpus", &flags.cpus), ("--locks", &flags.locks)] {
        args.extend(value.iter().flat_map(|value| [name, value]));
    }
    let rest = &flags.filter;
    let run = cmd!(shell, "cargo run --profile model {packages...} --bin {program} -- {args...} {rest...}");
    steps.run_with_options("cost", run, &world.env())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::{Xtask, XtaskCmd};

    fn refusal(line: &str) -> Option<String> {
        let xtask = Xtask::from_vec(line.split_whitespace().map(Into::into).collect()).unwrap();
        let XtaskCmd::Vm(flags) = xtask.subcommand else { panic!("not a vm command") };
        check(&flags).err().map(|error| error.to_string())
    }

    #[test]
    fn what_does_not_go_together_is_refused_with_what_does() {
        assert_eq!(refusal("vm -p ulocks-unfair --budget 100 -- timeout"), None);
        assert_eq!(refusal("vm --cost --cpus 1..256 --locks ticket,mcs"), None);
        assert!(refusal("vm --budget 0").unwrap().contains("at least 1"));
        assert!(refusal("vm --cost --budget 9").unwrap().contains("--budget"));
        assert!(refusal("vm --cost -p ulocks-unfair").unwrap().contains("-p"));
        assert!(refusal("vm --cpus 4").unwrap().contains("--cost"));
    }
}
