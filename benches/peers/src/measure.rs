//! What the programs of all peers do alike: forks, times, and lines that `cargo xtask peers` reads.

use std::mem::zeroed;
use std::process::exit;
use std::time::{Duration, Instant};

/// Figures are of so many pairs, round trips and messages.
pub const PAIRS: u32 = 2_000_000;
pub const TRIPS: u32 = 20_000;
pub const MESSAGES: u32 = 200_000;
/// How many messages a queue holds.
pub const ROOM: usize = 256;

/// Prints the time of one of `times`.
pub fn tell(subject: &str, figure: &str, times: u32, took: Duration) {
    println!("{subject} {figure} {}", took.as_nanos() as f64 / f64::from(times));
}

/// How long `run` takes.
pub fn time(run: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    run();
    begun.elapsed()
}

/// The CPUs of both processes, and the figure. A wake-up costs ten times as much on one placement
/// as on the other.
pub const PLACES: [([usize; 2], &str); 2] = [([0, 0], "trip"), ([0, 1], "trip2")];

/// Runs `child` in another process while this one runs `parent`, on these CPUs, until both end.
pub fn beside(cpus: [usize; 2], child: impl FnOnce(), parent: impl FnOnce()) {
    // SAFETY: the programs have one thread, so the child may do anything.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        // SAFETY: a number as its argument: a child whose parent panics does not wait for ever.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        pin(cpus[0]);
        child();
        exit(0);
    }
    pin(cpus[1]);
    parent();
    // SAFETY: the child's number; a null pointer is allowed for the status.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
}

fn pin(cpu: usize) {
    // SAFETY: zeroes are an empty set, with room for the number; the call only reads it.
    let pinned = unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set)
    };
    assert_eq!(pinned, 0, "CPU {cpu} cannot be used");
}

/// Kills this process.
pub fn die() -> ! {
    // SAFETY: a signal to the caller itself.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    unreachable!("it cannot be caught")
}
