//! Tells the compiler whether locks are checked, as `cfg(checking)`: on the machine they are, in
//! the model worlds they are not. On the virtual machine parts of the checker are modelled:
//! `cfg(modelled)`.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(checking, modelled)");
    let is = |model: &str| {
        ["CARGO_CFG_ULOCKS_", "CARGO_FEATURE_"]
            .iter()
            .all(|kind| env::var_os(format!("{kind}{model}")).is_some())
    };
    if !is("LOOM") && !is("VM") {
        println!("cargo::rustc-cfg=checking");
    }
    if is("VM") {
        println!("cargo::rustc-cfg=modelled");
    }
}
