//! How the stress tests are built with AddressSanitizer, for `cargo xtask long`: accesses to memory
//! that was freed or unmapped, which a touch after a release may be.
//!
//! The standard library stays as it comes. Leaks are not looked for: some tests forget guards.

use crate::tools::{Missing, need_toolchain};
use crate::tsan;
use crate::world::with_flags;
use std::path::Path;

/// What tells the runtime what not to report.
pub const OPTIONS: (&str, &str) = ("ASAN_OPTIONS", "detect_leaks=0");

/// Demands what instrumented code is built with.
pub fn needs(toolchain: &str) -> Result<(), Missing> {
    need_toolchain(toolchain)
}

/// The value of `RUSTFLAGS` that instruments.
pub fn rustflags() -> String {
    with_flags("RUSTFLAGS", "-Zsanitizer=address -Cdebuginfo=1")
}

/// What `cargo test` needs to build in its own directory under `target`.
pub fn cargo_args(toolchain: &str, target: &Path) -> anyhow::Result<Vec<String>> {
    // With a target named, build scripts and procedural macros are not instrumented.
    let host = tsan::host_of(toolchain)?;
    let target = target.join("asan").to_string_lossy().into_owned();
    let args = ["--profile", "model", "--target", &host, "--target-dir", &target];
    Ok(args.map(str::to_owned).into())
}
