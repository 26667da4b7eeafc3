//! What installing handlers does to the process's actions, what it refuses, and what the wrapper
//! keeps from the thread that it interrupts.
#![cfg(all(world = "machine", not(miri)))]

mod signals;
mod support;

use signals::{action, alone, errno, sa_mask, strike};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use ulocks_core::signal::{self, Handlers, Hard, InstallError, Mask, Soft};
use ulocks_testkit::Child;

#[test]
fn handlers_of_the_class_keep_each_other_out() {
    static RUNNING: AtomicBool = AtomicBool::new(false);
    static RUN: AtomicU32 = AtomicU32::new(0);
    let _alone = alone();
    let install = |signal, other| {
        // SAFETY: atomics, and a system call.
        let installed = unsafe {
            Handlers::new().signal(signal).install(move |_| {
                if RUNNING.swap(true, Relaxed) {
                    std::process::abort();
                }
                // The first one strikes while there is no other handler yet, if it is not in the
                // class.
                if RUN.fetch_add(1, Relaxed) < 4 {
                    strike(other);
                }
                RUNNING.store(false, Relaxed);
            })
        };
        installed.unwrap()
    };
    let first = install(libc::SIGUSR1, libc::SIGUSR2);
    let second = install(libc::SIGUSR2, libc::SIGUSR1);
    let both = signal::of(&[libc::SIGUSR1, libc::SIGUSR2]);
    assert_eq!((sa_mask(libc::SIGUSR1), sa_mask(libc::SIGUSR2)), (both, both));
    strike(libc::SIGUSR1);
    assert_eq!(RUN.load(Relaxed), 5);
    Soft::raise();
    RUN.store(0, Relaxed);
    strike(libc::SIGUSR2);
    Soft::lower();
    assert_eq!(RUN.load(Relaxed), 5);
    second.uninstall();
    assert_eq!(sa_mask(libc::SIGUSR1), signal::of(&[libc::SIGUSR1]));
    first.uninstall();
}

#[test]
fn the_action_before_comes_back() {
    extern "C" fn before(_: i32) {}
    extern "C" fn after(_: i32) {}
    let _alone = alone();
    let [before, after] = [before, after].map(|handler: extern "C" fn(i32)| handler as usize);
    // SAFETY: handlers that do nothing.
    let old = unsafe { [libc::SIGUSR1, libc::SIGUSR2].map(|signal| libc::signal(signal, before)) };
    // SAFETY: a handler that does nothing.
    let installed = unsafe { Handlers::new().signal(libc::SIGUSR1).signal(libc::SIGUSR2).install(|_| {}) };
    let installed = installed.unwrap();
    let flags = action(libc::SIGUSR1).sa_flags;
    assert_eq!(flags & (libc::SA_RESTART | libc::SA_SIGINFO), libc::SA_RESTART | libc::SA_SIGINFO);
    assert_eq!(flags & libc::SA_NODEFER, 0);
    assert_eq!(installed.signals(), signal::of(&[libc::SIGUSR1, libc::SIGUSR2]));
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGUSR2, after) };
    installed.uninstall();
    assert_eq!(action(libc::SIGUSR1).sa_sigaction, before);
    assert_eq!(action(libc::SIGUSR2).sa_sigaction, after, "somebody else's");
    // SAFETY: as they were.
    unsafe {
        libc::signal(libc::SIGUSR1, old[0]);
        libc::signal(libc::SIGUSR2, old[1]);
    }
}

#[test]
fn what_cannot_be_installed_says_why() {
    let _alone = alone();
    // SAFETY: a handler that does nothing.
    let install = |signals: &[i32]| unsafe {
        signals.iter().fold(Handlers::new(), |handlers, &signal| handlers.signal(signal)).install(|_| {})
    };
    let refusal = |signals: &[i32]| install(signals).unwrap_err();
    let before = action(libc::SIGUSR1).sa_sigaction;
    assert_eq!(refusal(&[]), InstallError::NoSignals);
    for number in [0, -1, 65, i32::MAX] {
        assert_eq!(refusal(&[libc::SIGUSR1, number]), InstallError::NoSuchSignal(number));
    }
    assert_eq!(refusal(&[libc::SIGUSR1, libc::SIGKILL]), InstallError::Uncatchable(libc::SIGKILL));
    assert_eq!(refusal(&[libc::SIGSTOP]), InstallError::Uncatchable(libc::SIGSTOP));
    assert_eq!(refusal(&[32]), InstallError::Reserved(32));
    assert_eq!(action(libc::SIGUSR1).sa_sigaction, before, "all or none");

    let installed = install(&[libc::SIGUSR1]).unwrap();
    assert_eq!(refusal(&[libc::SIGUSR2, libc::SIGUSR1]), InstallError::AlreadyInstalled(libc::SIGUSR1));
    installed.uninstall();
    install(&[libc::SIGUSR1]).unwrap().uninstall();

    assert!(refusal(&[65]).to_string().contains("1 to 64"));
    let first = format!("from SIGRTMIN, which is {}", libc::SIGRTMIN());
    assert!(refusal(&[32]).to_string().contains(&first));
    assert!(refusal(&[libc::SIGKILL]).to_string().contains("any but SIGKILL and SIGSTOP"));
}

#[test]
fn errno_is_kept() {
    let _alone = alone();
    // SAFETY: of the thread.
    let installed = unsafe { Handlers::new().signal(libc::SIGUSR1).install(|_| *errno() = libc::ENOTTY) };
    let installed = installed.unwrap();
    *errno() = libc::EXDEV;
    strike(libc::SIGUSR1);
    assert_eq!(*errno(), libc::EXDEV);
    Soft::raise();
    strike(libc::SIGUSR1);
    Soft::lower();
    assert_eq!(*errno(), libc::EXDEV);
    <Hard>::raise();
    <Hard>::lower();
    assert_eq!(*errno(), libc::EXDEV);
    installed.uninstall();
}

#[test]
fn a_panic_in_a_handler_aborts() {
    let _alone = alone();
    // SAFETY: no handler should panic; this one is in a child that has one thread.
    let installed = unsafe { Handlers::new().signal(libc::SIGUSR1).install(|_| panic!("in a handler")) };
    for is_masked in [false, true] {
        let child = Child::runs(|| {
            if is_masked {
                Soft::raise();
            }
            strike(libc::SIGUSR1);
            Soft::lower();
        });
        let status = child.waited();
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGABRT, "{status:#x}");
    }
    installed.unwrap().uninstall();
}
