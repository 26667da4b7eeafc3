//! `cargo xtask tsan`: the stress tests under ThreadSanitizer.
//!
//! The standard library is instrumented too. Otherwise ThreadSanitizer would not see the
//! synchronisation of its channels and of `Arc`, and would report them as races. ThreadSanitizer
//! does not understand `atomic::fence`. If a lock needs a fence, its stress test says what it does
//! instead. ThreadSanitizer cannot see what the kernel does to a word. `--cfg ulocks_tsan` compiles
//! calls that tell it.

use crate::filters;
use crate::flags::Tsan;
use crate::steps::Steps;
use crate::tools::{Missing, need, need_toolchain};
use crate::workspace::{LOCKS, Workspace, dash_p, features};
use crate::world::with_flags;
use anyhow::Context;
use std::path::Path;
use std::process::Command;
use xshell::{Shell, cmd};

/// Runs the stress tests under ThreadSanitizer.
pub fn run(flags: &Tsan, shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    let toolchain = flags.toolchain.as_deref().unwrap_or("nightly");
    let packages = workspace.select(&flags.package, "stress tests", |p| !p.tests("stress").is_empty())?;
    filters::check(&flags.filter, &packages, "stress", false)?;
    needs(toolchain)?;
    let (rustflags, args) = (rustflags(), cargo_args(toolchain, &workspace.target())?);
    let packages = [dash_p(&packages), features(&packages, &LOCKS)].concat();
    let filter = &flags.filter;
    let test = cmd!(
        shell,
        "rustup run {toolchain} cargo test {args...} {packages...} --test stress* --no-fail-fast -- {filter...}"
    );
    filters::demand_tests(filter, steps, |steps| Ok(steps.run("tsan", test, &[("RUSTFLAGS", &rustflags)])?))
}

/// Demands the toolchain and the sources that build instrumented code.
pub fn needs(toolchain: &str) -> Result<(), Missing> {
    need_toolchain(toolchain)?;
    let sysroot = read(toolchain, &["--print", "sysroot"]).unwrap_or_default();
    let sources = format!("{}/lib/rustlib/src/rust/library/Cargo.toml", sysroot.trim());
    let get = format!("rustup component add rust-src --toolchain {toolchain}");
    need("the standard library's source (rust-src)", get, &["test", "-f", &sources])
}

/// The value of `RUSTFLAGS` that adds ThreadSanitizer.
pub fn rustflags() -> String {
    with_flags("RUSTFLAGS", "-Zsanitizer=thread -Cdebuginfo=1 --cfg ulocks_tsan")
}

/// The arguments with which `cargo test` also builds the standard library, in a directory of its
/// own under `target`.
pub fn cargo_args(toolchain: &str, target: &Path) -> anyhow::Result<Vec<String>> {
    // If a target is named, cargo does not instrument build scripts and procedural macros.
    let host = host_of(toolchain)?;
    let target = target.join("tsan").to_string_lossy().into_owned();
    let args = ["-Zbuild-std", "--profile", "model", "--target", &host, "--target-dir", &target];
    Ok(args.map(str::to_owned).into())
}

/// The target that `toolchain` builds for.
pub fn host_of(toolchain: &str) -> anyhow::Result<String> {
    let version = read(toolchain, &["-vV"])?;
    Ok(host(&version).context("`rustc -vV` names no host")?.to_owned())
}

fn read(toolchain: &str, args: &[&str]) -> anyhow::Result<String> {
    let printed = Command::new("rustup").args(["run", toolchain, "rustc"]).args(args).output()?;
    Ok(String::from_utf8(printed.stdout)?)
}

fn host(version: &str) -> Option<&str> {
    version.lines().find_map(|line| line.strip_prefix("host: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_read_from_the_long_version() {
        assert_eq!(
            host("rustc 1.95.0\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\n"),
            Some("x86_64-unknown-linux-gnu")
        );
        assert_eq!(host("rustc 1.95.0"), None);
    }
}
