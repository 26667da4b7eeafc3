//! Writes `VERIFICATION.md`, and the sections of the locks: which tests check which property, and
//! which planted bugs they must report.
//!
//! The texts depend on committed files only. So `cargo xtask tidy` can generate it again and
//! compare.

use super::map::{Check, Checked, Lock, PROPERTIES, Tool};
use super::records::{Figures, Records, State};
use super::suites::{self, Suite};
use crate::code::Codes;
use crate::mutants::spec::Mutant;
use crate::mutants::{self, Standing, Verdicts};
use std::collections::BTreeSet;
use xtask::workspace::Workspace;

const HEADER: &str = "\
# Verification

This file says by which tools each property of each lock is checked. Do not edit it: `cargo xtask
verify --table` generates it. Its sources are the maps `checks.toml` of the crates, their tests, their
planted bugs in `mutants`, and the figures in `xtask/records/verification.jsonl`. The same command
writes the tests, bounds, days and bugs of each row to `target/verification/locks.md`. `cargo xtask
verify` runs the tests and records their figures. `cargo xtask tidy` reports this file if it is out of
date. On which other machines the tests pass, `cargo lab machines --table` says.

A record has a hash of the code that it speaks of: the source of the package of the test, and of the
packages that it needs, such as `ulocks-core`. Comments do not count. Neither do the test itself and
what runs it. If this code has changed since the run, the record is stale. The verdict on a planted
bug, or on a weakened ordering, belongs to the code of its file.

";

const LEGEND: &str = "\
Each letter is a tool that checks the property: **L** loom, **V** the virtual machine, **M** Miri, **T**
ThreadSanitizer, **S** stress tests on the real kernel, **D** a comparison with the kernel or with a
sequential model, **F** libFuzzer. A capital letter means that all the tests have passed on the present
source. A small letter means that all have passed, but some on other source. If a test was never
run, or has failed, there is no letter. A letter is bold if the check has reported a bug that was
planted in the present code. `cargo xtask mutants` runs all planted bugs, and `cargo xtask test` one
part of them at each commit. `-` means that the property does not apply; the section of the lock says
why. `not run` means that there are tests, and no letter. **EMPTY** means that no test checks the
property.

Miri, ThreadSanitizer and libFuzzer run without planted bugs. A bug counts for a check only if every
test that must report the bug belongs to that check.

";

/// What the table is made of.
pub struct Sources<'a> {
    /// The locks and their checks.
    pub locks: &'a [Lock],
    /// The planted bugs.
    pub mutants: &'a [Mutant],
    /// What ran.
    pub records: &'a Records,
    /// The present code.
    pub codes: &'a Codes,
    /// The audit of the orderings.
    pub standing: &'a Standing,
    /// What the suites of others did.
    pub suites: &'a [Suite],
}

/// What `VERIFICATION.md` says: the counts, and the tools that check each property of each lock.
pub fn overview(sources: &Sources<'_>, workspace: &Workspace) -> String {
    let Sources { locks, mutants: planted, records, codes, standing, suites } = sources;
    let state = |checks: &[Check]| state(checks, records, codes);
    let rows = locks.iter().flat_map(|lock| &lock.properties).flat_map(|property| property.tests.values());
    let states: Vec<_> = rows.map(|checks| state(checks)).collect();
    let mut text = HEADER.to_owned() + &rows_line(&states) + "\n\n";
    text += &(bugs_line(planted, &records.bugs) + "\n\n" + &audit_lines(standing));
    text += &format!("\n## Overview\n\n{LEGEND}| lock |");
    PROPERTIES.iter().for_each(|(_, name)| text += &format!(" {name} |"));
    text += &format!("\n|{}\n", "---|".repeat(PROPERTIES.len() + 1));
    for lock in *locks {
        text += &format!("| `{}` |", lock.name);
        for property in &lock.properties {
            let is_reported = |mutant: &Mutant| mutants::is_reported(mutant, &records.bugs);
            let is_shown =
                |checks: &[Check]| lock.shown_by(checks, planted, workspace).into_iter().any(is_reported);
            text += &format!(" {} |", letters(property, state, is_shown));
        }
        text += "\n";
    }
    text + &suites::section(suites)
}

/// A section for each lock: its tests, how far they go, and which bugs they report.
pub fn sections(sources: &Sources<'_>, workspace: &Workspace) -> String {
    let Sources { locks, mutants, records, codes, .. } = sources;
    let of = |lock: &&Lock| {
        section(lock, records, codes, |checks| {
            let found = lock.shown_by(checks, mutants, workspace).into_iter();
            found.map(|mutant| mutant.name.clone()).collect()
        })
    };
    let head = "# Checks\n\nSeconds are those of the machine that ran the test last.\n";
    head.to_owned() + &locks.iter().map(|lock| of(&lock)).collect::<String>()
}

/// The state of a row: the worst of its tests.
fn state(checks: &[Check], records: &Records, codes: &Codes) -> State {
    checks.iter().map(|check| records.state(check, codes)).min().unwrap_or(State::Never)
}

/// How many rows of the sections, a lock and a property and a tool each, are of the present source.
fn rows_line(states: &[State]) -> String {
    let count = |state| states.iter().filter(|known| **known == state).count();
    format!(
        "{} of {} rows, each of a lock, a property and a tool, are records of the present source, {} are \
         stale, and {} have a test that was never run, or that failed.",
        count(State::Today),
        states.len(),
        count(State::Stale),
        count(State::Never)
    )
}

/// How many of the planted bugs their tests have reported in the present code.
fn bugs_line(planted: &[Mutant], records: &Verdicts) -> String {
    let bugs: Vec<_> = planted.iter().filter(|mutant| !mutant.sound).collect();
    let count = |is: fn(&Mutant, &Verdicts) -> bool| bugs.iter().filter(|bug| is(bug, records)).count();
    let never = count(|bug, records| !records.contains_key(&bug.key()));
    let reported = count(mutants::is_reported);
    format!(
        "Of {} planted bugs, {reported} were reported in the present code of their file, by each test that must \
         report them. The verdicts on {} are stale, and {never} have none (`cargo xtask mutants --kind logic`).",
        bugs.len(),
        bugs.len() - reported - never
    )
}

/// The score of the orderings, over all sites of the present source, and what no model reports.
fn audit_lines(standing: &Standing) -> String {
    let Standing { caught, survived, explained, stale, never, since } = standing;
    let (all, command) = (standing.all(), "cargo xtask mutants --kind orderings");
    let percent = if all == 0 { 100.0 } else { 100.0 * *caught as f64 / all as f64 };
    let since = since.as_ref().map_or(String::new(), |since| format!(", the oldest verdict is of {since}"));
    let mut text = format!(
        "Ordering audit: {} have {} weakened orderings. Comments explain {explained}. Of the other {all}, \
         {caught} are caught ({percent:.1} %), {} survive, and {} are not audited; {stale} of these have a verdict \
         that is stale (`{command}`{since}). Other crates have no such audit.\n",
        mutants::scope(),
        all + explained,
        survived.len(),
        stale + never,
    );
    if !survived.is_empty() {
        text += "\nThese survive:\n\n";
        survived.iter().for_each(|ordering| text += &format!("- {ordering}\n"));
    }
    text
}

fn letters(
    property: &Checked,
    state: impl Fn(&[Check]) -> State,
    is_shown: impl Fn(&[Check]) -> bool,
) -> String {
    if property.tests.is_empty() {
        return if property.not.is_some() { "-" } else { "**EMPTY**" }.into();
    }
    let (mut bold, mut plain) = (String::new(), String::new());
    for (tool, checks) in &property.tests {
        let letter = match state(checks) {
            State::Never => continue,
            State::Stale => tool.name()[..1].to_owned(),
            State::Today => tool.name()[..1].to_uppercase(),
        };
        if is_shown(checks) { bold += &letter } else { plain += &letter }
    }
    let bold = if bold.is_empty() { bold } else { format!("**{bold}**") };
    let letters = [bold, plain].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    if letters.is_empty() { "not run".into() } else { letters }
}

/// The section of a lock.
fn section(lock: &Lock, records: &Records, codes: &Codes, shown: impl Fn(&[Check]) -> Vec<String>) -> String {
    let mut text = format!("\n## `{}`\n\n", lock.name);
    text += "| property | tool | tests | bound | last run | planted bugs that it must report |\n";
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
            let is_stale = |check: &&Check| records.state(check, codes) == State::Stale;
            let stale = checks.iter().filter(is_stale).count();
            let (tests, bound) = (tests.join(", "), bound(*tool, &found));
            let date = dates(&found, stale, checks.len());
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
    // Tests that ran side by side have no time of their own.
    parts.extend(
        found.iter().map(|figures| figures.seconds).sum::<Option<f64>>().map(|sum| format!("{sum:.1} s")),
    );
    parts.join(", ")
}

/// The oldest day, how many of `all` tests have a stale record, and how many have none.
fn dates(found: &[&Figures], stale: usize, all: usize) -> String {
    let Some(oldest) = found.iter().map(|figures| figures.date.as_str()).min() else { return "never".into() };
    let part = |count: usize, what: &str| match count {
        0 => String::new(),
        count if count == all => format!(", {what}"),
        count => format!(", {count} of {all} {what}"),
    };
    format!("{oldest}{}{}", part(stale, "stale"), part(all - found.len(), "never"))
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
    use crate::mutants::spec::PLANTED;

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
            code: if date.ends_with("23") { "now" } else { "before" }.into(),
            seconds: Some(1.5),
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
        let codes = Codes::fixed(&[("p", "now")]);
        let text = section(&lock(), &records, &codes, bugs);
        let vm = "| exclusion | vm | `a`, `b` | up to 16 threads, all 12 and 1,234,575 sampled executions, 3.0 s \
                  | 2026-11-22, 1 of 2 stale | `one`, `two`, `three`, 1 more |\n";
        assert!(text.contains(vm), "{text}");
        let stress =
            "| exclusion | stress | `a`, `b` | 1.5 s | 2026-11-22, 1 of 2 stale, 1 of 2 never | **none** |\n";
        assert!(text.contains(stress), "{text}");
        assert!(text.contains("| no lost wake-up | **EMPTY** | | | | |\n"), "{text}");
        assert!(text.ends_with("does not apply:\n\n- order: no order is promised.\n"), "{text}");
        let never = section(&lock(), &Records::default(), &codes, |_| Vec::new());
        assert!(never.contains("| exclusion | vm | `a`, `b` | **not run** | never | **none** |"), "{never}");
    }

    #[test]
    fn a_letter_is_of_a_record_of_the_present_source() {
        let lock = lock();
        let letters = |nth: usize, vm, stress, is_vm: bool| {
            let state = |checks: &[Check]| if checks[0].tool == Tool::Vm { vm } else { stress };
            super::letters(&lock.properties[nth], state, |checks| is_vm && checks[0].tool == Tool::Vm)
        };
        assert_eq!(letters(0, State::Today, State::Today, true), "**V** S");
        assert_eq!(letters(0, State::Today, State::Today, false), "VS");
        assert_eq!(letters(0, State::Today, State::Stale, true), "**V** s");
        assert_eq!(letters(0, State::Stale, State::Today, true), "**v** S");
        assert_eq!(letters(0, State::Today, State::Never, false), "V");
        assert_eq!(letters(0, State::Never, State::Never, true), "not run");
        assert_eq!(letters(1, State::Today, State::Today, true), "**EMPTY**");
        assert_eq!(letters(2, State::Today, State::Today, true), "-");
    }

    #[test]
    fn a_bug_without_a_verdict_of_today_is_counted_as_such() {
        let audited = |code: &str| mutants::Audited {
            date: String::new(),
            code: code.into(),
            verdict: mutants::verdict::Verdict::Caught,
        };
        let bugs: Vec<_> = PLANTED.iter().filter(|mutant| !mutant.sound).take(3).cloned().collect();
        let records = [(bugs[0].key(), audited(&bugs[0].code)), (bugs[1].key(), audited("before"))].into();
        let line = bugs_line(&bugs, &records);
        assert!(line.starts_with("Of 3 planted bugs, 1 were reported"), "{line}");
        assert!(line.contains("The verdicts on 1 are stale, and 1 have none"), "{line}");
    }

    #[test]
    fn a_row_is_as_its_worst_test() {
        let checks = ["a", "b", "c"].map(|test| check(Tool::Vm, test));
        let codes = Codes::fixed(&[("p", "now")]);
        let mut records = Records::default();
        let figures = |code: &str| Some(Figures { code: code.into(), ..Figures::default() });
        records.note(&checks[0], figures("now"));
        records.note(&checks[1], figures("before"));
        assert_eq!(state(&checks[..1], &records, &codes), State::Today);
        assert_eq!(state(&checks[..2], &records, &codes), State::Stale);
        assert_eq!(state(&checks, &records, &codes), State::Never);
        let line = rows_line(&[State::Today, State::Stale, State::Stale, State::Never]);
        assert!(line.starts_with("1 of 4 rows, each of a lock, a property and a tool, are records of the present source, 2 are stale, and 1 "));
    }

    #[test]
    fn the_score_is_of_all_orderings() {
        let since = Some("2026-11-23".to_owned());
        let survived = vec!["`x.rs`: Acquire -> Relaxed: SURVIVED".to_owned()];
        let text = audit_lines(&Standing { caught: 3, survived, explained: 9, stale: 1, never: 1, since });
        let part = "have 15 weakened orderings. Comments explain 9. Of the other 6, 3 are caught (50.0 %), \
                    1 survive, and 2 are not audited; 1 of these have a verdict that is stale";
        assert!(text.contains(part), "{text}");
        assert!(text.ends_with("- `x.rs`: Acquire -> Relaxed: SURVIVED\n"), "{text}");
    }
}
