//! Runs one trial in a fresh process and sees to it that nothing of it stays behind.
//!
//! A fresh process draws new addresses, a new placement on the CPUs and new allocator state, so
//! that the spread over runs is the spread a user will see; and a trial that crashes or hangs takes
//! only itself along. Nor can a lock inherit the state of a global table from the lock before it.
//! The program executes itself with a hidden argument ([`TRIAL`], answered by [`serve`]); the order
//! goes in on stdin and the answer comes back on stdout.
//!
//! What may be left over is the trial and its workers, which are a process group: we kill it, and
//! adopt and reap its orphans, since we are their subreaper. If we are killed outright,
//! `PR_SET_PDEATHSIG` ends the trial. A trial that we end early is first asked to (SIGTERM): it
//! knows its [SysV semaphore sets](crate::subjects::semaphores::kernel_set), and removes them.
//!
//! SIGINT, SIGTERM and SIGHUP (those that are not ignored, think of `nohup`) and SIGCHLD stay
//! blocked in this program and are fetched with `sigtimedwait`: no handler, hence no race between a
//! flag and a sleep. Ctrl-C reaches only us, and we end the trial at once. Then the program writes
//! what it has and ends; a further signal waits for that.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Seek, Write};
use std::os::fd::FromRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{io, mem, ptr, thread};

/// The argument that turns this program into one trial.
pub const TRIAL: &str = "--trial";

/// How long a trial that is asked to end may take to remove its semaphore sets.
const GRACE: Duration = Duration::from_secs(1);

/// The trial's side of [`Runner::run`]: what a program does when its only argument is [`TRIAL`].
/// `carry_out` gets the order and gives the answer.
///
/// It registers with the kernel for `membarrier` while it has one thread. A program does that once
/// in its life. With threads it takes tens of milliseconds, which is as long as a trial.
pub fn serve(carry_out: impl FnOnce(&str) -> Result<String>) -> ExitCode {
    let _ = ulocks_core::membarrier::ready();
    let order = io::read_to_string(io::stdin()).context("cannot read the description of a trial");
    match order.and_then(|order| carry_out(&order)) {
        Ok(answer) => {
            print!("{answer}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What became of a trial.
#[derive(Debug)]
pub enum Outcome {
    /// It ran to its end, and this is its answer.
    Done(String),
    /// This signal asked us to stop; the trial is gone.
    Interrupted(i32),
}

/// Starts trials and clears up after them. One per program: it blocks signals and adopts orphans.
pub struct Runner {
    /// What we wait for: the end of a trial, or a reason to stop.
    signals: libc::sigset_t,
    /// What makes this program a trial.
    arguments: &'static [&'static str],
}

impl Runner {
    /// Blocks the signals that end us and becomes the parent of orphaned workers.
    pub fn new() -> Result<Self> {
        let heeded = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].into_iter().filter(|&signal| {
            // SAFETY: all-zero is a valid `sigaction`, which is written to; no new one is set.
            unsafe {
                let mut action: libc::sigaction = mem::zeroed();
                libc::sigaction(signal, ptr::null(), &mut action);
                action.sa_sigaction != libc::SIG_IGN
            }
        });
        let signals = signals(heeded.chain([libc::SIGCHLD]));
        // SAFETY: `signals` is an initialised set, the old mask is not wanted;
        // PR_SET_CHILD_SUBREAPER takes one integer and touches no memory.
        let failed = unsafe {
            libc::sigprocmask(libc::SIG_BLOCK, &signals, ptr::null_mut()) != 0
                || libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) != 0
        };
        if failed {
            return Err(io::Error::last_os_error()).context("cannot block signals and adopt orphans");
        }
        Ok(Self { signals, arguments: &[TRIAL] })
    }

    /// Has `order` carried out in a fresh process, which may take so long; an error says in one
    /// line why there is no result.
    pub fn run(&self, order: &str, limit: Duration) -> Result<Outcome> {
        let [mut input, answer, complaint] = [memory_file()?, memory_file()?, memory_file()?];
        input.write_all(order.as_bytes())?;
        input.rewind()?;
        let mut trial = spawn(self.arguments, input, answer.try_clone()?, complaint.try_clone()?)?;
        let signal = self.wait(&trial, limit);
        let does = if signal.is_none() { activity(trial.id()) } else { String::new() };
        let (status, orphans) = clear(&mut trial, signal != Some(libc::SIGCHLD))?;
        let words = first_words(&text(complaint)?);
        let said = if words.is_empty() { String::new() } else { format!("; it said: {words}") };
        match signal {
            Some(libc::SIGCHLD) if status.code() == Some(1) && !words.is_empty() => bail!("{words}"),
            Some(libc::SIGCHLD) if !status.success() => bail!("the trial ended with {status}{said}"),
            Some(libc::SIGCHLD) if orphans > 0 => bail!("{orphans} workers outlived their trial"),
            Some(libc::SIGCHLD) => Ok(Outcome::Done(text(answer)?)),
            Some(signal) => Ok(Outcome::Interrupted(signal)),
            None => {
                let limit = limit.as_secs_f64();
                bail!("the trial did not end within {limit} s and was killed: {does}{said}; it is {order}")
            }
        }
    }

    /// Sleeps until the trial has exited (SIGCHLD; it stays a zombie), another signal asks us to
    /// stop, or `limit` has passed.
    fn wait(&self, trial: &Child, limit: Duration) -> Option<i32> {
        let end = Instant::now() + limit;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let time = libc::timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ };
            // SAFETY: set and time are initialised and outlive the call; no siginfo is wanted.
            match unsafe { libc::sigtimedwait(&self.signals, ptr::null_mut(), &time) } {
                // A worker's, or that of an earlier trial.
                libc::SIGCHLD if !has_exited(trial) => {}
                // Going on after Ctrl-Z ends a wait early.
                -1 if !left.is_zero() => {}
                signal => return Some(signal).filter(|&signal| signal > 0),
            }
        }
    }
}

/// Starts this program again as a trial, in a process group of its own, with a clean signal mask.
fn spawn(arguments: &[&str], order: File, answer: File, complaint: File) -> Result<Child> {
    let parent = std::process::id();
    // Not `current_exe`: a rebuild may have replaced the file, and the numbers would come from two
    // programs.
    let mut command = Command::new("/proc/self/exe");
    command.args(arguments).stdin(order).stdout(answer).stderr(Stdio::from(complaint)).process_group(0);
    let prepare = move || {
        let none = signals([]);
        // SAFETY: `none` is an initialised set, the other calls touch no memory; all three are
        // async-signal-safe, as a child between fork and exec demands.
        unsafe {
            libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // The parent may have died before the line above.
            if libc::getppid() as u32 != parent {
                return Err(io::Error::from_raw_os_error(libc::ECHILD));
            }
        }
        Ok(())
    };
    // SAFETY: `prepare` allocates nothing and takes no lock (see inside).
    unsafe { command.pre_exec(prepare) };
    command.spawn().context("cannot start a trial process")
}

/// Asks the trial to end if it is `early`, kills what is left of its process group, and reaps the
/// trial and all orphans. Returns the trial's status and the number of orphans.
fn clear(trial: &mut Child, early: bool) -> Result<(ExitStatus, usize)> {
    let leader = trial.id() as i32;
    if early {
        // SAFETY: no pointers are involved; the trial is not reaped yet, so that its number is its.
        unsafe { libc::kill(leader, libc::SIGTERM) };
        let end = Instant::now() + GRACE;
        while !has_exited(trial) && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
    }
    // SAFETY: as above; nor can the group's number belong to another group.
    unsafe { libc::kill(-leader, libc::SIGKILL) };
    let status = trial.wait().context("cannot reap the trial")?;
    let mut orphans = 0;
    loop {
        // SAFETY: a null status pointer is allowed. The call blocks, but only for children of ours:
        // orphans of the trial, and those are dying.
        match unsafe { libc::waitpid(-1, ptr::null_mut(), 0) } {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Ok((status, orphans)),
            _ => orphans += 1,
        }
    }
}

/// Whether the trial is a zombie. It stays one, so that its process group keeps its number until
/// [`clear`] is done.
fn has_exited(trial: &Child) -> bool {
    state(&format!("/proc/{}", trial.id())) == Some('Z')
}

/// The state of a process or a thread, by the folder of it. It follows the name, in brackets.
pub(crate) fn state(folder: &str) -> Option<char> {
    fs::read_to_string(format!("{folder}/stat")).ok()?.rsplit(") ").next()?.chars().next()
}

/// What the threads of the trial and of its worker processes do at the moment.
fn activity(trial: u32) -> String {
    let (mut processes, mut counts) = (vec![trial], BTreeMap::<_, usize>::new());
    while let Some(process) = processes.pop() {
        for thread in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
            let file = |name| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
            processes.extend(file("children").split_whitespace().filter_map(|id| id.parse::<u32>().ok()));
            let does = match (state(&thread.path().to_string_lossy()), file("wchan").as_str()) {
                (Some('R'), _) => "run".to_owned(),
                // 0 if it is a secret.
                (_, "" | "0") => "wait in the kernel".to_owned(),
                (_, place) => format!("wait in {place}"),
            };
            *counts.entry(does).or_default() += 1;
        }
    }
    counts.iter().map(|(does, n)| format!("{n} of its threads {does}")).collect::<Vec<_>>().join(", ")
}

/// What a trial said: one line says what is wrong, of a panic two; a backtrace behind that has no
/// place in a table.
fn first_words(complaint: &str) -> String {
    let lines = complaint.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.take(2).collect::<Vec<_>>().join("; ")
}

/// The set of these signals.
fn signals(list: impl IntoIterator<Item = i32>) -> libc::sigset_t {
    // SAFETY: all-zero is a valid `sigset_t` on Linux, and `sigemptyset` and `sigaddset` write only
    // to it.
    unsafe {
        let mut set = mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in list {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

/// A file without a name: unlike a pipe it needs no reader while the trial runs.
fn memory_file() -> Result<File> {
    // SAFETY: the name is a C string that outlives the call.
    let fd = unsafe { libc::memfd_create(c"trial".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error()).context("cannot create a file in memory (memfd_create)");
    }
    // SAFETY: the descriptor is new and ours alone.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Everything in `file`.
fn text(mut file: File) -> Result<String> {
    file.rewind()?;
    Ok(io::read_to_string(file)?)
}

#[cfg(test)]
mod tests;
