//! `cargo xtask vm --coverage`: what the models of the virtual machine did at each site of the
//! source, added up over all tests, so that green models can be doubted.
//!
//! Each exploration appends its counts to a file (`ULOCKS_VM_COVERAGE`):
//! `ulocks_vm::explore::Coverage` says what a line of it has. An exploration that finds a planted
//! bug appends nothing: it ends at its first failure.

use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The variable by which an exploration is told the file.
pub const VARIABLE: &str = "ULOCKS_VM_COVERAGE";

/// How often a site ran, and how often each event happened that can happen there.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    ran: u64,
    events: BTreeMap<String, u64>,
}

/// Counts of all explorations together, by site: `FILE:LINE:COLUMN`, and the operation there.
#[derive(Debug, Default, PartialEq)]
pub struct Total(BTreeMap<(String, String), Counts>);

impl Total {
    /// Adds up what the explorations have appended to `path`.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("{}: no counts", path.display()))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut total = Self::default();
        for line in text.lines() {
            total.add(line).with_context(|| format!("not a line of counts: {line}"))?;
        }
        Ok(total)
    }

    fn add(&mut self, line: &str) -> anyhow::Result<()> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [file, at_line, column, operation, ran, events @ ..] = fields.as_slice() else {
            bail!("too short");
        };
        let place = format!("{file}:{}:{}", at_line.parse::<u32>()?, column.parse::<u32>()?);
        let counts = self.0.entry((place, (*operation).to_owned())).or_default();
        counts.ran += ran.parse::<u64>()?;
        for event in events {
            let (event, count) = event.split_once('=').context("no count")?;
            *counts.events.entry(event.to_owned()).or_default() += count.parse::<u64>()?;
        }
        Ok(())
    }

    /// For each crate, or each of `packages`: at how many sites something never happened, by event,
    /// and at which.
    pub fn report(&self, packages: &[String]) -> String {
        let mut crates = BTreeMap::<&str, Vec<(&(String, String), &Counts)>>::new();
        for site in &self.0 {
            let file = site.0.0.strip_prefix("crates/");
            if let Some((dir, _)) = file.and_then(|file| file.split_once("/src/"))
                && let name = dir.rsplit('/').next().unwrap_or(dir)
                && (packages.is_empty() || packages.contains(&format!("ulocks-{name}")))
            {
                crates.entry(name).or_default().push(site);
            }
        }
        let mut text = String::new();
        for (name, sites) in crates {
            let is_doubtful = |counts: &Counts| counts.events.values().any(|count| *count == 0);
            let doubtful: Vec<_> = sites.iter().filter(|(_, counts)| is_doubtful(counts)).collect();
            let (all, some) = (sites.len(), doubtful.len());
            let _ = writeln!(text, "{name}: {all} sites, {some} with something that never happened");
            let mut events = BTreeMap::<&str, (u64, u64)>::new();
            for (event, count) in sites.iter().flat_map(|(_, counts)| &counts.events) {
                let (never, of) = events.entry(event).or_default();
                *never += u64::from(*count == 0);
                *of += 1;
            }
            for (event, (never, of)) in events {
                let _ = writeln!(text, "  never {event:<22} {never:>4} of {of:>4} sites");
            }
            for ((place, operation), Counts { ran, events }) in doubtful {
                let never = events.iter().filter(|(_, count)| **count == 0);
                let never: Vec<_> = never.map(|(event, _)| event.as_str()).collect();
                let never = never.join(", ");
                let _ = writeln!(text, "  {place}  {operation} ran {ran} times, never {never}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "crates/locks/unfair/src/barging/raw.rs";

    fn text() -> String {
        format!(
            "{FILE}\t7\t9\tload\t5\twas preempted=0\tread an old value=1\n\
             {FILE}\t7\t9\tload\t3\twas preempted=0\tread an old value=0\n\
             {FILE}\t7\t9\texchange\t2\tfailed=0\twas made=2\twas preempted=1\n\
             crates/core/src/sys/futex.rs\t1\t1\twake\t1\twoke=0\n\
             crates/locks/unfair/tests/vm/main.rs\t1\t1\tload\t1\tread an old value=0\n"
        )
    }

    #[test]
    fn lines_of_one_site_are_added_up_and_what_never_happened_is_listed() {
        let total = Total::parse(&text()).unwrap();
        let report = total.report(&["ulocks-unfair".into()]);
        let lines: Vec<_> = report.lines().collect();
        assert_eq!(lines[0], "unfair: 2 sites, 2 with something that never happened");
        assert_eq!(
            lines[1].split_whitespace().collect::<Vec<_>>(),
            "never failed 1 of 1 sites".split(' ').collect::<Vec<_>>()
        );
        assert!(report.contains("raw.rs:7:9  load ran 8 times, never was preempted\n"), "{report}");
        assert!(report.contains("raw.rs:7:9  exchange ran 2 times, never failed\n"), "{report}");
        assert!(!report.contains("core") && !report.contains("tests/vm"), "{report}");
        assert!(total.report(&[]).contains("core: 1 sites"));
    }

    #[test]
    fn what_is_no_line_of_counts_is_an_error() {
        for bad in ["a.rs\t7\t9\tload\n", "a.rs\tx\t9\tload\t1\n", "a.rs\t7\t9\tload\t1\tfailed\n"] {
            assert!(Total::parse(bad).is_err(), "{bad}");
        }
        assert!(Total::parse("a.rs\t7\t9\tload\t1\tfailed=2\n").is_ok());
    }
}
