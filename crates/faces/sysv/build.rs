//! Names the library in itself, as its file is named.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libulocks_sysv.so");
}
