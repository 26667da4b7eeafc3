//! A child that is stepped through, one instruction after the other.

/// Waits until `child` stops or ends.
pub fn wait(child: libc::pid_t) -> libc::c_int {
    let mut status = 0;
    // SAFETY: our child.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

/// Steps `child` so many instructions on. Whether it still lives.
pub fn step(child: libc::pid_t, instructions: usize) -> bool {
    for _ in 0..instructions {
        // SAFETY: a stopped child that is traced.
        assert_eq!(unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, child, 0, 0) }, 0);
        if libc::WIFEXITED(wait(child)) {
            return false;
        }
    }
    true
}
