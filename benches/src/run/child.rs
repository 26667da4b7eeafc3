//! Runs one trial in a fresh process and sees to it that nothing of it stays behind.
//!
//! A fresh process draws new addresses, a new placement on the CPUs and new allocator state, so
//! that the spread over runs is the spread a user will see; and a trial that crashes or hangs takes
//! only itself along. Nor can a lock inherit the state of a global table from the lock before it.
//! The program executes itself with a hidden argument ([`TRIAL`], answered by [`serve`]); the order
//! goes in on stdin and the result comes back on stdout, both as JSON.
//!
//! What may be left over is the trial and its workers, which are a process group: we kill it, and
//! adopt and reap its orphans, since we are their subreaper. If we are killed outright,
//! `PR_SET_PDEATHSIG` ends the trial. A SysV semaphore set is removed if it appeared during the
//! trial and a process of the trial was the last to use it. It stays if we die by SIGKILL.
//!
//! SIGINT, SIGTERM and SIGHUP (those that are not ignored, think of `nohup`) and SIGCHLD stay
//! blocked in this program and are fetched with `sigtimedwait`: no handler, hence no race between a
//! flag and a sleep. Ctrl-C reaches only us, and we kill the trial at once. Then the program writes
//! what it has and ends; a further signal waits for that.

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::fd::FromRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{io, mem, ptr};

/// The argument that turns this program into one trial.
pub const TRIAL: &str = "--trial";

/// How long a trial that is past its work, and that we are to stop, may take to remove a semaphore
/// set: the last process that has used the set may be reaped, and then we do not know it.
const GRACE: Duration = Duration::from_secs(1);

/// What can be run in a process of its own.
pub trait Task: Serialize + DeserializeOwned {
    /// What comes back.
    type Answer: Serialize + DeserializeOwned;

    /// Does it. Called in the fresh process.
    fn carry_out(&self) -> Result<Self::Answer>;

    /// How long its workers work.
    fn own_time(&self) -> Duration;

    /// How many workers it creates.
    fn workers(&self) -> u32;

    /// How long it may take: its own time, several times over for a machine that is busy, and what
    /// it costs to create and reap the workers.
    fn limit(&self) -> Duration {
        self.own_time() * 4 + Duration::from_millis(60_000 + u64::from(self.workers()) * 50)
    }
}

/// The trial's side of [`Runner::run`]: what a program does when its only argument is [`TRIAL`].
///
/// It registers with the kernel for `membarrier` while it has one thread. A program does that once
/// in its life. With threads it takes tens of milliseconds, which is as long as a trial.
pub fn serve<T: Task>() -> ExitCode {
    let _ = ulocks_core::membarrier::ready();
    let serve = || -> Result<()> {
        let task: T =
            serde_json::from_reader(io::stdin().lock()).context("not the description of a trial")?;
        let answer = task.carry_out()?;
        serde_json::to_writer(io::stdout().lock(), &answer)?;
        Ok(())
    };
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What became of a trial.
#[derive(Debug)]
pub enum Outcome<A> {
    /// It ran to its end.
    Done(A),
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
        let heeded =
            [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].into_iter().filter(|&signal| !is_ignored(signal));
        let signals = signals(heeded.chain([libc::SIGCHLD]));
        // SAFETY: `signals` is an initialised set; the old mask is not wanted.
        let blocked = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &signals, ptr::null_mut()) };
        if blocked != 0 {
            return Err(io::Error::from_raw_os_error(blocked)).context("cannot block signals");
        }
        // SAFETY: PR_SET_CHILD_SUBREAPER takes one integer and touches no memory.
        if unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) } != 0 {
            return Err(io::Error::last_os_error()).context("cannot adopt orphaned workers");
        }
        Ok(Self { signals, arguments: &[TRIAL] })
    }

    /// Runs `task` in a fresh process; an error says in one line why there is no result.
    pub fn run<T: Task>(&self, task: &T) -> Result<Outcome<T::Answer>> {
        let order = serde_json::to_string(task)?;
        Ok(match self.run_order(&order, task.own_time(), task.limit())? {
            Outcome::Done(answer) => {
                Outcome::Done(serde_json::from_str(&answer).context("the trial's answer is garbled")?)
            }
            Outcome::Interrupted(signal) => Outcome::Interrupted(signal),
        })
    }

    /// What does not depend on the kind of the task, and is compiled once.
    fn run_order(&self, order: &str, own_time: Duration, limit: Duration) -> Result<Outcome<String>> {
        while let Some(signal) = self.next_signal(Duration::ZERO) {
            if signal != libc::SIGCHLD {
                return Ok(Outcome::Interrupted(signal));
            }
        }
        let sets_before = semaphore_sets();
        let [mut input, mut answer, mut complaint] =
            [memory_file(c"trial-order")?, memory_file(c"trial-answer")?, memory_file(c"trial-complaint")?];
        input.write_all(order.as_bytes())?;
        input.rewind()?;
        let mut trial = spawn(self.arguments, input, answer.try_clone()?, complaint.try_clone()?)?;

        let started = Instant::now();
        let ended = self.wait(&trial, limit);
        let is_past_its_work = started.elapsed() >= own_time;
        if matches!(ended, Ended::BySignal(_)) && is_past_its_work && semaphore_sets() != sets_before {
            self.wait(&trial, GRACE);
        }
        let does = if matches!(ended, Ended::Overdue) { activity(trial.id()) } else { String::new() };
        let (status, family) = clear(&mut trial)?;
        remove_semaphores(&sets_before, &family);
        match ended {
            Ended::BySignal(signal) => Ok(Outcome::Interrupted(signal)),
            Ended::ByItself if !status.success() => bail!("{}", reason(status, &text(&mut complaint)?)),
            Ended::ByItself if family.len() > 1 => bail!("{} workers outlived their trial", family.len() - 1),
            Ended::ByItself => Ok(Outcome::Done(text(&mut answer)?)),
            Ended::Overdue => {
                let said = first_words(&text(&mut complaint)?);
                let said = if said.is_empty() { said } else { format!("; it said: {said}") };
                let limit = limit.as_secs_f64();
                bail!("the trial did not end within {limit} s and was killed: {does}{said}; it is {order}")
            }
        }
    }

    /// Sleeps until the trial has exited (it stays a zombie), a signal asks us to stop, or `limit`
    /// has passed.
    fn wait(&self, trial: &Child, limit: Duration) -> Ended {
        let end = Instant::now() + limit;
        loop {
            if has_exited(trial) {
                return Ended::ByItself;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ended::Overdue;
            }
            if let Some(signal) = self.next_signal(left).filter(|&signal| signal != libc::SIGCHLD) {
                return Ended::BySignal(signal);
            }
        }
    }

    /// The next of our blocked signals, or none within `limit`.
    fn next_signal(&self, limit: Duration) -> Option<i32> {
        let limit = libc::timespec { tv_sec: limit.as_secs() as _, tv_nsec: limit.subsec_nanos() as _ };
        // SAFETY: the set and the limit are initialised and outlive the call; no siginfo is wanted.
        let signal = unsafe { libc::sigtimedwait(&self.signals, ptr::null_mut(), &limit) };
        (signal > 0).then_some(signal)
    }
}

/// Why [`Runner::wait`] came back.
enum Ended {
    ByItself,
    BySignal(i32),
    Overdue,
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

/// Whether the trial is a zombie; leaves it one, so that its process group keeps its number until
/// [`clear`] is done.
fn has_exited(trial: &Child) -> bool {
    // SAFETY: all-zero is a valid `siginfo_t`.
    let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOWAIT | libc::WNOHANG;
    // SAFETY: `info` is a valid place for the answer; WNOWAIT leaves the child to be reaped by
    // `Child`.
    let failed = unsafe { libc::waitid(libc::P_PID, trial.id(), &mut info, flags) } != 0;
    // SAFETY: `waitid` has filled in `info`, or has left its zeros if the child still runs.
    failed || unsafe { info.si_pid() } != 0
}

/// Kills what is left of the trial's process group, reaps the trial and every orphan, and returns
/// their ids.
fn clear(trial: &mut Child) -> Result<(ExitStatus, BTreeSet<i32>)> {
    let leader = trial.id() as i32;
    // SAFETY: the trial is not reaped yet, so the group's number cannot belong to another process.
    unsafe { libc::kill(-leader, libc::SIGKILL) };
    let status = trial.wait().context("cannot reap the trial")?;
    let mut family = BTreeSet::from([leader]);
    loop {
        // SAFETY: a null status pointer is allowed. The call blocks, but only for children of ours:
        // orphans of the trial, and those are dying.
        match unsafe { libc::waitpid(-1, ptr::null_mut(), 0) } {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Ok((status, family)),
            orphan => _ = family.insert(orphan),
        }
    }
}

/// What the threads of the trial and of its worker processes do at the moment.
fn activity(trial: u32) -> String {
    let (mut processes, mut counts) = (vec![trial], BTreeMap::<_, usize>::new());
    while let Some(process) = processes.pop() {
        for thread in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
            let file = |name| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
            processes.extend(file("children").split_whitespace().filter_map(|id| id.parse::<u32>().ok()));
            let (state, place) = (file("stat"), file("wchan"));
            // The state follows the name, which is in brackets. The place is 0 if it is a secret.
            let runs = state.rsplit(") ").next().is_some_and(|state| state.starts_with('R'));
            let place = if ["", "0"].contains(&place.as_str()) { "the kernel" } else { &place };
            let does = if runs { "run".to_owned() } else { format!("wait in {place}") };
            *counts.entry(does).or_default() += 1;
        }
    }
    counts.iter().map(|(does, n)| format!("{n} of its threads {does}")).collect::<Vec<_>>().join(", ")
}

/// One line for a trial that failed: its own last words, or how it died.
fn reason(status: ExitStatus, complaint: &str) -> String {
    match (status.signal(), first_words(complaint).as_str()) {
        (Some(signal), "") => format!("the trial was killed by signal {signal}"),
        (Some(signal), words) => format!("the trial was killed by signal {signal}: {words}"),
        (None, "") => format!("the trial failed without a word, {status}"),
        (None, words) => words.to_owned(),
    }
}

/// A trial says what is wrong in one line, a panic in two; a backtrace behind that has no place in
/// a table.
fn first_words(complaint: &str) -> String {
    let lines = complaint.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.take(2).collect::<Vec<_>>().join("; ")
}

/// Ids of the SysV semaphore sets of this machine; none if the kernel does not tell.
fn semaphore_sets() -> BTreeSet<i32> {
    let listing = fs::read_to_string("/proc/sysvipc/sem").unwrap_or_default();
    // key semid perms nsems uid gid cuid cgid otime ctime, below one line of headings
    listing.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)?.parse().ok()).collect()
}

/// Removes the sets that are not in `before` and were last used by a process of `family`.
fn remove_semaphores(before: &BTreeSet<i32>, family: &BTreeSet<i32>) {
    for set in semaphore_sets().difference(before) {
        // SAFETY: GETPID takes no fourth argument and touches no memory of ours.
        let user = unsafe { libc::semctl(*set, 0, libc::GETPID) };
        if family.contains(&user) {
            // SAFETY: IPC_RMID takes no fourth argument; the set belongs to processes that are
            // dead.
            unsafe { libc::semctl(*set, 0, libc::IPC_RMID) };
        }
    }
}

/// Whether this program was started with `signal` ignored.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: all-zero is a valid `sigaction`, which is written to; no new one is set.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, ptr::null(), &mut action);
        action.sa_sigaction == libc::SIG_IGN
    }
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
fn memory_file(name: &std::ffi::CStr) -> Result<File> {
    // SAFETY: `name` is a C string that outlives the call.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error()).context("cannot create a file in memory (memfd_create)");
    }
    // SAFETY: the descriptor is new and ours alone.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Everything in `file`.
fn text(file: &mut File) -> Result<String> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests;
