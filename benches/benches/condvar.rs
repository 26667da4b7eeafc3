//! Condition variables and their mutexes, side by side: see `ulocks_benches::programs::condvar`.

use ulocks_benches::programs::condvar::Condvar;
use ulocks_benches::programs::harness;

fn main() -> std::process::ExitCode {
    harness::main::<Condvar>()
}
