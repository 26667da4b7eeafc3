//! Shows the semaphore arrays of a directory, as `ipcs -s` shows those of the kernel.

#[cfg(files)]
mod run;

#[cfg(files)]
fn main() -> std::process::ExitCode {
    run::main()
}

/// A model runs no programs.
#[cfg(not(files))]
fn main() {}
