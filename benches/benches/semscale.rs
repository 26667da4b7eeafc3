//! One semaphore array and several threads: see `ulocks_benches::programs::semaphores::semscale`.

fn main() -> std::process::ExitCode {
    ulocks_benches::programs::semaphores::semscale::main()
}
