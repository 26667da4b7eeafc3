//! The suites of others: `suites.toml` says what `cargo lab real --suite` has found, and this file
//! makes a table of it.
//!
//! The file is written by hand, from what the command prints: a suite is not run again by every
//! change. So each row has its day, and the commit whose libraries ran.

use anyhow::Context;
use serde::Deserialize;
use std::fs;
use xtask::workspace::Workspace;

const FILE: &str = "xtask/records/suites.toml";

const HEADER: &str = "
## Suites of others

`cargo lab real --suite DIR` runs each program of a suite on glibc and with the preload libraries. It
compares how they end. None of their sources is in this repository; `xtask/lab/README.md` says how
each suite is got and built. A program that varies ended as with glibc in some runs and not in others,
or it has several ends with glibc, too. The reasons of those that differ are below the table. The
record is `xtask/records/suites.toml`. The commit is that of the libraries.

";

/// What the file has.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    suite: Vec<Suite>,
}

/// A suite, and how its programs end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    name: String,
    version: String,
    /// The choices of locks, as `--locks` has them.
    locks: String,
    programs: u32,
    /// Of the programs, those that do not pass on glibc, and why.
    fail_on_glibc: String,
    /// Those that end as with glibc, whatever the choice.
    same: u32,
    /// Those that end as with glibc in some runs.
    #[serde(default)]
    varies: Vec<Case>,
    #[serde(default)]
    differs: Vec<Case>,
    /// What was left out, and why.
    #[serde(default)]
    note: Option<String>,
    date: String,
    commit: String,
}

/// Programs that do not end as with glibc, for one reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    programs: Vec<String>,
    with: String,
    why: String,
}

fn count(cases: &[Case]) -> usize {
    cases.iter().map(|case| case.programs.len()).sum()
}

/// The record. Its counts must add up.
pub fn load(workspace: &Workspace) -> anyhow::Result<Vec<Suite>> {
    let text =
        fs::read_to_string(workspace.root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
    parse(&text).with_context(|| FILE.to_owned())
}

fn parse(text: &str) -> anyhow::Result<Vec<Suite>> {
    let File { suite: suites } = toml::from_str(text)?;
    for suite in &suites {
        let (varies, differs) = (count(&suite.varies), count(&suite.differs));
        anyhow::ensure!(
            suite.same as usize + varies + differs == suite.programs as usize,
            "{}: {} the same, {varies} that vary and {differs} that differ are not {} programs",
            suite.name,
            suite.same,
            suite.programs
        );
    }
    Ok(suites)
}

/// The section of `VERIFICATION.md`.
pub fn section(suites: &[Suite]) -> String {
    let mut text = HEADER.to_owned();
    text += "| suite | version | with | programs | do not pass on glibc | the same | vary | differ | run |\n";
    text += "|---|---|---|---|---|---|---|---|---|\n";
    for suite in suites {
        text += &format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {}, {} |\n",
            suite.name,
            suite.version,
            suite.locks,
            suite.programs,
            suite.fail_on_glibc,
            suite.same,
            count(&suite.varies),
            count(&suite.differs),
            suite.date,
            suite.commit
        );
    }
    text += "\n| suite | program | with | | why |\n|---|---|---|---|---|\n";
    for suite in suites {
        for (verdict, cases) in [("differs", &suite.differs), ("varies", &suite.varies)] {
            for case in cases {
                let programs: Vec<_> = case.programs.iter().map(|name| format!("`{name}`")).collect();
                text += &format!(
                    "| {} | {} | {} | {verdict} | {} |\n",
                    suite.name,
                    programs.join(", "),
                    case.with,
                    case.why
                );
            }
        }
    }
    text += "\n";
    for Suite { name, note, .. } in suites {
        if let Some(note) = note {
            text += &format!("- {name}: {note}.\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        [[suite]]
        name = "A"
        version = "1"
        locks = "fair"
        programs = 12
        fail_on_glibc = "0"
        same = 9
        varies = [{ programs = ["c"], with = "fair", why = "times" }]
        differs = [{ programs = ["a", "b"], with = "fair", why = "priorities" }]
        note = "d asks questions, and is not run"
        date = "2026-11-27"
        commit = "0123abcd"
    "#;

    #[test]
    fn counts_and_reasons_are_in_the_section() {
        let text = section(&parse(TEXT).unwrap());
        assert!(text.contains("| A | 1 | fair | 12 | 0 | 9 | 1 | 2 | 2026-11-27, 0123abcd |\n"), "{text}");
        assert!(text.contains("| A | `a`, `b` | fair | differs | priorities |\n"), "{text}");
        assert!(text.contains("| A | `c` | fair | varies | times |\n"), "{text}");
        assert!(text.ends_with("\n- A: d asks questions, and is not run.\n"), "{text}");
    }

    #[test]
    fn counts_that_do_not_add_up_are_refused() {
        let error = parse(&TEXT.replace("same = 9", "same = 10")).unwrap_err().to_string();
        assert_eq!(error, "A: 10 the same, 1 that vary and 2 that differ are not 12 programs");
    }
}
