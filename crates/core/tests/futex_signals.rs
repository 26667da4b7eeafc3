//! Waits that are interrupted, and waits that are not. One test at a time: signals and their count
//! are global.

#![cfg(all(world = "machine", not(miri)))]

mod support;

use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;
use support::{Signal, asleep, started, until, until_asleep};
use ulocks_core::capabilities::{Capability, capabilities};
use ulocks_core::futex::{Bits, Futex, Local, Waited, Waiter, WaitvOutcome, waitv};
use ulocks_core::time::Deadline;
use ulocks_testkit as _;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn an_hour() -> Option<Deadline> {
    Some(Deadline::after(Duration::from_secs(3600)))
}

/// Sends `signal` to a thread that sleeps in `wait`, wakes it if it goes on sleeping, and returns
/// how `wait` ended.
fn signalled<T: Send>(signal: Signal, goes_on: bool, wait: impl FnOnce(&Futex<Local>) -> T + Send) -> T {
    let futex = Futex::new(1);
    thread::scope(|scope| {
        let sleeper = asleep(scope, || wait(&futex));
        signal.send_to_sleeper(&sleeper);
        if goes_on {
            until_asleep(std::process::id(), sleeper.id);
            assert_eq!(futex.key().wake(1), 1);
        }
        sleeper.join()
    })
}

type Wait = fn(&Futex<Local>) -> Waited;

/// Each wait, by each handler: it ends, unless the handler restarts and there is no deadline.
#[test]
fn handlers_interrupt_waits_except_where_the_kernel_restarts_them() {
    let _alone = alone();
    let waits: [(Wait, bool, Waited); 5] = [
        (|futex| futex.wait(1, None), true, Waited::Interrupted),
        (|futex| futex.wait(1, an_hour()), false, Waited::Interrupted),
        (|futex| futex.wait(1, Some(Deadline::NEVER)), false, Waited::Interrupted),
        (|futex| futex.wait(1, Some(Deadline::NEVER.interruptible())), false, Waited::TimedOut),
        (|futex| futex.wait(1, an_hour().map(Deadline::interruptible)), false, Waited::TimedOut),
    ];
    for (wait, restarts, interrupted) in waits {
        assert_eq!(signalled(Signal::plain(), false, wait), interrupted);
        let ends = if restarts { Waited::Woken } else { interrupted };
        assert_eq!(signalled(Signal::restarting(), restarts, wait), ends);
    }
}

#[test]
fn an_interruptible_wait_is_otherwise_a_wait() {
    let futex = Futex::<Local>::new(1);
    let soon = Some(Deadline::after(Duration::from_millis(1)));
    let until_a_signal = Some(Deadline::NEVER.interruptible());
    assert_eq!(futex.wait(0, until_a_signal), Waited::Mismatch);
    assert_eq!(futex.wait(1, soon.map(Deadline::interruptible)), Waited::TimedOut);
    thread::scope(|scope| {
        let sleeper = asleep(scope, || futex.wait_bits(1, Bits::one(3), until_a_signal));
        assert_eq!(futex.key().wake_bits(1, Bits::one(4)), 0);
        assert_eq!(futex.key().wake_bits(1, Bits::one(3)), 1);
        assert_eq!(sleeper.join(), Waited::Woken);
    });
}

/// Polls sleep until a time of their own, so a signal finds them before their caller's deadline.
#[test]
fn a_handler_ends_a_poll_whose_deadline_is_interruptible() {
    let _alone = alone();
    for signal in [Signal::plain(), Signal::restarting()] {
        let ready = signalled_often(signal, |futex| {
            let until_a_signal = Some(Deadline::NEVER.interruptible());
            futex.poll_until(Bits::ANY, until_a_signal, Duration::from_millis(1), || false)
        });
        assert!(!ready);
    }
}

/// Sends `signal` to a thread until that has returned from `wait`.
fn signalled_often<T: Send>(signal: Signal, wait: impl FnOnce(&Futex<Local>) -> T + Send) -> T {
    let futex = Futex::new(1);
    thread::scope(|scope| {
        let sleeper = started(scope, || {
            let ended = wait(&futex);
            futex.store(0, Release);
            // No signal is sent to a thread that is gone.
            until(|| futex.load(Acquire) == 1);
            ended
        });
        until(|| {
            signal.send(sleeper.id);
            futex.load(Acquire) == 0
        });
        futex.store(1, Release);
        sleeper.join()
    })
}

#[test]
fn waitv_is_interrupted_by_plain_handlers_only() {
    let _alone = alone();
    if !capabilities().has(Capability::Waitv) {
        return println!("not tested: no futex_waitv here");
    }
    for deadline in [None, an_hour()] {
        let wait = |futex: &Futex<_>| waitv(&[Waiter::new(futex, 1)], deadline);
        assert_eq!(signalled(Signal::plain(), false, wait), Ok(WaitvOutcome::Interrupted));
        assert_eq!(signalled(Signal::restarting(), true, wait), Ok(WaitvOutcome::Woken(0)));
    }
}
