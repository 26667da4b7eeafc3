//! One semaphore array and several threads: see `ulocks_benches::sem::bench::semscale`.

fn main() -> std::process::ExitCode {
    ulocks_benches::sem::bench::semscale::main()
}
