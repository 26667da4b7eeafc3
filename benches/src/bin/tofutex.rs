//! See [`ulocks_benches::mails::tofutex`].

fn main() -> std::process::ExitCode {
    ulocks_benches::mails::tofutex::main()
}
