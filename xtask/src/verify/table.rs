//! Writes `VERIFICATION.md`: which tests check which property of which lock, and which planted bugs
//! show that the check can fail.
//!
//! The text depends on committed files only. So `cargo xtask tidy` can generate it again and
//! compare.

use super::map::{Check, Checked, Lock, PROPERTIES, Tool};
use super::records::{Audit, Figures, Records};
use crate::mutants::spec::Mutant;
use crate::workspace::Workspace;
use std::collections::BTreeSet;

const HEADER: &str = "\
# Verification

This file says which tests check which property of which lock. Do not edit it: `cargo xtask verify
--table` generates it. Its sources are the maps `crates/*/checks.toml`, the tests, the planted bugs in
`crates/*/mutants`, and the figures in `verification.jsonl`. `cargo xtask verify` runs the tests and
records their figures. `cargo xtask tidy` reports this file if it is out of date. The last section says
on which other machines the tests pass.

";

const LEGEND: &str = "\
Each letter is a tool that checks the property: **L** loom, **V** the virtual machine, **M** Miri, **T**
ThreadSanitizer, **S** stress tests on the real kernel, **D** a comparison with the kernel or with a
sequential model, **F** libFuzzer. A letter is bold if a planted bug shows that the check can fail. `-`
means that the property does not apply; the section of the lock says why. **EMPTY** means that no test
checks the property.

Miri, ThreadSanitizer and libFuzzer run without planted bugs. A bug counts for a check only if every
test that must report the bug belongs to that check. Seconds are those of the machine that ran the test
last.

";

/// The file.
pub fn text(locks: &[Lock], mutants: &[Mutant], records: &Records, workspace: &Workspace) -> String {
    let shown = |lock: &Lock, checks: &[Check]| -> Vec<String> {
        let found = lock.shown_by(checks, mutants, workspace);
        found.into_iter().map(|mutant| mutant.name.clone()).collect()
    };
    let mut text = HEADER.to_owned() + &audit_line(records.audit.as_ref()) + "\n\n## Overview\n\n" + LEGEND;
    text += "| lock |";
    PROPERTIES.iter().for_each(|(_, name)| text += &format!(" {name} |"));
    text += &format!("\n|{}\n", "---|".repeat(PROPERTIES.len() + 1));
    for lock in locks {
        text += &format!("| `{}` |", lock.name);
        for property in &lock.properties {
            text += &format!(" {} |", overview(property, |checks| !shown(lock, checks).is_empty()));
        }
        text += "\n";
    }
    for lock in locks {
        text += &section(lock, records, |checks| shown(lock, checks));
    }
    text
}

/// The line that gives the score of the orderings.
fn audit_line(audit: Option<&Audit>) -> String {
    let command = "`cargo xtask mutants --kind orderings`";
    let score = audit.and_then(|Audit { date, standing }| Some((date, standing, standing.score()?)));
    let Some((date, standing, score)) = score else {
        return format!("Ordering audit score: none on record; {command} finds it.");
    };
    let (caught, all, explained) = (standing.caught, standing.run(), standing.explained);
    let part = match standing.unknown {
        0 => "all sites are covered".to_owned(),
        left => format!("{:.0} % of the sites are covered, {left} were not run", standing.coverage().floor()),
    };
    format!(
        "Ordering audit score: {score:.1} % ({caught} of {all} caught, {explained} explained; {part}; {date}, {command})"
    )
}

fn overview(property: &Checked, is_shown: impl Fn(&[Check]) -> bool) -> String {
    if property.tests.is_empty() {
        return if property.not.is_some() { "-" } else { "**EMPTY**" }.into();
    }
    let letter = |tool: Tool| tool.name()[..1].to_uppercase();
    let (mut bold, mut plain) = (String::new(), String::new());
    for (tool, checks) in &property.tests {
        if is_shown(checks) { bold += &letter(*tool) } else { plain += &letter(*tool) }
    }
    let bold = if bold.is_empty() { bold } else { format!("**{bold}**") };
    [bold, plain].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The section of a lock.
fn section(lock: &Lock, records: &Records, shown: impl Fn(&[Check]) -> Vec<String>) -> String {
    let mut text = format!("\n## `{}`\n\n", lock.name);
    text += "| property | tool | tests | bound | last run | planted bugs that it reports |\n";
    text += "|---|---|---|---|---|---|\n";
    for ((_, name), property) in PROPERTIES.iter().zip(&lock.properties) {
        if property.tests.is_empty() && property.not.is_none() {
            text += &format!("| {name} | **EMPTY** | | | | |\n");
        }
        for (tool, checks) in &property.tests {
            let tests: Vec<_> = checks.iter().map(|check| test_name(check, checks)).collect();
            let found: Vec<_> = checks.iter().filter_map(|check| records.of(check)).collect();
            let bugs = match tool.world() {
                None => "-".to_owned(),
                Some(_) => some(&shown(checks)),
            };
            let (tests, bound, date) = (tests.join(", "), bound(*tool, &found), dates(&found, checks.len()));
            text += &format!("| {name} | {tool} | {tests} | {bound} | {date} | {bugs} |\n");
        }
    }
    let not = PROPERTIES.iter().zip(&lock.properties).filter_map(|((_, name), property)| {
        let why = property.not.as_ref()?;
        Some(format!("- {name}{}: {why}.\n", if property.tests.is_empty() { "" } else { ", in part" }))
    });
    let not: Vec<_> = not.collect();
    if !not.is_empty() {
        text += &format!("\nNot checked, since it does not apply:\n\n{}", not.concat());
    }
    text
}

/// A test, with its target if the tool has several.
fn test_name(Check { tool, package, target, test }: &Check, all: &[Check]) -> String {
    let one_package = all.iter().all(|check| check.package == *package);
    match tool {
        Tool::Fuzz => format!("`{target}`"),
        tool if target == tool.name() && one_package => format!("`{test}`"),
        Tool::Tsan if target == "stress" && one_package => format!("`{test}`"),
        _ if one_package => format!("`{target}/{test}`"),
        _ => format!("`{package} {target}/{test}`"),
    }
}

/// How many of the bugs that a check reports are named.
const NAMED: usize = 3;

fn some(bugs: &[String]) -> String {
    let named: Vec<_> = bugs.iter().take(NAMED).map(|bug| format!("`{bug}`")).collect();
    match bugs.len().saturating_sub(NAMED) {
        0 if bugs.is_empty() => "**none**".into(),
        0 => named.join(", "),
        more => format!("{}, {more} more", named.join(", ")),
    }
}

fn bound(tool: Tool, found: &[&Figures]) -> String {
    if found.is_empty() {
        return "**not run**".into();
    }
    let sum = |of: fn(&Figures) -> u64| found.iter().map(|figures| of(figures)).sum::<u64>();
    let (all, sampled) = (sum(|figures| figures.all), sum(|figures| figures.sampled));
    let mut parts = Vec::new();
    if let Some(threads) = found.iter().filter_map(|figures| figures.threads).max() {
        parts.push(format!("up to {threads} threads"));
    }
    match (all, sampled) {
        (0, 0) => {}
        (0, sampled) => parts.push(format!("{} executions", grouped(sampled))),
        (all, 0) if tool == Tool::Loom => parts.push(format!("{} executions", grouped(all))),
        (all, 0) => parts.push(format!("all {} executions", grouped(all))),
        (all, sampled) => {
            parts.push(format!("all {} and {} sampled executions", grouped(all), grouped(sampled)))
        }
    }
    let within: BTreeSet<_> = found
        .iter()
        .filter_map(|figures| figures.within.as_deref())
        .flat_map(|within| within.split("; "))
        .collect();
    parts.extend(within.into_iter().map(str::to_owned));
    if let Some(seeds) = found.iter().filter_map(|figures| figures.seeds).min() {
        parts.push(format!("{seeds} schedules each"));
    }
    parts.push(format!("{:.1} s", found.iter().map(|figures| figures.seconds).sum::<f64>()));
    parts.join(", ")
}

/// The oldest day, and how many were never run.
fn dates(found: &[&Figures], all: usize) -> String {
    let oldest = found.iter().map(|figures| figures.date.as_str()).min().unwrap_or("never");
    match all - found.len() {
        0 => oldest.into(),
        _ if found.is_empty() => oldest.into(),
        left => format!("{oldest}, {left} of {all} never"),
    }
}

/// `12345` as `12,345`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::Standing;

    fn check(tool: Tool, test: &str) -> Check {
        Check { tool, package: "p".into(), target: tool.name().into(), test: test.into() }
    }

    fn lock() -> Lock {
        let mut properties: Vec<_> = PROPERTIES.iter().map(|_| Checked::default()).collect();
        let tests = [Tool::Vm, Tool::Stress].map(|tool| (tool, vec![check(tool, "a"), check(tool, "b")]));
        properties[0].tests = tests.into();
        properties[2].not = Some("no order is promised".into());
        Lock { name: "x::Lock".into(), mutants: Vec::new(), properties }
    }

    #[test]
    fn a_row_has_the_tests_the_bound_the_day_and_the_bugs() {
        let mut records = Records::default();
        let figures = |threads, all, sampled, date: &str| Figures {
            date: date.into(),
            seconds: 1.5,
            threads,
            all,
            sampled,
            ..Figures::default()
        };
        records.note(&check(Tool::Vm, "a"), Some(figures(Some(3), 12, 1_234_567, "2026-11-23")));
        records.note(&check(Tool::Vm, "b"), Some(figures(Some(16), 0, 8, "2026-11-22")));
        records.note(&check(Tool::Stress, "b"), Some(figures(None, 0, 0, "2026-11-22")));
        let bugs = |checks: &[Check]| match checks[0].tool {
            Tool::Vm => ["one", "two", "three", "four"].map(str::to_owned).into(),
            _ => Vec::new(),
        };
        let text = section(&lock(), &records, bugs);
        let vm = "| exclusion | vm | `a`, `b` | up to 16 threads, all 12 and 1,234,575 sampled executions, 3.0 s \
                  | 2026-11-22 | `one`, `two`, `three`, 1 more |\n";
        assert!(text.contains(vm), "{text}");
        let stress = "| exclusion | stress | `a`, `b` | 1.5 s | 2026-11-22, 1 of 2 never | **none** |\n";
        assert!(text.contains(stress), "{text}");
        assert!(text.contains("| no lost wake-up | **EMPTY** | | | | |\n"), "{text}");
        assert!(text.ends_with("does not apply:\n\n- order: no order is promised.\n"), "{text}");
        let never = section(&lock(), &Records::default(), |_| Vec::new());
        assert!(never.contains("| exclusion | vm | `a`, `b` | **not run** | never | **none** |"), "{never}");
    }

    #[test]
    fn the_overview_tells_what_is_empty_from_what_does_not_apply() {
        let lock = lock();
        let is_vm = |checks: &[Check]| checks[0].tool == Tool::Vm;
        assert_eq!(overview(&lock.properties[0], is_vm), "**V** S");
        assert_eq!(overview(&lock.properties[0], |_| false), "VS");
        assert_eq!(overview(&lock.properties[1], is_vm), "**EMPTY**");
        assert_eq!(overview(&lock.properties[2], is_vm), "-");
    }

    #[test]
    fn the_score_has_its_day_and_says_what_part_it_covers() {
        let line = |standing| audit_line(Some(&Audit { date: "2026-11-23".into(), standing }));
        let half = line(Standing { caught: 3, survived: 1, explained: 9, unknown: 4 });
        let command = "2026-11-23, `cargo xtask mutants --kind orderings`)";
        assert_eq!(
            half,
            format!(
                "Ordering audit score: 75.0 % (3 of 4 caught, 9 explained; 50 % of the sites are covered, 4 were not \
                 run; {command}"
            )
        );
        let all = line(Standing { caught: 4, ..Standing::default() });
        assert_eq!(
            all,
            format!(
                "Ordering audit score: 100.0 % (4 of 4 caught, 0 explained; all sites are covered; {command}"
            )
        );
        assert!(audit_line(None).starts_with("Ordering audit score: none on record"));
    }
}
