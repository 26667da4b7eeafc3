//! Builds the library under test.
//!
//! Cargo builds no `cdylib` for the tests of its own package, so the tests ask for it. They ask for
//! the profile and the target that they were built with.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

const FILE: &str = "libulocks_pthread.so";

/// The library under test.
pub fn library() -> &'static Path {
    static BUILT: LazyLock<PathBuf> = LazyLock::new(build);
    &BUILT
}

fn build() -> PathBuf {
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--quiet", "--lib", "--package", env!("CARGO_PKG_NAME")]);
    command.args(["--message-format", "json-render-diagnostics"]);
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
    let messages = String::from_utf8_lossy(&output.stdout);
    let mut paths = messages.split('"').filter(|text| text.ends_with(&format!("/{FILE}")));
    let path = paths.next().unwrap_or_else(|| panic!("{command:?} has built no {FILE}:\n{errors}"));
    PathBuf::from(path)
}
