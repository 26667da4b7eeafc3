//! A timer that strikes the thread that made it, which is what comes nearest to an interrupt, and
//! the handler that it runs.
//!
//! What the handler works with is there before the first signal. It is its thread's own: handlers
//! of a thread do not interrupt each other, and the thread looks at it with the signal blocked.

use super::threads::Shared;
use crate::run::clock;
use crate::statistics::waits::Waits;
use crate::subjects::rwlocks::{Read, mask};
use crate::workloads::window::WARM_UP;
use anyhow::{Context, Result};
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::{io, mem, ptr};

thread_local! {
    /// What the handlers of this thread work with, while it has a timer.
    static HANDLER: Cell<Option<Box<Handler>>> = const { Cell::new(None) };
}

struct Handler {
    shared: &'static Shared,
    timer: libc::timer_t,
    period_ns: u64,
    /// When the timer expired for which the next handler will run.
    due_ns: u64,
    handled: Box<Handled>,
}

/// What the handlers of a thread did in the window, also what was still to end when it closed.
#[derive(Default)]
pub(super) struct Handled {
    /// From the expiry of the timer to the entry of the handler, to lock, and to unlock.
    pub(super) delays: [Box<Waits>; 3],
    /// How often a handler saw a state that no writer leaves.
    pub(super) torn: u64,
}

/// Reads the lock, in the context of the thread that the timer interrupted.
pub(super) fn on_signal(read: Read<'_>) {
    let entered_ns = clock::monotonic_ns();
    if let Some(mut handler) = HANDLER.take() {
        handler.strike(entered_ns, read);
        HANDLER.set(Some(handler));
    }
}

impl Handler {
    fn strike(&mut self, entered_ns: u64, read: Read<'_>) {
        let (shared, handled) = (self.shared, &mut *self.handled);
        let took = read(shared.lock, &mut || handled.torn += u64::from(!shared.data.are_equal()));
        let due_ns = self.due_ns;
        // SAFETY: the timer is deleted only when its thread has blocked the signal. The call is
        // async-signal-safe.
        let missed = u64::try_from(unsafe { libc::timer_getoverrun(self.timer) }).unwrap_or(0);
        self.due_ns += (1 + missed) * self.period_ns;
        let Some([lock, unlock]) = took.filter(|_| shared.phase.load(Relaxed) != WARM_UP) else { return };
        let (overhead, per_ns) = (shared.clock.overhead(), shared.clock.per_ns);
        let delivery = (entered_ns.saturating_sub(due_ns) as f64 * per_ns) as u64;
        let ticks = [delivery, lock.saturating_sub(overhead), unlock.saturating_sub(overhead)];
        handled.delays.iter_mut().zip(ticks).for_each(|(delays, ticks)| delays.record(ticks));
    }
}

/// While it lives, the calling thread is interrupted.
pub(super) struct Timer(libc::timer_t);

impl Timer {
    /// The calling thread blocks the signal; it no longer does afterwards.
    pub(super) fn start(shared: &'static Shared, period_ns: u64) -> Result<Self> {
        let mut timer = ptr::null_mut();
        // SAFETY: all-zero is a valid event; the timer is a valid place for the answer.
        let rc = unsafe {
            let mut event: libc::sigevent = mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = mask::signal();
            event.sigev_notify_thread_id = libc::gettid();
            libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer)
        };
        if rc != 0 {
            return Err(io::Error::last_os_error()).context("timer_create");
        }
        let this = Self(timer);
        let due_ns = clock::monotonic_ns() + period_ns;
        HANDLER.set(Some(Box::new(Handler { shared, timer, period_ns, due_ns, handled: Box::default() })));
        let time = |ns: u64| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as _,
            tv_nsec: (ns % 1_000_000_000) as _,
        };
        let spec = libc::itimerspec { it_interval: time(period_ns), it_value: time(due_ns) };
        // SAFETY: the timer exists and the specification is initialised; the old one is not wanted.
        let rc = unsafe { libc::timer_settime(timer, libc::TIMER_ABSTIME, &spec, ptr::null_mut()) };
        if rc != 0 {
            return Err(io::Error::last_os_error()).context("timer_settime");
        }
        mask::change(libc::SIG_UNBLOCK);
        Ok(this)
    }

    /// No handler runs any more. What they did.
    pub(super) fn stop(self) -> Box<Handled> {
        mask::change(libc::SIG_BLOCK);
        HANDLER.take().expect("the timer's start has put it there").handled
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        mask::change(libc::SIG_BLOCK);
        // SAFETY: the timer exists, and no handler of this thread can run any more.
        unsafe { libc::timer_delete(self.0) };
    }
}
