//! Processes that die: at random, and after each number of instructions. Files that are damaged.

#[path = "../common/mod.rs"]
mod common;

use common::{Arrays, compile, folder, preloaded, printed};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

fn run(name: &str, arguments: &[&str]) -> String {
    let program = compile(&folder(name), &[&format!("shared/{name}.c")]);
    let arrays = Arrays::new(name);
    let printed = printed(preloaded(&program, &arrays, true).args(arguments));
    assert!(arrays.0.join("registry").exists(), "the library was not used");
    let left = fs::read_dir(&arrays.0).unwrap().count();
    assert_eq!(left, 1, "files of arrays were left behind");
    printed
}

#[test]
fn values_come_back_after_random_deaths() {
    assert_eq!(run("stress", &["3"]), "whole after some deaths\n");
}

#[test]
fn a_death_at_any_instruction_leaves_all_or_nothing() {
    match run("steps", &[]).as_str() {
        "no ptrace\n" => eprintln!("not checked: this system does not let a process be traced"),
        printed => assert_eq!(printed, "whole after each death\n"),
    }
}

#[test]
fn a_removal_takes_no_lock_away_with_it() {
    assert_eq!(run("removal", &[]), "all returned\n");
}

#[test]
fn processes_that_have_ended_use_up_no_slots() {
    match run("slots", &[]).as_str() {
        "not root\n" => eprintln!("not checked: this takes two users"),
        printed => assert_eq!(printed, "all had a slot\n"),
    }
}

#[test]
fn a_limit_of_the_process_is_an_error_for_as_long_as_it_lasts() {
    assert_eq!(run("limits", &["file"]), "semget errno 28, then 0\n");
    assert_eq!(run("limits", &["descriptors"]), "semget errno 24, then 0\n");
}

/// A directory with one array, and the program that uses it.
struct Damage {
    arrays: Arrays,
    program: PathBuf,
    file: PathBuf,
}

impl Damage {
    fn new(name: &str) -> Self {
        let program = compile(&folder(name), &["shared/user.c"]);
        let arrays = Arrays::new(name);
        assert_eq!(printed(preloaded(&program, &arrays, true).arg("make")), "made 0\n");
        let file = arrays.0.join("sem.0000000000");
        assert!(file.exists());
        Self { arrays, program, file }
    }

    /// What the program says of array 0, and what the library complains about.
    fn used(&self) -> (String, String) {
        let output: Output = preloaded(&self.program, &self.arrays, false).arg("use").output().unwrap();
        assert!(output.status.code().is_some(), "the program was killed: {:?}", output.status);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr))
    }

    #[track_caller]
    fn refused(&self, file: &Path) {
        let (out, complaint) = self.used();
        assert!(!out.contains(" 0\n") && out.contains("semop errno 5\n"), "{out}");
        assert!(complaint.contains(file.to_str().unwrap()), "{complaint}");
        assert!(complaint.contains("is damaged or of another version"), "{complaint}");
    }
}

#[test]
fn a_whole_file_is_used() {
    let damage = Damage::new("whole");
    assert_eq!(damage.used(), ("semop 0\nsemctl 0\nsemget 0\n".into(), String::new()));
}

#[test]
fn a_file_that_is_too_short_is_refused() {
    let damage = Damage::new("short");
    let len = fs::metadata(&damage.file).unwrap().len();
    for len in [0, 1, 4_095, 4_096, len - 4_096, len - 1] {
        fs::OpenOptions::new().write(true).open(&damage.file).unwrap().set_len(len).unwrap();
        damage.refused(&damage.file);
    }
}

#[test]
fn a_file_of_something_else_is_refused() {
    let damage = Damage::new("foreign");
    let whole = fs::read(&damage.file).unwrap();
    // The magic number, the version, the id, the lengths, the number of rows.
    for at in [0, 8, 12, 16, 20, 24] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        fs::write(&damage.file, bytes).unwrap();
        damage.refused(&damage.file);
    }
    fs::write(&damage.file, vec![0xff; whole.len()]).unwrap();
    damage.refused(&damage.file);
    fs::remove_file(&damage.file).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &damage.file).unwrap();
    let (out, _) = damage.used();
    assert!(out.contains("semop errno 22\n"), "{out}");
}

#[test]
fn overwritten_contents_cause_no_crash() {
    let damage = Damage::new("overwritten");
    let whole = fs::read(&damage.file).unwrap();
    // All behind the lengths: other lines of the header, words, counts, queue, journal, slots.
    for (from, to) in
        [(192, 256), (196, 224), (224, 4_096), (4_096, 4_352), (4_352, 16_384), (256, whole.len())]
    {
        for byte in [0xff, 0x01, 0x80] {
            let mut bytes = whole.clone();
            bytes[from..to].fill(byte);
            // The lock stays free: a word of a thread that lives would have to be waited for.
            bytes[192..196].fill(0);
            fs::write(&damage.file, bytes).unwrap();
            let (out, _) = damage.used();
            assert_eq!(out.lines().count(), 3, "{from}..{to} {byte:#x}: {out}");
        }
    }
}

#[test]
fn a_damaged_registry_is_refused() {
    let damage = Damage::new("registry");
    let registry = damage.arrays.0.join("registry");
    let whole = fs::read(&registry).unwrap();
    let short = &whole[..whole.len() - 1];
    let mut foreign = whole.clone();
    foreign[0] ^= 1;
    for bytes in [short, b"x", &foreign] {
        fs::write(&registry, bytes).unwrap();
        let (out, complaint) = damage.used();
        assert!(out.contains("semget errno 5\n"), "{out}");
        assert!(complaint.contains("registry is damaged or of another version"), "{complaint}");
    }
}
