//! Compiles the part that must be C: the frames in which a thread may be cancelled.

fn main() {
    println!("cargo::rerun-if-changed=src/wait.c");
    cc::Build::new()
        .file("src/wait.c")
        .flag("-std=gnu11")
        // A cancelled thread unwinds through these frames.
        .flag("-fexceptions")
        .flag("-fasynchronous-unwind-tables")
        .flag("-fvisibility=hidden")
        .warnings_into_errors(true)
        .compile("ulocks_pthread_wait");
}
