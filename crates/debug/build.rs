//! Tells the compiler whether locks are checked, as `cfg(checking)`: on the machine they are, in
//! the model worlds they are not.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(checking)");
    let is = |model: &str| {
        ["CARGO_CFG_ULOCKS_", "CARGO_FEATURE_"]
            .iter()
            .all(|kind| env::var_os(format!("{kind}{model}")).is_some())
    };
    if !is("LOOM") && !is("VM") {
        println!("cargo::rustc-cfg=checking");
    }
}
