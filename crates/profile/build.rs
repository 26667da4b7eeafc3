//! Tells the compiler whether locks are counted, as `cfg(counting)`: on the machine they are. In
//! the model worlds the crate is empty.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(counting)");
    if ["LOOM", "VM"].iter().all(|model| env::var_os(format!("CARGO_CFG_ULOCKS_{model}")).is_none()) {
        println!("cargo::rustc-cfg=counting");
    }
}
