//! Waits that are interrupted, and waits that are not. One test at a time: signals and their count
//! are global.

#![cfg(all(world = "machine", not(miri)))]

mod support;

use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;
use support::{Signal, asleep, until_asleep};
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
    let waits: [(Wait, bool); 4] = [
        (|futex| futex.wait(1, None), true),
        (|futex| futex.wait(1, an_hour()), false),
        (|futex| futex.wait_interruptible(1, Bits::ANY, None), false),
        (|futex| futex.wait_interruptible(1, Bits::ANY, an_hour()), false),
    ];
    for (wait, restarts) in waits {
        assert_eq!(signalled(Signal::plain(), false, wait), Waited::Interrupted);
        let ends = if restarts { Waited::Woken } else { Waited::Interrupted };
        assert_eq!(signalled(Signal::restarting(), restarts, wait), ends);
    }
}

#[test]
fn an_interruptible_wait_is_otherwise_a_wait() {
    let futex = Futex::<Local>::new(1);
    let soon = Some(Deadline::after(Duration::from_millis(1)));
    assert_eq!(futex.wait_interruptible(0, Bits::ANY, None), Waited::Mismatch);
    assert_eq!(futex.wait_interruptible(1, Bits::ANY, soon), Waited::TimedOut);
    thread::scope(|scope| {
        let sleeper = asleep(scope, || futex.wait_interruptible(1, Bits::one(3), None));
        assert_eq!(futex.key().wake_bits(1, Bits::one(4)), 0);
        assert_eq!(futex.key().wake_bits(1, Bits::one(3)), 1);
        assert_eq!(sleeper.join(), Waited::Woken);
    });
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
