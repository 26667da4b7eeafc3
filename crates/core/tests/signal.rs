//! Masks and wrapped handlers with real signals: which handler runs when, and what it is told. One
//! test at a time: the class is the process's.
#![cfg(all(world = "machine", not(miri)))]

mod signals;
mod support;

use signals::{alone, blocked, queue, realtime, set_blocked, strike};
use std::cell::Cell;
use ulocks_core::signal::{self, Handlers, Hard, Installed, Mask, Soft, Unmasked};
use ulocks_core::tid;
use ulocks_testkit::Child;

thread_local! {
    static LOG: Log = const { Log { entries: [const { Cell::new(Entry::NONE) }; 16], length: Cell::new(0) } };
}

/// What the handlers on a thread have seen; no allocation.
struct Log {
    entries: [Cell<Entry>; 16],
    length: Cell<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    signal: i32,
    code: Option<i32>,
    sender: Option<i32>,
    value: Option<usize>,
    integer: Option<i32>,
    is_deferred: bool,
}

impl Entry {
    const NONE: Self =
        Self { signal: 0, code: None, sender: None, value: None, integer: None, is_deferred: false };
}

/// Handlers of these signals that write what they see into the log of their thread.
fn logging(signals: &[i32]) -> Installed {
    let handlers = signals.iter().fold(Handlers::new(), |handlers, &signal| handlers.signal(signal));
    // SAFETY: cells of a thread-local that has no destructor and a constant for its value, and
    // which no thread uses while a signal is on its way.
    let installed = unsafe {
        handlers.install(|context| {
            LOG.with(|log| {
                let entry = Entry {
                    signal: context.signal(),
                    code: context.code(),
                    sender: context.sender(),
                    value: context.value(),
                    integer: context.integer(),
                    is_deferred: context.is_deferred(),
                };
                log.entries[log.length.get()].set(entry);
                log.length.set(log.length.get() + 1);
            });
        })
    };
    installed.unwrap()
}

/// What has been logged on this thread since the last call.
fn logged() -> Vec<Entry> {
    LOG.with(|log| (0..log.length.replace(0)).map(|nth| log.entries[nth].get()).collect())
}

fn logged_signals() -> Vec<i32> {
    logged().iter().map(|entry| entry.signal).collect()
}

#[test]
fn a_handler_runs_at_once_or_when_the_mask_is_lowered() {
    let _alone = alone();
    let installed = logging(&[libc::SIGUSR1]);
    let before = blocked();
    strike(libc::SIGUSR1);
    Soft::raise();
    assert!(Soft::is_up());
    Soft::raise();
    strike(libc::SIGUSR1);
    assert_eq!(logged().iter().map(|entry| entry.is_deferred).collect::<Vec<_>>(), [false]);
    Soft::lower();
    assert_eq!(logged(), []);
    assert_ne!(blocked(), before, "the class is blocked, for a signal came");
    Soft::lower();
    assert!(!Soft::is_up());
    assert_eq!(blocked(), before);
    assert_eq!(logged().iter().map(|entry| entry.is_deferred).collect::<Vec<_>>(), [true]);
    Soft::raise();
    Soft::lower();
    assert_eq!(logged(), [], "it does not run again");
    installed.uninstall();
}

#[test]
fn what_a_handler_is_told_does_not_depend_on_when_it_runs() {
    let _alone = alone();
    let signal = realtime(4);
    let installed = logging(&[signal]);
    let seen = || {
        let entries = logged();
        assert_eq!(entries.len(), 1);
        Entry { is_deferred: false, ..entries[0] }
    };
    let deferred = |send: &dyn Fn()| {
        Soft::raise();
        send();
        Soft::lower();
        seen()
    };
    strike(signal);
    let entry = seen();
    assert_eq!((entry.code, entry.sender), (Some(libc::SI_TKILL), Some(std::process::id() as i32)));
    assert_eq!(entry.value, None);
    assert_eq!(deferred(&|| strike(signal)), entry);

    assert!(queue(tid::current(), signal, 0x1234_5678));
    let entry = seen();
    assert_eq!((entry.code, entry.value), (Some(libc::SI_QUEUE), Some(0x1234_5678)));
    #[cfg(target_endian = "little")]
    assert_eq!(entry.integer, Some(0x1234_5678));
    assert_eq!(deferred(&|| assert!(queue(tid::current(), signal, 0x1234_5678))), entry);
    installed.uninstall();
}

#[test]
fn sigqueue_and_fork() {
    let _alone = alone();
    let signal = realtime(4);
    let installed = logging(&[signal]);
    let child = Child::runs(|| {
        // SAFETY: the signal has a handler, and the child has one thread.
        let send = |value| unsafe {
            libc::sigqueue(
                libc::getpid(),
                signal,
                libc::sigval { sival_ptr: std::ptr::without_provenance_mut(value) },
            )
        };
        Soft::raise();
        // SAFETY: the child does as little.
        let grandchild = unsafe { libc::fork() }; // with the mask up
        let sent = (1..=3).map(send).all(|sent| sent == 0);
        Soft::lower();
        // SAFETY: asks.
        let me = unsafe { libc::getpid() };
        let expected = |nth: usize, deferred| Entry {
            signal,
            code: Some(libc::SI_QUEUE),
            sender: Some(me),
            value: Some(nth),
            integer: logged_integer(nth),
            is_deferred: deferred,
        };
        let right = logged() == [expected(1, true), expected(2, false), expected(3, false)];
        let mut status = 0;
        if grandchild > 0 {
            // SAFETY: its child.
            unsafe { libc::waitpid(grandchild, &raw mut status, 0) };
        }
        assert!(sent && right && blocked() & signal::of(&[signal]) == 0 && status == 0);
    });
    child.ends();
    installed.uninstall();
}

fn logged_integer(value: usize) -> Option<i32> {
    let bytes = value.to_ne_bytes();
    Some(i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

#[test]
fn a_signal_that_was_put_aside_at_a_fork_is_handled_in_both() {
    let _alone = alone();
    let installed = logging(&[libc::SIGUSR1]);
    Soft::raise();
    strike(libc::SIGUSR1);
    let child = Child::runs(|| {
        Soft::lower();
        assert_eq!(logged_signals(), [libc::SIGUSR1]);
    });
    Soft::lower();
    assert_eq!(logged_signals(), [libc::SIGUSR1]);
    child.ends();
    installed.uninstall();
}

#[test]
fn the_kernel_keeps_the_rest_in_order() {
    let _alone = alone();
    let installed = logging(&[realtime(4), realtime(5)]);
    Soft::raise();
    for value in 1..=4 {
        assert!(queue(tid::current(), realtime(4), value));
    }
    Soft::lower();
    assert_eq!(logged().iter().filter_map(|entry| entry.value).collect::<Vec<_>>(), [1, 2, 3, 4]);
    installed.uninstall();
}

#[test]
fn a_signal_that_comes_although_the_class_is_blocked_is_sent_again() {
    let _alone = alone();
    let installed = logging(&[realtime(4), libc::SIGUSR1]);
    let before = blocked();
    Soft::raise();
    for value in 1..=3 {
        assert!(queue(tid::current(), realtime(4), value));
        set_blocked(before);
    }
    strike(libc::SIGUSR1);
    assert_eq!(logged(), []);
    Soft::lower();
    let mut entries = logged();
    assert_eq!(entries.remove(0).value, Some(1), "the oldest is first");
    let mut values: Vec<_> = entries.iter().map(|entry| entry.value).collect();
    values.sort_unstable();
    assert_eq!(values, [None, Some(2), Some(3)], "nothing is lost, and each is what it was");
    assert_eq!(blocked(), before);
    installed.uninstall();
}

#[test]
fn a_handler_that_is_not_wrapped_takes_the_block_with_it() {
    extern "C" fn unwrapped(_: i32) {
        strike(libc::SIGUSR1);
    }
    let _alone = alone();
    let installed = logging(&[libc::SIGUSR1, libc::SIGUSR2]);
    let before = blocked();
    // SAFETY: the handler sends a signal, which is async-signal-safe.
    let previous = unsafe { libc::signal(libc::SIGWINCH, unwrapped as *const () as usize) };
    Soft::raise();
    strike(libc::SIGWINCH);
    assert_eq!(blocked(), before);
    strike(libc::SIGUSR2);
    assert_eq!(logged(), []);
    Soft::lower();
    assert_eq!(logged_signals(), [libc::SIGUSR1, libc::SIGUSR2]);
    assert_eq!(blocked(), before);
    // SAFETY: as it was.
    unsafe { libc::signal(libc::SIGWINCH, previous) };
    installed.uninstall();
}

#[test]
fn what_was_blocked_before_stays_blocked() {
    let _alone = alone();
    let installed = logging(&[libc::SIGUSR1, libc::SIGUSR2]);
    let before = blocked();
    set_blocked(before | signal::of(&[libc::SIGUSR2]));
    Soft::raise();
    strike(libc::SIGUSR1);
    strike(libc::SIGUSR2);
    Soft::lower();
    assert_eq!(logged_signals(), [libc::SIGUSR1]);
    assert_eq!(blocked(), before | signal::of(&[libc::SIGUSR2]));
    set_blocked(before);
    assert_eq!(logged_signals(), [libc::SIGUSR2]);
    installed.uninstall();
}

const OURS: u64 = signal::of(&[libc::SIGUSR1, libc::SIGALRM]);
const ONE: u64 = signal::of(&[libc::SIGUSR1]);

#[test]
fn hard_masks_nest_and_restore() {
    let _alone = alone();
    let installed = logging(&[libc::SIGUSR1, libc::SIGALRM]);
    let before = blocked();
    set_blocked(before | signal::of(&[libc::SIGALRM]));
    Hard::<OURS>::raise();
    Hard::<ONE>::raise();
    assert_eq!(blocked(), before | OURS);
    strike(libc::SIGUSR1);
    Hard::<OURS>::lower();
    assert_eq!(blocked(), before | OURS);
    assert_eq!(logged(), []);
    Hard::<ONE>::lower();
    assert_eq!(logged_signals(), [libc::SIGUSR1]);
    assert_eq!(blocked(), before | signal::of(&[libc::SIGALRM]), "blocked before, and still");
    set_blocked(before);

    <Hard>::raise();
    let all = blocked();
    assert_eq!(all & signal::SYNCHRONOUS, 0);
    assert_eq!(all, signal::ASYNCHRONOUS);
    <Hard>::lower();
    assert_eq!(blocked(), before);
    Unmasked::raise();
    assert_eq!(blocked(), before);
    Unmasked::lower();
    installed.uninstall();
}
