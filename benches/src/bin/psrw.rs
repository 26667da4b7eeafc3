//! See [`ulocks_benches::mails::psrw`].

fn main() -> std::process::ExitCode {
    ulocks_benches::mails::main::<ulocks_benches::mails::psrw::Arguments>()
}
