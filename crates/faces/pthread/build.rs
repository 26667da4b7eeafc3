//! Compiles the part that must be C: the frames in which a thread may be cancelled. Refuses a libc
//! whose locks this library does not know.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=src/wait.c");
    let libc = env::var("CARGO_CFG_TARGET_ENV").unwrap_or_default();
    if libc != "gnu" {
        println!(
            "cargo::error=ulocks-pthread replaces the locks of glibc, and this target's libc is \
             `{libc}`: build it for a target that ends in -gnu"
        );
        return;
    }
    // As its file is named.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libulocks_pthread.so");
    cc::Build::new()
        .file("src/wait.c")
        .flag("-std=gnu11")
        // What the unwinder finds depends on these. So tests of any profile have those of a
        // release.
        .opt_level(2)
        .force_frame_pointer(false)
        // A cancelled thread unwinds through these frames.
        .flag("-fexceptions")
        .flag("-fasynchronous-unwind-tables")
        .flag("-fvisibility=hidden")
        .warnings_into_errors(true)
        .compile("ulocks_pthread_wait");
}
