//! A timer that strikes the thread that made it, which is what comes nearest to an interrupt.

use super::handler::HandlerContext;
use crate::run::clock;
use crate::subjects::rwlocks::{RwLock, mask};
use anyhow::{Context, Result};
use std::io;
use std::mem;

/// While it lives, the calling thread is interrupted by a timer, and its handler has a context.
pub(super) struct Timer<'a, L: RwLock> {
    timer: libc::timer_t,
    context: &'a HandlerContext<'a, L>,
}

impl<'a, L: RwLock> Timer<'a, L> {
    /// The calling thread blocks the signal; it no longer does afterwards.
    pub(super) fn start(context: &'a HandlerContext<'a, L>) -> Result<Self> {
        let mut timer = std::ptr::null_mut();
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
        let this = Self { timer, context };
        let first_ns = clock::monotonic_ns() + context.period_ns();
        context.arm(timer, first_ns);
        HandlerContext::set_current(Some(context));
        let time = |ns: u64| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as _,
            tv_nsec: (ns % 1_000_000_000) as _,
        };
        let spec = libc::itimerspec { it_interval: time(context.period_ns()), it_value: time(first_ns) };
        // SAFETY: the timer exists and the specification is initialised; the old one is not wanted.
        let rc = unsafe { libc::timer_settime(timer, libc::TIMER_ABSTIME, &spec, std::ptr::null_mut()) };
        if rc != 0 {
            return Err(io::Error::last_os_error()).context("timer_settime");
        }
        mask::change(libc::SIG_UNBLOCK);
        Ok(this)
    }
}

impl<L: RwLock> Drop for Timer<'_, L> {
    fn drop(&mut self) {
        mask::change(libc::SIG_BLOCK);
        // SAFETY: the timer exists, and no handler of this thread can run any more.
        unsafe { libc::timer_delete(self.timer) };
        debug_assert!(self.context.period_ns() > 0);
        HandlerContext::<L>::set_current(None);
    }
}
