//! The program of the seed of 2010: many threads wait, one wakes many at a time: see
//! `ulocks_benches::programs::semaphores::sembench`.

fn main() -> std::process::ExitCode {
    ulocks_benches::programs::semaphores::sembench::main()
}
