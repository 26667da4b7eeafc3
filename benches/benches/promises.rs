//! Whether the locks keep what is promised of them: see `ulocks_benches::programs::promises`.

fn main() -> std::process::ExitCode {
    ulocks_benches::programs::promises::main()
}
