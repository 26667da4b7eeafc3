//! Shows what is in a region, and repairs one that no process uses: see `HELP`.

#[cfg(regions)]
mod text;

#[cfg(regions)]
mod run {
    use super::text;
    use std::ffi::OsString;
    use std::io::{self, Write};
    use std::path::{Path, PathBuf};
    use std::process::ExitCode;
    use ulocks_shm::{RegionError, inspect};

    const HELP: &str = "\
Shows what is in a region of ulocks-shm, and repairs one that no process uses.

usage: ulocks-region list FILE
       ulocks-region repair FILE
       ulocks-region --help | --version

list    shows the header, the threads that take part, and the locks that a directory names: which
        threads hold them, how many wait, and whether a holder has died. It takes no lock, so it
        disturbs nobody, and what it shows may be over when it is read. A region without a directory
        has no names: its locks cannot be shown without the type of its root. Nor can the holder of a
        plain lock, which does not record it.
repair  frees the slots of dead threads, unlocks the directories, mends the epoch and the state of
        the header, and begins the next epoch. It refuses if a process is attached. All other locks
        are unlocked by the next program that opens the region: it knows their types. A file whose
        creator has died before the region was done is made empty, for the next creator.

exit code  0  done, and no damage found
           1  no region, or damaged: the text says what to do
           2  wrong arguments
           3  not repaired, since processes are attached
";

    enum Command {
        Help,
        Version,
        List { path: PathBuf },
        Repair { path: PathBuf },
    }

    /// What the arguments say, or what is wrong with them.
    fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Command, String> {
        let (mut words, mut options_end) = (Vec::new(), false);
        for argument in arguments {
            match argument.to_str() {
                Some("--") if !options_end => options_end = true,
                Some("--help" | "-h") if !options_end => return Ok(Command::Help),
                Some("--version" | "-V") if !options_end => return Ok(Command::Version),
                Some(option) if !options_end && option.starts_with('-') && option != "-" => {
                    return Err(format!("there is no option {option:?}"));
                }
                _ => words.push(argument),
            }
        }
        let mut words = words.into_iter();
        let command = words.next().ok_or("say list or repair")?;
        let path = words.next().map(PathBuf::from);
        if let Some(more) = words.next() {
            return Err(format!("one file at a time, and not {more:?} too"));
        }
        match (command.to_str(), path) {
            (Some("list"), Some(path)) => Ok(Command::List { path }),
            (Some("repair"), Some(path)) => Ok(Command::Repair { path }),
            (Some("list" | "repair"), None) => Err("which file?".to_string()),
            _ => Err(format!("there is no command {command:?}: say list or repair")),
        }
    }

    fn list(path: &Path, out: &mut impl Write) -> io::Result<Result<bool, RegionError>> {
        let report = match inspect::look(path) {
            Ok(report) => report,
            Err(error) => return Ok(Err(error)),
        };
        text::report(&report, path, out)?;
        Ok(Ok(!report.is_damaged()))
    }

    fn repair(path: &Path, out: &mut impl Write) -> io::Result<Result<bool, RegionError>> {
        let repaired = match inspect::repair(path) {
            Ok(repaired) => repaired,
            Err(error) => return Ok(Err(error)),
        };
        text::repaired(repaired.as_ref(), path, out)?;
        Ok(Ok(repaired.is_none_or(|repaired| repaired.damage.is_empty())))
    }

    pub fn main() -> ExitCode {
        let command = match parse(std::env::args_os().skip(1)) {
            Ok(command) => command,
            Err(error) => {
                eprintln!("ulocks-region: {error}; see ulocks-region --help");
                return ExitCode::from(2);
            }
        };
        let mut out = io::stdout().lock();
        let (path, done) = match &command {
            Command::Help => (None, write!(out, "{HELP}").map(|()| Ok(true))),
            Command::Version => {
                (None, writeln!(out, "ulocks-region {}", env!("CARGO_PKG_VERSION")).map(|()| Ok(true)))
            }
            Command::List { path } => (Some(path), list(path, &mut out)),
            Command::Repair { path } => (Some(path), repair(path, &mut out)),
        };
        match done {
            Ok(Ok(true)) => ExitCode::SUCCESS,
            Ok(Ok(false)) => ExitCode::from(1),
            Ok(Err(error)) => {
                let path = path.map(|path| path.display().to_string()).unwrap_or_default();
                eprintln!("ulocks-region: {}: {error}", path.escape_debug());
                ExitCode::from(if matches!(error, RegionError::InUse) { 3 } else { 1 })
            }
            // A reader that has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("ulocks-region: cannot write: {error}");
                ExitCode::from(1)
            }
        }
    }
}

#[cfg(regions)]
fn main() -> std::process::ExitCode {
    run::main()
}

/// The worlds of the models have no files to map.
#[cfg(not(regions))]
fn main() {}
