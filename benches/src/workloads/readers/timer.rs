//! A timer that strikes the thread that made it, which is what comes nearest to an interrupt, and
//! the handler that it runs.
//!
//! What the handler works with is there before the first signal. It is its thread's own: handlers
//! of a thread do not interrupt each other, and the thread looks at it with the signal blocked.

use super::threads::{Shared, Tally};
use crate::subjects::rwlocks::{Read, mask};
use crate::workloads::window::{MEASURE, WARM_UP};
use anyhow::{Result, ensure};
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::{io, mem, ptr};

thread_local! {
    /// What the handlers of this thread work with, while it has a timer.
    static HANDLER: Cell<Option<Box<Handler>>> = const { Cell::new(None) };
}

struct Handler {
    shared: &'static Shared,
    /// Also what was still to end when the window closed.
    handled: Tally,
}

/// Reads the lock, in the context of the thread that the timer interrupted.
pub(super) fn on_signal(read: Read<'_>) {
    let Some(mut handler) = HANDLER.take() else { return };
    let Handler { shared, handled } = &mut *handler;
    let took = read(shared.lock, &mut || handled.torn += u64::from(!shared.data.are_equal()));
    let phase = shared.phase.load(Relaxed);
    if let Some(ticks) = took.filter(|_| phase != WARM_UP) {
        handled.counted += u64::from(phase == MEASURE);
        handled.note(ticks, shared.clock.overhead());
    }
    HANDLER.set(Some(handler));
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
        ensure!(rc == 0, "timer_create: {}", io::Error::last_os_error());
        let this = Self(timer);
        let handled = Tally { role: "handler", ..Tally::default() };
        HANDLER.set(Some(Box::new(Handler { shared, handled })));
        let (tv_sec, tv_nsec) = ((period_ns / 1_000_000_000) as _, (period_ns % 1_000_000_000) as _);
        let time = libc::timespec { tv_sec, tv_nsec };
        let spec = libc::itimerspec { it_interval: time, it_value: time };
        // SAFETY: the timer exists and the specification is initialised; the old one is not wanted.
        let rc = unsafe { libc::timer_settime(timer, 0, &spec, ptr::null_mut()) };
        ensure!(rc == 0, "timer_settime: {}", io::Error::last_os_error());
        mask::change(libc::SIG_UNBLOCK);
        Ok(this)
    }

    /// No handler runs any more. What they did.
    pub(super) fn stop(self) -> Tally {
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
