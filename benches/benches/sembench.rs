//! The program of the seed of 2010: many threads wait, one wakes many at a time: see
//! `ulocks_benches::sem::bench::sembench`.

fn main() -> std::process::ExitCode {
    ulocks_benches::sem::bench::sembench::main()
}
