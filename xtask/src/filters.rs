//! Filters on the command line. A word that fits nothing is an error: a run of no test would be
//! green.
//!
//! The names of tests are read from the source, before anything is built. A name that a macro of
//! the test itself puts together cannot be read so. Then only the count of the tests that ran can
//! tell.

use crate::scan;
use crate::steps::Steps;
use crate::workspace::LIB;
use crate::workspace::Package;
use anyhow::bail;

/// Options of libtest that take a value, which is no filter.
const WITH_VALUE: [&str; 6] = ["--skip", "--test-threads", "--color", "--format", "--logfile", "-Z"];

/// The words of `filter` that select tests: not the options for libtest, which may stand among
/// them.
fn words(filter: &[String]) -> Vec<&str> {
    let mut words = Vec::new();
    let mut is_value = false;
    for word in filter {
        if !is_value && !word.starts_with('-') {
            words.push(word.as_str());
        }
        is_value = WITH_VALUE.contains(&word.as_str());
    }
    words
}

/// Demands that each word of `filter` is a part of the name of a test of `packages`, in the targets
/// whose names begin with `prefix`, and with `with_lib`, among the unit tests.
pub fn check(filter: &[String], packages: &[&Package], prefix: &str, with_lib: bool) -> anyhow::Result<()> {
    for word in words(filter) {
        let fits = packages.iter().any(|package| {
            let mut targets = package.tests(prefix);
            targets.extend(with_lib.then(|| LIB.to_owned()));
            // A target that cannot be read may have any test.
            targets
                .iter()
                .any(|target| scan::tests(&package.dir, target).map_or(true, |tests| tests.has_part(word)))
        });
        if !fits {
            let names: Vec<_> = packages.iter().map(|package| package.name.as_str()).collect();
            bail!("{word}: no test in tests/{prefix}* of {} has that in its name", names.join(", "));
        }
    }
    Ok(())
}

/// Calls `run`, whose last step runs tests, and demands that each word of `filter` fits one of
/// them. If libtest is told to print no names, some test must have run.
pub fn demand_tests(
    filter: &[String],
    steps: &mut Steps,
    run: impl FnOnce(&mut Steps) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    run(steps)?;
    let words = words(filter);
    if words.is_empty() || filter.iter().any(|word| word == "--list") {
        return Ok(());
    }
    let ran = steps.last_tests();
    if ran.passed + ran.failed == 0 {
        bail!("{}: no test has that in its name, so none ran", words.join(" "));
    }
    let fits = |word: &&str| ran.names.is_empty() || ran.names.iter().any(|name| name.contains(word));
    match words.into_iter().find(|word| !fits(word)) {
        Some(word) => bail!("{word}: no test that ran has that in its name"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;
    use xshell::{Shell, cmd};

    fn filter(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn options_of_libtest_and_their_values_are_no_filters() {
        assert_eq!(words(&filter("a --nocapture --skip b c --test-threads 1 -q")), ["a", "c"]);
    }

    #[test]
    fn each_word_must_fit_a_test() {
        let workspace = Workspace::load().unwrap();
        let unfair = workspace.select(&["ulocks-unfair".to_owned()], "a manifest", |_| true).unwrap();
        let check = |line: &str, prefix| check(&filter(line), &unfair, prefix, false);
        assert!(check("", "vm").is_ok());
        assert!(check("barging::at_most_one nobody_sleeps --nocapture", "vm").is_ok());
        let refused = check("barging::at_most_one no_such_model", "vm").unwrap_err().to_string();
        let told = "no_such_model: no test in tests/vm* of ulocks-unfair has that in its name";
        assert_eq!(refused, told);
        // The name of a client of the models, but of no test.
        assert!(check("lost_wake", "vm").is_err());
        assert!(check("lost_wake", "loom").is_err());
        let core = workspace.select(&["ulocks-core".to_owned()], "a manifest", |_| true).unwrap();
        let unit = |with_lib| super::check(&filter("failing_spins_become_rare"), &core, "miri", with_lib);
        assert!(unit(true).is_ok() && unit(false).is_err());
    }

    #[test]
    fn the_tests_of_all_packages_can_be_read() {
        let workspace = Workspace::load().unwrap();
        for package in workspace.packages.iter().filter(|package| package.is_public()) {
            let mut targets = package.tests("");
            targets.push(LIB.to_owned());
            for target in targets {
                assert_eq!(scan::tests(&package.dir, &target).err(), None, "{}", package.name);
            }
        }
    }

    #[test]
    fn a_run_of_no_test_is_an_error_if_a_filter_was_given() {
        let shell = Shell::new().unwrap();
        let dir = std::env::temp_dir().join(format!("ulocks-filters-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let run = |line: &str, passed: &str, name: &str| {
            let text = format!("{name}\ntest result: ok. {passed} passed; 0 failed; 46 filtered out");
            let mut steps = Steps::default();
            steps.log_to(dir.clone());
            demand_tests(&filter(line), &mut steps, |steps| {
                Ok(steps.run("models", cmd!(shell, "echo {text}"), &[])?)
            })
        };
        let name = "test x::a ... ok";
        assert!(run("", "0", "").is_ok() && run("a", "1", name).is_ok() && run("a --list", "0", "").is_ok());
        assert!(run("a -q", "1", "").is_ok(), "no names are printed");
        let refused = run("a b", "0", "").unwrap_err();
        assert_eq!(refused.to_string(), "a b: no test has that in its name, so none ran");
        let refused = run("a b", "1", name).unwrap_err();
        assert_eq!(refused.to_string(), "b: no test that ran has that in its name");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
