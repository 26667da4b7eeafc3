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
    let source = workspace.target().join("header.rs");
    fs::create_dir_all(workspace.target())?;
    let expanded = expand::Expander::default().file(&dir.join("src"), "lib.rs")?;
    fs::write(&source, expanded.to_string()).with_context(|| format!("cannot write {}", source.display()))?;
    let builder = cbindgen::Builder::new().with_config(config).with_src(&source);
    let bindings = builder.generate().context("cbindgen cannot read crates/faces/capi/src")?;
    let mut bytes = Vec::new();
    bindings.write(&mut bytes);
    Ok(on_one_line(&String::from_utf8(bytes)?))
}

/// The same text, with each comment of one line on one line.
fn on_one_line(text: &str) -> String {
    const COLUMNS: usize = 100;
    let lines: Vec<_> = text.lines().collect();
    let (mut out, mut at) = (String::new(), 0);
    while at < lines.len() {
        let comment = match &lines[at..] {
            [first, only, last, ..] if first.trim() == "/**" && last.trim() == "*/" => {
                let indent = first.len() - first.trim_start().len();
                let words = only.trim().trim_start_matches("* ");
                Some(format!("{}/** {words} */", &first[..indent])).filter(|line| line.len() <= COLUMNS)
            }
            _ => None,
        };
        out += comment.as_deref().unwrap_or(lines[at]);
        out += "\n";
        at += if comment.is_some() { 3 } else { 1 };
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn comments_of_one_line_are_on_one_line() {
        let long = format!("/**\n * {}\n */\n", "word ".repeat(20).trim_end());
        let text = format!("/**\n * Short.\n */\nint f(void);\n    /**\n     * Of a field.\n     */\n{long}");
        let expected = format!("/** Short. */\nint f(void);\n    /** Of a field. */\n{long}");
        assert_eq!(super::on_one_line(&text), expected);
    }
}
