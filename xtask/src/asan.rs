//! How the stress tests are built with AddressSanitizer, for `cargo xtask long`. It finds accesses
//! to memory that was freed or unmapped. An access to a lock after its release may be such an
//! access.
//!
//! The standard library is not instrumented. Leaks are not reported, since some tests forget
//! guards.

use crate::tools::{Missing, need_toolchain};
use crate::tsan;
use crate::world::with_flags;
use std::path::Path;

/// The variable that tells the runtime of AddressSanitizer not to report leaks.
pub const OPTIONS: (&str, &str) = ("ASAN_OPTIONS", "detect_leaks=0");

/// Demands the toolchain that builds instrumented code.
pub fn needs(toolchain: &str) -> Result<(), Missing> {
    need_toolchain(toolchain)
}

/// The value of `RUSTFLAGS` that adds AddressSanitizer.
pub fn rustflags() -> String {
    with_flags("RUSTFLAGS", "-Zsanitizer=address -Cdebuginfo=1")
}

/// The arguments with which `cargo test` builds in a directory of its own under `target`.
pub fn cargo_args(toolchain: &str, target: &Path) -> anyhow::Result<Vec<String>> {
    // If a target is named, cargo does not instrument build scripts and procedural macros.
    let host = tsan::host_of(toolchain)?;
    let target = target.join("asan").to_string_lossy().into_owned();
    let args = ["--profile", "model", "--target", &host, "--target-dir", &target];
    Ok(args.map(str::to_owned).into())
}
