//! See [`ulocks_benches::mails::sembench`].

fn main() -> std::process::ExitCode {
    ulocks_benches::mails::main::<ulocks_benches::mails::sembench::Arguments>()
}
