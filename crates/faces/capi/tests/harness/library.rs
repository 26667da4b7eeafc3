//! Builds the libraries under test.
//!
//! Cargo builds neither a `cdylib` nor a `staticlib` for the tests of its own package, so the tests
//! ask for them. They ask for the profile and the target that they were built with.

use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The directory of `libulocks_capi.so` and `libulocks_capi.a`.
pub fn directory() -> &'static Path {
    static BUILT: LazyLock<PathBuf> = LazyLock::new(build);
    &BUILT
}

fn build() -> PathBuf {
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--quiet", "--lib", "--package", env!("CARGO_PKG_NAME")]);
    command.args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);

    // .../target[/TRIPLE]/PROFILE/deps/TEST, and .../target/tmp
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a target directory");
    let test = std::env::current_exe().expect("the path of the test");
    let profile = test.parent().and_then(Path::parent).expect("the directory of a profile");
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    let profile_name = name(profile);
    command.args(["--profile", if profile_name == "debug" { "dev" } else { &profile_name }]);
    command.arg("--target-dir").arg(target);
    let above = profile.parent().expect("a target directory");
    if above != target {
        command.args(["--target", &name(above)]);
    }

    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed:\n{errors}");
    for file in ["libulocks_capi.so", "libulocks_capi.a"] {
        let path = profile.join(file);
        assert!(path.is_file(), "{command:?} has built no {}", path.display());
    }
    // Programs look for it by its own name. Another test may have made the link.
    let soname = super::elf::read(&profile.join("libulocks_capi.so")).soname.expect("a name");
    let linked = symlink("libulocks_capi.so", profile.join(soname));
    let is_there = |error: &std::io::Error| error.kind() == ErrorKind::AlreadyExists;
    assert!(linked.as_ref().err().is_none_or(is_there), "{linked:?}");
    profile.to_owned()
}
