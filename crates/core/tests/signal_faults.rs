//! Faults: no mask and no wrapped handler ever blocks a synchronous signal, wherever the fault
//! comes and whatever came before. Each in a child, which dies if that does not hold.
#![cfg(all(world = "machine", not(miri)))]

mod faults;
mod signals;
mod support;

use faults::{
    End, FAULTS, PLACES, check, exit, first, forked, install, large_alternate_stack, resolve, second, touch,
};
use signals::{action, alone, blocked, sa_mask, set_blocked, strike};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering::SeqCst};
use ulocks_core::signal::{self, Mask, SYNCHRONOUS, Soft, without_masks};
use ulocks_testkit as _;

const HANDLED: i32 = 42;

/// Installs a handler of `fault` that ends the child, and handlers of the class that fault.
fn install_all(signal: i32, fault: fn(), at_once: bool) {
    let ends = move |context: &signal::Context<'_>| {
        check(context.signal() == signal && context.is_synchronous() && !context.is_deferred());
        check(context.is_fault());
        // The kernel gives none with a breakpoint of this kind, and a system call has none.
        let has_address = signal != libc::SIGTRAP && signal != libc::SIGSYS;
        check(context.address().is_some() == has_address);
        // Its own signal is blocked by the kernel, and no other synchronous one.
        check(blocked() & SYNCHRONOUS == signal::of(&[signal]));
        exit(HANDLED);
    };
    let class = move |context: &signal::Context<'_>| {
        check(blocked() & SYNCHRONOUS == 0);
        if context.signal() == second() {
            fault();
        }
    };
    if at_once {
        let signals = [signal, first(), second()];
        drop(install(
            &signals,
            move |context| {
                if context.signal() == signal { ends(context) } else { class(context) }
            },
        ));
    } else {
        drop(install(&[signal], ends));
        drop(install(&[first(), second()], class));
    }
}

#[test]
fn a_fault_is_handled_whatever_came_before() {
    let _alone = alone();
    for &(signal, fault) in FAULTS {
        for (place, run) in PLACES {
            for at_once in [true, false] {
                let end = forked(|| {
                    install_all(signal, fault, at_once);
                    run(fault);
                });
                assert_eq!(end, End::Exit(HANDLED), "signal {signal}, {place}, one installation: {at_once}");
            }
        }
    }
}

#[test]
fn a_thread_goes_on_after_a_fault_that_was_resolved() {
    static FAULTS: AtomicU32 = AtomicU32::new(0);
    static DEFERRED: AtomicU32 = AtomicU32::new(0);
    let _alone = alone();
    let end = forked(|| {
        let before = blocked();
        drop(install(&[libc::SIGSEGV, first(), second()], |context| {
            if context.is_synchronous() {
                FAULTS.fetch_add(1, SeqCst);
                return resolve();
            }
            DEFERRED.fetch_add(context.is_deferred().into(), SeqCst);
            // Masks of a handler's own, in a handler that has interrupted a fault's thread.
            Soft::raise();
            touch();
            Soft::lower();
        }));
        for _ in 0..2 {
            Soft::raise();
            touch();
            strike(first());
            touch();
            strike(second());
            touch();
            check(blocked() & SYNCHRONOUS == 0 && Soft::is_up());
            Soft::lower();
            check(blocked() == before);
        }
        check(FAULTS.load(SeqCst) == 10 && DEFERRED.load(SeqCst) == 2);
    });
    assert_eq!(end, End::Exit(0));
}

/// The mask of the handler of a fault acts on nothing that the code below has put aside.
#[test]
fn masks_in_the_handler_of_a_fault_leave_alone_what_is_put_aside() {
    static ORDER: AtomicU32 = AtomicU32::new(0);
    let _alone = alone();
    let end = forked(|| {
        drop(install(&[libc::SIGSEGV, first()], |context| {
            if context.is_synchronous() {
                Soft::raise();
                Soft::lower();
                check(ORDER.fetch_add(1, SeqCst) == 0);
                return resolve();
            }
            check(context.is_deferred() && ORDER.fetch_add(1, SeqCst) == 1);
        }));
        Soft::raise();
        strike(first());
        touch();
        Soft::lower();
        check(ORDER.load(SeqCst) == 2);
    });
    assert_eq!(end, End::Exit(0));
}

#[test]
fn a_synchronous_signal_that_is_sent_is_handled_at_once_but_waits_for_its_own_handler() {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let _alone = alone();
    let end = forked(|| {
        drop(install(&[libc::SIGSEGV, first()], |context| {
            check(!context.is_fault() && context.address().is_none());
            if context.is_synchronous() && RUNS.load(SeqCst) == 0 {
                strike(libc::SIGSEGV);
                check(RUNS.load(SeqCst) == 0);
            }
            RUNS.fetch_add(1, SeqCst);
        }));
        Soft::raise();
        strike(first());
        strike(libc::SIGSEGV);
        check(RUNS.load(SeqCst) == 2);
        Soft::lower();
        check(RUNS.load(SeqCst) == 3);
    });
    assert_eq!(end, End::Exit(0));
}

#[test]
fn a_fault_in_the_handler_of_a_fault_is_handled_if_it_is_another_signal() {
    let _alone = alone();
    let bus = FAULTS.iter().find(|(signal, _)| *signal == libc::SIGBUS).unwrap().1;
    let in_handler = |fault: fn()| {
        forked(|| {
            // The frame of the second fault follows that of the first.
            large_alternate_stack();
            drop(install(&[libc::SIGSEGV, libc::SIGBUS], move |context| {
                if context.signal() == libc::SIGBUS {
                    exit(HANDLED);
                }
                fault();
            }));
            touch();
        })
    };
    assert_eq!(in_handler(bus), End::Exit(HANDLED));
    assert_eq!(in_handler(touch), End::Killed(libc::SIGSEGV), "its own signal is blocked");
}

#[test]
fn synchronous_signals_are_in_no_sa_mask_and_run_on_the_alternate_stack() {
    let _alone = alone();
    let synchronous = [libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS, libc::SIGABRT];
    let other = install(&synchronous, |_| {});
    let installed = install(&[libc::SIGSEGV, first(), second()], |_| {});
    let deferrable = signal::of(&[first(), second()]);
    for signal in synchronous.into_iter().chain([libc::SIGSEGV, first(), second()]) {
        assert_eq!(sa_mask(signal), deferrable, "signal {signal}");
        let is_synchronous = SYNCHRONOUS & signal::of(&[signal]) != 0;
        assert_eq!(action(signal).sa_flags & libc::SA_ONSTACK != 0, is_synchronous, "signal {signal}");
    }
    other.uninstall();
    installed.uninstall();
}

/// The end of the alternate stack of the calling thread, and its size; 0 if there is none.
fn alternate_stack() -> (usize, usize) {
    // SAFETY: asks only.
    unsafe {
        let mut stack: libc::stack_t = std::mem::zeroed();
        check(libc::sigaltstack(std::ptr::null(), &raw mut stack) == 0);
        let is_there = stack.ss_flags & libc::SS_DISABLE == 0;
        (stack.ss_sp.addr(), if is_there { stack.ss_size } else { 0 })
    }
}

#[test]
fn only_the_handler_of_a_fault_is_on_the_alternate_stack() {
    static PLACE: AtomicUsize = AtomicUsize::new(0);
    let _alone = alone();
    let end = forked(|| {
        drop(install(&[libc::SIGSEGV, first()], |context| {
            let here = 0_u8;
            PLACE.store((&raw const here).addr(), SeqCst);
            if context.is_fault() {
                resolve();
            }
        }));
        let (stack, size) = alternate_stack();
        check(size > 0);
        touch();
        check(PLACE.load(SeqCst).wrapping_sub(stack) < size);
        strike(first());
        check(PLACE.load(SeqCst).wrapping_sub(stack) >= size);
    });
    assert_eq!(end, End::Exit(0));
}

#[test]
fn a_fault_is_handled_on_a_thread_without_an_alternate_stack() {
    extern "C" fn body(_: *mut libc::c_void) -> *mut libc::c_void {
        check(alternate_stack().1 == 0);
        Soft::raise();
        strike(first());
        touch();
        Soft::lower();
        exit(HANDLED);
    }
    let _alone = alone();
    let end = forked(|| {
        drop(install(&[libc::SIGSEGV, first()], |context| {
            if context.is_fault() {
                resolve();
            }
        }));
        let mut thread = MaybeUninit::uninit();
        let nothing = std::ptr::null_mut();
        // SAFETY: a thread of the system's, which ends the child. Its name is read only if there is
        // such a thread.
        unsafe {
            check(libc::pthread_create(thread.as_mut_ptr(), std::ptr::null(), body, nothing) == 0);
            libc::pthread_join(thread.assume_init(), std::ptr::null_mut());
        }
    });
    assert_eq!(end, End::Exit(HANDLED));
}

#[test]
fn a_fault_is_handled_in_a_child_of_fork_with_a_signal_put_aside() {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let _alone = alone();
    let end = forked(|| {
        drop(install(&[libc::SIGSEGV, first()], |context| {
            RUNS.fetch_add(1, SeqCst);
            if context.is_fault() {
                resolve();
            }
        }));
        Soft::raise();
        strike(first());
        let end = forked(|| {
            touch();
            Soft::lower();
            check(RUNS.load(SeqCst) == 2 && blocked() & SYNCHRONOUS == 0);
        });
        check(end == End::Exit(0));
        Soft::lower();
        check(RUNS.load(SeqCst) == 1);
    });
    assert_eq!(end, End::Exit(0));
}

/// What a new thread blocks that is made by `make` on a thread with a mask up and a signal put
/// aside.
fn blocked_in(make: impl Fn() -> std::thread::JoinHandle<u64>, raise: fn(), lower: fn()) -> u64 {
    raise();
    strike(first());
    let thread = make();
    lower();
    thread.join().unwrap()
}

#[test]
fn a_thread_that_is_made_under_a_mask_inherits_nothing_of_it() {
    use ulocks_core::signal::Hard;
    static RUNS: AtomicI32 = AtomicI32::new(0);
    let _alone = alone();
    let count = |_: &signal::Context<'_>| _ = RUNS.fetch_add(1, SeqCst);
    let installed = install(&[first(), second(), libc::SIGTRAP], count);
    let before = blocked();
    // The program's own wish is inherited.
    let own = signal::of(&[libc::SIGWINCH, second()]);
    set_blocked(before | own);
    let work = || {
        let blocked = blocked();
        strike(first());
        blocked
    };
    let by_us = || signal::spawn(work);
    let by_others = || std::thread::Builder::new().spawn(without_masks(work)).unwrap();
    for make in [&by_us as &dyn Fn() -> std::thread::JoinHandle<u64>, &by_others] {
        for (raise, lower) in
            [(Soft::raise as fn(), Soft::lower as fn()), (<Hard>::raise, <Hard>::lower), (|| (), || ())]
        {
            RUNS.store(0, SeqCst);
            assert_eq!(blocked_in(make, raise, lower), before | own);
            assert_eq!(RUNS.load(SeqCst), 2, "one of the maker's, one of the thread's");
            assert_eq!(blocked(), before | own);
        }
    }
    // The signal is put aside after the work was made, and before the thread is.
    Soft::raise();
    let work = without_masks(work);
    strike(first());
    let thread = std::thread::spawn(work);
    assert_eq!(thread.join().unwrap(), before | own);
    Soft::lower();
    set_blocked(before);
    installed.uninstall();
}
