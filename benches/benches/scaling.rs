//! How locks scale with the number of threads: see `ulocks_benches::scaling`.

fn main() -> std::process::ExitCode {
    ulocks_benches::scaling::main()
}
