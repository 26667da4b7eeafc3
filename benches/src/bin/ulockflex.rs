//! `ulockflex`, Franke's benchmark of user-level locks. The program is
//! [`ulocks_benches::programs::ulockflex`].

fn main() -> std::process::ExitCode {
    ulocks_benches::programs::ulockflex::main()
}
