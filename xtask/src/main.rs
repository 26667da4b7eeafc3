//! The commands of this repository: `cargo xtask COMMAND`, one file each.
//!
//! Every command is a list of steps. A step prints the command line that it runs, so that a user
//! can repeat it by hand. The first step that fails ends the run. The last output is a table of the
//! steps with their durations. What needs other machines, other programs, or hours is in `lab`.

mod built;
mod code;
mod flags;
mod fuzz;
mod header;
mod laws;
mod lean;
mod miri;
mod mutants;
mod pages;
mod peers;
mod publish_check;
mod test;
mod tsan;
mod verify;
mod vm;

use crate::flags::{Xtask, XtaskCmd};
use std::process::ExitCode;
use xshell::Shell;
use xtask::steps::{self, Steps};
use xtask::workspace::Workspace;

fn main() -> ExitCode {
    steps::main("xtask", Xtask::from_env(), flags::all(), run)
}

fn run(flags: Xtask, shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    match flags.subcommand {
        XtaskCmd::Test(_) => test::run(shell, workspace, steps),
        XtaskCmd::Tidy(_) => laws::run(workspace, steps),
        XtaskCmd::Header(flags) => header::run(&flags, workspace, steps),
        XtaskCmd::Lean(_) => lean::run(shell, workspace, steps),
        XtaskCmd::Loom(flags) => vm::loom(&flags, shell, workspace, steps),
        XtaskCmd::Vm(flags) => vm::run(&flags, shell, workspace, steps),
        XtaskCmd::Miri(flags) => miri::run(&flags, shell, workspace, steps),
        XtaskCmd::Tsan(flags) => tsan::run(&flags, shell, workspace, steps),
        XtaskCmd::Fuzz(flags) => fuzz::run(&flags, shell, workspace, steps),
        XtaskCmd::Mutants(flags) => mutants::run(&flags, workspace, steps),
        XtaskCmd::Verify(flags) => verify::run(&flags, workspace, steps),
        XtaskCmd::Peers(flags) => peers::run(&flags, shell, workspace, steps),
        XtaskCmd::PublishCheck(_) => publish_check::run(shell, workspace, steps),
    }
}
