//! `--suite DIR`: the tests of somebody else, without a library and with each.
//!
//! A test is an executable file below `DIR`. It passes here if its exit code with the library is
//! that without. So a suite may have tests that fail on this machine.

use super::process::{Hung, Job};
use super::programs::{path, plain};
use super::{Libraries, Lock};
use anyhow::{Context, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use xtask::steps::Steps;

const GUARD: Duration = Duration::from_secs(120);

/// The executable files below a directory, in the order of their names.
pub fn executables(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
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
    Ok(found)
}

/// Whether it is an ELF file for execution, and neither an object nor a script of the build.
fn is_program(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_library = name.contains(".so") || name.ends_with(".o");
    !is_library && fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF"))
}

/// Runs all tests, and prints those that end in another way with a library.
pub fn run(
    tests: &[PathBuf],
    locks: &[&Lock],
    libraries: &Libraries,
    steps: &mut Steps,
) -> anyhow::Result<()> {
    let scratch = std::env::temp_dir().join(format!("ulocks-suite-{}", std::process::id()));
    fs::create_dir_all(&scratch)?;
    let result = steps.check("suite", "cargo lab real --suite DIR", || {
        let mut different = 0;
        for test in tests {
            let expected = ending(test, &[], &scratch)?;
            for lock in locks {
                let found = ending(test, &libraries.variables(Some(lock), &scratch), &scratch)?;
                if found != expected {
                    // Once more: a test may depend on times.
                    let (again, ours) = (
                        ending(test, &[], &scratch)?,
                        ending(test, &libraries.variables(Some(lock), &scratch), &scratch)?,
                    );
                    if again == ours {
                        println!("{}: differed once with {}", test.display(), lock.name);
                        continue;
                    }
                    different += 1;
                    println!("{}: {expected} without a library, {found} with {}", test.display(), lock.name);
                }
            }
        }
        println!("{} tests, {} locks: {different} differences", tests.len(), locks.len());
        Ok(different == 0)
    });
    _ = fs::remove_dir_all(&scratch);
    Ok(result?)
}

/// How a test ends, in words.
fn ending(test: &Path, variables: &[(&'static str, String)], dir: &Path) -> anyhow::Result<String> {
    let mut command = plain(&path(test));
    command.envs(variables.iter().map(|(name, value)| (*name, value)));
    match Job::start(command, dir)?.end(GUARD) {
        Ok(ended) => Ok(match ended.status.signal() {
            Some(signal) => format!("signal {signal}"),
            None => format!("exit code {}", ended.status.code().unwrap_or_default()),
        }),
        Err(error) if error.is::<Hung>() => Ok("hung".into()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_are_tests() {
        let dir = std::env::temp_dir().join(format!("ulocks-xtask-suite-{}", std::process::id()));
        fs::create_dir_all(dir.join("below")).unwrap();
        assert!(executables(&dir).unwrap_err().to_string().contains("no executable file"));
        fs::write(dir.join("script"), "#!/bin/sh\n").unwrap();
        fs::write(dir.join("text"), "text").unwrap();
        fs::copy("/bin/true", dir.join("below/one.test")).unwrap();
        fs::copy("/bin/true", dir.join("library.so")).unwrap();
        assert_eq!(executables(&dir).unwrap(), [dir.join("below/one.test")]);
        fs::copy("/bin/false", dir.join("two.test")).unwrap();
        assert_eq!(ending(&dir.join("below/one.test"), &[], &dir).unwrap(), "exit code 0");
        assert_eq!(ending(&dir.join("two.test"), &[], &dir).unwrap(), "exit code 1");
        fs::remove_dir_all(&dir).unwrap();
    }
}
