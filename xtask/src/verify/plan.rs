//! In which order tests run, and about how long they take.

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
    /// How long they took when they last ran, in seconds, without the build.
    seconds: f64,
    /// How many have no record, so that their seconds are a guess.
    guessed: usize,
}

impl Group<'_> {
    /// How long one of its tests takes.
    fn mean(&self) -> f64 {
        self.seconds / self.checks.len() as f64
    }
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
    let mut groups: Vec<_> = of
        .into_iter()
        .map(|((tool, package), mut checks)| {
            checks.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
            let guessed = checks.iter().filter(|check| records.of(check).is_none()).count();
            let seconds = checks.iter().map(|check| seconds(check)).sum();
            Group { tool, package, checks, seconds, guessed }
        })
        .collect();
    groups.sort_by(|a, b| a.mean().total_cmp(&b.mean()));
    groups
}

/// The groups as a table.
pub fn text(groups: &[Group<'_>]) -> String {
    let mut text =
        format!("{:12} {:20} {:>6} {:>9}  without the build\n", "tool", "package", "tests", "seconds");
    for Group { tool, package, checks, seconds, guessed } in groups {
        let guessed = match guessed {
            0 => String::new(),
            guessed => format!("  {guessed} of the tests are a guess"),
        };
        text += &format!("{:12} {package:20} {:>6} {seconds:>9.1}{guessed}\n", tool.name(), checks.len());
    }
    let tests: usize = groups.iter().map(|group| group.checks.len()).sum();
    let seconds: f64 = groups.iter().map(|group| group.seconds).sum();
    text + &format!("{tests} tests, about {:.0} minutes, without the builds\n", (seconds / 60.0).ceil())
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
        let figures = |seconds| Some(Figures { seconds, ..Figures::default() });
        records.note(&checks[0], figures(30.0));
        records.note(&checks[1], figures(0.5));
        records.note(&checks[3], figures(1.0));
        let groups = groups(&checks.iter().collect(), &records);
        let order: Vec<_> = groups.iter().map(|group| (group.tool, group.checks[0].test.as_str())).collect();
        assert_eq!(order, [(Tool::Stress, "x"), (Tool::Vm, "quick"), (Tool::Miri, "new")]);
        let text = text(&groups);
        assert!(text.contains("4 tests, about 3 minutes"), "{text}");
        assert!(text.contains("120.0  1 of the tests are a guess"), "{text}");
    }
}
