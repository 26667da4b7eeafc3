//! Tells the compiler whether this world has regions, as `cfg(regions)`: files that processes map.
//! The machine has, the models have not.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(regions)");
    let is_set = |variable: String| env::var_os(variable).is_some();
    let is_model = ["LOOM", "VM"].into_iter().any(|model| is_set(format!("CARGO_CFG_ULOCKS_{model}")));
    if !is_model {
        println!("cargo::rustc-cfg=regions");
    }
}
