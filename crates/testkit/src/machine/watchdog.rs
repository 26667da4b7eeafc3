//! An end for tests that hang: what is known about them, then an abort.

use super::limit::threads;
use super::task;
use std::backtrace::Backtrace;
use std::collections::BTreeMap;
use std::io::{Write as _, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use std::{fs, mem, ptr, thread};

/// How long a client may take before it counts as hung. Far beyond what any of them needs on a
/// loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long a client may take before it counts as hung. The variable `ULOCKS_PATIENCE` gives other
/// seconds than 120, for machines that are emulated.
pub fn patience() -> Duration {
    let given = std::env::var("ULOCKS_PATIENCE").ok();
    given.map_or(PATIENCE, |text| Duration::from_secs(text.parse().expect("ULOCKS_PATIENCE: seconds")))
}

/// Aborts the process if it is not dropped in time.
#[must_use = "dropped at once, it guards nothing"]
pub struct Watchdog(#[allow(dead_code, reason = "its drop is the message")] Sender<()>);

/// Watches until the result is dropped. After [`patience`] it prints `name`, what `state` says and
/// where each thread of the process stands, and aborts: a hung test is a failed test, with
/// something to go by.
pub fn watch(name: &str, state: impl Fn() -> String + Send + 'static) -> Watchdog {
    watch_for(patience(), name, state)
}

/// As [`watch`], with another limit.
pub fn watch_for(limit: Duration, name: &str, state: impl Fn() -> String + Send + 'static) -> Watchdog {
    let (keep, kept) = channel::<()>();
    let name: Arc<str> = name.into();
    thread::spawn(move || {
        if kept.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            end(&name, limit, &state);
        }
    });
    Watchdog(keep)
}

/// The end of a process that hangs.
pub(super) fn end(name: &str, limit: Duration, state: &dyn Fn() -> String) -> ! {
    // libtest would keep what `eprintln!` writes, and the abort would lose it.
    let mut out = stderr();
    let threads = threads();
    let _ = writeln!(out, "{name}: not finished after {limit:?}\n{}\n{}", state(), states(&threads));
    let _ = writeln!(out, "{name}: where the first of these threads stand");
    let others = threads.into_iter().filter(|&id| id != task::id());
    others.take(AT_MOST).for_each(show);
    std::process::abort();
}

/// What the threads do: how many of them run or sleep, and in which kernel function. Of the states
/// that few are in it names the threads.
fn states(threads: &[i32]) -> String {
    let mut states = BTreeMap::<_, Vec<String>>::new();
    for id in threads {
        let read = |file| fs::read_to_string(format!("/proc/self/task/{id}/{file}")).unwrap_or_default();
        let stat = read("stat");
        let state = stat.rsplit(") ").next().and_then(|rest| rest.get(..1)).unwrap_or("?").to_owned();
        let named = format!("{id} `{}`", read("comm").trim_end());
        states.entry((state, read("wchan"))).or_default().push(named);
    }
    let line = |((state, function), threads): ((String, String), Vec<String>)| {
        let named =
            if threads.len() <= AT_MOST { format!(": {}", threads.join(", ")) } else { String::new() };
        format!("  {} threads: state {state}, in {function}{named}\n", threads.len())
    };
    states.into_iter().map(line).collect()
}

/// Of a crowd, a few are enough.
const AT_MOST: usize = 16;

/// The thread that prints where it stands.
static SHOWING: AtomicI32 = AtomicI32::new(0);

/// Has a thread print where it stands. A thread that blocks the signal does not, and one that was
/// interrupted in the allocator may not come back from it.
fn show(id: i32) {
    let number = libc::SIGRTMAX() - 3;
    // SAFETY: all zero is a valid value of this structure.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = print_trace as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    SHOWING.store(id, Relaxed);
    // SAFETY: the action is a valid one, whose handler ends in `abort` at the latest: this process
    // does not go on.
    unsafe { libc::sigaction(number, &raw const action, ptr::null_mut()) };
    // SAFETY: three numbers. A thread that has ended is not found.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), id, number) };
    let began = Instant::now();
    // The first one reads the debug information.
    while SHOWING.load(Relaxed) != 0 && began.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Prints the frames of this thread that are not of the standard library.
extern "C" fn print_trace(_: libc::c_int) {
    let trace = Backtrace::force_capture().to_string();
    let lines: Vec<&str> = trace.lines().collect();
    let is_ours = |frame: &&[&str]| {
        frame.len() == 2 && frame[1].trim_start().starts_with("at ") && !frame[1].contains("/rustc/")
    };
    let ours: Vec<String> = lines.windows(2).filter(is_ours).map(|frame| frame.join("\n")).collect();
    let text = if ours.is_empty() { trace } else { ours.join("\n") };
    let _ = writeln!(stderr(), "  thread {}:\n{text}", task::id());
    SHOWING.store(0, Relaxed);
    // The signal has ended a sleep that nobody else would have. If the thread went on, a test that
    // hung could pass before the abort.
    loop {
        // SAFETY: the call takes no arguments.
        unsafe { libc::pause() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// A crowd that hangs had a line for each of ten thousand threads.
    #[test]
    fn a_state_that_many_threads_are_in_is_one_line() {
        let (end, ended) = mpsc::channel::<()>();
        let ended = std::sync::Mutex::new(ended);
        let text = thread::scope(|scope| {
            let ids: Vec<_> = (0..AT_MOST + 20)
                .map(|_| {
                    let (send, id) = mpsc::channel();
                    scope.spawn(|| {
                        let send = send;
                        send.send(super::super::task::id()).unwrap();
                        _ = ended.lock().unwrap().recv();
                    });
                    id.recv().unwrap()
                })
                .collect();
            super::super::task::until_asleep(&ids);
            let text = states(&threads());
            drop(end);
            text
        });
        let many =
            |line: &&str| line.split_whitespace().next().and_then(|some| some.parse().ok()) > Some(AT_MOST);
        assert_eq!(text.lines().filter(many).count(), 1, "{text}");
        assert!(text.lines().count() <= AT_MOST, "{text}");
    }
}
