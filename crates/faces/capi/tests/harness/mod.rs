//! Compiles programs in C and C++ against the header and a library, and runs them.

pub mod elf;
mod library;

pub use library::directory as libraries;

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// No program needs more than a few seconds. A run that takes longer hangs.
const GUARD: Duration = Duration::from_secs(120);

/// Warnings are errors: a user may compile the header with all of them.
const OPTIONS: [&str; 7] = ["-O1", "-g", "-pthread", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// What a program in C must be linked with beside the static library.
const SYSTEM: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

/// The library that a program is linked with.
#[derive(Clone, Copy, Debug)]
pub enum Linked {
    Shared,
    Static,
}

/// The directory of this package.
pub fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Compiles a source file by its extension, `c` or `cpp`, and links it.
///
/// `None` without a compiler, which is said.
pub fn compile(source: &Path, standard: &str, linked: Linked) -> Option<PathBuf> {
    let is_c = source.extension().is_some_and(|extension| extension == "c");
    let compiler = if is_c { "cc" } else { "c++" };
    let name = source.file_stem().expect("a name").to_string_lossy();
    let binary = directory().join(format!("{name}-{standard}-{linked:?}-{}", std::process::id()));
    let libraries = library::directory();

    let mut command = Command::new(compiler);
    command.args(OPTIONS).arg(format!("-std={standard}"));
    command.arg("-I").arg(package().join("include")).arg(source).arg("-o").arg(&binary);
    match linked {
        Linked::Shared => {
            command.arg("-L").arg(libraries).arg("-lulocks_capi");
            command.arg(format!("-Wl,-rpath,{}", libraries.display()));
            // Cargo leaves the `.a` beside the `.so`; the linker prefers the latter.
            command.arg("-Wl,-Bdynamic")
        }
        Linked::Static => command.arg(libraries.join("libulocks_capi.a")).args(SYSTEM),
    };
    match command.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("{}: skipped, since this machine has no `{compiler}`", source.display());
            None
        }
        Err(error) => panic!("cannot run {command:?}: {error}"),
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{command:?} failed:\n{errors}");
            Some(binary)
        }
    }
}

/// Runs a program, panics if it fails or hangs, and returns what it printed.
pub fn run(binary: &Path) -> String {
    let [out, err] = ["out", "err"].map(|kind| binary.with_added_extension(kind));
    let mut command = Command::new(binary);
    command.current_dir(directory()).stdin(Stdio::null()).process_group(0);
    command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let end = Instant::now() + GUARD;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child of this test") {
            break Some(status);
        }
        if Instant::now() > end {
            // SAFETY: the call has no memory arguments. The group is that of a child that no
            // thread has waited for, so the number belongs to no other process.
            unsafe { libc::killpg(child.id().cast_signed(), libc::SIGKILL) };
            child.wait().expect("a child that was ended");
            break None;
        }
        sleep(Duration::from_millis(2));
    };
    let [out, err] = [out, err].map(|path| {
        let text = fs::read_to_string(&path).expect("a file of this run");
        fs::remove_file(&path).expect("a file of this run");
        text
    });
    let ending = status.map_or_else(
        || format!("hung for {} s and was ended", GUARD.as_secs()),
        |status| format!("ended with {status}"),
    );
    assert!(
        status.is_some_and(|status| status.success()),
        "{} {ending}\nit printed: {out}\nits errors: {err}",
        binary.display()
    );
    fs::remove_file(binary).expect("a file of this test");
    out
}

/// Compiles and runs a source file of this package, linked with each library.
pub fn run_both(source: &str, standard: &str) {
    for linked in [Linked::Shared, Linked::Static] {
        if let Some(binary) = compile(&package().join(source), standard, linked) {
            run(&binary);
        }
    }
}

/// Where programs are built and run.
pub fn directory() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("capi");
        fs::create_dir_all(&directory).expect("a directory for programs");
        directory
    })
}
