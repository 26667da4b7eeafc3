//! `tofutex`, Long's benchmark of futexes. The program is [`ulocks_benches::programs::tofutex`].

fn main() -> std::process::ExitCode {
    ulocks_benches::programs::tofutex::main()
}
