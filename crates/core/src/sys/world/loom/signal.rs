//! Signals, under loom: the one handler that is due at a thread's points of interruption. It is of
//! every signal, so that to block any of them is to hold it back; it is held back while it runs,
//! too.

use super::{INTERRUPTION, Interruption, interrupted_here};
use crate::sys::signal::{Blocked, Context, Thread, arrive};
use core::cell::Cell;
use std::rc::Rc;

/// There is no `siginfo_t`.
pub(crate) type Info = ();
pub(crate) type Handler = Rc<dyn Fn(&Context<'_>)>;

loom::thread_local! {
    static THREAD: Thread = Thread::new();
    static BLOCKED: Blocked = Blocked::new();
    /// Which signals the thread blocks, and which it will when the handler that runs now returns.
    static MASK: Mask = Mask { now: Cell::new(0), on_return: Cell::new(0) };
}

struct Mask {
    now: Cell<u64>,
    on_return: Cell<u64>,
}

pub(crate) fn with_thread<R>(f: impl FnOnce(&Thread) -> R) -> R {
    THREAD.with(f)
}

pub(crate) fn with_blocked<R>(f: impl FnOnce(&Blocked) -> R) -> R {
    BLOCKED.with(f)
}

/// All that there are.
pub(crate) fn class() -> u64 {
    u64::MAX
}

pub(crate) fn block(set: u64) -> u64 {
    MASK.with(|mask| mask.now.replace(mask.now.get() | set))
}

pub(crate) fn unblock(set: u64) {
    MASK.with(|mask| mask.now.set(mask.now.get() & !set));
    // What was held back is due here.
    interrupted_here();
}

/// Whether the thread holds its handler back.
pub(super) fn are_blocked() -> bool {
    MASK.with(|mask| mask.now.get() != 0)
}

/// Runs a handler, as the kernel does.
pub(super) fn handle(handler: impl FnOnce()) {
    let outer = MASK.with(|mask| mask.on_return.replace(mask.now.replace(u64::MAX)));
    handler();
    MASK.with(|mask| mask.now.set(mask.on_return.replace(outer)));
}

/// The code that a handler has interrupted.
pub(crate) struct Interrupted;

impl Interrupted {
    pub(crate) fn block(&mut self, set: u64) -> u64 {
        MASK.with(|mask| {
            let before = mask.on_return.replace(mask.on_return.get() | set);
            set & !before
        })
    }
}

pub(crate) fn send_again(signal: i32, (): &Info, handler: Handler) {
    let again = move || _ = arrive(signal, &(), Rc::clone(&handler), &mut Interrupted);
    INTERRUPTION.with(|slot| {
        let before = slot.borrow_mut().replace(Interruption { points_to_pass: 0, handler: Box::new(again) });
        assert!(before.is_none(), "one signal at a time can be due to a thread under loom");
    });
}

pub(crate) fn code(_: &Info) -> Option<i32> {
    None
}

pub(crate) fn is_fault(_: &Info) -> bool {
    false
}

pub(crate) fn address(_: &Info) -> Option<usize> {
    None
}

pub(crate) fn sender(_: &Info) -> Option<i32> {
    None
}

pub(crate) fn value(_: &Info) -> Option<usize> {
    None
}
