//! A test that hangs ends, and says where.

#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::env;
use std::io::{BufRead as _, BufReader};
use std::panic::catch_unwind;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;
use ulocks_testkit::limit::{output, until};
use ulocks_testkit::watchdog::watch;

const CHILD: &str = "ULOCKS_TESTKIT_CHILD";

/// Set in a process that has a thread of a runtime.
const RUNTIME: &str = "ULOCKS_TESTKIT_RUNTIME";

// SAFETY: the section holds addresses of functions that the loader calls before `main`, with C's
// calling convention; further arguments are ignored. By its number this one is called before those
// of the kit.
#[used]
#[unsafe(link_section = ".init_array.00200")]
static BEFORE_MAIN: extern "C" fn() = begin_runtime;

/// Begins a thread that stays, as ThreadSanitizer does, in a process that stays longer than a test.
extern "C" fn begin_runtime() {
    extern "C" fn stay() {
        std::thread::sleep(Duration::from_secs(7));
    }
    if env::var_os(RUNTIME).is_some() {
        std::thread::spawn(|| {
            loop {
                std::thread::park();
            }
        });
        // SAFETY: a function that takes nothing, returns nothing and does not unwind.
        assert_eq!(unsafe { libc::atexit(stay) }, 0);
    }
}

/// This binary with the test `name` alone, in a process that has a second of patience.
fn again(name: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", name, "--test-threads=2"]).env(CHILD, "").env("ULOCKS_PATIENCE", "1");
    command
}

/// What a process has printed that hung.
fn is_ended(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("not finished after 5s"), "{text}");
    text
}

/// The lines of this file in which a wait is.
fn lines_with(what: &str) -> Vec<String> {
    let lines = (1..).zip(include_str!("limit.rs").lines()).filter(|(_, line)| line.ends_with(what));
    lines.map(|(number, _)| format!("tests/limit.rs:{number}:")).collect()
}

#[test]
fn a_test_that_hangs_in_a_lock_says_where() {
    if env::var_os(CHILD).is_some() {
        let mutex = Mutex::new(());
        let _held = mutex.lock();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                drop(mutex.lock()); // a wait
            });
        });
    }
    let text = is_ended(&output(&mut again("a_test_that_hangs_in_a_lock_says_where")));
    let [line] = &lines_with("// a wait")[..] else { panic!("one line hangs") };
    assert!(text.contains(line), "{line} is not in {text}");
    assert!(text.contains("`a_test_that_han"), "the name of the thread, and so of the test: {text}");
}

#[test]
fn a_test_that_hangs_in_a_channel_says_where() {
    if env::var_os(CHILD).is_some() {
        let (sender, receiver) = channel::<()>();
        receiver.recv().unwrap(); // another wait
        drop(sender);
    }
    let text = is_ended(&output(&mut again("a_test_that_hangs_in_a_channel_says_where")));
    let [line] = &lines_with("// another wait")[..] else { panic!("one line hangs") };
    assert!(text.contains(line), "{line} is not in {text}");
}

#[test]
fn a_loop_and_a_process_say_what_they_waited_for() {
    if env::var_os(CHILD).is_some() {
        let outcomes = [
            catch_unwind(|| until("it is never", || false)),
            catch_unwind(|| drop(output(Command::new("sh").args(["-c", "echo begun; exec sleep 100"])))),
        ];
        let texts = outcomes.map(|outcome| outcome.unwrap_err().downcast::<String>().unwrap());
        assert!(texts[0].contains("waiting until it is never"), "{}", texts[0]);
        assert!(texts[1].contains("sleep 100") && texts[1].contains("begun"), "{}", texts[1]);
        return;
    }
    let output = output(&mut again("a_loop_and_a_process_say_what_they_waited_for"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// The wait and the watchdog had the same limit, and the wait could end while the watchdog printed.
#[test]
fn of_a_client_that_waits_for_ever_its_own_watchdog_tells() {
    let name = "of_a_client_that_waits_for_ever_its_own_watchdog_tells";
    if env::var_os(CHILD).is_some() {
        let _watch = watch("the client", || {
            std::thread::sleep(Duration::from_millis(100));
            "its state".to_owned()
        });
        until("it is never", || false);
    }
    let mut client = again(name);
    // A margin of a second.
    client
        .env("ULOCKS_PATIENCE", "5")
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut client = client.spawn().unwrap();
    let mut lines = BufReader::new(client.stderr.take().unwrap()).lines().map_while(Result::ok);
    let tells = lines.any(|line| line == "its state");
    // It would print yet where its threads stand.
    client.kill().unwrap();
    client.wait().unwrap();
    assert!(tells, "the wait has ended before");
}

#[test]
fn a_thread_of_a_runtime_is_no_test_that_hangs() {
    let mut command = Command::new(env::current_exe().unwrap());
    command.arg("--list").env(RUNTIME, "").env("ULOCKS_PATIENCE", "1");
    let output = output(&mut command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
