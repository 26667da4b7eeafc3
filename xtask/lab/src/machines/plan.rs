//! Which tests run on a machine, and which are skipped for a reason of `skips.toml`.

use super::image::name;
use super::serial::{Ended, Serial};
use super::spec::{Machine, Under};
use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use xtask::programs::Program;

/// The list of tests that some machines cannot run.
const SKIPS: &str = include_str!("skips.toml");

/// The tests of a program.
pub struct Suite {
    /// The program.
    pub program: Program,
    /// The names of its tests.
    pub tests: Vec<String>,
}

/// How long a test may take, in seconds. The watchdogs of the tests wait for less, and print more.
const LIMIT: u64 = 900;

/// An entry of the list.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    tests: Vec<String>,
    when: String,
    why: String,
}

/// Tests that some machines skip.
#[derive(Clone, Debug)]
pub struct Skip {
    /// The package, the target and the test. Each may end with `*`.
    pub tests: String,
    /// On which machines; see [`applies`].
    pub when: String,
    /// Why these machines cannot run them.
    pub why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Skips {
    skip: Vec<Entry>,
}

/// The committed list.
pub fn skips() -> anyhow::Result<Vec<Skip>> {
    let skips: Skips = toml::from_str(SKIPS).context("skips.toml")?;
    let mut all = Vec::new();
    for Entry { tests, when, why } in skips.skip {
        ensure!(why.len() > 10, "skips.toml: {tests:?}: give a reason");
        for tests in tests {
            ensure!(
                tests.split(' ').count() == 3,
                "skips.toml: {tests}: give a package, a target and a test"
            );
            all.push(Skip { tests, when: when.clone(), why: why.clone() });
        }
    }
    Ok(all)
}

/// What decides whether an entry of the list applies.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The version of its kernel.
    pub kernel: (u32, u32),
    /// Whether QEMU translates its instructions, and slow tests are not asked for.
    pub is_translated: bool,
}

/// Whether the condition `when` holds for a machine: a comparison of `cpus` or `kernel` with a
/// number by `<` or `>=`, or one word: `x86_64`, `smt`, or `translated`. `always` holds for each
/// machine. ` and ` joins two conditions.
fn applies(when: &str, facts: Facts<'_>) -> anyhow::Result<bool> {
    if let Some((first, rest)) = when.split_once(" and ") {
        return Ok(applies(first, facts)? && applies(rest, facts)?);
    }
    let Facts { machine, kernel, is_translated } = facts;
    let words: Vec<&str> = when.split(' ').collect();
    let number = |text: &str| -> anyhow::Result<(u32, u32)> {
        let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
        Ok((major.parse()?, minor.parse()?))
    };
    let refused = || format!("skips.toml: {when}: no such condition");
    match words.as_slice() {
        [what @ ("cpus" | "kernel"), sign @ ("<" | ">="), bound] => {
            let value = if *what == "cpus" { (machine.cpus, 0) } else { kernel };
            let bound = number(bound).with_context(refused)?;
            Ok((value < bound) == (*sign == "<"))
        }
        ["always"] => Ok(true),
        ["translated"] => Ok(is_translated),
        ["smt"] => Ok(machine.smt),
        ["x86_64"] => Ok(machine.arch().name == "x86_64"),
        _ => bail!(refused()),
    }
}

/// Whether `pattern` fits the test.
fn fits(pattern: &str, program: &Program, test: &str) -> bool {
    let names = [program.package.as_str(), program.target.as_str(), test];
    let mut parts = pattern.split(' ').zip(names);
    parts.all(|(part, name)| match part.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => part == name,
    })
}

/// A test to run.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    directory: String,
    program: String,
    test: String,
}

/// What a machine runs.
#[derive(Debug, Default)]
pub struct Plan {
    lines: Vec<Line>,
    /// How many tests are skipped for each reason.
    pub skipped: BTreeMap<String, usize>,
    /// How long a test may take, in seconds.
    pub limit: u64,
}

impl Plan {
    /// The tests of `suites` whose names contain a word of `filter`, without those of `skips`. An
    /// entry that applies to the machine and fits no test is an error.
    pub fn new(
        facts: Facts<'_>,
        suites: &[Suite],
        skips: &[Skip],
        filter: &[String],
    ) -> anyhow::Result<Self> {
        let machine = facts.machine;
        let mut used = vec![false; skips.len()];
        let mut fitting = BTreeSet::new();
        let mut active = vec![false; skips.len()];
        for (nth, skip) in skips.iter().enumerate() {
            active[nth] = applies(&skip.when, facts)?;
        }
        let mut plan = Self { limit: LIMIT, ..Self::default() };
        if machine.under == Under::HalfCpu {
            plan.limit *= 2;
        }
        for Suite { program, tests } in suites {
            for test in tests {
                let entry =
                    (0..skips.len()).find(|&nth| active[nth] && fits(&skips[nth].tests, program, test));
                if let Some(nth) = entry {
                    used[nth] = true;
                }
                let full = format!("{} {test}", name(program));
                let words: Vec<_> = filter.iter().filter(|word| full.contains(word.as_str())).collect();
                if !filter.is_empty() && words.is_empty() {
                    continue;
                }
                fitting.extend(words.into_iter().map(String::as_str));
                match entry {
                    Some(nth) => *plan.skipped.entry(skips[nth].why.clone()).or_default() += 1,
                    None => plan.lines.push(Line {
                        directory: program.dir().display().to_string(),
                        program: name(program),
                        test: test.clone(),
                    }),
                }
            }
        }
        for (nth, Skip { tests, when, .. }) in skips.iter().enumerate() {
            if active[nth] && !used[nth] {
                bail!(
                    "skips.toml: {tests} ({when}): no test of {machine} fits, or an earlier entry takes all"
                );
            }
        }
        if let Some(word) = filter.iter().find(|word| !fitting.contains(word.as_str())) {
            bail!("{word}: no test has that in its name");
        }
        ensure!(!plan.lines.is_empty(), "{machine}: no test is left to run");
        Ok(plan)
    }

    /// Leaves out the tests that have passed in the runs whose lines are in `log`. Returns how
    /// these ended, and how many of them did not pass in the first run.
    pub fn leave_out_passed(&mut self, log: &str) -> (Vec<Ended>, usize) {
        let (mut serial, mut runs, mut later) = (Serial::default(), 0, 0);
        let mut passed = BTreeMap::new();
        for line in log.lines() {
            runs += usize::from(line.starts_with("@boot"));
            if let Some(ended) = serial.read(line) {
                passed.insert((ended.program.clone(), ended.test.clone()), (ended.clone(), runs));
            }
        }
        passed.retain(|_, (ended, _)| ended.code == 0);
        let mut left_out = Vec::new();
        self.lines.retain(|line| match passed.remove(&(line.program.clone(), line.test.clone())) {
            Some((ended, run)) => {
                later += usize::from(run > 1);
                left_out.push(ended);
                false
            }
            None => true,
        });
        (left_out, later)
    }

    /// How many tests it runs.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// The list for the guest.
    pub fn list(&self) -> String {
        let line = |Line { directory, program, test }: &Line| {
            format!("{} {directory} {program} {test}\n", self.limit)
        };
        self.lines.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn suites() -> Vec<Suite> {
        let suite = |package: &str, target: &str, tests: &[&str]| Suite {
            program: Program::new(package, target, PathBuf::from("/t/deps/x"), PathBuf::from("/r/crate")),
            tests: tests.iter().map(|&test| test.into()).collect(),
        };
        vec![suite("ulocks-core", "api", &["a::one", "a::two"]), suite("ulocks-fair", "many", &["b"])]
    }

    fn skip(tests: &str, when: &str) -> Skip {
        Skip { tests: tests.into(), when: when.into(), why: format!("since {tests}") }
    }

    fn plan(skips: &[Skip], filter: &[&str]) -> Result<Plan, String> {
        let filter: Vec<String> = filter.iter().map(|&word| word.into()).collect();
        let machine: Machine = toml::from_str("kernel = 'sid'\ncpus = 2").unwrap();
        let facts = Facts { machine: &machine, kernel: (5, 10), is_translated: true };
        Plan::new(facts, &suites(), skips, &filter).map_err(|error| error.to_string())
    }

    #[test]
    fn the_list_has_a_line_for_each_test_and_its_limit() {
        let all = plan(&[], &[]).unwrap();
        assert_eq!(all.list().lines().next(), Some("900 /r/crate ulocks-core-api a::one"));
        assert_eq!((all.len(), all.skipped.len()), (3, 0));
        assert_eq!(plan(&[], &["core-api a::t", "fair"]).unwrap().len(), 2);
        assert_eq!(plan(&[], &["fair", "nothing"]).unwrap_err(), "nothing: no test has that in its name");
    }

    #[test]
    fn the_rest_is_what_has_not_passed_last() {
        let log = "$ qemu\n@boot 7.2 4 1\n\
                   @start 0 ulocks-core-api a::one\n@out 0 not tested: no\n@end 0 0\n\
                   @start 0 ulocks-core-api a::two\n@end 0 0\n@start 1 ulocks-gone-api c\n@end 1 0\n\
                   $ qemu\n@boot 7.2 4 1\n@start 0 ulocks-core-api a::two\n@end 0 101\n@start 1 ulocks-fair-many b\n";
        let mut rest = plan(&[], &[]).unwrap();
        let (passed, later) = rest.leave_out_passed(log);
        let names: Vec<_> = rest.lines.iter().map(|line| line.test.as_str()).collect();
        assert_eq!(names, ["a::two", "b"]);
        assert_eq!(later, 0);
        let more = format!("{log}\n@boot 7.2 4 1\n@start 0 ulocks-core-api a::two\n@end 0 0\n");
        assert_eq!(plan(&[], &[]).unwrap().leave_out_passed(&more).1, 1);
        assert_eq!(
            (passed.len(), passed[0].output.as_slice()),
            (1, ["not tested: no".to_owned()].as_slice())
        );
    }

    #[test]
    fn a_skipped_test_is_counted_with_its_reason() {
        let some = plan(&[skip("ulocks-core api a::*", "cpus < 4")], &[]).unwrap();
        assert_eq!((some.len(), some.skipped["since ulocks-core api a::*"]), (1, 2));
        assert_eq!(plan(&[skip("ulocks-core api a::*", "cpus >= 4")], &[]).unwrap().len(), 3);
    }

    #[test]
    fn an_entry_that_fits_no_test_is_an_error_where_it_applies() {
        let error = plan(&[skip("ulocks-core api gone", "kernel < 5.16")], &["fair"]).unwrap_err();
        assert!(error.contains("ulocks-core api gone (kernel < 5.16): no test"), "{error}");
        assert!(plan(&[skip("ulocks-core api gone", "kernel < 5.9")], &[]).is_ok());
        let twice = [skip("* * *", "always"), skip("ulocks-core api a::one", "always")];
        assert!(plan(&twice, &[]).unwrap_err().contains("an earlier entry"));
    }

    #[test]
    fn conditions_speak_of_the_machine() {
        let machine: Machine = toml::from_str("kernel = 'trixie-rt'\ncpus = 64").unwrap();
        let facts = Facts { machine: &machine, kernel: (6, 12), is_translated: false };
        let holds = |when| applies(when, facts).unwrap();
        assert!(holds("always") && holds("kernel >= 6.12") && holds("cpus >= 64 and x86_64"));
        assert!(holds("kernel < 7.0") && !holds("x86_64 and translated"));
        assert!(!holds("translated") && !holds("smt") && !holds("cpus < 4"));
        for wrong in ["cpus", "cpus > 3", "kernel < new", "weather", "", "x86_64 and "] {
            assert!(applies(wrong, facts).is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_entry_of_the_list_applies_to_a_machine_of_the_standard_list() {
        for Skip { tests, when, .. } in skips().unwrap() {
            let mut machines = Machine::all().unwrap().into_iter();
            let of = |machine: &Machine| {
                [(5, 10), (6, 1), (6, 12), (7, 2)]
                    .into_iter()
                    .any(|kernel| applies(&when, Facts { machine, kernel, is_translated: true }).unwrap())
            };
            assert!(machines.any(|machine| of(&machine)), "{tests}: {when}");
        }
    }
}
