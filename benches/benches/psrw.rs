//! The seed's runs of a reader-writer lock with classes, and two properties: see
//! `ulocks_benches::programs::psrw`.

fn main() -> std::process::ExitCode {
    ulocks_benches::programs::psrw::main()
}
