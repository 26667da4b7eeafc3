//! An end for tests that hang: what is known about them, then an abort.

use std::io::{Write as _, stderr};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

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
/// what each thread of the process waits for in the kernel, and aborts: a hung test is a failed
/// test, with something to go by.
pub fn watch(name: &str, state: impl Fn() -> String + Send + 'static) -> Watchdog {
    watch_for(patience(), name, state)
}

/// As [`watch`], with another limit.
pub fn watch_for(limit: Duration, name: &str, state: impl Fn() -> String + Send + 'static) -> Watchdog {
    let (keep, kept) = channel::<()>();
    let name: Arc<str> = name.into();
    thread::spawn(move || {
        if kept.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            // libtest would keep what `eprintln!` writes, and the abort would lose it.
            let _ = writeln!(stderr(), "{name}: not finished after {limit:?}\n{}\n{}", state(), threads());
            std::process::abort();
        }
    });
    Watchdog(keep)
}

/// One line for each thread: its id, whether it runs or sleeps, and in which kernel function.
fn threads() -> String {
    let mut lines = String::new();
    for entry in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let path = entry.path();
        let read = |file| std::fs::read_to_string(path.join(file)).unwrap_or_default();
        let stat = read("stat");
        let state = stat.rsplit(") ").next().and_then(|rest| rest.get(..1)).unwrap_or("?").to_owned();
        let id = entry.file_name();
        lines += &format!("  thread {}: state {state}, in {}\n", id.display(), read("wchan"));
    }
    lines
}
