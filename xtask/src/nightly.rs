//! What the tools of the nightly toolchain need, and how they build: Miri, ThreadSanitizer,
//! AddressSanitizer, libFuzzer.

use crate::tools::{Missing, need};
use crate::workspace::{LOCKS, Package, Workspace, dash_p, features};
use crate::world::with_flags;
use anyhow::Context;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

/// The toolchain for what stable Rust cannot do.
pub const NIGHTLY: &str = "nightly";
/// The packages that do not run under Miri: their threads are coroutines.
const SWITCH_STACKS: [&str; 2] = ["ulocks-vm", "ulocks-vm-cost"];
/// The workspace of the fuzz targets.
pub const FUZZ: &str = "fuzz";

fn need_nightly() -> Result<(), Missing> {
    need("rustup (it selects the nightly toolchain)", "https://rustup.rs", &["rustup", "--version"])?;
    let get = format!("rustup toolchain install {NIGHTLY}");
    need("a nightly toolchain", get, &["rustup", "run", NIGHTLY, "rustc", "--version"])
}

/// A sanitizer, with which the stress tests are built.
///
/// ThreadSanitizer needs an instrumented standard library. Otherwise it would not see the
/// synchronisation of channels and of `Arc`, and would report them as races. It cannot see what the
/// kernel does to a word: `--cfg ulocks_tsan` compiles calls that tell it.
///
/// AddressSanitizer finds accesses to memory that was freed or unmapped. An access to a lock after
/// its release may be such an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sanitizer {
    /// ThreadSanitizer.
    Thread,
    /// AddressSanitizer.
    Address,
}

impl Sanitizer {
    /// The variable that tells the runtime of AddressSanitizer not to report leaks: some tests
    /// forget guards.
    pub const NO_LEAKS: (&str, &str) = ("ASAN_OPTIONS", "detect_leaks=0");

    /// Demands the toolchain, and the sources that are instrumented.
    pub fn needs(self) -> Result<(), Missing> {
        need_nightly()?;
        if self == Self::Address {
            return Ok(());
        }
        let sysroot = rustc(&["--print", "sysroot"]).unwrap_or_default();
        let sources = format!("{}/lib/rustlib/src/rust/library/Cargo.toml", sysroot.trim());
        let get = format!("rustup component add rust-src --toolchain {NIGHTLY}");
        need("the standard library's source (rust-src)", get, &["test", "-f", &sources])
    }

    /// The value of `RUSTFLAGS`.
    pub fn rustflags(self) -> String {
        with_flags(
            "RUSTFLAGS",
            match self {
                Self::Thread => "-Zsanitizer=thread -Cdebuginfo=1 --cfg ulocks_tsan",
                Self::Address => "-Zsanitizer=address -Cdebuginfo=1",
            },
        )
    }

    /// The arguments with which `cargo test` builds in a directory of its own under `target`.
    pub fn cargo_args(self, target: &Path) -> anyhow::Result<Vec<String>> {
        let (name, build_std) = match self {
            Self::Thread => ("tsan", Some("-Zbuild-std")),
            Self::Address => ("asan", None),
        };
        // If a target is named, cargo does not instrument build scripts and procedural macros.
        let host = host(&rustc(&["-vV"])?).context("`rustc -vV` names no host")?.to_owned();
        let target = target.join(name).to_string_lossy().into_owned();
        let args = ["--profile", "model", "--target", &host, "--target-dir", &target];
        Ok(build_std.into_iter().chain(args).map(str::to_owned).collect())
    }
}

fn rustc(args: &[&str]) -> anyhow::Result<String> {
    let printed = Command::new("rustup").args(["run", NIGHTLY, "rustc"]).args(args).output()?;
    Ok(String::from_utf8(printed.stdout)?)
}

fn host(version: &str) -> Option<&str> {
    version.lines().find_map(|line| line.strip_prefix("host: "))
}

/// Demands Miri.
pub fn needs_miri() -> Result<(), Missing> {
    need_nightly()?;
    let get = format!("rustup component add miri rust-src --toolchain {NIGHTLY}");
    need("Miri", get, &["rustup", "run", NIGHTLY, "cargo", "miri", "--version"])
}

/// The packages `names`, or all that Miri can run.
pub fn packages_for_miri<'a>(workspace: &'a Workspace, names: &[String]) -> anyhow::Result<Vec<&'a Package>> {
    workspace.select(names, "tests for Miri", |p| p.is_public() && !SWITCH_STACKS.contains(&p.name.as_str()))
}

/// The arguments of rustup that run `cargo miri test` for `packages`, and the value of `MIRIFLAGS`
/// for the schedules `seeds`.
pub fn miri_args(workspace: &Workspace, packages: &[&Package], seeds: Range<u64>) -> (Vec<String>, String) {
    let target = workspace.target().join("miri").to_string_lossy().into_owned();
    let test = ["run", NIGHTLY, "cargo", "miri", "test", "--target-dir", &target].map(str::to_owned);
    let args = [&test[..], &dash_p(packages), &features(packages, &LOCKS)].concat();
    let seeds = format!("-Zmiri-many-seeds={}..{}", seeds.start, seeds.end);
    (args, with_flags("MIRIFLAGS", &seeds))
}

/// `cargo miri test` for `packages` and the schedules `seeds`.
pub fn miri(workspace: &Workspace, packages: &[&Package], seeds: Range<u64>) -> Command {
    let (args, flags) = miri_args(workspace, packages, seeds);
    let mut command = Command::new("rustup");
    command.current_dir(&workspace.root).args(args).env("MIRIFLAGS", flags);
    command
}

/// Demands cargo-fuzz, and the toolchain that it needs.
pub fn needs_fuzz() -> Result<(), Missing> {
    need_nightly()?;
    need("cargo-fuzz", "cargo install cargo-fuzz", &["cargo", "fuzz", "--version"])
}

/// All fuzz targets.
pub fn fuzz_targets(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    Ok(Package::read(workspace.root.join(FUZZ))?.bins())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_read_from_the_long_version() {
        assert_eq!(host("rustc 1.95.0\nhost: x86_64-unknown-linux-gnu\n"), Some("x86_64-unknown-linux-gnu"));
        assert_eq!(host("rustc 1.95.0"), None);
    }

    #[test]
    fn the_fuzz_targets_are_those_of_the_manifest() {
        let targets = fuzz_targets(&Workspace::load().unwrap()).unwrap();
        assert!(targets.contains(&"schedules".to_owned()), "{targets:?}");
    }

    #[test]
    fn miri_is_given_its_schedules_and_the_features() {
        let workspace = Workspace::load().unwrap();
        let packages = workspace.select(&["ulocks-unfair".into()], "a manifest", |_| true).unwrap();
        let miri = format!("{:?}", miri(&workspace, &packages, 64..128));
        assert!(miri.contains("-Zmiri-many-seeds=64..128") && miri.contains("parking_lot"), "{miri}");
    }
}
