//! `cargo xtask vm --coverage`: what the models of the virtual machine did at each site of the
//! source, added up over all tests, so that green models can be doubted.
//!
//! Each exploration appends its counts to a file (`ULOCKS_VM_COVERAGE`):
//! `ulocks_vm::explore::Coverage` says what a line of it has. An exploration that finds a planted
//! bug appends nothing: it ends at its first failure.

use anyhow::Context;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

/// The variable by which an exploration is told the file.
pub const VARIABLE: &str = "ULOCKS_VM_COVERAGE";

/// A place of call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    file: String,
    line: u32,
    column: u32,
    operation: String,
}

/// How often a site ran, and how often each event happened that can happen there.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    ran: u64,
    events: BTreeMap<String, u64>,
}

impl Counts {
    fn never(&self) -> Vec<&str> {
        self.events.iter().filter(|(_, count)| **count == 0).map(|(event, _)| event.as_str()).collect()
    }
}

/// Counts by site, of all explorations together.
#[derive(Debug, Default, PartialEq)]
pub struct Total(BTreeMap<Key, Counts>);

impl Total {
    /// Removes what an earlier run has left at `path`.
    pub fn begin(path: &Path) -> anyhow::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).context("old counts"),
            _ => Ok(()),
        }
    }

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
        let mut fields = line.split('\t');
        let mut next = || fields.next().context("too short");
        let key = Key {
            file: next()?.to_owned(),
            line: next()?.parse()?,
            column: next()?.parse()?,
            operation: next()?.to_owned(),
        };
        let ran: u64 = next()?.parse()?;
        let counts = self.0.entry(key).or_default();
        counts.ran += ran;
        for field in fields {
            let (event, count) = field.split_once('=').context("no count")?;
            *counts.events.entry(event.to_owned()).or_default() += count.parse::<u64>()?;
        }
        Ok(())
    }

    /// The sites in the sources of crates, by crate; only `packages`, if there are any.
    fn by_crate(&self, packages: &[String]) -> BTreeMap<&str, Vec<(&Key, &Counts)>> {
        let mut sites: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for (key, counts) in &self.0 {
            let file = key.file.strip_prefix("crates/");
            if let Some((name, _)) = file.and_then(|file| file.split_once("/src/"))
                && let name = name.rsplit('/').next().unwrap_or(name)
                && (packages.is_empty() || packages.iter().any(|only| *only == format!("ulocks-{name}")))
            {
                sites.entry(name).or_default().push((key, counts));
            }
        }
        sites
    }

    /// For each crate: at how many sites something never happened, by event, and at which.
    pub fn report(&self, packages: &[String]) -> String {
        let mut text = String::new();
        for (name, sites) in self.by_crate(packages) {
            let doubtful = sites.iter().filter(|(_, counts)| !counts.never().is_empty()).count();
            let _ = writeln!(
                text,
                "{name}: {} sites, {doubtful} with something that never happened",
                sites.len()
            );
            let mut events: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
            for (event, count) in sites.iter().flat_map(|(_, counts)| &counts.events) {
                let (never, of) = events.entry(event).or_default();
                *never += u64::from(*count == 0);
                *of += 1;
            }
            for (event, (never, of)) in events {
                let _ = writeln!(text, "  never {event:<22} {never:>4} of {of:>4} sites");
            }
            for (key, counts) in sites.iter().filter(|(_, counts)| !counts.never().is_empty()) {
                let Key { file, line, column, operation } = key;
                let (ran, never) = (counts.ran, counts.never().join(", "));
                let _ =
                    writeln!(text, "  {file}:{line}:{column}  {operation} ran {ran} times, never {never}");
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
