//! Whether the locks keep what is promised of them: see `ulocks_benches::promises`.

fn main() -> std::process::ExitCode {
    ulocks_benches::promises::main()
}
