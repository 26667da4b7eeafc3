//! The table of Franke's mail of 2002, measured here, beside his own figures: see
//! `ulocks_benches::programs::convoy`.

fn main() -> std::process::ExitCode {
    ulocks_benches::programs::convoy::main()
}
