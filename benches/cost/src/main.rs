//! `ulocks-cost`: what the locks would cost on many CPUs, predicted. `cargo xtask vm --cost` builds
//! and runs it.

#[cfg(all(ulocks_vm, feature = "vm"))]
fn main() -> std::process::ExitCode {
    use clap::Parser;
    match ulocks_cost::run(&ulocks_cost::Cli::parse()) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ulocks-cost: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}

#[cfg(not(all(ulocks_vm, feature = "vm")))]
fn main() -> std::process::ExitCode {
    eprintln!(
        "ulocks-cost: the locks in this program run on the machine; `cargo xtask vm --cost` builds it for the model"
    );
    std::process::ExitCode::from(2)
}
