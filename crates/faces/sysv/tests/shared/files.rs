//! Files that are damaged before a program opens them, or become shorter while it uses them.

use crate::common::{Arrays, compile, folder, preloaded, printed};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

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

/// One has slept, so it has a slot, but nothing to give back. The other owes, in an array of its
/// own.
#[test]
fn a_process_opens_no_file_at_its_end_that_it_has_not_used() {
    let damage = Damage::new("unused");
    fs::OpenOptions::new().write(true).open(&damage.file).unwrap().set_len(1).unwrap();
    let says = |what| printed(preloaded(&damage.program, &damage.arrays, true).arg(what));
    assert_eq!(says("sleep"), format!("slept errno {}\n", libc::EAGAIN));
    assert_eq!(says("owe"), "owes 0\n");
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
    let zeroed = vec![0; whole.len()];
    for bytes in [short, b"x", &foreign, &zeroed, &[]] {
        fs::write(&registry, bytes).unwrap();
        let (out, complaint) = damage.used();
        assert!(out.contains("semget errno 5\n"), "{out}");
        assert!(complaint.contains("registry is damaged or of another version"), "{complaint}");
        assert_eq!(fs::read(&registry).unwrap(), bytes, "a damaged registry is left as it is");
        assert!(damage.file.exists(), "the file of an array was removed");
    }
}

/// What each call gets when all is well, and after its file is lost.
const CALLS: [&str; 9] = ["down", "up", "set", "undo", "GETALL", "SETVAL", "STAT", "semget", "CREAT"];

/// The line in which the calls of `failing` get EIO, and the others 0.
fn line(start: &str, failing: &[&str]) -> String {
    let said = |call: &&str| format!(" {call} {}", if failing.contains(call) { 5 } else { 0 });
    format!("{start}:{}", CALLS.iter().map(said).collect::<String>())
}

fn shortened(name: &str, arguments: &[&str]) -> (Vec<String>, String, Arrays) {
    let program = compile(&folder(name), &["shared/truncated.c"]);
    let arrays = Arrays::new(name);
    let output = preloaded(&program, &arrays, true).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (out, complaint) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{arguments:?}: {}: {out}", output.status);
    (out.lines().map(String::from).collect(), complaint, arrays)
}

#[test]
fn an_array_that_is_truncated_while_mapped_is_an_error_and_no_sigbus() {
    for arguments in [["array", "0"].as_slice(), &["array", "4096"], &["array", "0", "zeroed"]] {
        let (lines, complaint, _arrays) = shortened("truncated-array", arguments);
        assert_eq!(lines[0], line("before", &[]));
        assert_eq!(lines[1], line("after", &CALLS), "{arguments:?}");
        assert_eq!(lines[2], format!("sleeper: {}", libc::EIDRM), "{arguments:?}");
        assert_eq!(lines[3], line("other", &["semget", "CREAT"]), "another array is as it was");
        assert!(complaint.contains("sem.0000000000 is damaged or of another version"), "{complaint}");
    }
}

/// The words are still there, so operations that need nothing else go on.
#[test]
fn an_array_whose_end_is_cut_off_is_an_error_where_it_is_missing() {
    let (lines, ..) = shortened("cut-array", &["array", "12288"]);
    let failing: Vec<_> = CALLS.into_iter().filter(|call| !["down", "up"].contains(call)).collect();
    assert_eq!(lines[1], line("after", &failing));
    assert_eq!(lines[2], format!("sleeper: {}", libc::EIDRM));
}

#[test]
fn a_registry_that_is_truncated_while_mapped_is_an_error_and_no_array_is_lost() {
    for arguments in [["registry", "0"].as_slice(), &["registry", "4096"], &["registry", "0", "zeroed"]] {
        let (lines, complaint, arrays) = shortened("truncated-registry", arguments);
        assert_eq!(lines[0], line("before", &[]));
        let after = &lines[1];
        for call in ["undo", "semget", "CREAT"] {
            assert!(after.contains(&format!(" {call} {}", libc::EIO)), "{arguments:?}: {after}");
        }
        for call in ["down", "up", "GETALL", "SETVAL", "STAT"] {
            assert!(after.contains(&format!(" {call} 0")), "{arguments:?}: {after}");
        }
        assert_eq!(complaint.matches("registry is damaged or of another version").count(), 1, "{complaint}");
        assert!(arrays.0.join("sem.0000000000").exists(), "the file of an array was removed");
    }
}

/// The thread that finds the loss has the lock. If it released that in memory of its own, the other
/// process would wait for ever.
#[test]
fn a_lock_is_released_for_all_processes_by_a_holder_that_lost_its_file() {
    for file in ["array", "registry"] {
        for length in ["0", "4096", "8192"] {
            let (lines, complaint, _arrays) = shortened("truncated-both", &["both", file, length]);
            let call = if file == "array" { "set" } else { "undo" };
            let ends = |who: &str| format!("{who}: {call} {0} semget {0}", libc::EIO);
            assert_eq!(lines, [ends("first"), ends("second")], "{file} {length}");
            assert!(complaint.contains("is damaged or of another version"), "{complaint}");
        }
    }
}

#[test]
fn a_bus_error_of_the_program_is_left_to_the_program() {
    let (lines, ..) = shortened("signals", &["signals"]);
    assert_eq!(lines, ["killed by SIGBUS", "called 2 times"]);
}

#[test]
fn a_bus_error_that_was_sent_waits_for_the_end_of_a_section() {
    assert_eq!(shortened("sent", &["sent"]).0, ["sent: 0"]);
}

#[test]
fn a_handler_of_the_program_is_called_once_and_on_its_stack_if_it_says_so() {
    let (lines, ..) = shortened("once", &["once"]);
    let ends = |on_alternate: u8| {
        [format!("called, on the alternate stack: {on_alternate}"), "killed by SIGBUS: 1".into()]
    };
    assert_eq!(lines, [ends(0), ends(1)].concat());
}

#[test]
fn an_array_whose_file_was_deleted_is_made_again_by_its_key() {
    let (lines, complaint, _arrays) = shortened("deleted", &["removed"]);
    assert_eq!(lines, ["another one: 1, found again: 1"]);
    assert_eq!(complaint, "");
}
