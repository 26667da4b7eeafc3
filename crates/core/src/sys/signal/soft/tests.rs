//! The soft mask without a kernel, for Miri too: the wrapper is called with a context of the test's
//! own.

use super::{EMPTY, FULL, Relaxed, arrive, is_up, lower, raise};
use crate::sys::signal::{Context, of};
use crate::sys::world::signal::{CLASS, Handler, Interrupted, with_thread};
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicU32;

const SIGNAL: i32 = libc::SIGUSR1;

/// Lets a signal strike here. Which signals are blocked when its handler has returned.
fn strike(signal: i32, handler: Handler) -> bool {
    // SAFETY: all zero are an info and a context.
    let (info, mut context): (libc::siginfo_t, libc::ucontext_t) =
        unsafe { (MaybeUninit::zeroed().assume_init(), MaybeUninit::zeroed().assume_init()) };
    // SAFETY: used here alone, and alive until the end.
    let mut interrupted = unsafe { Interrupted::new((&raw mut context).cast()) };
    arrive(signal, &info, handler, &mut interrupted);
    interrupted.block(of(&[signal])) == 0
}

fn place() -> u8 {
    with_thread(|thread| thread.place.load(Relaxed))
}

#[test]
fn a_signal_is_put_aside_and_run_once() {
    static RUN: AtomicU32 = AtomicU32::new(0);
    let handler: Handler = &|context: &Context<'_>| {
        assert_eq!(context.signal(), SIGNAL);
        RUN.fetch_add(if context.is_deferred() { 10 } else { 1 }, Relaxed);
    };
    assert!(!strike(SIGNAL, handler), "nothing is blocked");
    assert_eq!(RUN.load(Relaxed), 1);
    raise();
    raise();
    assert!(strike(SIGNAL, handler), "its own signal is blocked, also if it is not in the class any more");
    assert_eq!((RUN.load(Relaxed), place()), (1, FULL));
    lower();
    assert!(is_up());
    assert_eq!(RUN.load(Relaxed), 1);
    lower();
    assert_eq!((RUN.load(Relaxed), place()), (11, EMPTY));
    raise();
    lower();
    assert_eq!(RUN.load(Relaxed), 11);
    assert_eq!(CLASS.load(Relaxed), 0);
}

#[test]
fn a_synchronous_signal_is_never_put_aside() {
    static RUN: AtomicU32 = AtomicU32::new(0);
    raise();
    let handler: Handler = &|context| RUN.store(context.is_synchronous().into(), Relaxed);
    assert!(!strike(libc::SIGSEGV, handler));
    assert_eq!((RUN.load(Relaxed), place()), (1, EMPTY));
    lower();
}

/// The window of a `lower`: the depth is zero, and something is put aside.
#[test]
fn a_handler_hides_what_the_code_below_has_put_aside() {
    static RUN: AtomicU32 = AtomicU32::new(0);
    fn ran(weight: u32) {
        RUN.fetch_add(weight, Relaxed);
    }
    let first: Handler = &|_| ran(1);
    let second: Handler = &|_| {
        raise();
        // Its own mask is a mask, and its own signals are put aside.
        strike(SIGNAL, &|_| ran(10));
        assert_eq!(RUN.load(Relaxed), 0);
        lower();
        assert_eq!(RUN.load(Relaxed), 10);
    };
    raise();
    strike(SIGNAL, first);
    with_thread(|thread| thread.depth.store(0, Relaxed));
    let blocked = with_thread(|thread| thread.blocked.load(Relaxed));
    assert_eq!(blocked, of(&[SIGNAL]));
    strike(libc::SIGUSR2, second);
    assert_eq!((RUN.load(Relaxed), place()), (10, FULL));
    assert_eq!(with_thread(|thread| thread.blocked.load(Relaxed)), blocked);
    raise();
    lower();
    assert_eq!((RUN.load(Relaxed), place()), (11, EMPTY));
}

#[test]
#[cfg(debug_assertions)]
#[should_panic = "a mask is lowered that was not raised"]
fn a_mask_that_is_not_up_cannot_be_lowered() {
    lower();
}

/// Guards that are forgotten raise the mask for ever, and each handler waits from then on.
#[test]
fn forgotten_guards_never_bring_the_mask_down() {
    with_thread(|thread| thread.depth.store(u32::MAX - 1, Relaxed));
    for _ in 0..3 {
        raise();
        assert!(is_up());
    }
    lower();
    lower();
    assert!(is_up());
    with_thread(|thread| thread.depth.store(0, Relaxed));
}
