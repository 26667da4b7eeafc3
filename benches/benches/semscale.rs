//! One semaphore array and several threads: see `ulocks_benches::programs::semaphores::semscale`.

use ulocks_benches::programs::harness;
use ulocks_benches::programs::semaphores::semscale::Semscale;

fn main() -> std::process::ExitCode {
    harness::main::<Semscale>()
}
