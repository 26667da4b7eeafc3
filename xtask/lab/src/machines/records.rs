//! What each machine did when it last ran without a failure: `xtask/records/machines.jsonl`, a line
//! for each.
//!
//! The file is committed. `cargo lab machines --table` makes a table of it.

use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use xtask::workspace::Workspace;

/// The file.
pub const FILE: &str = "xtask/records/machines.jsonl";

/// The table, below the target directory.
const TABLE: &str = "verification/machines.md";

const HEADER: &str = "\
# Machines

These virtual machines ran the native tests, and no test failed. `cargo lab machines` runs them; the
lines are from `xtask/records/machines.jsonl`. `-dirty` behind a commit says that tracked files
differed. TCG is QEMU's translator: the guest's CPUs take turns on one thread. So orders, counts and
states are checked, and neither times nor the memory orderings of a processor. A test that failed
where it measured the slow guest and not the lock was mended and run again there (`--rest`); the
table says how many were. The tests of `ulocks-capi` and `ulocks-pthread`, and most of
`libulocks_sysv.so`, run in no guest, since they need a compiler. Those of `ulocks-vm` run in none,
since they ask the kernel for nothing, and those of `ulocks-shm-derive` in none, since they are of
the compiler.

| machine | kernel | run by | passed | skipped | last run | commit | command |
|---|---|---|---|---|---|---|---|
";

/// What stands for the commit of a record that was made before records had it.
const OLDER: &str = "of an older source";

/// A run in which no test failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The machine, in words.
    pub machine: String,
    /// What runs it again.
    pub command: String,
    /// The day.
    pub date: String,
    /// The commit whose tests ran.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub commit: String,
    /// The release of the kernel.
    pub kernel: String,
    /// What ran the guest's instructions.
    pub accel: String,
    /// How many tests passed.
    pub passed: usize,
    /// How many of them passed in a later run, of what the first one had not passed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub again: usize,
    /// How many tests were skipped for each reason.
    pub skipped: BTreeMap<String, usize>,
    /// How long it took.
    pub seconds: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// All records.
#[derive(Debug, Default, PartialEq)]
pub struct Records(Vec<Record>);

impl Records {
    /// Reads the file.
    pub fn load(workspace: &Workspace) -> anyhow::Result<Self> {
        let path = workspace.root.join(FILE);
        let text = if path.exists() { fs::read_to_string(path)? } else { String::new() };
        Self::parse(&text)
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let lines = (1..).zip(text.lines());
        let records =
            lines.map(|(nth, line)| serde_json::from_str(line).with_context(|| format!("{FILE}:{nth}")));
        Ok(Self(records.collect::<anyhow::Result<_>>()?))
    }

    /// Replaces the record of a machine. A machine that has failed loses its record.
    pub fn note(&mut self, record: Record, has_passed: bool) {
        let place = self.0.iter().position(|known| known.machine == record.machine);
        match (place, has_passed) {
            (Some(place), true) => self.0[place] = record,
            (None, true) => self.0.push(record),
            (Some(place), false) => _ = self.0.remove(place),
            (None, false) => {}
        }
    }

    /// Writes the file.
    pub fn save(&self, workspace: &Workspace) -> anyhow::Result<()> {
        let mut text = String::new();
        for record in &self.0 {
            text += &serde_json::to_string(record)?;
            text.push('\n');
        }
        fs::write(workspace.root.join(FILE), text).with_context(|| format!("cannot write {FILE}"))
    }

    /// Writes the table.
    pub fn write_table(&self, workspace: &Workspace) -> anyhow::Result<()> {
        let path = workspace.target().join(TABLE);
        fs::create_dir_all(path.parent().context("it is in a folder")?)?;
        fs::write(&path, self.markdown()).with_context(|| format!("cannot write {}", path.display()))?;
        println!("written: {}", path.display());
        Ok(())
    }

    /// The table, and the reasons for skipping.
    fn markdown(&self) -> String {
        let mut text = HEADER.to_owned();
        let mut reasons = BTreeMap::<&str, Vec<String>>::new();
        for record in &self.0 {
            let Record { machine, command, date, commit, kernel, accel, passed, again, skipped, .. } = record;
            let count: usize = skipped.values().sum();
            let again = if *again == 0 { String::new() } else { format!(", {again} of them again") };
            let commit = if commit.is_empty() { OLDER } else { commit };
            _ = writeln!(
                text,
                "| {machine} | {kernel} | {accel} | {passed}{again} | {count} | {date} | {commit} | `{command}` |"
            );
            for (why, count) in skipped {
                reasons.entry(why).or_default().push(format!("{count} on {machine}"));
            }
        }
        if !reasons.is_empty() {
            text += "\nSkipped, with the reasons:\n\n";
        }
        for (why, machines) in reasons {
            let whole = machines.len() == self.0.len();
            let on = if whole { "on each machine".to_owned() } else { machines.join("; ") };
            _ = writeln!(text, "- {why} ({on}).");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(machine: &str, passed: usize) -> Record {
        Record {
            machine: machine.into(),
            command: "cargo lab machines --cpus 1".into(),
            date: "2026-11-25".into(),
            commit: "6bd3728eaf01".into(),
            kernel: "7.2.13".into(),
            accel: "TCG".into(),
            passed,
            again: 0,
            skipped: [("needs two CPUs".to_owned(), 3)].into(),
            seconds: 60,
        }
    }

    #[test]
    fn a_machine_has_one_record_and_loses_it_by_a_failure() {
        let mut records = Records::default();
        records.note(record("a", 1), true);
        records.note(record("b", 2), true);
        records.note(record("a", 3), true);
        assert_eq!(records.0.iter().map(|record| record.passed).collect::<Vec<_>>(), [3, 2]);
        records.note(record("a", 0), false);
        records.note(record("c", 0), false);
        assert_eq!(records.0.len(), 1);
    }

    #[test]
    fn the_file_is_read_as_it_was_written() {
        let line = serde_json::to_string(&record("a", 1)).unwrap();
        assert_eq!(Records::parse(&format!("{line}\n")).unwrap(), Records(vec![record("a", 1)]));
        assert!(Records::parse("{}").unwrap_err().to_string().contains("machines.jsonl:1"));
    }

    #[test]
    fn the_table_gives_the_reasons_once() {
        let mut records = Records::default();
        records.note(record("a", 7), true);
        let text = records.markdown();
        assert!(text.contains("| a | 7.2.13 | TCG | 7 | 3 | 2026-11-25 | 6bd3728eaf01 | "), "{text}");
        assert!(text.contains("- needs two CPUs (on each machine)."), "{text}");
        records.note(Record { skipped: BTreeMap::new(), ..record("b", 9) }, true);
        assert!(records.markdown().contains("(3 on a)"));
        records.note(Record { commit: String::new(), ..record("a", 9) }, true);
        assert!(records.markdown().contains("| 2026-11-25 | of an older source | "));
        records.note(Record { again: 2, ..record("a", 9) }, true);
        assert!(records.markdown().contains("| a | 7.2.13 | TCG | 9, 2 of them again | 3 |"));
    }
}
