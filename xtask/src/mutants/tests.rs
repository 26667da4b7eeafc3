use super::build::Unit;
use super::scratch::{Scratch, git_files, remove_others, renew_file};
use super::spec::HANG;
use super::verdict::{Verdict, judge};
use super::*;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use xtask::exec::{End, Ran, run_within};

fn ran(end: End, output: &str) -> Ran {
    Ran { end, output: output.into() }
}

const ONE_PASSED: &str = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 4 filtered out";
const NONE_RAN: &str = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 5 filtered out";

#[test]
fn a_failure_counts_only_if_it_is_the_specified_one() {
    let failed = ran(End::Failed, "panicked at x.rs: lost wake-up");
    assert_eq!(judge(&failed, Some("lost wake-up")), Verdict::Caught);
    assert_eq!(judge(&failed, Some("data race")), Verdict::Wrong);
    assert_eq!(judge(&failed, None), Verdict::Wrong, "a sound mutant, or none");
    assert_eq!(judge(&ran(End::Passed, ONE_PASSED), Some("lost wake-up")), Verdict::Survived);
    assert_eq!(judge(&ran(End::Passed, ONE_PASSED), None), Verdict::Passes);
}

#[test]
fn a_run_that_does_not_end_is_caught_only_where_that_is_specified() {
    assert_eq!(judge(&ran(End::OutOfTime, "lost wake-up"), Some("lost wake-up")), Verdict::Wrong);
    assert_eq!(judge(&ran(End::OutOfTime, ""), Some(HANG)), Verdict::Caught);
    assert_eq!(judge(&ran(End::Failed, "it would hang"), Some(HANG)), Verdict::Wrong);
}

#[test]
fn what_was_never_run_is_not_caught_and_does_not_pass() {
    assert_eq!(judge(&ran(End::Passed, NONE_RAN), None), Verdict::NoTest);
    assert_eq!(judge(&ran(End::Passed, NONE_RAN), Some("lost")), Verdict::NoTest);
    for verdict in [Verdict::DoesNotCompile, Verdict::NoTest, Verdict::NotRun, Verdict::Survived] {
        assert!(!verdict.is_as_specified());
    }
}

#[test]
fn a_run_ends_with_its_children() {
    let succeeds = run_within(&mut Command::new("true"), Duration::MAX).unwrap();
    assert!(succeeds.is_some_and(|status| status.success()));
    let fails = run_within(&mut Command::new("false"), Duration::MAX).unwrap();
    assert!(fails.is_some_and(|status| !status.success()));

    // Each sleeper holds the writing end; the reader sees the end of the file when all of them are
    // gone.
    let (reader, writer) = std::io::pipe().unwrap();
    let sleeps = |script: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdout(writer.try_clone().unwrap());
        shell
    };
    let hangs = run_within(&mut sleeps("sleep 3600 & sleep 3600"), Duration::from_millis(200)).unwrap();
    assert_eq!(hangs, None);
    let leaves = run_within(&mut sleeps("sleep 3600 &"), Duration::MAX).unwrap();
    assert!(leaves.is_some_and(|status| status.success()));
    drop(writer);
    assert_eq!(std::io::read_to_string(reader).unwrap(), "");
}

#[test]
fn a_copy_is_renewed_by_content() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("to/a/b");
    renew_file(b"one", &to).unwrap();
    assert_eq!(fs::read_to_string(&to).unwrap(), "one");

    let old = std::time::SystemTime::UNIX_EPOCH;
    let touch = || File::options().write(true).open(&to).unwrap().set_modified(old).unwrap();
    let modified = || fs::metadata(&to).unwrap().modified().unwrap();
    touch();
    renew_file(b"one", &to).unwrap();
    assert_eq!(modified(), old, "the same content is left alone");
    renew_file(b"two", &to).unwrap();
    assert!(modified() > old, "cargo must see that it has changed");
    assert_eq!(fs::read_to_string(&to).unwrap(), "two");

    let root = dir.path().join("to");
    fs::write(root.join("stray"), "").unwrap();
    remove_others(&root, &root, &[PathBuf::from("a/b")].into()).unwrap();
    assert!(to.exists() && !root.join("stray").exists());
}

#[test]
fn git_names_the_files_of_the_workspace_and_not_what_is_built() {
    let files = git_files(&Workspace::load().unwrap().root).unwrap();
    assert!(files.contains(Path::new("Cargo.lock")));
    assert!(files.contains(Path::new("crates/locks/unfair/src/barging/raw.rs")));
    assert!(!files.iter().any(|path| path.starts_with("target")));
}

#[test]
fn mutants_are_chosen_by_name_by_file_by_world_and_by_kind() {
    let workspace = Workspace::load().unwrap();
    let all = All { mutants: spec::PLANTED.clone(), sites: weaken::load(&workspace).unwrap().0 };
    let flags = |flags: &str| {
        let words = ["mutants"].into_iter().chain(flags.split_whitespace()).map(Into::into);
        match flags::Xtask::from_vec(words.collect()).unwrap().subcommand {
            flags::XtaskCmd::Mutants(flags) => flags,
            _ => panic!("not a mutants command"),
        }
    };
    let chosen = |line: &str| choose(&all, &flags(line));
    let everything = chosen("").unwrap();
    assert_eq!(everything.mutants.len(), all.mutants.len());
    assert!(everything.weakenings.len() >= all.sites.len());

    let one = chosen("--only wakes-nobody --world vm").unwrap();
    assert!(one.mutants[0].found_by.iter().all(|probe| probe.world == "vm"));
    assert!(one.weakenings.is_empty());
    let spec = chosen("--only unfair/mutants/barging").unwrap();
    let expected = "crates/locks/unfair/mutants/barging.toml";
    assert!(!spec.mutants.is_empty() && spec.mutants.iter().all(|mutant| mutant.spec == expected));
    let file = chosen("--only unfair/src/barging/raw.rs").unwrap();
    assert!(file.mutants.is_empty() && !file.weakenings.is_empty());
    assert!(chosen("--kind logic").unwrap().weakenings.is_empty());
    assert!(chosen("--kind orderings").unwrap().mutants.is_empty());
    assert!(chosen("--world native").unwrap().weakenings.is_empty());

    let refused = |line: &str| chosen(line).map(|_| ()).unwrap_err().to_string();
    assert!(refused("--world lom").contains("native, loom, vm"));
    assert!(refused("--kind logics").contains("logic, orderings"));
    assert!(refused("--only no-such-mutant").contains("--list"));
}

#[test]
fn the_first_failure_of_the_machine_has_its_execution() {
    let ran = ran(End::Failed, "test c ... \nat execution 12 (exhaustive)\nFAILED\nat execution 3");
    assert_eq!(ran.executions(), Some(12));
}

#[test]
fn each_world_has_its_flags_and_its_directory() {
    let workspace = Workspace::load().unwrap();
    let scratch = Scratch::at(&workspace, PathBuf::from("/base"), File::open("/").unwrap());
    let shown = |world: &str| {
        let unit = Unit { world: world.into(), package: "ulocks-unfair".into() };
        format!("{:?}", scratch.cargo_test(&unit, &["lib".into(), "t".into()].into()).unwrap())
    };
    let native = shown("native");
    assert!(native.contains(r#"CARGO_TARGET_DIR="/base/native""#), "{native}");
    let ends = r#""test" "-p" "ulocks-unfair" "--all-features" "--lib" "--test" "t""#;
    assert!(native.ends_with(ends), "{native}");
    let loom = shown("loom");
    assert!(loom.contains(r#"CARGO_TARGET_DIR="/base/loom""#), "{loom}");
    assert!(loom.contains("--cfg ulocks_loom") && loom.contains(r#""--profile" "model""#), "{loom}");
    assert!(loom.contains("ulocks-unfair/loom,ulocks-unfair/parking_lot"), "{loom}");
}

#[test]
fn what_is_found_out_once_is_found_out_when_it_is_first_asked_for() {
    let once = audit::Once::new();
    let mut runs = 0;
    for (key, found) in [("a", 1), ("a", 2), ("b", 3)] {
        let known = once.get(key, || {
            runs += 1;
            Ok(found)
        });
        assert_eq!(known.unwrap(), if key == "a" { 1 } else { 3 });
    }
    assert_eq!(runs, 2);
    assert!(once.get("c", || Err(anyhow::anyhow!("x"))).is_err());
    assert_eq!(once.into_known(), [1, 3]);
}
