//! In which order tests run.

use super::map::{Check, Tool};
use super::records::Records;
use std::collections::{BTreeMap, BTreeSet};

/// The tests of one tool and one package: cargo builds once for them.
pub struct Group<'a> {
    /// The tool.
    pub tool: Tool,
    /// The package.
    pub package: &'a str,
    /// The tests, the quickest first.
    pub checks: Vec<&'a Check>,
    /// How long one of them took when they last ran, in seconds.
    mean: f64,
}

/// What a test takes that was never run, in seconds.
fn guess(tool: Tool) -> f64 {
    match tool {
        Tool::Stress | Tool::Differential => 2.0,
        Tool::Vm => 4.0,
        Tool::Tsan | Tool::Loom => 8.0,
        Tool::Fuzz => 90.0,
        // Sixteen schedules on an interpreter.
        Tool::Miri => 120.0,
    }
}

/// The groups of `checks`, that with the quickest tests first.
pub fn groups<'a>(checks: &BTreeSet<&'a Check>, records: &Records) -> Vec<Group<'a>> {
    let mut of = BTreeMap::<_, Vec<&Check>>::new();
    for check in checks {
        of.entry((check.tool, check.package.as_str())).or_default().push(check);
    }
    let seconds = |check: &Check| records.of(check).map_or(guess(check.tool), |figures| figures.seconds);
    let group = |((tool, package), mut checks): (_, Vec<&'a Check>)| {
        checks.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
        let mean = checks.iter().map(|check| seconds(check)).sum::<f64>() / checks.len() as f64;
        Group { tool, package, checks, mean }
    };
    let mut groups: Vec<_> = of.into_iter().map(group).collect();
    groups.sort_by(|a, b| a.mean.total_cmp(&b.mean));
    groups
}

#[cfg(test)]
mod tests {
    use super::super::records::Figures;
    use super::*;

    #[test]
    fn quick_tests_run_first_and_a_test_that_never_ran_is_a_guess() {
        let check = |tool, package: &str, test: &str| Check {
            tool,
            package: package.into(),
            target: "t".into(),
            test: test.into(),
        };
        let checks = [
            check(Tool::Vm, "a", "slow"),
            check(Tool::Vm, "a", "quick"),
            check(Tool::Miri, "a", "new"),
            check(Tool::Stress, "b", "x"),
        ];
        let mut records = Records::default();
        for (nth, seconds) in [(0, 30.0), (1, 0.5), (3, 1.0)] {
            records.note(&checks[nth], Some(Figures { seconds, ..Figures::default() }));
        }
        let groups = groups(&checks.iter().collect(), &records);
        let order: Vec<_> = groups.iter().map(|group| (group.tool, group.checks[0].test.as_str())).collect();
        assert_eq!(order, [(Tool::Stress, "x"), (Tool::Vm, "quick"), (Tool::Miri, "new")]);
    }
}
