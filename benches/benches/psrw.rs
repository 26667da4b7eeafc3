//! The seed's runs of a reader-writer lock with classes, and two properties: see
//! `ulocks_benches::programs::psrw`.

use ulocks_benches::programs::harness;
use ulocks_benches::programs::psrw::Psrw;

fn main() -> std::process::ExitCode {
    harness::main::<Psrw>()
}
