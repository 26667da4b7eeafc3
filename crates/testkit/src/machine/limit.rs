//! A limit for every wait of a test.
//!
//! A binary of tests that links the kit ends itself if a test hangs. A thread looks at the others,
//! from before `main` on. If one of them has been there for [`LONGEST`] times the
//! [`patience`](super::watchdog::patience), it prints where each thread stands, and aborts. So a
//! test needs no limit of its own for a wait inside of a lock, in `join` or in `recv`. The one that
//! is too old is that of the test. A root of tests that uses nothing else of the kit says
//! `use ulocks_testkit as _;`, and `cargo xtask tidy` says which lacks it.
//!
//! A loop that looks for something is [`until`], and a program is run by [`output`]: also this one,
//! for a test that runs [`again`] elsewhere. They end in a panic that names what was waited for.
//!
//! **The limit around another is longer.** Of two that are equal, chance would say which reports.
//! The inner one says more, and needs time to say it. A [watchdog](super::watchdog::watch) has the
//! patience, `until` has a fifth more, a margin, and the end of a process has two margins more. So
//! the inner one tells, if it begins less than a margin after the outer one.

use super::watchdog::{end, patience};
use std::collections::HashMap;
use std::io::Read;
use std::mem::MaybeUninit;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use std::{env, fs, ptr, thread};

/// How many times the patience a test may take. It may have many clients, each with that patience.
pub const LONGEST: u32 = 5;

/// The same for the threads of the process: the first one, which stays for all tests or runs them
/// one after the other, and those that are there before `main` (ThreadSanitizer's).
const LONGEST_MAIN: u32 = 10 * LONGEST;

static BEFORE_TESTS: OnceLock<Vec<i32>> = OnceLock::new();

/// How much longer a limit is than the one inside of it: more than that one needs to begin and to
/// print, on a loaded machine.
fn margin() -> Duration {
    patience() / 5
}

/// Returns when `is_true` says so.
///
/// # Panics
/// With `what` was waited for, one margin after the patience.
#[track_caller]
pub fn until(what: &str, is_true: impl FnMut() -> bool) {
    until_within(patience() + margin(), what, is_true);
}

/// The same for the end of a process, which may have an `until` in it.
#[track_caller]
pub(super) fn until_ended(what: &str, is_true: impl FnMut() -> bool) {
    until_within(limit_of_process(), what, is_true);
}

/// The limit of a process: two margins after the patience.
fn limit_of_process() -> Duration {
    patience() + 2 * margin()
}

#[track_caller]
fn until_within(limit: Duration, what: &str, mut is_true: impl FnMut() -> bool) {
    let began = Instant::now();
    for round in 0_u32.. {
        if is_true() {
            return;
        }
        assert!(began.elapsed() < limit, "after {limit:?}, still waiting until {what}");
        // A yield leaves this thread on its CPU if the machine has CPUs enough.
        if round < 100 { thread::yield_now() } else { thread::sleep(Duration::from_micros(100)) }
    }
}

/// Runs `command` as [`Command::output`] does, and kills it two margins after the patience.
///
/// # Panics
/// If it cannot be started, or has not ended by then: with what it has printed.
#[track_caller]
pub fn output(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (mut out, mut err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    thread::scope(|scope| {
        let out = scope.spawn(move || read(&mut out));
        let err = scope.spawn(move || read(&mut err));
        let (began, limit) = (Instant::now(), limit_of_process());
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child that was not waited for") {
                break Some(status);
            }
            if began.elapsed() > limit {
                child.kill().expect("a child that has not ended");
                child.wait().expect("a child that was not waited for");
                break None;
            }
            thread::sleep(Duration::from_millis(1));
        };
        let (stdout, stderr) = (out.join().expect("a reader"), err.join().expect("a reader"));
        let Some(status) = status else {
            let text = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            panic!("{command:?}: not finished after {limit:?}\n{}{}", text[0], text[1]);
        };
        Output { status, stdout, stderr }
    })
}

/// A command that runs the test `name` of this program again, alone in a process of its own, and
/// prints what it prints. `None` in that process.
///
/// # Panics
/// If this program has no path.
pub fn again(name: &str) -> Option<Command> {
    const AGAIN: &str = "ULOCKS_TEST_AGAIN";
    if env::var_os(AGAIN).is_some_and(|running| running == name) {
        return None;
    }
    let mut command = Command::new(env::current_exe().expect("the path of the test"));
    command.args(["--exact", name, "--test-threads=1"]).env(AGAIN, name);
    command.env("RUST_TEST_NOCAPTURE", "1").env("RUST_BACKTRACE", "0");
    Some(command)
}

/// Runs the test `name` [`again`]; `None` in the process where it runs.
///
/// # Panics
/// As [`output`].
#[track_caller]
pub fn child(name: &str) -> Option<Output> {
    again(name).map(|mut command| output(&mut command))
}

fn read(from: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).expect("a pipe");
    bytes
}

// SAFETY: the section holds addresses of functions that the loader calls before `main`, with C's
// calling convention; further arguments are ignored.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = begin;

/// Starts the thread that looks.
extern "C" fn begin() {
    // Miri has no `/proc`, and a fuzzer runs for days.
    if cfg!(any(miri, fuzzing)) {
        return;
    }
    // The thread takes no signal that is meant for another one.
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: both are places for a set. The first is filled before it is used.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    // Where there can be no thread, there is no limit.
    let _ = thread::Builder::new().name("limit".to_owned()).spawn(look);
    // ThreadSanitizer begins its own thread when it sees the first one of the program.
    _ = BEFORE_TESTS.set(threads());
    // SAFETY: the call above has filled the set.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
}

/// Looks at the threads now and then.
fn look() {
    let limit = patience() * LONGEST;
    let mut seen: HashMap<i32, Instant> = HashMap::new();
    loop {
        thread::sleep((limit / 10).min(Duration::from_secs(10)));
        let now = Instant::now();
        let threads = threads();
        seen.retain(|id, _| threads.contains(id));
        for id in threads {
            let first = *seen.entry(id).or_insert(now);
            let stays = BEFORE_TESTS.get().is_some_and(|threads| threads.contains(&id));
            let limit = if stays { patience() * LONGEST_MAIN } else { limit };
            if now - first > limit && id != super::task::id() {
                end(&format!("the test of thread {id}"), limit, &|| "it waits for something".to_owned());
            }
        }
    }
}

/// The ids of the threads of this process.
pub(super) fn threads() -> Vec<i32> {
    let entries = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}
