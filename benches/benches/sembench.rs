//! The program of the seed of 2010: many threads wait, one wakes many at a time: see
//! `ulocks_benches::programs::semaphores::sembench`.

use ulocks_benches::programs::harness;
use ulocks_benches::programs::semaphores::sembench::Sembench;

fn main() -> std::process::ExitCode {
    harness::main::<Sembench>()
}
