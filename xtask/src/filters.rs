//! Filters on the command line. A word that fits nothing is an error: a run of no test would be
//! green.

use crate::steps::Steps;
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
    use xshell::{Shell, cmd};

    fn filter(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn options_of_libtest_and_their_values_are_no_filters() {
        assert_eq!(words(&filter("a --nocapture --skip b c --test-threads 1 -q")), ["a", "c"]);
    }

    #[test]
    fn a_run_of_no_test_is_an_error_if_a_filter_was_given() {
        let shell = Shell::new().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let run = |line: &str, passed: &str, name: &str| {
            let text = format!("{name}\ntest result: ok. {passed} passed; 0 failed; 46 filtered out");
            let mut steps = Steps::default();
            steps.log_to(dir.path().to_owned());
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
    }
}
