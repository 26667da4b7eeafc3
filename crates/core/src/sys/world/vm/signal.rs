//! Signals, on the virtual machine: its own, 1 to 31.

use crate::sys::signal::{Blocked, Context, Thread, signals_in};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use ulocks_vm::signal::{self, Signal};
use ulocks_vm::sync::PerRun;
use ulocks_vm::thread;

/// There is no `siginfo_t`.
pub(crate) type Info = ();
pub(crate) type Handler = Rc<dyn Fn(&Context<'_>)>;

/// What the threads of a run have of masks, by their number.
#[derive(Default)]
struct Threads {
    run: usize,
    threads: HashMap<usize, Rc<(Thread, Blocked)>>,
}

std::thread_local! {
    static THREADS: RefCell<Threads> = RefCell::default();
}

/// Its address is a run's own.
static RUN: PerRun<u8> = PerRun::new(|| 0);

fn current() -> Rc<(Thread, Blocked)> {
    let (run, thread) = (core::ptr::from_ref::<u8>(&RUN).addr(), thread::current());
    THREADS.with_borrow_mut(|threads| {
        if threads.run != run {
            *threads = Threads { run, ..Threads::default() };
        }
        let new = || Rc::new((Thread::new(), Blocked::new()));
        Rc::clone(threads.threads.entry(thread).or_insert_with(new))
    })
}

#[cfg_attr(world = "vm", track_caller)]
pub(crate) fn with_thread<R>(f: impl FnOnce(&Thread) -> R) -> R {
    f(&current().0)
}

#[cfg_attr(world = "vm", track_caller)]
pub(crate) fn with_blocked<R>(f: impl FnOnce(&Blocked) -> R) -> R {
    f(&current().1)
}

/// All that there are.
pub(crate) fn class() -> u64 {
    u64::MAX >> (64 - 31)
}

/// The machine has a bit 0, too.
fn bits(set: u64) -> u32 {
    signals_in(set & class()).fold(0, |bits, signal| bits | 1 << signal)
}

fn set(bits: u32) -> u64 {
    u64::from(bits >> 1)
}

#[track_caller]
pub(crate) fn block(blocked: u64) -> u64 {
    let before = signal::mask(u32::MAX);
    signal::mask(before | bits(blocked));
    set(before)
}

#[track_caller]
pub(crate) fn unblock(unblocked: u64) {
    if unblocked != 0 {
        let before = signal::mask(u32::MAX);
        signal::mask(before & !bits(unblocked));
    }
}

/// The code that a handler has interrupted.
pub(crate) struct Interrupted;

impl Interrupted {
    pub(crate) fn block(&mut self, blocked: u64) -> u64 {
        let before = signal::mask_on_return(bits(blocked));
        blocked & class() & !set(before)
    }
}

#[track_caller]
pub(crate) fn send_again(signal: i32, _: &Info, _: Handler) {
    let signal = u8::try_from(signal).expect("a signal of the virtual machine");
    signal::send(thread::current(), Signal::new(signal));
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
