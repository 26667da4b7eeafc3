//! Condition variables and their mutexes, side by side: see `ulocks_benches::condvar::bench`.

fn main() -> std::process::ExitCode {
    ulocks_benches::condvar::bench::main()
}
