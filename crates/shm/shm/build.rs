//! Tells the compiler what this world has: files that processes map, as `cfg(regions)`, on the
//! machine only; processes that die, as `cfg(processes)`, also on the virtual machine.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(regions, processes)");
    let is = |model: &str| env::var_os(format!("CARGO_CFG_ULOCKS_{model}")).is_some();
    if !is("LOOM") && !is("VM") {
        println!("cargo::rustc-cfg=regions");
    }
    // Without its feature the virtual machine is not there.
    if !is("LOOM") && (!is("VM") || env::var_os("CARGO_FEATURE_VM").is_some()) {
        println!("cargo::rustc-cfg=processes");
    }
}
