//! `cargo xtask header`: writes the C header of crates/faces/capi from its source, by cbindgen.
//!
//! `expand.rs` expands the crate's macros first.
//!
//! The header is in the repository, so that a C program can be built without this command.
//! `--check` compares it with the source. `cargo xtask test` does so.

mod expand;

use crate::flags;
use anyhow::{Context, anyhow};
use std::fs;
use xtask::steps::Steps;
use xtask::workspace::Workspace;

/// The directory of the package, and the header in it.
const DIR: &str = "crates/faces/capi";
const FILE: &str = "include/ulocks.h";

/// Writes the header, or with `--check` compares it.
pub fn run(flags: &flags::Header, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    if flags.check { check(workspace, steps) } else { write(workspace, steps) }
}

/// Fails if the header is not what the source says.
pub fn check(workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    Ok(steps.check("header", "cargo xtask header --check", || {
        let path = workspace.root.join(DIR).join(FILE);
        let found = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let is_current = found == header(workspace)?;
        if !is_current {
            eprintln!("{}: not what the source says; `cargo xtask header` writes it anew", path.display());
        }
        Ok(is_current)
    })?)
}

fn write(workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    Ok(steps.check("header", "cargo xtask header", || {
        let path = workspace.root.join(DIR).join(FILE);
        fs::write(&path, header(workspace)?).with_context(|| format!("cannot write {}", path.display()))?;
        println!("wrote {}", path.display());
        Ok(true)
    })?)
}

/// The header that the source says.
fn header(workspace: &Workspace) -> anyhow::Result<String> {
    let dir = workspace.root.join(DIR);
    let config = cbindgen::Config::from_file(dir.join("cbindgen.toml")).map_err(|error| anyhow!(error))?;
    let source = workspace.root.join("target/header.rs");
    let expanded = expand::Expander::default().file(&dir.join("src"), "lib.rs")?;
    fs::write(&source, expanded.to_string()).with_context(|| format!("cannot write {}", source.display()))?;
    let builder = cbindgen::Builder::new().with_config(config).with_src(&source);
    let bindings = builder.generate().context("cbindgen cannot read crates/faces/capi/src")?;
    let mut bytes = Vec::new();
    bindings.write(&mut bytes);
    Ok(String::from_utf8(bytes)?)
}
