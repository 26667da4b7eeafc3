//! What the kernel says about a thread.

use super::limit::until;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;
use std::{fs, io};

/// The kernel's id of the calling thread.
pub fn id() -> i32 {
    // SAFETY: no preconditions.
    unsafe { libc::gettid() }
}

/// Runs `body` in a thread, and returns its id when it has begun. From then on the thread sleeps
/// nowhere but in `body`.
pub fn begun<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    body: impl FnOnce() -> R + Send + 'scope,
) -> (i32, ScopedJoinHandle<'scope, R>) {
    let told = Arc::new(AtomicI32::new(0));
    let own = Arc::clone(&told);
    let thread = scope.spawn(move || {
        own.store(id(), Relaxed);
        body()
    });
    until("a thread has begun", || told.load(Relaxed) != 0);
    (told.load(Relaxed), thread)
}

/// Runs `body` in a thread, and returns when that sleeps in the kernel.
pub fn asleep<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    body: impl FnOnce() -> R + Send + 'scope,
) -> ScopedJoinHandle<'scope, R> {
    let (id, thread) = begun(scope, body);
    until_asleep(&[id]);
    thread
}

/// Sends `signal` to the thread `id` of this process. A `pthread_t` is a pointer with musl, so no
/// thread may hand it to another.
///
/// # Panics
/// If the kernel refuses: the thread has ended, or there is no such signal.
pub fn signal(id: i32, signal: libc::c_int) {
    // SAFETY: three numbers; the kernel looks for a thread of that id in this process.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), id, signal) };
    assert_eq!(sent, 0, "signal {signal} to thread {id}: {}", io::Error::last_os_error());
}

/// Has `handler` run at `signal`, with that signal alone blocked meanwhile.
///
/// # Safety
/// The handler calls only what may be called in one.
///
/// # Panics
/// If the kernel refuses: there is no such signal, or it has no handlers.
pub unsafe fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int), flags: libc::c_int) {
    // SAFETY: all zeroes are an action with an empty mask; the handler is the caller's promise.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = flags;
        assert_eq!(libc::sigaction(signal, &raw const action, std::ptr::null_mut()), 0);
    }
}

/// The CPUs that the thread `id` may run on; 0 is the calling thread. None if the kernel does not
/// tell.
pub fn cpus_of(id: i32) -> Vec<usize> {
    // SAFETY: an all-zero set is an empty one; the call writes it, and the rest reads it.
    unsafe {
        let mut cpus: libc::cpu_set_t = std::mem::zeroed();
        let told = libc::sched_getaffinity(id, size_of_val(&cpus), &raw mut cpus) == 0;
        (0..libc::CPU_SETSIZE as usize).filter(|&cpu| told && libc::CPU_ISSET(cpu, &cpus)).collect()
    }
}

/// Binds the thread `id`, and the threads and children that it makes, to `cpus`; 0 is the calling
/// thread.
///
/// # Panics
/// If it may run on none of them, or there is no such thread.
pub fn bind(id: i32, cpus: &[usize]) {
    // SAFETY: an all-zero set is an empty one, which has room for each CPU that `cpus_of` names.
    let bound = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cpus.iter().for_each(|&cpu| libc::CPU_SET(cpu, &mut set));
        libc::sched_setaffinity(id, size_of_val(&set), &raw const set)
    };
    assert_eq!(bound, 0, "CPUs {cpus:?}: {}", io::Error::last_os_error());
}

/// Gives a thread or a process a scheduling policy; 0 is the calling thread. musl's function of
/// that name only fails.
///
/// # Errors
/// Those of sched_setscheduler(2).
pub fn schedule(id: i32, policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    // SAFETY: the kernel reads one number, the priority, at the address.
    let set = unsafe { libc::syscall(libc::SYS_sched_setscheduler, id, policy, &raw const priority) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns when the threads `ids` of this process all sleep in the kernel.
///
/// # Panics
/// If one of them does not exist, or does not sleep within the limit of [`until`].
pub fn until_asleep(ids: &[i32]) {
    until_all(ids, |id| format!("/proc/self/task/{id}/stat"));
}

/// Whether `thread` of `process` is off the CPU, in a futex call.
///
/// # Errors
/// If there is no such thread.
pub fn is_in_futex_call(process: u32, thread: u32) -> io::Result<bool> {
    let call = fs::read_to_string(format!("/proc/{process}/task/{thread}/syscall"))?;
    // "running", or the number of the system call and its arguments.
    let number = call.split(' ').next().and_then(|number| number.trim().parse().ok());
    // futex_time64, which 32-bit programs call; futex_waitv; futex_wait; and futex of x86-64, whose
    // kernel may run a program of another processor in QEMU.
    Ok(number.is_some_and(|number| [libc::SYS_futex, 202, 422, 449, 455].contains(&number)))
}

/// How often the threads `ids` of this process have gone to sleep so far, all together.
///
/// # Panics
/// If one of them does not exist.
pub fn sleeps(ids: &[i32]) -> u64 {
    let slept = |id: &i32| -> u64 {
        let status =
            fs::read_to_string(format!("/proc/self/task/{id}/status")).expect("a thread that exists");
        let times = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        times.and_then(|times| times.trim().parse().ok()).expect("proc(5): a number of switches")
    };
    ids.iter().map(slept).sum()
}

/// Returns when `process` sleeps in the kernel, in its first thread.
///
/// # Panics
/// If it has ended, or does not sleep within that limit.
pub(super) fn until_process_asleep(process: i32) {
    until_all(&[process], |id| format!("/proc/{id}/stat"));
}

fn until_all(ids: &[i32], stat: impl Fn(i32) -> String) {
    let asleep = |&id: &i32| {
        let stat = fs::read_to_string(stat(id)).expect("a thread that exists");
        // The name before it is in parentheses and may contain anything.
        let state = stat.rsplit(") ").next().unwrap_or_default();
        assert!(!state.starts_with('Z'), "{id} has ended, and was waited for until it sleeps");
        state.starts_with('S')
    };
    let what = format!("{} threads sleep in the kernel, the first of them {:?}", ids.len(), ids.first());
    until(&what, || {
        let done = ids.iter().all(asleep);
        if !done {
            // A waiter for a lock with priority inheritance spins in the kernel for as long as the
            // owner is on a CPU.
            std::thread::sleep(Duration::from_micros(100));
        }
        done
    });
}
