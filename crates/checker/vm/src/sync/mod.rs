//! Atomics, cells and the busy-wait of the machine, with the faces they have in `core` and in loom.

mod arc;
mod atomic;
mod cell;
mod condvar;
mod lazy;
pub(crate) mod leaks;
pub mod mpsc;
mod mutex;
mod object;
mod once;
mod per_run;
mod rwlock;
mod weak;

pub use arc::Arc;
pub use atomic::{
    AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8, AtomicU16,
    AtomicU32, AtomicU64, AtomicUsize, fence,
};
pub use cell::{UnsafeCell, Watch};
pub use condvar::{Barrier, BarrierWaitResult, Condvar, WaitTimeoutResult};
pub use core::sync::atomic::{Ordering, compiler_fence};
pub use lazy::{DroppedPerRun, Tracked};
pub use mutex::{Mutex, MutexGuard};
pub(crate) use object::{Beside, LastOfTwo, Returned, Token};
pub use once::{LazyLock, Once, OnceLock};
pub use per_run::PerRun;
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use weak::Weak;

use crate::engine;
use core::panic::Location;

/// Waits, spinning, until `ready` returns true.
///
/// A fruitless round ends when another value than the one it read can be read from one of the words
/// it looked at. An explorer recognises most other loops that wait, too. This one needs no
/// recognition, and the cost model knows of it.
#[track_caller]
pub fn spin_until(mut ready: impl FnMut() -> bool) {
    let at = Location::caller();
    loop {
        engine::with(|engine| engine.begin_round());
        if ready() {
            engine::with(|engine| engine.leave_round());
            return;
        }
        engine::with(|engine| engine.end_round(at));
    }
}

/// One processor hint: the caller is waiting for another thread's store.
#[track_caller]
pub fn pause() {
    pause_times(1);
}

/// `count` processor hints in a row.
#[track_caller]
pub fn pause_times(count: u32) {
    let at = Location::caller();
    engine::with(|engine| engine.pause(count, at));
}

/// How many pauses a busy-wait of `ns` nanoseconds has room for. An explorer answers one, since
/// every further look adds executions and no behaviour.
#[must_use]
pub fn pauses_in(ns: u32) -> u32 {
    engine::with(|engine| engine.pauses_in(ns))
}

/// Lets others go first.
#[track_caller]
pub fn yield_now() {
    let at = Location::caller();
    engine::with(|engine| engine.yield_now(at));
}

/// `membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)`: a `fence(SeqCst)` on every thread of the
/// process, wherever it is.
#[track_caller]
pub fn membarrier() {
    let at = Location::caller();
    engine::with(|engine| engine.membarrier(at));
}

/// A place where a modelled signal handler may run on this thread, or where the thread may die.
#[track_caller]
pub fn interruption_point() {
    let at = Location::caller();
    engine::with(|engine| engine.point(at));
}

/// `ns` nanoseconds of computation that touch no shared memory: time in the cost model, nothing to
/// an explorer.
#[track_caller]
pub fn work(ns: u64) {
    let at = Location::caller();
    engine::with(|engine| engine.work(ns, at));
}
