//! Programs that use the locks wrongly do not compile, and the compiler says in a line what to do.

#![cfg(not(any(miri, ulocks_loom, ulocks_vm)))]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, io::Write as _};
use ulocks as _;
use ulocks_testkit as _;

/// The newest library of that name among those that this test was built with.
fn library(deps: &Path, name: &str) -> PathBuf {
    let files = fs::read_dir(deps).expect("the folder of the libraries is readable");
    let files = files.map(|file| file.expect("so are its entries").path());
    let start = format!("lib{name}-");
    let libraries = files.filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(&start) && name.ends_with(".rlib")
    });
    let newest = libraries.max_by_key(|path| path.metadata().and_then(|file| file.modified()).ok());
    newest.unwrap_or_else(|| panic!("there is no library {name} in {}", deps.display()))
}

/// What the compiler says of a program.
fn compiled(program: &str) -> String {
    let exe = env::current_exe().expect("the test has a path");
    let deps = exe.parent().expect("the test is in a folder");
    let compiler = Path::new(env!("CARGO")).with_file_name("rustc");
    let mut rustc = Command::new(if compiler.exists() { compiler.as_path() } else { Path::new("rustc") });
    rustc.args(["--edition=2024", "--crate-type=bin", "--emit=metadata", "--color=never", "-o"]);
    rustc.arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("misuse.rmeta"));
    rustc.arg("-L").arg(format!("dependency={}", deps.display()));
    for name in ["ulocks", "ulocks_core"] {
        rustc.arg("--extern").arg(format!("{name}={}", library(deps, name).display()));
    }
    rustc.arg("-").stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut rustc = rustc.spawn().expect("the compiler starts");
    let mut input = rustc.stdin.take().expect("its input is a pipe");
    input.write_all(program.as_bytes()).expect("the compiler reads the program");
    drop(input);
    let output = rustc.wait_with_output().expect("the compiler ends");
    let said = String::from_utf8(output.stderr).expect("the compiler prints text");
    assert_eq!(output.status.success(), said.is_empty(), "{said}");
    said
}

/// What is wrong, what the compiler says of it, and the program.
const MISUSES: [(&str, &str, &str); 8] = [
    (
        "a scope in place of a policy",
        "write `Private` or `Shared` of `ulocks` here, such as `Private<NoSpin>`",
        "use ulocks::unfair::BargingMutexWith;
        fn main() {
            let _: BargingMutexWith<u32, ulocks_core::futex::Global> = BargingMutexWith::new(0);
        }",
    ),
    (
        "a lock for one process, between processes",
        "the policy of a lock for one process is `Private`",
        "use ulocks::{Shared, semarray::SemArrayWith};
        fn main() { let _: SemArrayWith<Shared> = SemArrayWith::new(3); }",
    ),
    (
        "a thread that reads as a signal handler",
        "a signal handler reads by `read_handler(context)`, a thread as `Bulk`, `Urgent` or `Nested`",
        "use ulocks::psrwlock::{ByClass, Handler, PsRwLock};
        fn main() { let lock = PsRwLock::new(0); let _ = lock.read_in::<Handler>(); }",
    ),
    (
        "the same, where handlers may read",
        "a signal handler reads by `read_handler(context)`, a thread as `Bulk`, `Urgent` or `Nested`",
        "use ulocks::psrwlock::{BULK, ByClass, HANDLER, Handler, PsRwLockWith, Sifted};
        fn main() {
            let lock: PsRwLockWith<u32, Sifted<{ BULK | HANDLER }>> = PsRwLockWith::new(0);
            let _ = lock.read_in::<Handler>();
        }",
    ),
    (
        "a class in place of a configuration",
        "write `Private` or `Shared` of `ulocks` here, such as `Private<NoSpin>`",
        "use ulocks::psrwlock::{PsRwLockWith, Urgent};
        fn main() { let _: PsRwLockWith<u32, Urgent> = PsRwLockWith::new(0); }",
    ),
    (
        "a guard that goes to another thread",
        "UnlockOnTheThreadThatLocked + 'static)` cannot be sent between threads safely",
        "fn main() {
            static MUTEX: ulocks::Mutex<u32> = ulocks::Mutex::new(0);
            let guard = MUTEX.lock();
            std::thread::spawn(move || drop(guard)).join().unwrap();
        }",
    ),
    // The compiler's own words. They name the types.
    (
        "a condition variable with another mutex",
        "ulocks::lock_api::MutexGuard<'_, Raw<RawBargingMutex>, {integer}>`",
        "fn main() {
            let (mutex, condvar) = (ulocks::unfair::BargingMutex::new(0), ulocks::Condvar::new());
            condvar.wait(&mut mutex.lock());
        }",
    ),
    (
        "a policy that nothing says",
        "consider giving `mutex` an explicit type",
        "use ulocks::unfair::BargingMutexWith;
        fn main() { let mutex = BargingMutexWith::new(0); drop(mutex.lock()); }",
    ),
];

#[test]
fn the_compiler_says_in_a_line_what_to_do() {
    for (what, line, program) in MISUSES {
        let said = compiled(program);
        assert!(said.contains(line), "{what}: `{line}` is missing in:\n{said}");
    }
}

#[test]
fn a_right_use_compiles() {
    assert_eq!(compiled("fn main() { *ulocks::Mutex::new(0).lock() += 1; }"), "");
    let program = "use ulocks::{Shared, psrwlock::PsRwLockWith};
        fn main() { let _: PsRwLockWith<u32, Shared> = PsRwLockWith::new(0); }";
    assert_eq!(compiled(program), "");
}
