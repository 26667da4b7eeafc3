//! Synchronous signals that a closure passes on: what was there before gets them, as if nothing had
//! been installed.
#![cfg(all(world = "machine", not(miri)))]

mod faults;
mod signals;
mod support;

use faults::{
    End, FAULTS, PAGE, check, child, exit, first, forked, install, large_alternate_stack, resolve, touch,
};
use signals::{action, alone, blocked, strike};
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use ulocks_core::signal::{self, Context, Mask, Soft};
use ulocks_testkit as _;

const SAYS: &str = "has overflowed its stack";
const BEFORE: i32 = 43;

fn passes_on(context: &Context<'_>) {
    context.pass_on();
}

/// Sets an action of the program's own.
fn set_action(signal: i32, handler: usize, flags: i32, blocks: &[i32]) {
    // SAFETY: the handlers of these tests are async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        blocks.iter().for_each(|&signal| _ = libc::sigaddset(&raw mut action.sa_mask, signal));
        check(libc::sigaction(signal, &raw const action, std::ptr::null_mut()) == 0);
    }
}

#[inline(never)]
fn overflow(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    if depth == u64::MAX { 0 } else { overflow(depth + 1) + frame[(depth % 64) as usize] }
}

/// On a thread with a small stack, in a mask with a signal put aside.
fn overflow_in_thread() {
    let thread = std::thread::Builder::new().stack_size(128 << 10).spawn(|| {
        Soft::raise();
        strike(first());
        black_box(overflow(0));
    });
    drop(thread.unwrap().join());
}

fn tells_of_an_overflow((end, said): (End, String)) {
    assert_eq!(end, End::Killed(libc::SIGABRT), "{said}");
    assert!(said.contains(SAYS), "{said}");
}

#[test]
fn a_stack_overflow_is_told_if_the_closure_passes_it_on() {
    tells_of_an_overflow(child("a_stack_overflow_is_told_if_the_closure_passes_it_on", || {
        drop(install(&[libc::SIGSEGV, first()], passes_on));
        overflow_in_thread();
    }));
}

#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn a_stack_overflow_is_told_although_the_closure_knows_of_none() {
    tells_of_an_overflow(child("a_stack_overflow_is_told_although_the_closure_knows_of_none", || {
        drop(install(&[libc::SIGSEGV, first()], |_| {}));
        overflow_in_thread();
    }));
}

/// A fault beside the stack pointer is the closure's if it resolves it.
#[test]
fn a_stack_that_the_closure_lets_grow_is_not_an_overflow() {
    static GROWN: AtomicU32 = AtomicU32::new(0);
    extern "C" fn body(_: *mut libc::c_void) -> *mut libc::c_void {
        black_box(deep(200));
        check(GROWN.load(SeqCst) == 1);
        exit(BEFORE);
    }
    #[inline(never)]
    fn deep(levels: u64) -> u64 {
        let frame = black_box([levels; 64]);
        if levels == 0 { 0 } else { deep(levels - 1) + frame[0] }
    }
    const SIZE: usize = 1 << 20;
    const USABLE: usize = 64 << 10; // at its upper end

    let _alone = alone();
    let end = forked(|| {
        // SAFETY: a mapping, which becomes the stack of a thread that ends the child. The handler
        // of a fault on it runs on an alternate stack, which the thread gives itself.
        unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let stack = libc::mmap(std::ptr::null_mut(), SIZE, access, kind, -1, 0);
            check(stack != libc::MAP_FAILED);
            check(libc::mprotect(stack, SIZE - USABLE, libc::PROT_NONE) == 0);
            PAGE.store(stack.expose_provenance(), SeqCst);
            set_action(libc::SIGSEGV, libc::SIG_DFL, 0, &[]);
            drop(install(&[libc::SIGSEGV], |context| {
                let stack = PAGE.load(SeqCst);
                if context.address().is_some_and(|address| address.wrapping_sub(stack) < SIZE) {
                    GROWN.fetch_add(1, SeqCst);
                    let stack = std::ptr::with_exposed_provenance_mut(stack);
                    libc::mprotect(stack, SIZE, libc::PROT_READ | libc::PROT_WRITE);
                }
            }));
            extern "C" fn with_alternate(nothing: *mut libc::c_void) -> *mut libc::c_void {
                large_alternate_stack();
                body(nothing)
            }
            let mut attributes = std::mem::zeroed();
            libc::pthread_attr_init(&raw mut attributes);
            check(libc::pthread_attr_setstack(&raw mut attributes, stack, SIZE) == 0);
            let mut thread = std::mem::MaybeUninit::uninit();
            let created = libc::pthread_create(
                thread.as_mut_ptr(),
                &raw const attributes,
                with_alternate,
                std::ptr::null_mut(),
            );
            check(created == 0);
            libc::pthread_join(thread.assume_init(), std::ptr::null_mut());
        }
    });
    assert_eq!(end, End::Exit(BEFORE));
}

/// The standard library's handler sets the default action for a fault that is no overflow.
#[test]
fn a_fault_that_is_no_overflow_kills_by_its_signal() {
    let (end, said) = child("a_fault_that_is_no_overflow_kills_by_its_signal", || {
        drop(install(&[libc::SIGSEGV, first()], passes_on));
        Soft::raise();
        strike(first());
        touch();
    });
    assert_eq!(end, End::Killed(libc::SIGSEGV));
    assert!(!said.contains(SAYS), "{said}");
}

#[test]
fn the_default_action_kills_by_a_fault_and_by_a_signal_that_was_sent() {
    let _alone = alone();
    for &(signal, fault) in FAULTS {
        for before in [libc::SIG_DFL, libc::SIG_IGN] {
            let by_fault = forked(|| {
                set_action(signal, before, 0, &[]);
                drop(install(&[signal], passes_on));
                fault();
            });
            assert_eq!(by_fault, End::Killed(signal), "by a fault or a trap, which cannot be ignored");
            let sent = forked(|| {
                set_action(signal, before, 0, &[]);
                drop(install(&[signal], passes_on));
                strike(signal);
            });
            let is_ignored = before == libc::SIG_IGN;
            assert_eq!(sent, if is_ignored { End::Exit(0) } else { End::Killed(signal) });
        }
    }
}

#[test]
fn sigabrt_kills_if_it_is_passed_on_and_only_then() {
    let _alone = alone();
    for passes in [true, false] {
        let end = forked(|| {
            drop(install(&[libc::SIGABRT, first()], move |context| {
                if passes {
                    context.pass_on();
                }
            }));
            Soft::raise();
            strike(first());
            strike(libc::SIGABRT);
        });
        assert_eq!(end, if passes { End::Killed(libc::SIGABRT) } else { End::Exit(0) });
    }
}

static CALLS: AtomicU32 = AtomicU32::new(0);
static BLOCKED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn with_number(signal: i32) {
    check(signal == libc::SIGSEGV);
    CALLS.fetch_add(1, SeqCst);
    BLOCKED.store(blocked() as usize, SeqCst);
    resolve();
}

extern "C" fn with_info(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the arguments of a handler with SA_SIGINFO.
    let (info, blocks) = unsafe { (&*info, &(*context.cast::<libc::ucontext_t>()).uc_sigmask) };
    // SAFETY: a fault of SIGSEGV has an address.
    check(signal == info.si_signo && unsafe { info.si_addr() }.addr() == PAGE.load(SeqCst));
    // The context is that of the thread, which blocks nothing of ours.
    check(signals::members(blocks) & signal::of(&[signal]) == 0);
    with_number(signal);
}

/// A handler that was there before is called as the kernel would, with a signal put aside or not;
/// what it blocks while it runs, and what it does not.
#[test]
fn a_handler_is_called_as_the_kernel_would_call_it() {
    let _alone = alone();
    let (segv, other) = (signal::of(&[libc::SIGSEGV]), signal::of(&[libc::SIGUSR1]));
    let with_number = with_number as extern "C" fn(i32) as usize;
    let with_info: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = with_info;
    let with_info = with_info as usize;
    let info = libc::SA_SIGINFO;
    let nodefer = libc::SA_NODEFER;
    let before = blocked();
    for (handler, flags, blocks, expected) in [
        (with_number, 0, vec![], segv),
        (with_number, nodefer, vec![libc::SIGUSR1], other),
        (with_number, nodefer, vec![libc::SIGSEGV], segv),
        (with_info, info, vec![libc::SIGUSR1], segv | other),
        (with_info, info | nodefer, vec![], 0),
    ] {
        let end = forked(|| {
            set_action(libc::SIGSEGV, handler, flags, &blocks);
            let installed = install(&[libc::SIGSEGV, first()], passes_on);
            touch();
            Soft::raise();
            strike(first());
            touch();
            check(BLOCKED.load(SeqCst) as u64 & (segv | other) == expected);
            check(Soft::is_up());
            Soft::lower();
            check(CALLS.load(SeqCst) == 2 && blocked() == before);
            installed.uninstall();
            touch();
            check(CALLS.load(SeqCst) == 3 && action(libc::SIGSEGV).sa_sigaction == handler);
        });
        assert_eq!(end, End::Exit(0), "flags {flags:#x}, blocks {blocks:?}");
    }
}

#[test]
fn a_handler_that_is_called_once_is_the_default_action_after_that() {
    let _alone = alone();
    let handler = with_number as extern "C" fn(i32) as usize;
    let [again, uninstalled] = [true, false].map(|again| {
        forked(|| {
            set_action(libc::SIGSEGV, handler, libc::SA_RESETHAND, &[]);
            let installed = install(&[libc::SIGSEGV], passes_on);
            touch();
            check(CALLS.load(SeqCst) == 1);
            if again {
                touch();
            }
            installed.uninstall();
            check(action(libc::SIGSEGV).sa_sigaction == libc::SIG_DFL);
        })
    });
    assert_eq!(again, End::Killed(libc::SIGSEGV));
    assert_eq!(uninstalled, End::Exit(0));
}

#[test]
fn each_installation_passes_on_to_what_was_there_before_it() {
    let _alone = alone();
    let end = forked(|| {
        drop(install(&[libc::SIGTRAP], |_| exit(1)));
        install(&[libc::SIGSEGV], passes_on).uninstall();
        set_action(libc::SIGSEGV, with_number as extern "C" fn(i32) as usize, 0, &[]);
        install(&[libc::SIGSEGV], |_| exit(2)).uninstall();
        let installed = install(&[libc::SIGSEGV], passes_on);
        touch();
        installed.uninstall();
        touch();
        check(CALLS.load(SeqCst) == 2);
    });
    assert_eq!(end, End::Exit(0));
}

/// A closure may resolve one fault and pass the next one on, and only synchronous signals can be
/// passed on.
#[test]
fn a_closure_that_says_nothing_has_handled_the_signal() {
    let _alone = alone();
    let end = forked(|| {
        set_action(libc::SIGUSR1, libc::SIG_DFL, 0, &[]);
        drop(install(&[libc::SIGSEGV, libc::SIGUSR1], |context| {
            if context.is_fault() && CALLS.fetch_add(1, SeqCst) == 0 {
                return resolve();
            }
            context.pass_on();
        }));
        strike(libc::SIGUSR1);
        Soft::raise();
        strike(libc::SIGUSR1);
        Soft::lower();
        touch();
        check(CALLS.load(SeqCst) == 1);
        touch();
    });
    assert_eq!(end, End::Killed(libc::SIGSEGV));
}
