//! `ulocks-ipcs` and `ulocks-ipcrm`, on arrays that this process makes.
#![cfg(files)]

use std::path::PathBuf;
use std::process::{Command, Output};
use ulocks_sysv::{Op, semctl, semget, semop};
use ulocks_testkit::limit::output;

const SETVAL: i32 = 16;

struct Folder(PathBuf);

impl Folder {
    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        output(Command::new(program).args(arguments).env("ULOCKS_SYSV_DIR", &self.0))
    }

    #[track_caller]
    fn prints(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.run(program, arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && errors.is_empty(), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[track_caller]
    fn refuses(&self, program: &str, arguments: &[&str], code: i32, why: &str) {
        let output = self.run(program, arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(errors.contains(why), "{arguments:?}: {errors}");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// One test, for the directory is the process's.
#[test]
fn programs_show_and_remove() {
    let (ipcs, ipcrm) = (env!("CARGO_BIN_EXE_ulocks-ipcs"), env!("CARGO_BIN_EXE_ulocks-ipcrm"));
    let folder = Folder(std::env::temp_dir().join(format!("ulocks-programs-{}", std::process::id())));
    // SAFETY: this test is the only thread that uses the environment.
    unsafe { std::env::set_var("ULOCKS_SYSV_DIR", &folder.0) };

    assert_eq!(folder.prints(ipcs, &["--json"]), "[]\n");
    let first = semget(0x1234, 3, libc::IPC_CREAT | 0o640).unwrap();
    let second = semget(libc::IPC_PRIVATE, 1, 0o600).unwrap();
    // SAFETY: the command takes no pointer.
    unsafe { semctl(first, 1, SETVAL, 7) }.unwrap();
    // SAFETY: one operation is borrowed.
    unsafe { semop(first, &Op { num: 1, op: -2, flags: 0 }, 1) }.unwrap();

    let table = folder.prints(ipcs, &["-s"]);
    assert!(table.contains("------ Semaphore Arrays --------"), "{table}");
    let row: Vec<_> =
        table.lines().find(|line| line.starts_with("0x00001234")).unwrap().split_whitespace().collect();
    assert_eq!((row[1], row[3], row[4]), (first.to_string().as_str(), "640", "3"));
    assert!(table.contains(&format!("0x00000000 {second} ")), "{table}");
    let json = folder.prints(ipcs, &["--json"]);
    assert_eq!(json.lines().count(), 4, "{json}");
    assert!(json.contains(&format!("\"key\": \"0x00001234\", \"id\": {first},")), "{json}");
    assert!(json.contains("\"mode\": \"0640\", \"nsems\": 3"), "{json}");
    let details = folder.prints(ipcs, &["-i", &first.to_string()]);
    let row: Vec<_> =
        details.lines().find(|line| line.starts_with("1 ")).unwrap().split_whitespace().collect();
    assert_eq!(row, ["1", "5", "0", "0", std::process::id().to_string().as_str()]);

    folder.refuses(ipcs, &["-i", "12345"], 1, "Invalid argument");
    folder.refuses(ipcs, &["-i"], 2, "-i needs the id of an array");
    folder.refuses(ipcs, &["-x"], 2, "there is no option `-x`");
    folder.refuses(ipcrm, &[], 2, "nothing to remove was named");
    folder.refuses(ipcrm, &["-s", "one"], 2, "-s needs a number");
    folder.refuses(ipcrm, &["-S", "0"], 1, "key 0: No such file");
    folder.refuses(ipcrm, &["-S", "0x99"], 1, "key 0x00000099: No such file");
    folder.refuses(ipcrm, &["-s", "12345"], 1, "id 12345: Invalid argument");

    folder.prints(ipcrm, &["-S", "0x1234"]);
    // SAFETY: one operation is borrowed.
    let gone = unsafe { semop(first, &Op { num: 1, op: 1, flags: 0 }, 1) };
    assert_eq!(gone, Err(libc::EINVAL), "this process still had the array mapped");
    assert_eq!(folder.prints(ipcs, &["--json"]).lines().count(), 3);
    folder.prints(ipcrm, &["-s", &second.to_string()]);
    semget(0x77, 2, libc::IPC_CREAT | 0o600).unwrap();
    folder.prints(ipcrm, &["-a"]);
    assert_eq!(folder.prints(ipcs, &["--json"]), "[]\n");
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1, "only the registry is left");

    // What a bad setting says.
    let output = output(Command::new(ipcs).env("ULOCKS_SYSV_SEMOPM", "many"));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors.contains("ULOCKS_SYSV_SEMOPM=many is not allowed: it must be a number from 1 to 500"),
        "{errors}"
    );
}
