//! The futex, modelled.
//!
//! Each operation is one loom operation on a common counter followed by a step on plain data
//! (`table`). The counter makes loom treat futex operations as dependent on one another and so
//! explore their orders; it is a relaxed read-modify-write, hence adds no happens-before edge that
//! the kernel does not promise.
//!
//! A wait then compares the word by exchanging the expected value for itself. That reads the newest
//! store in modification order, as the kernel's own read under its queue lock does, and again makes
//! no edge. Between this comparison and the sleeper's entry in the queue there is no loom
//! operation, so the two are one step for every other thread: a wake-up comes before both or after
//! both.
//!
//! A wake never dereferences its key.
//!
//! Loom's `unpark` orders what the waker did before what the sleeper does next. So a protocol that
//! relies on a wake-up for its Acquire passes in the grades that park, and is wrong on the machine.
//! The grade `Unordered` polls.

use super::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use super::interrupted_here;
use super::model::{Grade, Run};
use super::table::{Key, Sleeper, Table};
use super::tid;
use crate::sys::types::futex::{RequeueError, Waited};
use crate::sys::types::time::Deadline;
use std::rc::Rc;

struct Kernel {
    steps: AtomicUsize,
    table: Table,
}

loom::lazy_static! {
    static ref KERNEL: Kernel = Kernel { steps: AtomicUsize::new(0), table: Table::new(Run::current()) };
}

/// Brings the kernel of this execution to life. Called before the model's first thread starts, so
/// that every thread is ordered after it and no thread's first futex call orders it after
/// another's.
pub(super) fn boot() {
    table();
    tid::boot();
}

/// The state of the kernel, to be looked at without a step of the model.
pub(super) fn table() -> &'static Table {
    &KERNEL.table
}

/// The step that makes futex operations depend on one another.
fn step() -> &'static Table {
    KERNEL.steps.fetch_add(1, Relaxed);
    &KERNEL.table
}

/// Whether the newest value of `word` is `expected`.
pub(super) fn holds(word: &AtomicU32, expected: u32) -> bool {
    word.compare_exchange(expected, expected, Relaxed, Relaxed).is_ok()
}

/// `FUTEX_WAIT_BITSET` on `word`.
pub(crate) fn wait(
    word: &AtomicU32,
    expected: u32,
    bitset: u32,
    deadline: Option<Deadline>,
    private: bool,
) -> Waited {
    let key = Key { address: core::ptr::from_ref(word).addr(), private };
    loop {
        let table = step();
        if !holds(word, expected) {
            return Waited::Mismatch;
        }
        // To every other thread, a wait that ends without a wake-up is the same as one that never
        // began: it ends here.
        if table.draw_spurious() {
            return Waited::Woken;
        }
        if deadline.is_some_and(|deadline| table.draw_expiry(&deadline)) {
            return Waited::TimedOut;
        }
        if !interrupted_here() {
            return sleep(table, key, bitset);
        }
        if deadline.is_some() {
            return Waited::Interrupted;
        }
    }
}

/// Sleeps until woken. No loom operation may come between the comparison of the word and this call.
fn sleep(table: &Table, key: Key, bitset: u32) -> Waited {
    let sleeper = table.enqueue(key, bitset);
    while !sleeper.is_woken() {
        match table.grade() {
            Grade::Unordered => loom::thread::yield_now(),
            Grade::Cheap | Grade::Exact => loom::thread::park(),
        }
    }
    Waited::Woken
}

/// Lets threads run that were taken out of the queue.
fn let_run(table: &Table, woken: &[Rc<Sleeper>]) {
    if table.grade() != Grade::Unordered {
        woken.iter().for_each(|sleeper| sleeper.unpark());
    }
}

/// `FUTEX_WAKE_BITSET` on `key`, which need not be mapped any more. Returns how many were woken.
pub(crate) fn wake(key: usize, count: u32, bitset: u32, private: bool) -> u32 {
    if count == 0 {
        return 0;
    }
    let table = step();
    let woken = table.take(Key { address: key, private }, count, bitset);
    let_run(table, &woken);
    count.min(woken.len() as u32)
}

/// `FUTEX_CMP_REQUEUE`: an error if `*word != expected`, otherwise how many were woken and requeued
/// together.
pub(crate) fn cmp_requeue(
    word: &AtomicU32,
    expected: u32,
    wake: u32,
    requeue: u32,
    to: usize,
    private: bool,
) -> Result<u32, RequeueError> {
    let from = Key { address: core::ptr::from_ref(word).addr(), private };
    let table = step();
    if !holds(word, expected) {
        return Err(RequeueError::Mismatch);
    }
    let woken = table.take(from, wake, u32::MAX);
    let moved = table.requeue(from, requeue, Key { address: to, private });
    let_run(table, &woken);
    // The cheap grade wakes the threads that it should move.
    Ok((woken.len() as u32 + moved).min(wake.saturating_add(requeue)))
}
