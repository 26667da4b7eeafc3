//! See [`ulocks_benches::mails::ulockflex`].

fn main() -> std::process::ExitCode {
    ulocks_benches::mails::main::<ulocks_benches::mails::ulockflex::Arguments>()
}
