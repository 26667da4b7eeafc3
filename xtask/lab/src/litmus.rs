//! `cargo lab litmus`: runs the tests of `litmus/` with herd7.
//!
//! The model worlds follow RC11, which forbids load buffering: no load reads a store that is made
//! because of what the thread of the load does next. Some processors allow it. A litmus test has
//! the few accesses that a protocol relies on, as instructions. herd7 enumerates all executions of
//! them that a model of the processor allows.
//!
//! A file says in comments which outcome it expects; `litmus/README.md` has the format. A *variant*
//! replaces instructions of the test by weaker ones, and shows that the test can fail.

use crate::flags::Litmus;
use anyhow::{Context, bail, ensure};
use std::fmt;
use std::path::{Path, PathBuf};
use std::{fs, iter};
use xshell::{Shell, cmd};
use xtask::steps::{Failed, Steps};
use xtask::tools::need;
use xtask::workspace::Workspace;

/// Where the tests are.
const DIR: &str = "xtask/litmus";
const GET: &str = "opam install herdtools7, or as litmus/README.md says";

/// Runs each test and its variants, and demands the outcomes that the files expect.
pub fn run(flags: &Litmus, shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    let mut tests = Vec::new();
    steps.check("litmus files", "cargo lab litmus", || {
        tests = read_all(&workspace.root)?;
        Ok(true)
    })?;
    select(&mut tests, flags.filter.as_deref())?;
    need("herd7 (herdtools7)", GET, &["herd7", "-version"])?;

    let out = workspace.target().join("litmus");
    fs::create_dir_all(&out)?;
    let mut failed = None;
    for test in &tests {
        for check in &test.checks {
            let step = check.run(&out, shell, steps);
            failed = failed.or(step.err());
        }
    }
    failed.map_or(Ok(()), |failed| Err(failed.into()))
}

/// Keeps the tests whose names contain `filter`.
fn select(tests: &mut Vec<Test>, filter: Option<&str>) -> anyhow::Result<()> {
    if let Some(filter) = filter {
        tests.retain(|test| test.name.contains(filter));
        ensure!(!tests.is_empty(), "{filter}: no file in {DIR}/ has that in its name");
    }
    Ok(())
}

/// All tests of the repository, by name. It checks that the source has the lines that they quote.
fn read_all(root: &Path) -> anyhow::Result<Vec<Test>> {
    let entries = fs::read_dir(root.join(DIR)).with_context(|| format!("{DIR}/ cannot be read"))?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "litmus"));
    paths.sort();
    ensure!(!paths.is_empty(), "{DIR}/ has no test");
    paths.iter().map(|path| Test::read(path, root).with_context(|| path.display().to_string())).collect()
}

/// How often herd7 sees the outcome that a test names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Never,
    Sometimes,
    Always,
}

impl Outcome {
    fn parse(word: &str) -> Option<Self> {
        [Self::Never, Self::Sometimes, Self::Always].into_iter().find(|outcome| outcome.to_string() == word)
    }

    /// The outcome of the test `name`, from herd7's output.
    fn observed(output: &str, name: &str) -> Option<Self> {
        output.lines().find_map(|line| {
            let mut words = line.strip_prefix("Observation ")?.split_whitespace();
            words.next().filter(|&found| found == name).and_then(|_| Self::parse(words.next()?))
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One file.
#[derive(Debug)]
struct Test {
    name: String,
    checks: Vec<Check>,
    sources: Vec<Source>,
}

/// An input of herd7, and the answer that it must give.
#[derive(Debug)]
struct Check {
    name: String,
    text: String,
    /// The model, if it is not herd7's default for the architecture.
    model: Option<String>,
    expected: Outcome,
}

/// A quotation from the source.
#[derive(Debug, PartialEq, Eq)]
struct Source {
    path: String,
    text: String,
}

impl Test {
    fn read(path: &Path, root: &Path) -> anyhow::Result<Self> {
        let name = path.file_stem().and_then(|stem| stem.to_str()).context("no name")?;
        let test = Self::parse(name, &fs::read_to_string(path)?)?;
        for source in &test.sources {
            source.exists(root)?;
        }
        Ok(test)
    }

    fn parse(name: &str, text: &str) -> anyhow::Result<Self> {
        let (code, comments) = split_comments(text)?;
        let first = code.lines().next().unwrap_or_default();
        ensure!(
            first.split_once(' ').is_some_and(|(_, own)| own.trim() == name),
            "the first line is `{first}`: write an architecture and the name of the file"
        );
        let mut test = Self { name: name.to_owned(), checks: Vec::new(), sources: Vec::new() };
        let mut expected = false;
        for comment in comments {
            if let Some(outcomes) = comment.strip_prefix("Expected:") {
                ensure!(!expected, "two expectations");
                expected = true;
                test.expect(name, &code, outcomes)?;
            } else if let Some(variant) = comment.strip_prefix("Variant ") {
                let (variant, outcomes) =
                    variant.split_once(". Expected:").context("a variant without an expectation")?;
                let (label, replacements) = variant.split_once(':').context("a variant without a name")?;
                let name = format!("{name}+{}", label.trim());
                ensure!(test.checks.iter().all(|check| check.name != name), "two variants {label}");
                let weaker = replace(&code, replacements).with_context(|| format!("variant {label}"))?;
                test.expect(&name, &weaker.replacen(&test.name, &name, 1), outcomes)?;
            } else if let Some(source) = comment.strip_prefix("Source:") {
                let (path, quotes) = source.split_once('"').context("a source without a quotation")?;
                let quotes = quotations(&format!("\"{quotes}"))?;
                test.sources.extend(
                    quotes.into_iter().map(|(text, _)| Source { path: path.trim().to_owned(), text }),
                );
            }
        }
        ensure!(expected, "no expectation: write (* Expected: Never *)");
        ensure!(!test.sources.is_empty(), "no source: write (* Source: PATH \"TEXT\" *)");
        ensure!(
            test.checks.iter().any(|check| check.expected != Outcome::Never),
            "only the outcome Never is expected, so the test cannot be seen to fail: add a variant"
        );
        Ok(test)
    }

    /// Adds the checks that `outcomes` demands: `Never`, or `Never, by MODEL; Sometimes, by MODEL`.
    fn expect(&mut self, name: &str, text: &str, outcomes: &str) -> anyhow::Result<()> {
        for outcome in outcomes.split(';') {
            let (word, model) = match outcome.split_once(", by ") {
                Some((word, model)) => (word, Some(model.trim().to_owned())),
                None => (outcome, None),
            };
            let expected = Outcome::parse(word.trim())
                .with_context(|| format!("`{}` is not Never, Sometimes or Always", word.trim()))?;
            self.checks.push(Check { name: name.to_owned(), text: text.to_owned(), model, expected });
        }
        Ok(())
    }
}

impl Source {
    /// Demands that the file still has the text.
    fn exists(&self, root: &Path) -> anyhow::Result<()> {
        let Self { path, text } = self;
        let source = fs::read_to_string(root.join(path)).with_context(|| path.clone())?;
        ensure!(source.contains(text.as_str()), "it quotes a line that {path} does not have: {text}");
        Ok(())
    }
}

impl Check {
    fn run(&self, out: &Path, shell: &Shell, steps: &mut Steps) -> Result<(), Failed> {
        let Self { name, text, model, expected } = self;
        let file = out.join(format!("{name}.litmus"));
        let options: Vec<&str> = model.iter().flat_map(|model| ["-model", model]).collect();
        let herd = cmd!(shell, "herd7 {options...} {file}").quiet();
        let by = model.as_ref().map_or(String::new(), |model| format!(", by {model}"));
        steps.check(&format!("{name}{by}"), &herd.to_string(), || {
            fs::write(&file, text)?;
            let output = herd.read()?;
            let Some(observed) = Outcome::observed(&output, name) else {
                bail!("herd7 reports no outcome:\n{output}");
            };
            eprintln!("{observed}, expected {expected}");
            if observed != *expected {
                eprintln!("{output}");
            }
            Ok(observed == *expected)
        })
    }
}

/// The text without its comments, and the comments, each on one line. Several spaces become one, so
/// that a replacement does not depend on how a table is aligned.
fn split_comments(text: &str) -> anyhow::Result<(String, Vec<String>)> {
    let (mut code, mut comments, mut rest) = (String::new(), Vec::new(), text);
    while let Some((before, after)) = rest.split_once("(*") {
        let (comment, after) = after.split_once("*)").context("a comment without an end")?;
        code += before;
        comments.push(one_spaced(comment));
        rest = after.strip_prefix('\n').unwrap_or(after);
    }
    code += rest;
    let code = code.lines().map(|line| one_spaced(line) + "\n").collect();
    Ok((code, comments))
}

fn one_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The quoted pieces of `text`, each with what stands before it.
fn quotations(text: &str) -> anyhow::Result<Vec<(String, String)>> {
    let mut pieces = text.split('"');
    let pairs = iter::from_fn(|| Some((pieces.next()?, pieces.next()))).collect::<Vec<_>>();
    let (last, pairs) = pairs.split_last().context("nothing is quoted")?;
    ensure!(last.1.is_none() && last.0.trim().is_empty(), "a quotation without an end");
    ensure!(!pairs.is_empty(), "nothing is quoted");
    Ok(pairs
        .iter()
        .map(|(before, quoted)| (quoted.unwrap_or_default().to_owned(), before.trim().to_owned()))
        .collect())
}

/// `code` with all of `replacements`, `"A" => "B", "C" => "D"`. Each left side occurs in it exactly
/// once.
fn replace(code: &str, replacements: &str) -> anyhow::Result<String> {
    let pieces = quotations(replacements)?;
    let mut replaced = code.to_owned();
    for (i, pair) in pieces.chunks(2).enumerate() {
        let [(find, comma), (with, arrow)] = pair else { bail!("a text without a replacement") };
        ensure!(arrow == "=>", "`{find}` is followed by `{arrow}`, not by `=>`");
        ensure!(
            comma == if i == 0 { "" } else { "," },
            "`{comma}` is between two replacements: write a comma"
        );
        let times = code.matches(find.as_str()).count();
        ensure!(times == 1, "`{find}` occurs {times} times in the test, not once");
        ensure!(replaced.matches(find.as_str()).count() == 1, "`{find}` overlaps with another replacement");
        replaced = replaced.replacen(find.as_str(), with, 1);
    }
    Ok(replaced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_fits_no_file_is_refused() {
        let root = Workspace::load().unwrap().root;
        let all = || read_all(&root).unwrap();
        let (mut some, mut none) = (all(), all());
        select(&mut some, Some("asym")).unwrap();
        assert!(!some.is_empty() && some.len() < all().len());
        let refused = select(&mut none, Some("no-such-file")).unwrap_err().to_string();
        assert_eq!(refused, "no-such-file: no file in xtask/litmus/ has that in its name");
    }

    const GOOD: &str = "AArch64 lb\n(* Load\n   buffering. *)\n(* Source: a/b.rs\n   \"x.load(Relaxed)\"\n   \
        \"y\" *)\n(* Expected: Never *)\n(* Variant plain: \"STLR\" => \"STR\", \"LDAR\" =>\n   \"LDR\". \
        Expected: Sometimes, by a.cat; Never, by b.cat *)\n{ 0:X1=x; }\n P0   ;\n STLR ;\nLDAR ;\nexists (x=1)\n";

    fn refused(text: &str) -> String {
        format!("{:#}", Test::parse("lb", text).unwrap_err())
    }

    #[test]
    fn a_file_is_a_test_and_its_variants() {
        let test = Test::parse("lb", GOOD).unwrap();
        let checks: Vec<_> = test
            .checks
            .iter()
            .map(|check| (check.name.as_str(), check.model.as_deref(), check.expected))
            .collect();
        assert_eq!(
            checks,
            [
                ("lb", None, Outcome::Never),
                ("lb+plain", Some("a.cat"), Outcome::Sometimes),
                ("lb+plain", Some("b.cat"), Outcome::Never)
            ]
        );
        assert_eq!(test.checks[0].text, "AArch64 lb\n{ 0:X1=x; }\nP0 ;\nSTLR ;\nLDAR ;\nexists (x=1)\n");
        assert_eq!(test.checks[1].text, "AArch64 lb+plain\n{ 0:X1=x; }\nP0 ;\nSTR ;\nLDR ;\nexists (x=1)\n");
        let source = |text: &str| Source { path: "a/b.rs".into(), text: text.into() };
        assert_eq!(test.sources, [source("x.load(Relaxed)"), source("y")]);
    }

    #[test]
    fn a_file_that_cannot_show_anything_is_refused() {
        for (from, to, fault) in [
            ("(* Expected: Never *)\n", "", "no expectation"),
            ("Expected: Never *)", "Expected: Rarely *)", "`Rarely` is not Never, Sometimes or Always"),
            ("(* Load", "(* Expected: Always *) (* Load", "two expectations"),
            ("Expected: Sometimes, by a.cat; Never, by b.cat", "", "a variant without an expectation"),
            ("Sometimes", "Never", "cannot be seen to fail"),
            ("\"LDAR\" =>", "\"LDAX\" =>", "variant plain: `LDAX` occurs 0 times"),
            ("\"LDAR\" =>", "\"R ;\" =>", "`R ;` occurs 2 times"),
            ("\"LDAR\" =>", "\"LDAR\"", "not by `=>`"),
        ] {
            let refusal = refused(&GOOD.replace(from, to));
            assert!(refusal.contains(fault), "{from}: {refusal}");
        }
    }

    #[test]
    fn the_first_line_names_the_file() {
        let refusal = format!("{:#}", Test::parse("mp", GOOD).unwrap_err());
        assert!(refusal.contains("`AArch64 lb`"), "{refusal}");
    }

    #[test]
    fn the_outcome_is_read_from_the_line_of_that_test() {
        let output = "Test lb Allowed\nStates 3\nNo\nObservation lb Never 0 12\nTime lb 0.03\n";
        assert_eq!(Outcome::observed(output, "lb"), Some(Outcome::Never));
        assert_eq!(Outcome::observed(output, "mp"), None);
        assert_eq!(Outcome::observed("Observation lb Perhaps 1 1", "lb"), None);
        assert_eq!(Outcome::observed("Observation lb+r Sometimes 1 3", "lb+r"), Some(Outcome::Sometimes));
    }

    #[test]
    fn a_line_that_the_source_does_not_have_is_named() {
        let workspace = Workspace::load().unwrap();
        let source = |text: &str| Source { path: "xtask/src/tools.rs".into(), text: text.into() };
        source("pub fn need(").exists(&workspace.root).unwrap();
        let refusal = source("fn vanished(").exists(&workspace.root).unwrap_err().to_string();
        assert!(refusal.ends_with("xtask/src/tools.rs does not have: fn vanished("), "{refusal}");
        let absent = Source { path: "xtask/src/absent.rs".into(), text: String::new() };
        assert!(absent.exists(&workspace.root).unwrap_err().to_string().contains("absent.rs"));
    }

    #[test]
    fn the_files_of_the_repository_are_well_formed_and_name_lines_that_exist() {
        let workspace = Workspace::load().unwrap();
        read_all(&workspace.root).unwrap();
    }
}
