//! `test-mutex`, Molnar's benchmark of mutexes. The program is
//! [`ulocks_benches::programs::test_mutex`].

fn main() -> std::process::ExitCode {
    ulocks_benches::programs::test_mutex::main()
}
