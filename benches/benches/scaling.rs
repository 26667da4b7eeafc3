//! How locks scale with the number of threads: see `ulocks_benches::programs::scaling`.

fn main() -> std::process::ExitCode {
    ulocks_benches::programs::scaling::main()
}
