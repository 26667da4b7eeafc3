//! Tells the library which compiler built it; reports quote it.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().ok();
    let version = version.and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    println!("cargo::rustc-env=ULOCKS_BENCHES_RUSTC={}", version.trim());
}
