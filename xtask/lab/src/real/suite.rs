//! `--suite DIR`: the tests of somebody else, without a library and with each.
//!
//! A test is an executable file below `DIR`. It is the same with a library if it ends as it does
//! without one: with the same exit code, by the same signal, or not at all within the limit. So a
//! suite may have tests that fail on this machine. A test that ends otherwise is run `AGAIN` more
//! times with and without the library. It varies if any of these endings is one that it has without
//! the library, and else it differs. Each run has an empty working directory.

use super::process::{Hung, Job};
use super::programs::{path, plain};
use super::{Libraries, Lock, memory, report};
use crate::flags;
use anyhow::{Context, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use xtask::steps::Steps;

const LIMIT: u64 = 120;
const AGAIN: usize = 3;
/// All users may make arrays, and each may remove its own.
const SHARED: u32 = 0o1777;

/// A program of util-linux that takes the right to set the clock away. Root would have it, and some
/// tests use it.
const NO_CLOCK: [&str; 3] = ["setpriv", "--bounding-set", "-sys_time"];

/// What `--skip`, `--limit` and `--jobs` say.
pub struct Suite {
    dir: PathBuf,
    tests: Vec<PathBuf>,
    /// What each test is started by.
    prefix: &'static [&'static str],
    limit: Duration,
    jobs: usize,
}

impl Suite {
    pub fn load(dir: &Path, flags: &flags::Real) -> anyhow::Result<Self> {
        let dir = dir.canonicalize().with_context(|| format!("--suite {}", dir.display()))?;
        let skipped: Vec<_> = flags.skip.iter().flat_map(|list| list.split(',')).map(str::trim).collect();
        let (limit, jobs) = (flags.limit.unwrap_or(LIMIT), flags.jobs.unwrap_or(1));
        if limit == 0 || jobs == 0 {
            bail!("--limit and --jobs: at least 1");
        }
        let tests = executables(&dir, &skipped)?;
        let prefix: &[_] = if can_set_the_clock() { &NO_CLOCK } else { &[] };
        if !prefix.is_empty() {
            let [program, arguments @ ..] = NO_CLOCK;
            let works =
                plain(program).args(arguments).arg("true").status().is_ok_and(|status| status.success());
            if !works {
                bail!("`{}` does not work: run a suite as another user than root", NO_CLOCK.join(" "));
            }
        }
        Ok(Self { dir, tests, prefix, limit: Duration::from_secs(limit), jobs })
    }
}

/// Whether this process is root's.
fn can_set_the_clock() -> bool {
    fs::metadata("/proc/self").is_ok_and(|data| data.uid() == 0)
}

/// The executable files below a directory, in the order of their paths, without those that are
/// skipped. A name to skip that no file has is an error.
fn executables(dir: &Path, skipped: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))? {
            let path = entry?.path();
            let Ok(data) = path.symlink_metadata() else { continue };
            if data.is_dir() {
                open.push(path);
            } else if data.is_file() && data.permissions().mode() & 0o111 != 0 && is_program(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    if found.is_empty() {
        bail!("no executable file below {}: build the suite first", dir.display());
    }
    let has_name = |path: &PathBuf, name: &str| path.file_name().is_some_and(|its| its == name);
    if let Some(name) = skipped.iter().find(|name| !found.iter().any(|path| has_name(path, name))) {
        bail!("--skip {name}: no executable file below {} has that name", dir.display());
    }
    found.retain(|path| !skipped.iter().any(|name| has_name(path, name)));
    Ok(found)
}

/// Whether it is an ELF file for execution, and neither an object nor a script of the build.
fn is_program(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_library = name.contains(".so") || name.ends_with(".o");
    !is_library && fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF"))
}

/// How a test ended with a library, beside how it ended without one.
#[derive(Clone, Debug, PartialEq)]
enum Verdict {
    Same,
    Varies,
    Differs(String),
}

/// What a test did: without a library, and then with each lock.
struct Row {
    test: String,
    expected: String,
    verdicts: Vec<Verdict>,
}

/// Runs all tests, and prints those that end in another way with a library.
pub fn run(suite: &Suite, locks: &[&Lock], libraries: &Libraries, steps: &mut Steps) -> anyhow::Result<()> {
    let result = steps.check("suite", "cargo lab real --suite DIR", || {
        let next = AtomicUsize::new(0);
        let rows = Mutex::new(Vec::new());
        let work = |nth: usize| -> anyhow::Result<()> {
            let name = format!("ulocks-suite-{}-{nth}", std::process::id());
            let (scratch, arrays) = (std::env::temp_dir().join(&name), memory().join(&name));
            while let Some(test) = suite.tests.get(next.fetch_add(1, Ordering::Relaxed)) {
                let row = row(test, suite, locks, libraries, [&scratch.join("run"), &arrays.join("sysv")])?;
                if row.verdicts.iter().any(|verdict| *verdict != Verdict::Same) {
                    eprintln!("{}: {}; {}", row.test, row.expected, words(&row, locks).join(", "));
                }
                rows.lock().expect("no worker panics").push(row);
            }
            _ = fs::remove_dir_all(&scratch);
            _ = fs::remove_dir_all(&arrays);
            Ok(())
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..suite.jobs).map(|nth| scope.spawn(move || work(nth))).collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("no worker panics"))
        })?;
        let mut rows = rows.into_inner().expect("no worker panics");
        rows.sort_by(|one, other| one.test.cmp(&other.test));
        print!("{}", table(&rows, locks));
        Ok(rows.iter().flat_map(|row| &row.verdicts).all(|verdict| !matches!(verdict, Verdict::Differs(_))))
    });
    Ok(result?)
}

fn row(
    test: &Path,
    suite: &Suite,
    locks: &[&Lock],
    libraries: &Libraries,
    [scratch, arrays]: [&Path; 2],
) -> anyhow::Result<Row> {
    let ending = |lock: Option<&Lock>| {
        fs::create_dir_all(scratch)?;
        fs::create_dir_all(arrays)?;
        fs::set_permissions(arrays, fs::Permissions::from_mode(SHARED))?;
        let ending = ending(suite, test, &libraries.variables(lock, arrays), scratch);
        // What a run has left must not be there in the next.
        _ = fs::remove_dir_all(scratch);
        _ = fs::remove_dir_all(arrays);
        ending
    };
    let expected = ending(None)?;
    let mut others = BTreeSet::from([expected.clone()]);
    let mut verdicts = Vec::new();
    for lock in locks {
        let found = ending(Some(lock))?;
        let mut endings = BTreeSet::from([found.clone()]);
        if !others.contains(&found) {
            for _ in 0..AGAIN {
                others.insert(ending(None)?);
                endings.insert(ending(Some(lock))?);
            }
        }
        verdicts.push(match endings.is_disjoint(&others) {
            true => Verdict::Differs(endings.into_iter().collect::<Vec<_>>().join(" or ")),
            false if found == expected => Verdict::Same,
            false => Verdict::Varies,
        });
    }
    let test = test.strip_prefix(&suite.dir).unwrap_or(test).display().to_string();
    Ok(Row { test, expected, verdicts })
}

/// How a test ends, in words.
fn ending(
    suite: &Suite,
    test: &Path,
    variables: &[(&'static str, String)],
    dir: &Path,
) -> anyhow::Result<String> {
    let test = path(test);
    let words: Vec<_> = suite.prefix.iter().copied().chain([test.as_str()]).collect();
    let mut command = plain(words[0]);
    command.args(&words[1..]).envs(variables.iter().map(|(name, value)| (*name, value)));
    match Job::start(command, dir)?.end(suite.limit) {
        Ok(ended) => Ok(match ended.status.signal() {
            Some(signal) => format!("signal {signal}"),
            None => format!("exit code {}", ended.status.code().unwrap_or_default()),
        }),
        Err(error) if error.is::<Hung>() => Ok("hung".into()),
        Err(error) => Err(error),
    }
}

fn words(row: &Row, locks: &[&Lock]) -> Vec<String> {
    let word = |(verdict, lock): (&Verdict, &&Lock)| match verdict {
        Verdict::Same => None,
        Verdict::Varies => Some(format!("varies with {}", lock.name)),
        Verdict::Differs(found) => Some(format!("{found} with {}", lock.name)),
    };
    row.verdicts.iter().zip(locks).filter_map(word).collect()
}

/// A line for each test that is not the same with all locks, and the counts.
fn table(rows: &[Row], locks: &[&Lock]) -> String {
    let names: Vec<_> = locks.iter().map(|lock| lock.name.to_owned()).collect();
    let mut lines = vec![[vec!["test".to_owned(), "glibc".to_owned()], names].concat()];
    for row in rows.iter().filter(|row| row.verdicts.iter().any(|verdict| *verdict != Verdict::Same)) {
        let cells = row.verdicts.iter().map(|verdict| match verdict {
            Verdict::Same => "same".to_owned(),
            Verdict::Varies => "varies".to_owned(),
            Verdict::Differs(found) => found.clone(),
        });
        lines.push([row.test.clone(), row.expected.clone()].into_iter().chain(cells).collect());
    }
    let mut endings = BTreeMap::<&str, usize>::new();
    rows.iter().for_each(|row| *endings.entry(&row.expected).or_default() += 1);
    let endings: Vec<_> = endings.iter().map(|(ending, count)| format!("{count} {ending}")).collect();
    let counts = locks.iter().enumerate().map(|(nth, lock)| {
        let count = |is_it: fn(&Verdict) -> bool| rows.iter().filter(|row| is_it(&row.verdicts[nth])).count();
        format!(
            "{}: {} the same, {} vary, {} differ\n",
            lock.name,
            count(|verdict| *verdict == Verdict::Same),
            count(|verdict| *verdict == Verdict::Varies),
            count(|verdict| matches!(verdict, Verdict::Differs(_)))
        )
    });
    let counts: String = counts.collect();
    let head = format!("{} tests; with glibc: {}", rows.len(), endings.join(", "));
    format!("\n{}\n{head}\n{counts}", report::aligned(&lines))
}

#[cfg(test)]
mod tests {
    use super::super::LOCKS;
    use super::*;

    #[test]
    fn only_programs_are_tests() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        fs::create_dir_all(dir.join("below")).unwrap();
        assert!(executables(dir, &[]).unwrap_err().to_string().contains("no executable file"));
        fs::write(dir.join("script"), "#!/bin/sh\n").unwrap();
        fs::write(dir.join("text"), "text").unwrap();
        fs::copy("/bin/true", dir.join("below/one.test")).unwrap();
        fs::copy("/bin/true", dir.join("library.so")).unwrap();
        assert_eq!(executables(dir, &[]).unwrap(), [dir.join("below/one.test")]);
        fs::copy("/bin/false", dir.join("two.test")).unwrap();
        assert_eq!(executables(dir, &["two.test"]).unwrap(), [dir.join("below/one.test")]);
        assert!(executables(dir, &["three"]).unwrap_err().to_string().contains("--skip three"));
        let limit = Duration::from_secs(60);
        let suite = Suite { dir: dir.to_owned(), tests: Vec::new(), prefix: &[], limit, jobs: 1 };
        let ending = |name: &str| ending(&suite, &dir.join(name), &[], dir).unwrap();
        assert_eq!(ending("below/one.test"), "exit code 0");
        assert_eq!(ending("two.test"), "exit code 1");
    }

    #[test]
    fn the_table_names_what_is_not_the_same() {
        let row = |test: &str, verdicts: [Verdict; 2]| Row {
            test: test.into(),
            expected: "exit code 0".into(),
            verdicts: verdicts.into(),
        };
        let rows = [
            row("good", [Verdict::Same, Verdict::Same]),
            row("bad", [Verdict::Varies, Verdict::Differs("hung".into())]),
        ];
        let text = table(&rows, &[&LOCKS[0], &LOCKS[1]]);
        assert!(text.contains("| bad  | exit code 0 | varies     | hung   |"), "{text}");
        assert!(!text.contains("good"), "{text}");
        assert!(text.contains("2 tests; with glibc: 2 exit code 0"), "{text}");
        assert!(text.contains("calock: 1 the same, 0 vary, 1 differ"), "{text}");
    }
}
