//! The laboratory of this repository: `cargo lab COMMAND`, one file or folder each.
//!
//! These commands need other machines, other programs, or hours. `cargo xtask test` does not build
//! them; `cargo lab test` checks them.

mod flags;
mod litmus;
mod long;
mod machines;
mod page;
mod picture;
mod real;
mod suites;

use crate::flags::{Lab, LabCmd};
use std::process::ExitCode;
use xshell::{Shell, cmd};
use xtask::steps::{self, Steps};
use xtask::workspace::Workspace;

fn main() -> ExitCode {
    steps::main("lab", Lab::from_env(), flags::all(), run)
}

fn run(flags: Lab, shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    match flags.subcommand {
        LabCmd::Test(_) => test(shell, steps),
        LabCmd::Picture(_) => picture::run(workspace, steps),
        LabCmd::Page(_) => page::run(shell, workspace, steps),
        LabCmd::Litmus(flags) => litmus::run(&flags, shell, workspace, steps),
        LabCmd::Long(flags) => long::run(&flags, workspace, steps),
        LabCmd::Machines(flags) => machines::run(&flags, workspace, steps),
        LabCmd::Real(flags) => real::run(&flags, shell, workspace, steps),
        LabCmd::Suites(flags) => suites::run(&flags, workspace, steps),
    }
}

/// Checks the laboratory itself.
fn test(shell: &Shell, steps: &mut Steps) -> anyhow::Result<()> {
    steps.run("fmt", cmd!(shell, "cargo fmt --package xtask-lab --check"), &[])?;
    let clippy = cmd!(shell, "cargo clippy --package xtask-lab --all-targets -- -D warnings");
    steps.run("clippy", clippy, &[])?;
    steps.run("tests", cmd!(shell, "cargo test --package xtask-lab"), &[])?;
    let docs = cmd!(shell, "cargo doc --package xtask-lab --no-deps");
    let deny = xtask::world::with_flags("RUSTDOCFLAGS", "-D warnings");
    Ok(steps.run("docs", docs, &[("RUSTDOCFLAGS", &deny)])?)
}
