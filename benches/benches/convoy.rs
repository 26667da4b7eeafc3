//! The table of Franke's mail of 2002, measured here, beside his own figures: see
//! `ulocks_benches::programs::convoy`.

use ulocks_benches::programs::convoy::Convoy;
use ulocks_benches::programs::harness;

fn main() -> std::process::ExitCode {
    harness::main::<Convoy>()
}
