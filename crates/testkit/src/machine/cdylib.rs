//! Builds a library for the tests of its package, since cargo builds neither a `cdylib` nor a
//! `staticlib` for these.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Builds the library of `package` with the target that the test was built with. `profile` is that
/// of the test, if none is named, and `tmp` is what cargo says in `CARGO_TARGET_TMPDIR`. Returns
/// the folder of the library.
///
/// # Panics
/// If it does not build. How long a compiler takes says nothing of the test, so only the limit of
/// the whole test holds.
pub fn build(package: &str, tmp: &str, profile: Option<&str>) -> PathBuf {
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--quiet", "--lib", "--package", package]);
    command.current_dir(env!("CARGO_MANIFEST_DIR"));

    // .../target[/TRIPLE]/PROFILE/deps/TEST, and .../target/tmp
    let target = Path::new(tmp).parent().expect("a target directory");
    let test = env::current_exe().expect("the path of the test");
    let mut folder = test.parent().and_then(Path::parent).expect("the directory of a profile").to_owned();
    if let Some(profile) = profile {
        folder.set_file_name(profile);
    }
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    let profile = name(&folder);
    command.args(["--profile", if profile == "debug" { "dev" } else { &profile }]);
    command.arg("--target-dir").arg(target);
    let above = folder.parent().expect("a target directory");
    if above != target {
        command.args(["--target", &name(above)]);
    }

    let built = command.stdin(Stdio::null()).output().expect("cargo can be started");
    assert!(built.status.success(), "{command:?} failed:\n{}", String::from_utf8_lossy(&built.stderr));
    folder
}
