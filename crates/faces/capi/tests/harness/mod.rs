//! Compiles programs in C and C++ against the header and a library, and runs them.

pub mod elf;

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use ulocks_testkit::cdylib;
use ulocks_testkit::limit::output;

/// Warnings are errors: a user may compile the header with all of them.
const OPTIONS: [&str; 9] =
    ["-O1", "-g", "-pthread", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"];

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
    let libraries = libraries();

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
            println!("not tested: {}, since this machine has no `{compiler}`", source.display());
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
    // Cargo sets the variable, to the folders of a build that may be another one. The linker has
    // written into the program which library it needs.
    let ran = output(Command::new(binary).current_dir(directory()).env_remove("LD_LIBRARY_PATH"));
    let [out, err] = [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let program = binary.display();
    assert!(
        ran.status.success(),
        "{program} ended with {}\nit printed: {out}\nits errors: {err}",
        ran.status
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
    static MADE: LazyLock<PathBuf> = LazyLock::new(|| {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("capi");
        fs::create_dir_all(&directory).expect("a directory for programs");
        directory
    });
    &MADE
}

/// The directory of `libulocks_capi.so` and `libulocks_capi.a`.
pub fn libraries() -> &'static Path {
    static BUILT: LazyLock<PathBuf> = LazyLock::new(|| {
        let built = cdylib::build("ulocks-capi", env!("CARGO_TARGET_TMPDIR"), None);
        // Programs look for it by its own name. Another test may have made the link.
        let soname = elf::read(&built.join("libulocks_capi.so")).soname.expect("a name");
        let linked = symlink("libulocks_capi.so", built.join(soname));
        let is_there = |error: &std::io::Error| error.kind() == ErrorKind::AlreadyExists;
        assert!(linked.as_ref().err().is_none_or(is_there), "{linked:?}");
        built
    });
    &BUILT
}
