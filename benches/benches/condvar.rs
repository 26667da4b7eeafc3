//! Condition variables and their mutexes, side by side: see `ulocks_benches::programs::condvar`.

fn main() -> std::process::ExitCode {
    ulocks_benches::programs::condvar::main()
}
