//! Names the library in itself, as its file is named. Tells the compiler what this world has: files
//! that processes map, as `cfg(files)`, on the machine only.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libulocks_sysv.so");
    println!("cargo::rustc-check-cfg=cfg(files)");
    let is = |name: &str| env::var_os(name).is_some();
    if !(is("CARGO_CFG_ULOCKS_VM") && is("CARGO_FEATURE_VM")) {
        println!("cargo::rustc-cfg=files");
    }
}
