//! Names the shared library for the programs that are linked with it.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let number = |name| env::var(name).expect("cargo says the version");
    let (major, minor) = (number("CARGO_PKG_VERSION_MAJOR"), number("CARGO_PKG_VERSION_MINOR"));
    // What stays compatible. `cargo-c` makes the same name.
    let compatible = if major == "0" { format!("0.{minor}") } else { major };
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libulocks.so.{compatible}");
}
