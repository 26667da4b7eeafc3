//! Clients for a kernel that refuses: a seccomp filter stands before a system call of one thread.
//!
//! A filter cannot be taken off again, and some tests want the end of the process. So such a test
//! starts its own program once more, for that one test, and looks how the second program ends.

use super::limit::child;
use super::watchdog::watch;
use crate::new_lock;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Output, exit};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::{io, thread};
use ulocks_core::meter::Counted;
use ulocks_core::raw::{Metered, RawMutex};

/// `futex_time64` of 32-bit machines.
const SYS_FUTEX_TIME64: libc::c_long = 422;
/// The answer of a filter that makes a call fail with the number that is added.
const ERRNO: u32 = 0x0005_0000;

/// The calling thread's calls of `command` on a futex, whatever its flags, fail with `EPERM` from
/// here on.
pub fn refuse_futex(command: libc::c_int) {
    filter(&[libc::SYS_futex, SYS_FUTEX_TIME64], Some(command), ERRNO | libc::EPERM as u32);
}

/// The calling thread stops for ever at its next call of `command` on a futex.
///
/// # Panics
/// If the handler cannot be installed in which it stops.
pub fn stop_at_futex(command: libc::c_int) {
    const TRAP: u32 = 0x0003_0000;
    extern "C" fn stop(_: libc::c_int) {
        loop {
            // SAFETY: waits for a signal.
            unsafe { libc::pause() };
        }
    }
    // SAFETY: the handler makes one system call, over and over.
    let before = unsafe { libc::signal(libc::SIGSYS, stop as *const () as libc::sighandler_t) };
    assert_ne!(before, libc::SIG_ERR, "SIGSYS: {}", io::Error::last_os_error());
    filter(&[libc::SYS_futex, SYS_FUTEX_TIME64], Some(command), TRAP);
}

/// The calling thread's system calls of that `number` answer `errno` from here on, and do nothing.
/// They answer success if `errno` is 0.
pub fn refuse(number: libc::c_long, errno: libc::c_int) {
    filter(&[number], None, ERRNO | errno as u32);
}

fn filter(numbers: &[libc::c_long], command: Option<libc::c_int>, answer: u32) {
    const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
    const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
    const IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const ANSWER: u16 = 0x06; // BPF_RET | BPF_K
    const NUMBER_AT: u32 = 0;
    const COMMAND_AT: u32 = if cfg!(target_endian = "little") { 24 } else { 28 }; // the second argument
    const COMMAND_MASK: u32 = 0x7f; // without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME
    const ALLOW: u32 = 0x7fff_0000;

    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = vec![step(LOAD, 0, 0, NUMBER_AT)];
    for (nth, &number) in numbers.iter().enumerate() {
        // To the step after the answer that follows the comparisons.
        program.push(step(IF_EQUAL, (numbers.len() - nth) as u8, 0, number as u32));
    }
    program.push(step(ANSWER, 0, 0, ALLOW));
    if let Some(command) = command {
        program.push(step(LOAD, 0, 0, COMMAND_AT));
        program.push(step(AND, 0, 0, COMMAND_MASK));
        program.push(step(IF_EQUAL, 1, 0, command as u32));
        program.push(step(ANSWER, 0, 0, ALLOW));
    }
    program.push(step(ANSWER, 0, 0, answer));
    install(program);
}

/// Puts a filter before the system calls of the calling thread, and of what it starts.
///
/// # Panics
/// If the kernel takes no filter.
pub fn install(mut program: Vec<libc::sock_filter>) {
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the first call takes numbers. The second reads a program that lives until it returns,
    // and which the kernel copies; from then on calls of this thread are answered with an error, as
    // any of them may be.
    unsafe {
        let done = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        assert_eq!(done, 0, "PR_SET_NO_NEW_PRIVS: {}", io::Error::last_os_error());
        let done = libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program);
        assert_eq!(done, 0, "PR_SET_SECCOMP: {}", io::Error::last_os_error());
    }
}

/// Runs `body` in a second program of its own: this test program, started for the test of the name
/// `test` alone. Returns how it ended, and what it printed. It ends with status 0 if `body`
/// returns, and by `SIGALRM` if it hangs.
fn second_program(test: &str, body: impl FnOnce()) -> Output {
    child(test).unwrap_or_else(|| {
        // SAFETY: the calls take numbers, and a pointer to memory that is read before they return.
        // No thread waits for the alarm.
        unsafe {
            libc::setrlimit(libc::RLIMIT_CORE, &libc::rlimit { rlim_cur: 0, rlim_max: 0 });
            libc::alarm(60);
        }
        body();
        exit(0)
    })
}

fn printed(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{:?}\n{}{}", output.status, text(&output.stdout), text(&output.stderr))
}

/// What is printed if a wait is refused where nothing may unwind: by the panic, and by the abort.
pub const WAIT: [&str; 2] = ["futex wait: the kernel answers", "ulocks: the process aborts"];
/// As [`WAIT`], for a wake-up.
pub const WAKE: [&str; 2] = ["futex wake: the kernel answers", "ulocks: the process aborts"];

/// Runs `body` in a second program, for the test of the name `test`, and demands that it aborts,
/// having printed all that it `says`.
///
/// # Panics
/// If it ends in any other way.
pub fn aborts(test: &str, says: &[&str], body: impl FnOnce()) {
    let output = second_program(test, body);
    let printed = printed(&output);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{test} does not abort: {printed}");
    for what in says {
        assert!(printed.contains(what), "{test} does not say {what:?}: {printed}");
    }
}

/// Runs `body` in a second program, for the test of the name `test`, and demands that it returns.
///
/// # Panics
/// If it panics or dies.
pub fn survives(test: &str, body: impl FnOnce()) {
    let output = second_program(test, || {
        body();
        eprintln!("{test} has returned");
    });
    let printed = printed(&output);
    assert!(output.status.success() && printed.contains("has returned"), "{test} does not return: {printed}");
}

/// In a second program: runs `wait` in a thread whose sleeps on a futex are refused. Returns if it
/// unwinds, and that means that the test fails, unless it is about a lock that can bear it.
///
/// # Panics
/// If `wait` returns.
pub fn wait_refused(wait: impl FnOnce() + Send) {
    waits_refused(libc::FUTEX_WAIT_BITSET, wait);
}

/// As [`wait_refused`], where `command` is the one that sleeps.
///
/// # Panics
/// If `wait` returns.
pub fn waits_refused(command: libc::c_int, wait: impl FnOnce() + Send) {
    thread::scope(|scope| {
        scope.spawn(|| {
            refuse_futex(command);
            let waited = catch_unwind(AssertUnwindSafe(wait));
            assert!(waited.is_err(), "a wait that was refused has come to its end");
            eprintln!("a wait that was refused has unwound");
        });
    });
}

/// A waiter of a mutex whose sleep is refused ends the process: others depend on its place in the
/// queue.
pub fn waiter_aborts<L: RawMutex + Sync>(test: &str) {
    aborts(test, &WAIT, || {
        let lock = new_lock::<L>();
        let _held = lock.lock();
        wait_refused(|| _ = lock.lock());
    });
}

/// A waiter of a mutex whose sleep is refused leaves nothing behind: its panic can be caught, and
/// threads that sleep before and after it get the mutex.
pub fn waiter_unwinds<L: RawMutex + Metered<Meter = Counted> + Sync>(test: &str) {
    survives(test, || {
        let lock = &new_lock::<L>();
        let acquired = AtomicUsize::new(0);
        let _watchdog = watch(test, || "somebody was stranded".into());
        thread::scope(|scope| {
            let held = lock.lock();
            let waits = || {
                let token = lock.lock();
                acquired.fetch_add(1, Relaxed);
                // SAFETY: the token is from the line before the last.
                unsafe { lock.unlock(token) };
            };
            let sleeper_after = |slept| {
                crate::limit::until("one more waiter sleeps", || lock.meter().snapshot().slept > slept);
            };
            scope.spawn(waits);
            sleeper_after(0);
            wait_refused(|| _ = lock.lock());
            let slept = lock.meter().snapshot().slept;
            scope.spawn(waits);
            sleeper_after(slept);
            // SAFETY: the token is this thread's.
            unsafe { lock.unlock(held) };
        });
        assert_eq!(acquired.load(Relaxed), 2);
        assert!(lock.try_lock().is_some(), "the mutex is held by nobody");
    });
}

/// A release whose wake-up is refused ends the process: a sleeper would never be woken.
pub fn release_aborts<L: RawMutex + Metered<Meter = Counted> + Sync>(test: &str) {
    aborts(test, &WAKE, || {
        let lock = new_lock::<L>();
        let token = lock.lock();
        thread::scope(|scope| {
            scope.spawn(|| _ = lock.lock());
            crate::limit::until("a waiter sleeps", || lock.meter().snapshot().slept != 0);
            refuse_futex(libc::FUTEX_WAKE_BITSET);
            // SAFETY: the token is this thread's.
            let released = catch_unwind(AssertUnwindSafe(|| unsafe { lock.unlock(token) }));
            eprintln!("a release without a wake-up has come to its end: {released:?}");
            // Not to wait for a thread that no thread wakes.
            exit(3);
        });
    });
}
