//! See [`ulocks_benches::mails::test_mutex`].

fn main() -> std::process::ExitCode {
    ulocks_benches::mails::main::<ulocks_benches::mails::test_mutex::Arguments>()
}
