//! `ulockflex`, Franke's benchmark of user-level locks. The program is [`ulocks_benches::flex`].

fn main() -> std::process::ExitCode {
    ulocks_benches::flex::main()
}
