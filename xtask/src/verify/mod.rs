//! `cargo xtask verify`: runs the tests that check the properties of the locks, and generates
//! `VERIFICATION.md` from what they print.
//!
//! | file | what |
//! |---|---|
//! | `crates/*/checks.toml` | which tests check which property of which lock (`map.rs` has the format) |
//! | `verification.jsonl` | what each of these tests did when it last ran (`records.rs`) |
//! | `machines.jsonl` | what each virtual machine did (`machines/records.rs`) |
//! | `VERIFICATION.md` | the table (`table.rs`) |
//!
//! With `--table` no test runs: the table is generated from the records. The score of the orderings
//! is read from `target/mutants`, unless fewer sites have a verdict there than when it was last
//! read.

mod map;
mod records;
mod run;
mod scan;
mod table;

use crate::flags;
use crate::machines;
use crate::mutants::{self, spec};
use crate::steps::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, bail};
use map::{Check, Lock, Tool};
pub use records::today;
use records::{Audit, Records};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};

const TABLE: &str = "VERIFICATION.md";

/// Runs the tests that `flags` select, and generates the table.
pub fn run(flags: &flags::Verify, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    let mut locks = Vec::new();
    steps.check("maps", "cargo xtask verify --table", || {
        let (found, faults) = map::load(workspace)?;
        faults.iter().for_each(|fault| eprintln!("{fault}"));
        locks = found;
        Ok(faults.is_empty())
    })?;
    // Two runs at once would overwrite each other's figures.
    fs::create_dir_all(workspace.target())?;
    let lock = File::create(workspace.target().join("verify-lock"))?;
    lock.try_lock().context("another `cargo xtask verify` is running")?;
    let mut records = Records::load(workspace)?;
    let all = checks(&locks, |_| true, None);
    records.retain(&all.iter().copied().collect::<Vec<_>>());
    let ran = match flags.table {
        true => Ok(()),
        false => run_chosen(flags, workspace, steps, &locks, &mut records),
    };
    refresh_audit(workspace, &mut records);
    records.save(workspace)?;
    let text = generate(&locks, &records, workspace)?;
    fs::write(workspace.root.join(TABLE), text).with_context(|| format!("cannot write {TABLE}"))?;
    println!("written: {TABLE}");
    ran
}

/// The faults of the maps. If there is none, whether the table is out of date.
pub fn faults(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let (locks, mut faults) = map::load(workspace)?;
    if faults.is_empty() {
        let text = generate(&locks, &Records::load(workspace)?, workspace)?;
        if fs::read_to_string(workspace.root.join(TABLE)).ok().as_ref() != Some(&text) {
            faults.push(format!("{TABLE}: out of date: run `cargo xtask verify --table`"));
        }
    }
    Ok(faults)
}

fn generate(locks: &[Lock], records: &Records, workspace: &Workspace) -> anyhow::Result<String> {
    let (mutants, _) = spec::load(workspace)?;
    let machines = machines::records::Records::load(workspace)?.markdown();
    Ok(table::text(locks, &mutants, records, workspace) + &machines)
}

/// Runs the tests that `flags` select.
fn run_chosen(
    flags: &flags::Verify,
    workspace: &Workspace,
    steps: &mut Steps,
    locks: &[Lock],
    records: &mut Records,
) -> anyhow::Result<()> {
    let tool = flags.tool.as_deref().map(|name| {
        let all = Tool::ALL.map(Tool::name).join(", ");
        Tool::named(name).with_context(|| format!("--tool {name}: no such tool; there are: {all}"))
    });
    let tool = tool.transpose()?;
    let is_chosen = |lock: &Lock| flags.only.as_deref().is_none_or(|only| lock.name.contains(only));
    let chosen = checks(locks, is_chosen, tool);
    if chosen.is_empty() {
        let names: Vec<_> = locks.iter().map(|lock| lock.name.as_str()).collect();
        bail!("no test is selected; the locks are: {}", names.join(", "));
    }
    let mut groups = BTreeMap::<_, Vec<&Check>>::new();
    for check in chosen {
        groups.entry((check.tool, check.package.as_str())).or_default().push(check);
    }
    let mut first = Ok(());
    let mut skipped = BTreeSet::new();
    for ((tool, package), checks) in groups {
        if let Some(missing) = run::missing(tool) {
            if skipped.insert(tool) {
                println!("{tool} is skipped: {missing}");
            }
            continue;
        }
        let repeat = repeat(flags, tool);
        let ran = steps.check(&format!("{tool} {package}"), &repeat, || {
            let mut all_pass = true;
            run::run(workspace, tool, package, &checks, |check, figures| {
                all_pass &= figures.is_some();
                records.note(check, figures);
                // An interrupted run keeps what it has found.
                records.save(workspace)
            })?;
            Ok(all_pass)
        });
        if let (Ok(()), Err(failed)) = (&first, ran) {
            first = Err(failed);
        }
    }
    Ok(first?)
}

fn repeat(flags: &flags::Verify, tool: Tool) -> String {
    let only = flags.only.as_ref().map_or(String::new(), |only| format!(" --only {only}"));
    format!("cargo xtask verify{only} --tool {tool}")
}

/// All checks of the locks for which `is_chosen` is true, by `tool` or by all tools.
fn checks(locks: &[Lock], is_chosen: impl Fn(&Lock) -> bool, tool: Option<Tool>) -> BTreeSet<&Check> {
    let locks = locks.iter().filter(|lock| is_chosen(lock));
    let all = locks.flat_map(|lock| &lock.properties).flat_map(|property| property.tests.values().flatten());
    all.filter(|check| tool.is_none_or(|tool| check.tool == tool)).collect()
}

/// Records the score of the audit of the orderings, unless the last record covers more sites.
fn refresh_audit(workspace: &Workspace, records: &mut Records) {
    match mutants::standing(workspace) {
        Ok(Some(standing)) => {
            let known = records.audit.as_ref().map_or(0.0, |audit| audit.standing.coverage());
            let is_news = records.audit.as_ref().is_none_or(|audit| audit.standing != standing);
            if is_news && standing.coverage() >= known {
                records.audit = Some(Audit { date: records::today(), standing });
            }
        }
        Ok(None) => {}
        Err(error) => println!("the score of the orderings cannot be read: {error:#}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maps_of_this_workspace_have_no_faults() {
        let (locks, faults) = map::load(&Workspace::load().unwrap()).unwrap();
        assert_eq!(faults, [""; 0]);
        assert!(locks.iter().any(|lock| lock.name == "unfair::Mutex"));
    }

    #[test]
    fn checks_are_chosen_by_lock_and_by_tool() {
        let (locks, _) = map::load(&Workspace::load().unwrap()).unwrap();
        let some = checks(&locks, |lock| lock.name == "unfair::Mutex", Some(Tool::Vm));
        assert!(!some.is_empty() && some.iter().all(|check| check.tool == Tool::Vm));
        assert!(some.iter().all(|check| check.package == "ulocks-unfair"));
        assert!(checks(&locks, |_| true, None).len() > some.len());
        assert!(checks(&locks, |_| false, None).is_empty());
    }
}
