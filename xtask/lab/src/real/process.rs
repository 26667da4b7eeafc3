//! Child processes of a measurement: their output, their CPU time, and an end to those that hang.

use anyhow::{Context, bail};
use std::fmt;
use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(2);
/// How long a server may take to end after it was asked to.
const STOP: Duration = Duration::from_secs(30);
/// The unit of CPU times in /proc, on every architecture that Rust's standard library supports.
const TICKS_PER_SECOND: f64 = 100.0;

/// A program that did not end in time.
#[derive(Debug)]
pub struct Hung {
    what: String,
    after: Duration,
}

impl fmt::Display for Hung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` hung: it was ended after {} s", self.what, self.after.as_secs())
    }
}

impl std::error::Error for Hung {}

/// A process in a group of its own, which ends when this is dropped.
pub struct Job {
    child: Child,
    what: String,
    output: PathBuf,
    is_over: bool,
}

/// How a process ended.
pub struct Ended {
    /// Standard output and standard error, as they came.
    pub output: String,
    pub status: ExitStatus,
    /// CPU time of the process and of its children that it waited for, in seconds.
    pub cpu: f64,
}

impl Job {
    /// Starts a program whose output goes to a file in `dir`.
    pub fn start(mut command: Command, dir: &Path) -> anyhow::Result<Self> {
        let what = command.get_program().to_string_lossy().into_owned();
        let name = Path::new(&what).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let output = dir.join(format!("{name}.log"));
        let file = File::create(&output).with_context(|| format!("cannot write {}", output.display()))?;
        command.current_dir(dir).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).process_group(0);
        let child = command.spawn().with_context(|| format!("cannot run {what}"))?;
        Ok(Self { child, what, output, is_over: false })
    }

    /// Waits for the end of the process.
    pub fn end(mut self, guard: Duration) -> anyhow::Result<Ended> {
        let begin = Instant::now();
        while !self.is_zombie() {
            if begin.elapsed() > guard {
                self.kill_group("-KILL");
                bail!(Hung { what: self.what.clone(), after: guard });
            }
            sleep(POLL);
        }
        // Its times can be read until somebody has waited for it.
        let cpu = self.cpu();
        // Children that it has left would disturb the next run. Until then its number is its own.
        self.kill_group("-KILL");
        let status = self.child.wait()?;
        self.is_over = true;
        let output = String::from_utf8_lossy(&fs::read(&self.output)?).into_owned();
        if let Some(line) = output.lines().find(|line| line.contains("cannot be preloaded")) {
            bail!("the library was not loaded: {line}");
        }
        Ok(Ended { output, status, cpu })
    }

    /// The same for a process that must succeed.
    pub fn succeed(self, guard: Duration) -> anyhow::Result<Ended> {
        let what = self.what.clone();
        let ended = self.end(guard)?;
        if !ended.status.success() {
            let lines: Vec<_> = ended.output.lines().collect();
            let last = &lines[lines.len().saturating_sub(8)..];
            bail!("`{what}` failed ({}):\n    {}", ended.status, last.join("\n    "));
        }
        Ok(ended)
    }

    /// Asks a server to end, and returns what it used.
    pub fn stop(self) -> anyhow::Result<Ended> {
        if self.is_zombie() {
            let what = self.what.clone();
            let ended = self.end(STOP)?;
            bail!("`{what}` ended by itself ({}):\n    {}", ended.status, ended.output.trim_end());
        }
        self.kill_group("-TERM");
        self.end(STOP)
    }

    /// Waits until a server has made a file.
    pub fn until_exists(&self, file: &Path, guard: Duration) -> anyhow::Result<()> {
        self.until(guard, || file.exists())
    }

    /// Waits until a server accepts connections. Its socket is there a little earlier.
    pub fn until_accepts(&self, socket: &Path, guard: Duration) -> anyhow::Result<()> {
        self.until(guard, || UnixStream::connect(socket).is_ok())
    }

    fn until(&self, guard: Duration, is_ready: impl Fn() -> bool) -> anyhow::Result<()> {
        let begin = Instant::now();
        while !is_ready() {
            if self.is_zombie() {
                bail!("`{}` ended at once:\n    {}", self.what, fs::read_to_string(&self.output)?.trim_end());
            }
            if begin.elapsed() > guard {
                bail!(Hung { what: self.what.clone(), after: guard });
            }
            sleep(POLL);
        }
        Ok(())
    }

    fn stat(&self) -> Option<Vec<String>> {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        let (_, fields) = text.rsplit_once(") ")?;
        Some(fields.split_whitespace().map(str::to_owned).collect())
    }

    fn is_zombie(&self) -> bool {
        self.stat().is_none_or(|fields| fields.first().is_some_and(|state| state == "Z"))
    }

    fn cpu(&self) -> f64 {
        // utime, stime, cutime, cstime: fields 14 to 17, of which the state is the third.
        let fields = self.stat().unwrap_or_default();
        let ticks = fields.iter().skip(11).take(4).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>();
        ticks / TICKS_PER_SECOND
    }

    fn kill_group(&self, signal: &str) {
        let group = format!("-{}", self.child.id());
        _ = Command::new("kill").args([signal, "--", &group]).stderr(Stdio::null()).status();
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.is_over {
            self.kill_group("-KILL");
            _ = self.child.wait();
        }
    }
}

/// Runs a program to its end.
pub fn run(command: Command, dir: &Path, guard: Duration) -> anyhow::Result<Ended> {
    Job::start(command, dir)?.succeed(guard)
}

/// Where a program of this name is: in a directory of `PATH`, or where Debian has its servers. A
/// path is a file that must be there.
pub fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let mut files = folders.map(|folder| folder.join(name));
    files.find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_and_failure_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let ended = run(shell("echo one; echo two >&2"), dir.path(), STOP).unwrap();
        assert_eq!(ended.output, "one\ntwo\n");
        let error = run(shell("echo reason; exit 3"), dir.path(), STOP).err().unwrap().to_string();
        assert!(error.contains("reason") && error.contains('3'), "{error}");
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let error = run(shell("sleep 1000 & wait"), dir.path(), Duration::from_millis(50)).err().unwrap();
        assert!(error.is::<Hung>(), "{error}");
    }

    #[test]
    fn a_server_that_ends_by_itself_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let job = Job::start(shell("echo no port; exit 1"), dir.path()).unwrap();
        let error = job.until_exists(&dir.path().join("socket"), STOP).unwrap_err().to_string();
        assert!(error.contains("no port"), "{error}");
    }
}
