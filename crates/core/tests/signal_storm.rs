//! Masks and wrapped handlers in a storm of real signals.
#![cfg(all(world = "machine", not(miri)))]

mod signals;
mod support;

use signals::{alone, blocked, errno, queue, realtime};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use ulocks_core::signal::{Handlers, Mask, Soft};
use ulocks_core::tid;
use ulocks_testkit as _;

/// Signals from all sides at a thread that does nothing but raise and lower: from threads, counted,
/// each with its number; from two timers.
#[test]
fn a_storm_reaches_no_masked_code_and_loses_nothing() {
    const EACH: usize = 20_000;
    static IS_MASKED: AtomicBool = AtomicBool::new(false);
    static IS_HANDLING: AtomicBool = AtomicBool::new(false);
    static WRONG: AtomicU32 = AtomicU32::new(0);
    static DEFERRED: AtomicU32 = AtomicU32::new(0);
    static TICKS: AtomicU32 = AtomicU32::new(0);
    static NEXT: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

    let _alone = alone();
    let queued = [realtime(6), realtime(7)];
    let handlers =
        Handlers::new().signal(queued[0]).signal(queued[1]).signal(libc::SIGUSR1).signal(libc::SIGALRM);
    // SAFETY: atomics.
    let installed = unsafe {
        handlers.install(move |context| {
            let overlaps = IS_HANDLING.swap(true, Relaxed) || IS_MASKED.load(Relaxed);
            let mut wrong = overlaps;
            match queued.iter().position(|&signal| signal == context.signal()) {
                // Each sender's signals come in its order.
                Some(nth) => wrong |= context.value() != Some(NEXT[nth].fetch_add(1, Relaxed)),
                None => drop(TICKS.fetch_add(1, Relaxed)),
            }
            WRONG.fetch_add(wrong.into(), Relaxed);
            DEFERRED.fetch_add(context.is_deferred().into(), Relaxed);
            *errno() = libc::ENOTTY;
            IS_HANDLING.store(false, Relaxed);
        })
    }
    .unwrap();

    let target = AtomicU32::new(0);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let struck = scope.spawn(|| {
            let before = blocked();
            target.store(tid::current(), Relaxed);
            *errno() = libc::EXDEV;
            while !is_over.load(Relaxed) {
                Soft::raise();
                IS_MASKED.store(true, Relaxed);
                for _ in 0..20 {
                    std::hint::spin_loop();
                }
                IS_MASKED.store(false, Relaxed);
                Soft::lower();
            }
            assert_eq!(*errno(), libc::EXDEV);
            assert_eq!(blocked(), before);
        });
        support::until(|| target.load(Relaxed) != 0);
        let target = target.load(Relaxed);
        let timers = [libc::SIGUSR1, libc::SIGALRM].map(|signal| Timer::start(target, signal));
        let senders = [0, 1].map(|nth: usize| {
            scope.spawn(move || {
                for value in 0..EACH {
                    // The kernel searches its queue from the front for each signal: a long one
                    // would take all the time there is between the ticks of the timers.
                    while value > NEXT[nth].load(Relaxed) + 50 || !queue(target, queued[nth], value) {
                        std::thread::yield_now();
                    }
                }
            })
        });
        for sender in senders {
            sender.join().unwrap();
        }
        support::until(|| NEXT.iter().all(|next| next.load(Relaxed) == EACH));
        support::until(|| TICKS.load(Relaxed) > 0);
        drop(timers);
        is_over.store(true, Relaxed);
        struck.join().unwrap();
    });
    assert_eq!(WRONG.load(Relaxed), 0);
    assert!(DEFERRED.load(Relaxed) > 0, "no signal met a mask");
    installed.uninstall();
}

/// A timer that sends a signal to one thread all the time.
struct Timer(libc::timer_t);

impl Timer {
    fn start(thread: u32, signal: i32) -> Self {
        // SAFETY: all zero is an event; the rest is filled in, and the signal has a handler.
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = thread as i32;
            let mut timer = std::ptr::null_mut();
            assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer), 0);
            let often = libc::timespec { tv_sec: 0, tv_nsec: 100_000 };
            let time = libc::itimerspec { it_interval: often, it_value: often };
            assert_eq!(libc::timer_settime(timer, 0, &raw const time, std::ptr::null_mut()), 0);
            Self(timer)
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: ours.
        unsafe { libc::timer_delete(self.0) };
    }
}
