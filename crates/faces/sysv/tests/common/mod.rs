//! Builds the library and C programs, and runs programs with and without the library.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use ulocks_testkit::cdylib;

/// The library. Users run the optimised one; the other one checks its arithmetic.
fn library(optimised: bool) -> &'static Path {
    static LIBRARIES: [OnceLock<PathBuf>; 2] = [OnceLock::new(), OnceLock::new()];
    LIBRARIES[usize::from(optimised)].get_or_init(|| {
        let profile = if optimised { "release" } else { "debug" };
        let folder = cdylib::build("ulocks-sysv", env!("CARGO_TARGET_TMPDIR"), Some(profile));
        folder.join("libulocks_sysv.so")
    })
}

/// A folder of this test's own, emptied.
pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sysv-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the target folder is writable");
    folder
}

/// Compiles a C program of `tests` into `folder`.
pub fn compile(folder: &Path, sources: &[&str]) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let program = folder.join("program");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let status = Command::new(compiler)
        .args(["-O1", "-Wall", "-Werror", "-pthread", "-fexceptions", "-o"])
        .arg(&program)
        .args(sources.iter().map(|source| tests.join(source)))
        .status()
        .expect("a C compiler is installed");
    assert!(status.success(), "the C program does not compile");
    program
}

/// A directory for arrays, in memory if possible. It is removed when dropped.
#[derive(Debug)]
pub struct Arrays(pub PathBuf);

impl Arrays {
    /// A new one.
    pub fn new(name: &str) -> Self {
        let base = Path::new("/dev/shm");
        let base = if base.is_dir() { base.to_path_buf() } else { std::env::temp_dir() };
        let path = base.join(format!("ulocks-test-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    #[allow(dead_code, reason = "not all tests have several users")]
    /// Makes the directory, for all users. The library makes one for its user alone.
    pub fn let_in_all_users(&self) {
        std::fs::create_dir(&self.0).expect("the directory is new");
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
        std::fs::set_permissions(&self.0, all).expect("the directory is this test's");
    }
}

impl Drop for Arrays {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A command that runs `program` with the library, with or without optimisation.
pub fn preloaded(program: &Path, arrays: &Arrays, optimised: bool) -> Command {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", library(optimised)).env("ULOCKS_SYSV_DIR", &arrays.0).stdin(Stdio::null());
    command
}

/// Runs a command, which must succeed, and returns what it prints.
pub fn printed(command: &mut Command) -> String {
    let output = ulocks_testkit::limit::output(command);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    assert_eq!(errors, "", "{command:?}");
    String::from_utf8(output.stdout).expect("the program prints text")
}
