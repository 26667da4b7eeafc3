//! A child that is stepped through, one instruction after the other.

use ulocks_testkit::task::{bind, cpus_of};

/// In the child: stops, to be stepped through.
pub fn stops() {
    // SAFETY: the parent is told, and steps.
    unsafe {
        libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
        libc::raise(libc::SIGSTOP);
    }
}

/// Waits until `child` stops or ends.
pub fn wait(child: libc::pid_t) -> libc::c_int {
    let mut status = 0;
    // SAFETY: our child.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

/// Steps `child` so many instructions on. Whether it still lives.
pub fn step(child: libc::pid_t, instructions: usize) -> bool {
    let step = |_| {
        // SAFETY: a stopped child that is traced.
        assert_eq!(unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, child, 0, 0) }, 0);
        !libc::WIFEXITED(wait(child))
    };
    beside(child, || (0..instructions).all(step))
}

/// Does `stops` with this thread on the CPU of `child`. A stop that wakes an idle CPU takes longer.
/// (Two CPUs of an EPYC under KVM, once each: 174 and 55 s with `cargo test -p ulocks-shm
/// --all-features --test stress -- instruction`.)
pub fn beside<T>(child: libc::pid_t, stops: impl FnOnce() -> T) -> T {
    let all = cpus_of(0);
    // SAFETY: no preconditions.
    let here = usize::try_from(unsafe { libc::sched_getcpu() }).expect("a CPU");
    bind(0, &[here]);
    bind(child, &[here]);
    let result = stops();
    bind(0, &all);
    result
}
