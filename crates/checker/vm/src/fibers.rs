//! The threads of the machine: coroutines that one OS thread runs in turn.
//!
//! A coroutine suspends inside an operation of the facade and nowhere else, so everything between
//! two operations is one step. What a coroutine owns when a run ends before it does is leaked, not
//! dropped: a thread that is dead or stuck runs no destructors, and the ones it has might wait for
//! threads that are no more.

use crate::frames;
use crate::side::{Side, is_machine_again};
use core::any::Any;
use core::cell::{Cell, RefCell};
use core::ops::Range;
use core::ptr::NonNull;
use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a coroutine gave the processor back.
pub enum Stopped {
    /// Inside an operation; it can be resumed.
    Suspended,
    /// Its body has returned. Its stack, which another may be given.
    Finished(Range<usize>),
    /// Its body panicked.
    Panicked(Box<dyn Any + Send>),
}

type Outcome = Result<(), Box<dyn Any + Send>>;
type Fiber = Coroutine<(), (), Outcome, DefaultStack>;

/// Room for the deepest call of a lock and of the formatting of a panic; reserved, and only what is
/// touched is used.
const STACK_BYTES: usize = 256 * 1024;

/// What a call of the machine, and the frames that it clears, have room in.
const LEAST_BYTES: usize = 64 * 1024;

/// The largest page of Linux. Below each stack is one that nothing may touch. What lies above it
/// faults not, so the pages of this machine may be smaller.
const GUARD_BYTES: usize = 64 * 1024;

thread_local! {
    /// Stacks that no coroutine uses, with the sizes that were asked for.
    static STACKS: RefCell<Vec<(usize, DefaultStack)>> = const { RefCell::new(Vec::new()) };
    /// The lowest address of the stack of the coroutine that runs, its guard page included.
    static LIMIT: Cell<usize> = const { Cell::new(0) };
    /// The way out of the coroutine that runs.
    static YIELDER: Cell<Option<NonNull<Yielder<(), ()>>>> = const { Cell::new(None) };
    /// The base of its stack.
    static BASE: Cell<usize> = const { Cell::new(0) };
}

/// The coroutines of one run, by number.
pub struct Fibers {
    fibers: RefCell<Vec<Option<Fiber>>>,
    /// The base of each one's stack, and its lowest address.
    stacks: RefCell<Vec<(usize, usize)>>,
    stack_bytes: usize,
}

impl Default for Fibers {
    fn default() -> Self {
        Self::with_stacks(STACK_BYTES)
    }
}

impl Fibers {
    /// Each has a stack of so many bytes, and not less than the machine needs.
    pub fn with_stacks(stack_bytes: usize) -> Self {
        let stack_bytes = stack_bytes.max(LEAST_BYTES);
        Self { fibers: RefCell::default(), stacks: RefCell::default(), stack_bytes }
    }

    /// A new coroutine, which has not started. Its number is the count of those before it.
    pub fn spawn(&self, body: Box<dyn FnOnce()>) -> usize {
        let spare = STACKS.with_borrow_mut(|stacks| {
            let fits = stacks.iter().rposition(|(bytes, _)| *bytes == self.stack_bytes)?;
            Some(stacks.swap_remove(fits).1)
        });
        let stack =
            spare.unwrap_or_else(|| DefaultStack::new(self.stack_bytes).expect("no memory for a stack"));
        let base = stack.base().get();
        frames::clear(base);
        self.stacks.borrow_mut().push((base, stack.limit().get()));
        let fiber = Fiber::with_stack(stack, move |yielder, ()| {
            YIELDER.set(Some(NonNull::from(yielder)));
            catch_unwind(AssertUnwindSafe(body))
        });
        let mut fibers = self.fibers.borrow_mut();
        fibers.push(Some(fiber));
        fibers.len() - 1
    }

    fn recycle(&self, stack: DefaultStack) {
        debug_assert!(stack.base().get() > stack.limit().get());
        STACKS.with_borrow_mut(|stacks| stacks.push((self.stack_bytes, stack)));
    }

    /// Runs the coroutine until it suspends or ends.
    pub fn resume(&self, number: usize) -> Stopped {
        let mut fiber = self.fibers.borrow_mut()[number].take().expect("a coroutine that has ended");
        let (base, limit) = self.stacks.borrow()[number];
        BASE.set(base);
        LIMIT.set(limit);
        let side = Side::of_model();
        let stopped = fiber.resume(());
        drop(side);
        YIELDER.set(None);
        LIMIT.set(0);
        match stopped {
            CoroutineResult::Yield(()) => {
                self.fibers.borrow_mut()[number] = Some(fiber);
                Stopped::Suspended
            }
            CoroutineResult::Return(outcome) => {
                let stack = fiber.into_stack();
                let addresses = stack.limit().get()..stack.base().get();
                self.recycle(stack);
                match outcome {
                    Ok(()) => Stopped::Finished(addresses),
                    Err(payload) => Stopped::Panicked(payload),
                }
            }
        }
    }
}

/// Appends the state of the coroutine that runs, as it was when it called the engine, to `bytes`.
/// False if it cannot be told.
pub(crate) fn state(bytes: &mut Vec<u8>) -> bool {
    frames::state(BASE.get(), bytes)
}

/// Gives the processor back to the code that resumed this coroutine.
pub fn suspend() {
    let yielder = YIELDER.get().expect("suspended outside of a coroutine");
    let top = frames::top();
    // SAFETY: the yielder lives on the stack of the coroutine that is running, which is this one.
    unsafe { yielder.as_ref() }.suspend(());
    is_machine_again();
    YIELDER.set(Some(yielder));
    frames::set_top(top);
}

impl Drop for Fibers {
    fn drop(&mut self) {
        for mut fiber in self.fibers.take().into_iter().flatten() {
            // SAFETY: what the coroutine owns is leaked. No code refers to its stack any more: the
            // run is over, and the other coroutines never run again.
            unsafe { fiber.force_reset() };
            self.recycle(fiber.into_stack());
        }
    }
}

/// Whether an access of `address` is one beyond the stack of the coroutine that runs. May be called
/// by a handler of signals.
pub(crate) fn is_beyond_the_stack(address: usize) -> bool {
    let limit = LIMIT.get();
    limit != 0 && (limit..limit + GUARD_BYTES).contains(&address)
}
