//! See [`ulocks_benches::mails::sembench`].

fn main() -> std::process::ExitCode {
    ulocks_benches::mails::sembench::main()
}
