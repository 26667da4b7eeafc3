//! Runs a program under a seccomp profile of Docker: `ulocks-confined PROFILE PROGRAM ARGUMENTS..`.
//! Without a program it prints which calls of the family the profile refuses, and how many.

#[cfg(all(world = "machine", target_arch = "x86_64"))]
mod docker;

#[cfg(all(world = "machine", target_arch = "x86_64"))]
fn main() -> std::process::ExitCode {
    use docker::{Profile, refused};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, ExitCode};

    let mut arguments = std::env::args_os().skip(1);
    let name = arguments.next().unwrap_or_default();
    let Some(profile) = name.to_str().and_then(Profile::named) else {
        eprintln!("usage: ulocks-confined docker-old|docker-new [PROGRAM ARGUMENTS..]");
        return ExitCode::from(2);
    };
    profile.confine();
    let Some(program) = arguments.next() else {
        let refused = refused();
        println!("{} {}", refused.join(","), refused.len());
        return ExitCode::SUCCESS;
    };
    let error = Command::new(&program).args(arguments).exec();
    eprintln!("{}: {error}", program.display());
    ExitCode::from(126)
}

#[cfg(not(all(world = "machine", target_arch = "x86_64")))]
fn main() -> std::process::ExitCode {
    eprintln!("ulocks-confined knows the numbers of x86-64's system calls only");
    std::process::ExitCode::from(2)
}
