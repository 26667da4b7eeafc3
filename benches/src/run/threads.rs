//! What threads of a benchmark ask of the kernel.

use std::sync::Once;
use std::thread;
use std::time::Duration;

/// Keeps one thread asleep for the rest of the process: glibc omits atomic instructions in a
/// process that has never had a second thread, and no program that needs a lock is like that.
pub fn keep_a_thread_asleep() {
    static SLEEPER: Once = Once::new();
    SLEEPER.call_once(|| {
        let started = thread::Builder::new().name("asleep".into()).spawn(|| {
            loop {
                thread::park();
            }
        });
        drop(started.unwrap_or_else(|error| panic!("cannot start a thread that sleeps: {error}")));
    });
}

/// While it lives the calling thread runs before all others of ordinary priority, where that is
/// allowed: a coordinator that is to open and close the window on time must not queue behind a
/// thousand workers. Where it is not allowed the window gets longer, and its true length is what
/// counts.
pub(crate) struct Urgent {
    policy: libc::c_int,
    priority: libc::sched_param,
}

impl Urgent {
    pub(crate) fn new() -> Option<Self> {
        // SAFETY: all-zero is a valid `sched_param`; musl's has more fields than glibc's.
        let mut priority: libc::sched_param = unsafe { std::mem::zeroed() };
        let mut urgent = priority;
        urgent.sched_priority = 1;
        // SAFETY: the parameters are valid for the calls; 0 is the calling thread.
        unsafe {
            let policy = libc::sched_getscheduler(0);
            if policy < 0 || libc::sched_getparam(0, &mut priority) != 0 {
                return None;
            }
            (libc::sched_setscheduler(0, libc::SCHED_FIFO, &urgent) == 0).then_some(Self { policy, priority })
        }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        // SAFETY: as in `new`. Going back to where the thread came from is always allowed.
        unsafe { libc::sched_setscheduler(0, self.policy, &self.priority) };
    }
}

/// What a clock of the kernel shows.
pub(crate) fn clock_time(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is writable. A clock that is gone leaves the zero.
    unsafe { libc::clock_gettime(clock, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Asks the kernel not to group the ends of this thread's sleeps with others', which it may do
/// within 50 us.
pub(crate) fn wake_on_time() {
    // SAFETY: PR_SET_TIMERSLACK takes one integer and touches no memory; a refusal costs accuracy
    // only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// What the kernel counts of the calling thread (`RUSAGE_THREAD`) or of the process
/// (`RUSAGE_SELF`).
pub(crate) fn usage(whose: libc::c_int) -> libc::rusage {
    // SAFETY: all-zero is a valid `rusage`.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is writable; the call cannot fail with these arguments.
    unsafe { libc::getrusage(whose, &mut usage) };
    usage
}

/// A time as the kernel counts it.
pub(crate) fn time(time: libc::timeval) -> Duration {
    Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000)
}
