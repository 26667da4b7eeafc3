//! The commands of this repository: `cargo xtask COMMAND`, one file each.
//!
//! Every command is a list of steps. A step prints the command line that it runs, so that a user
//! can repeat it by hand. The first step that fails ends the run. The last output is a table of the
//! steps with their durations.
//!
//! Exit code 0: all steps passed. 1: a step failed. 2: a tool is missing, or the command line is
//! wrong.

mod asan;
mod code;
mod filters;
mod flags;
mod fuzz;
mod header;
mod laws;
mod lean;
mod litmus;
mod long;
mod loom;
mod machines;
mod miri;
mod mutants;
mod page;
mod picture;
mod programs;
mod publish_check;
mod real;
mod report;
mod steps;
mod test;
mod tools;
mod tsan;
mod verify;
mod vm;
mod vm_coverage;
mod workspace;
mod world;

use crate::flags::{Xtask, XtaskCmd};
use crate::steps::{Failed, Steps};
use crate::workspace::Workspace;
use std::process::ExitCode;
use xshell::Shell;

fn main() -> ExitCode {
    let flags = match Xtask::from_env() {
        Ok(flags) => flags,
        Err(error) if error.is_help() => error.exit(),
        Err(error) => {
            eprintln!("xtask: {error}; `cargo xtask --help` lists the commands and their options");
            return ExitCode::from(2);
        }
    };
    let mut steps = Steps::default();
    let result = run(flags.subcommand, &mut steps);
    steps.print_table();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(exit_code(&error))
        }
    }
}

fn run(command: XtaskCmd, steps: &mut Steps) -> anyhow::Result<()> {
    let shell = Shell::new()?;
    let workspace = Workspace::load()?;
    shell.change_dir(&workspace.root);
    match command {
        XtaskCmd::Test(_) => test::run(&shell, &workspace, steps),
        XtaskCmd::Tidy(_) => laws::run(&workspace, steps),
        XtaskCmd::Picture(_) => picture::run(&workspace, steps),
        XtaskCmd::Header(flags) => header::run(&flags, &workspace, steps),
        XtaskCmd::Lean(_) => lean::run(&shell, &workspace, steps),
        XtaskCmd::Loom(flags) => loom::run(&flags, &shell, &workspace, steps),
        XtaskCmd::Vm(flags) => vm::run(&flags, &shell, &workspace, steps),
        XtaskCmd::Miri(flags) => miri::run(&flags, &shell, &workspace, steps),
        XtaskCmd::Tsan(flags) => tsan::run(&flags, &shell, &workspace, steps),
        XtaskCmd::Page(_) => page::run(&shell, &workspace, steps),
        XtaskCmd::Litmus(flags) => litmus::run(&flags, &shell, &workspace, steps),
        XtaskCmd::Fuzz(flags) => fuzz::run(&flags, &shell, &workspace, steps),
        XtaskCmd::Mutants(flags) => mutants::run(&flags, &workspace, steps),
        XtaskCmd::Verify(flags) => verify::run(&flags, &workspace, steps),
        XtaskCmd::Long(flags) => long::run(&flags, &workspace, steps),
        XtaskCmd::Machines(flags) => machines::run(&flags, &workspace, steps),
        XtaskCmd::Real(flags) => real::run(&flags, &shell, &workspace, steps),
        XtaskCmd::Report(flags) => report::run(&flags, &shell, &workspace, steps),
        XtaskCmd::PublishCheck(_) => publish_check::run(&shell, &workspace, steps),
    }
}

/// 1 if a step failed, which is a fault of the repository. 2 for a fault of the machine or the
/// caller.
fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<Failed>() { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_exits_with_1_and_everything_else_with_2() {
        let failed = Failed { step: "clippy".into(), repeat: "cargo clippy".into() };
        assert_eq!(exit_code(&failed.into()), 1);
        assert_eq!(exit_code(&tools::Missing { tool: "Miri", get: "rustup".into() }.into()), 2);
        assert_eq!(exit_code(&anyhow::anyhow!("--seeds 0: at least 1")), 2);
    }
}
