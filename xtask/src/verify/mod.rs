//! `cargo xtask verify`: runs the tests that check the properties of the locks, and generates
//! `VERIFICATION.md` from what they print.
//!
//! | file | what |
//! |---|---|
//! | `crates/*/checks.toml` | which tests check which property of which lock (`map.rs` has the format) |
//! | `verification.jsonl` | what each of these tests did when it last ran (`records.rs`) |
//! | `suites.toml` | what the suites of others did when they last ran (`suites.rs`) |
//! | `VERIFICATION.md` | the overview (`table.rs`), and the suites |
//! | `target/verification/locks.md` | a section for each lock |
//!
//! With `--table` no test runs: the table is generated from the records. What the last `cargo xtask
//! test` found out of the present source is added to the records first (`runs.rs`), and so are
//! verdicts on mutants that are in `target/mutants`.
//!
//! A record has the hash of the code that its test was built from. If the source changes during a
//! build, the run of these tests is refused.
//!
//! With `--stale` only tests without a record of the present source run. The quickest tools come
//! first. Cargo builds once for each tool and package. A record is stored when its test ends, so a
//! run that is stopped, or whose `--budget` ends, keeps what it has.

pub mod map;
mod records;
mod run;
pub mod runs;
mod suites;
mod table;

use crate::code::Codes;
use crate::flags;
use crate::mutants::{self, Verdicts, spec};
use anyhow::{Context, bail};
use map::{Check, Lock, Tool};
use records::{Records, State};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::time::{Duration, Instant};
use table::Sources;
use xtask::steps::{Failed, Steps};
use xtask::tools::today;
use xtask::workspace::Workspace;

const TABLE: &str = "VERIFICATION.md";
/// The sections, below the target directory.
const SECTIONS: &str = "verification/locks.md";

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
    let codes = Codes::load(workspace)?;
    let ran = match flags.table {
        true => Ok(()),
        false => run_chosen(flags, workspace, steps, &locks, &mut records, &codes),
    };
    let is_refused = ran.as_ref().is_err_and(|error| !error.is::<Failed>());
    if is_refused {
        return ran;
    }
    // The source may have changed during the run.
    let codes = Codes::load(workspace)?;
    let weakenings = mutants::weakenings(workspace)?;
    let (planted, _) = spec::load(workspace)?;
    runs::collect(workspace, &checks(&locks, |_| true, None), &codes, &mut records)?;
    let Records { orderings, bugs, .. } = &mut records;
    mutants::collect(workspace, (&weakenings, orderings), (&planted, bugs), &today())
        .unwrap_or_else(|error| println!("no new verdicts on mutants: {error:#}"));
    records.save(workspace)?;
    let sections = workspace.target().join(SECTIONS);
    fs::create_dir_all(sections.parent().context("it is in a folder")?)?;
    let [overview, of_locks] =
        generate([table::overview, table::sections], &locks, &records, &codes, workspace)?;
    for (path, text) in [(workspace.root.join(TABLE), overview), (sections, of_locks)] {
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        println!("written: {}", path.display());
    }
    ran
}

/// The faults of the maps. If there is none, whether the table is out of date.
pub fn faults(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let (locks, mut faults) = map::load(workspace)?;
    if faults.is_empty() {
        let codes = Codes::load(workspace)?;
        let [text] = generate([table::overview], &locks, &Records::load(workspace)?, &codes, workspace)?;
        if fs::read_to_string(workspace.root.join(TABLE)).ok().as_ref() != Some(&text) {
            faults.push(format!("{TABLE}: out of date: run `cargo xtask verify --table`"));
        }
    }
    Ok(faults)
}

/// The verdicts on record: on weakened orderings, and on planted bugs.
pub fn verdicts(workspace: &Workspace) -> anyhow::Result<(Verdicts, Verdicts)> {
    let Records { orderings, bugs, .. } = Records::load(workspace)?;
    Ok((orderings, bugs))
}

/// The texts that `parts` write.
fn generate<const N: usize>(
    parts: [fn(&Sources<'_>, &Workspace) -> String; N],
    locks: &[Lock],
    records: &Records,
    codes: &Codes,
    workspace: &Workspace,
) -> anyhow::Result<[String; N]> {
    let (mutants, _) = spec::load(workspace)?;
    let standing = &mutants::standing(&mutants::weakenings(workspace)?, &records.orderings);
    let suites = &suites::load(workspace)?;
    let sources = Sources { locks, mutants: &mutants, records, codes, standing, suites };
    Ok(parts.map(|part| part(&sources, workspace)))
}

/// Runs the tests that `flags` select.
fn run_chosen(
    flags: &flags::Verify,
    workspace: &Workspace,
    steps: &mut Steps,
    locks: &[Lock],
    records: &mut Records,
    codes: &Codes,
) -> anyhow::Result<()> {
    let until = flags.budget.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
    let tool = flags.tool.as_deref().map(|name| {
        let all = Tool::ALL.map(Tool::name).join(", ");
        Tool::named(name).with_context(|| format!("--tool {name}: no such tool; there are: {all}"))
    });
    let tool = tool.transpose()?;
    let mut chosen = choose(locks, flags.only.as_deref(), tool)?;
    if flags.stale {
        chosen.retain(|check| records.state(check, codes) < State::Today);
    }
    let groups = groups(&chosen);
    let (mut first, mut left, mut results) = (Ok(()), 0, 0);
    let nothing_to_do = groups.is_empty();
    let mut skipped = BTreeSet::new();
    for ((_, of_group, package), checks) in groups {
        if let Some(missing) = run::missing(of_group) {
            if tool.is_some() {
                return Err(missing.into());
            }
            if skipped.insert(of_group) {
                println!("{of_group} is skipped: {missing}");
            }
            continue;
        }
        let (mut begun, count) = (0, checks.len());
        let ran = steps.check(&format!("{of_group} {package}"), &repeat(flags, of_group), || {
            let mut all_pass = true;
            run::run(workspace, of_group, package, &checks, until, |check, figures| {
                begun += 1;
                all_pass &= figures.is_some();
                records.note(check, figures);
                // An interrupted run keeps what it has found.
                records.save(workspace)
            })?;
            Ok(all_pass)
        });
        left += count - begun;
        results += begun;
        if let (Ok(()), Err(failed)) = (&first, ran) {
            first = Err(failed);
        }
    }
    if left > 0 {
        println!(
            "{left} tests have no result: the time was up, their program was not built, or they test nothing on this machine"
        );
    }
    first?;
    let is_late = until.is_some_and(|until| Instant::now() >= until);
    demand_results(nothing_to_do || is_late, results, &skipped)
}

/// Refuses a run that has found out nothing, unless it was `excused`.
fn demand_results(excused: bool, results: usize, skipped: &BTreeSet<Tool>) -> anyhow::Result<()> {
    if excused || results > 0 {
        return Ok(());
    }
    let skipped: Vec<_> = skipped.iter().map(Tool::to_string).collect();
    match skipped.is_empty() {
        true => bail!("none of the tests has a result"),
        false => bail!("none of the tests has a result; skipped, for their tools: {}", skipped.join(", ")),
    }
}

/// The tools in the order of how long one of their tests takes. Miri interprets sixteen schedules.
const QUICKEST_FIRST: [Tool; 7] =
    [Tool::Stress, Tool::Differential, Tool::Vm, Tool::Tsan, Tool::Loom, Tool::Fuzz, Tool::Miri];

/// The tests of one tool and one package each, for which cargo builds once, in the order in which
/// they run.
fn groups<'a>(checks: &BTreeSet<&'a Check>) -> BTreeMap<(usize, Tool, &'a str), Vec<&'a Check>> {
    let mut groups = BTreeMap::<_, Vec<&Check>>::new();
    for check in checks {
        let place = QUICKEST_FIRST.iter().position(|tool| *tool == check.tool).expect("it has each tool");
        groups.entry((place, check.tool, check.package.as_str())).or_default().push(check);
    }
    groups
}

/// The checks that `--only` and `--tool` select.
fn choose<'a>(
    locks: &'a [Lock],
    only: Option<&str>,
    tool: Option<Tool>,
) -> anyhow::Result<BTreeSet<&'a Check>> {
    let is_chosen = |lock: &Lock| only.is_none_or(|only| lock.name.contains(only));
    if let Some(only) = only.filter(|_| !locks.iter().any(is_chosen)) {
        let names: Vec<_> = locks.iter().map(|lock| lock.name.as_str()).collect();
        bail!("--only {only}: no lock has that in its name; the locks are: {}", names.join(", "));
    }
    let chosen = checks(locks, is_chosen, tool);
    if let (true, Some(tool)) = (chosen.is_empty(), tool) {
        let only = only.map_or(String::new(), |only| format!(" of the locks `{only}`"));
        bail!("--tool {tool}: it runs no test{only}");
    }
    Ok(chosen)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_chosen_by_lock_and_by_tool() {
        let (locks, _) = map::load(&Workspace::load().unwrap()).unwrap();
        let some = checks(&locks, |lock| lock.name == "unfair::BargingMutex", Some(Tool::Vm));
        assert!(!some.is_empty() && some.iter().all(|check| check.tool == Tool::Vm));
        assert!(some.iter().all(|check| check.package == "ulocks-unfair"));
        assert!(checks(&locks, |_| true, None).len() > some.len());
        assert!(checks(&locks, |_| false, None).is_empty());
    }

    #[test]
    fn tests_of_quick_tools_run_first_and_those_of_a_package_together() {
        let check = |tool, package: &str, test: &str| Check {
            tool,
            package: package.into(),
            target: "t".into(),
            test: test.into(),
        };
        let checks = [
            check(Tool::Miri, "a", "x"),
            check(Tool::Vm, "a", "x"),
            check(Tool::Vm, "a", "y"),
            check(Tool::Stress, "b", "x"),
        ];
        let groups = groups(&checks.iter().collect()).into_iter();
        let order: Vec<_> = groups.map(|((_, tool, _), checks)| (tool, checks.len())).collect();
        assert_eq!(order, [(Tool::Stress, 1), (Tool::Vm, 2), (Tool::Miri, 1)]);
    }

    #[test]
    fn a_run_without_a_result_is_refused() {
        let skipped = BTreeSet::from([Tool::Miri, Tool::Fuzz]);
        let refused = demand_results(false, 0, &skipped).unwrap_err().to_string();
        assert!(refused.contains("skipped, for their tools: ") && refused.contains("fuzz"), "{refused}");
        assert!(demand_results(false, 0, &BTreeSet::new()).is_err());
        assert!(demand_results(false, 1, &skipped).is_ok());
        assert!(demand_results(true, 0, &BTreeSet::new()).is_ok(), "nothing to do, or no time");
    }

    #[test]
    fn a_filter_that_fits_nothing_is_refused() {
        let (locks, _) = map::load(&Workspace::load().unwrap()).unwrap();
        let refused = |only, tool| choose(&locks, only, tool).unwrap_err().to_string();
        assert!(refused(Some("no::Lock"), None).starts_with("--only no::Lock: no lock has that"));
        let what = "--tool fuzz: it runs no test of the locks `unfair::BargingMutex`";
        assert_eq!(refused(Some("unfair::BargingMutex"), Some(Tool::Fuzz)), what);
        assert!(choose(&locks, Some("unfair::BargingMutex"), Some(Tool::Vm)).is_ok());
    }
}
