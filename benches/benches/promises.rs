//! Whether the locks keep what is promised of them: see `ulocks_benches::programs::promises`.

use ulocks_benches::programs::harness;
use ulocks_benches::programs::promises::Promises;

fn main() -> std::process::ExitCode {
    harness::main::<Promises>()
}
