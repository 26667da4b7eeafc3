//! The seed's runs of a reader-writer lock with classes, and two properties: see
//! `ulocks_benches::rw::bench`.

fn main() -> std::process::ExitCode {
    ulocks_benches::rw::bench::main()
}
