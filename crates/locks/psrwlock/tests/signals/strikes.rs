//! Signals to threads, and what their handlers have seen. A handler must not panic, so it counts.

use crate::mixed::Lock;
use crate::variables::{Variables, is_writing};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use ulocks_psrwlock::signal::{Context, Handlers, Installed};
use ulocks_psrwlock::{ByClass, Configuration};

/// What handlers have seen.
#[derive(Debug, Default)]
pub struct Seen {
    /// Runs.
    pub handled: AtomicUsize,
    /// Runs that came in as readers.
    pub read: AtomicUsize,
    /// Runs that found the class shut.
    pub shut: AtomicUsize,
    /// Runs that had been put aside.
    pub deferred: AtomicUsize,
    /// Runs that saw half a write.
    pub torn: AtomicUsize,
    /// Runs in the midst of a write of their own thread, but for those of synchronous signals.
    pub while_writing: AtomicUsize,
    /// Runs in which reading changed errno.
    pub errno: AtomicUsize,
}

impl Seen {
    /// Reads as a handler does that has `context`.
    pub fn look<D: Configuration>(&self, lock: &Lock<D>, context: &Context<'_>) {
        const MARK: i32 = 4321;
        let add = |count: &AtomicUsize, one: bool| _ = count.fetch_add(one.into(), SeqCst);
        set_errno(MARK);
        add(&self.while_writing, is_writing() && !context.is_synchronous());
        match lock.read_handler(context) {
            Some(variables) => {
                add(&self.torn, variables.value().is_none());
                add(&self.read, true);
            }
            None => add(&self.shut, true),
        }
        add(&self.errno, errno() != MARK);
        add(&self.deferred, context.is_deferred());
        // Last: a thread that waits for this finds the rest.
        add(&self.handled, true);
    }

    /// So many were handled, so many of them could read, and so many found the class shut.
    pub fn counts(&self) -> [usize; 3] {
        [&self.handled, &self.read, &self.shut].map(|count| count.load(SeqCst))
    }

    /// # Panics
    /// If a handler saw what it must not.
    pub fn check(&self) {
        let wrong = [&self.torn, &self.while_writing, &self.errno].map(|count| count.load(SeqCst));
        assert_eq!(wrong, [0; 3], "half a write seen, struck while writing, errno changed: {self:?}");
        let [handled, read, shut] = self.counts();
        assert_eq!(handled, read + shut, "{self:?}");
    }
}

/// A lock and its handlers, which read it and which last for ever, as handlers may come late.
pub struct Struck<D: Configuration> {
    pub lock: &'static Lock<D>,
    pub seen: &'static Seen,
}

impl<D: Configuration> Clone for Struck<D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<D: Configuration> Copy for Struck<D> {}

impl<D: Configuration> Struck<D> {
    pub fn new() -> Self {
        let lock = Box::leak(Box::new(Lock::<D>::new(Variables::new())));
        Self { lock, seen: Box::leak(Box::default()) }
    }

    /// Makes handlers of these signals read the lock.
    pub fn install(self, signals: &[i32]) -> Installed {
        let handlers = signals.iter().fold(Handlers::new(), |handlers, &signal| handlers.signal(signal));
        // SAFETY: the handler does atomic operations and reads variables.
        unsafe { handlers.install(move |context| self.seen.look(self.lock, context)) }
            .expect("signals of this test only")
    }
}

/// One of the real-time signals, which are queued and not merged; each test has its own.
pub fn real_time(nth: i32) -> i32 {
    libc::SIGRTMIN() + nth
}

/// Strikes the calling thread: the signal is handled, or put aside, when this returns.
pub fn strike_me(signal: i32) {
    // SAFETY: the signal has a handler.
    assert_eq!(unsafe { libc::raise(signal) }, 0);
}

/// Strikes a thread of this process, if it is there still.
pub fn strike(thread: i32, signal: i32) {
    // SAFETY: the signal has a handler.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal) };
}

pub fn errno() -> i32 {
    // SAFETY: the address is that of the calling thread's own.
    unsafe { *libc::__errno_location() }
}

pub fn set_errno(errno: i32) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Runs `body` and checks that it leaves errno alone.
pub fn keeping_errno<R>(body: impl FnOnce() -> R) -> R {
    set_errno(1234);
    let result = body();
    assert_eq!(errno(), 1234, "errno was changed");
    result
}

/// A timer that strikes the thread that made it, again and again.
pub struct Timer(libc::timer_t);

impl Timer {
    pub fn strikes_me(signal: i32, every: Duration) -> Self {
        let mut timer: libc::timer_t = std::ptr::null_mut();
        let every = libc::timespec { tv_sec: 0, tv_nsec: every.as_nanos() as libc::c_long };
        let times = libc::itimerspec { it_interval: every, it_value: every };
        // SAFETY: all zero is an event; the pointers are to what the calls read and write.
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = libc::gettid();
            assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer), 0);
            assert_eq!(libc::timer_settime(timer, 0, &raw const times, std::ptr::null_mut()), 0);
        }
        Self(timer)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: it is the timer that was created, and deleted here only.
        assert_eq!(unsafe { libc::timer_delete(self.0) }, 0);
    }
}
