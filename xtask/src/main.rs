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
use std::env;
use std::process::ExitCode;
use xshell::Shell;
use xtask::steps::{Steps, exit};
use xtask::tools::help;
use xtask::workspace::Workspace;

fn main() -> ExitCode {
    let command = env::args().nth(1).unwrap_or_default();
    let flags = match Xtask::from_env() {
        Ok(flags) => flags,
        Err(error) if error.is_help() => {
            print!("{}", help("xtask", &command, flags::all()));
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("xtask: {error}; `cargo xtask --help` lists the commands and their options");
            return ExitCode::from(2);
        }
    };
    let mut steps = Steps::default();
    let result = run(flags.subcommand, &mut steps);
    exit("xtask", &result, &steps)
}

fn run(command: XtaskCmd, steps: &mut Steps) -> anyhow::Result<()> {
    let shell = Shell::new()?;
    let workspace = Workspace::load()?;
    shell.change_dir(&workspace.root);
    match command {
        XtaskCmd::Test(_) => test::run(&shell, &workspace, steps),
        XtaskCmd::Tidy(_) => laws::run(&workspace, steps),
        XtaskCmd::Header(flags) => header::run(&flags, &workspace, steps),
        XtaskCmd::Lean(_) => lean::run(&shell, &workspace, steps),
        XtaskCmd::Loom(flags) => vm::loom(&flags, &shell, &workspace, steps),
        XtaskCmd::Vm(flags) => vm::run(&flags, &shell, &workspace, steps),
        XtaskCmd::Miri(flags) => miri::run(&flags, &shell, &workspace, steps),
        XtaskCmd::Tsan(flags) => tsan::run(&flags, &shell, &workspace, steps),
        XtaskCmd::Fuzz(flags) => fuzz::run(&flags, &shell, &workspace, steps),
        XtaskCmd::Mutants(flags) => mutants::run(&flags, &workspace, steps),
        XtaskCmd::Verify(flags) => verify::run(&flags, &workspace, steps),
        XtaskCmd::Peers(flags) => peers::run(&flags, &shell, &workspace, steps),
        XtaskCmd::PublishCheck(_) => publish_check::run(&shell, &workspace, steps),
    }
}
