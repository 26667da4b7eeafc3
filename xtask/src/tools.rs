//! The tools that a command needs, and how to install them.

use anyhow::{Context, ensure};
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A tool that is not installed.
#[derive(Debug)]
pub struct Missing {
    /// What is missing.
    pub tool: &'static str,
    /// The command that installs it.
    pub get: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is missing; get it with: {}", self.tool, self.get)
    }
}

impl std::error::Error for Missing {}

/// Demands that `probe` runs and succeeds.
pub fn need(tool: &'static str, get: impl Into<String>, probe: &[&str]) -> Result<(), Missing> {
    let (program, args) = probe.split_first().expect("a probe names a program");
    let status = Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if status.is_ok_and(|status| status.success()) { Ok(()) } else { Err(Missing { tool, get: get.into() }) }
}

/// What a program says if it is asked for help: `all` is its whole help. Of one `command` that is
/// its part; else a table of the commands.
pub fn help(program: &str, command: &str, all: &str) -> String {
    let start = format!("\n{program} ");
    let parts = all.split(&start).skip(1);
    let parts: Vec<_> = parts.map(|part| part.split_once('\n').unwrap_or((part, ""))).collect();
    if let Some((name, part)) = parts.iter().find(|(name, _)| *name == command) {
        return format!("cargo {program} {name}\n{}\n", part.trim_end());
    }
    let mut text = format!("cargo {program} COMMAND [OPTIONS]\n\n");
    for (name, part) in parts {
        for (nth, line) in part.lines().take_while(|line| !line.is_empty()).enumerate() {
            text += &format!("{:14} {}\n", if nth == 0 { name } else { "" }, line.trim());
        }
    }
    text + &format!("\n`cargo {program} COMMAND --help` lists the options of a command.\n")
}

/// The day in Greenwich, as `2026-11-23`.
pub fn today() -> String {
    let printed = Command::new("date").args(["-u", "+%F"]).output().map(|output| output.stdout);
    String::from_utf8_lossy(&printed.unwrap_or_default()).trim().to_owned()
}

/// The commit that is checked out in `root`, as `6bd3728eaf01`. `-dirty` stands behind it if a
/// tracked file differs.
pub fn commit(root: &Path) -> anyhow::Result<String> {
    let args = ["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"];
    let printed = Command::new("git").args(args).current_dir(root).output().context("git")?;
    ensure!(printed.status.success(), "git: {}", String::from_utf8_lossy(&printed.stderr));
    Ok(String::from_utf8(printed.stdout)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_named_with_the_way_to_get_it() {
        let missing = need("frobnicator", "apt-get install frob", &["no-such-program-here"]).unwrap_err();
        assert_eq!(missing.to_string(), "frobnicator is missing; get it with: apt-get install frob");
    }

    #[test]
    fn the_commands_are_a_table_and_options_are_those_of_one_command() {
        let all = "lab\n  All.\n\nlab real\n  Runs programs:\n  cargo lab real\n\n  OPTIONS:\n    --x\n\nlab long\n  Long.\n";
        let text = help("lab", "", all);
        let lines: Vec<&str> = text.lines().skip(2).take(3).collect();
        assert_eq!(
            lines,
            ["real           Runs programs:", "               cargo lab real", "long           Long."]
        );
        assert!(!text.contains("--x"));
        assert!(help("lab", "real", all).contains("--x") && !help("lab", "long", all).contains("--x"));
    }

    #[test]
    fn the_commit_is_named_and_a_folder_without_one_is_an_error() {
        let id = commit(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        let digits = id.trim_end_matches("-dirty");
        assert!(digits.len() >= 12 && digits.chars().all(|digit| digit.is_ascii_hexdigit()), "{id}");
        assert!(commit(Path::new("/proc")).is_err());
    }

    #[test]
    fn a_tool_that_runs_but_fails_is_missing_and_one_that_succeeds_is_not() {
        assert!(need("false", "", &["false"]).is_err());
        assert!(need("true", "", &["true"]).is_ok());
    }
}
