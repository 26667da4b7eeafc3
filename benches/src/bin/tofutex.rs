//! See [`ulocks_benches::mails::tofutex`].

fn main() -> std::process::ExitCode {
    ulocks_benches::mails::main::<ulocks_benches::mails::tofutex::Arguments>()
}
