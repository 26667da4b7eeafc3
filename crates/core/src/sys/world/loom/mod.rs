//! The loom world: loom's atomics and cells, a futex that loom's scheduler understands, and a
//! harness.
//!
//! One OS thread runs a model; the model's threads are coroutines, and a switch happens only inside
//! a loom operation. Code between two loom operations is therefore atomic, which is what lets plain
//! `std` structures hold the state of the modelled kernel (`table`).
//!
//! What loom does not see, and what a model must respect:
//! - at most four spawned threads beside the model's own;
//! - `SeqCst` loads and stores are acquire and release: only `fence(SeqCst)` and read-modify-writes
//!   are exact;
//! - a plain `store` to a word that others read-modify-write raises false alarms: release with a
//!   read-modify-write;
//! - a read-modify-write always reads the newest store, a weak compare-exchange never fails
//!   spuriously;
//! - all state is per execution: statics of a model are declared with `sync_static!`;
//! - a panic ends the model: guards do nothing while a thread panics.

pub(crate) mod clock;
mod declare;
pub(crate) mod kernel;
pub(crate) mod membarrier;
pub mod model;
pub(crate) mod pause;
pub(crate) mod pi;
pub(crate) mod signal;
mod table;
mod tid;

use crate::sys::types::releases::Releases;
use core::cell::RefCell;

pub(crate) use tid::thread_id;

pub use loom::hint::spin_loop as pause;
pub use loom::thread::yield_now;

/// For `sync_static!`.
#[doc(hidden)]
pub use loom as __model;

/// Which CPU a thread is on: unknown, as on a machine that does not say.
pub(crate) fn current_cpu() -> Option<u32> {
    None
}

/// On which CPUs a thread may run: on all, as far as is known.
pub(crate) fn usable_cpus() -> u64 {
    u64::MAX
}

/// A model has no time.
pub(crate) fn has_rates() -> bool {
    false
}

/// Nothing is remembered.
pub(crate) fn with_releases<R>(f: impl FnOnce(&Releases) -> R) -> R {
    f(&Releases::default())
}

/// How many CPUs a process may use: many.
pub(crate) fn cpu_count() -> u32 {
    u64::BITS
}

/// They do not change.
pub(crate) fn recount_cpus() {}

/// There is none.
pub(crate) fn keep_cpu_quota() {}

/// Atomic types of this world.
pub mod atomic {
    pub use core::sync::atomic::compiler_fence;
    pub use loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
}

/// Sets `bit` in the address that `word` holds; whether it was set.
pub(crate) fn set_bit<T>(word: &atomic::AtomicPtr<T>, bit: usize, order: atomic::Ordering) -> bool {
    // Of loom's pointers only a compare-exchange reads and writes at once.
    let mut before = word.load(atomic::Ordering::Relaxed);
    loop {
        let after = before.map_addr(|address| address | bit);
        match word.compare_exchange(before, after, order, atomic::Ordering::Relaxed) {
            Ok(before) => return before.addr() & bit != 0,
            Err(now) => before = now,
        }
    }
}

/// A cell whose accesses a model world can see: data is reached through closures.
#[derive(Debug)]
pub struct UnsafeCell<T: ?Sized>(loom::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// A cell that holds `value`.
    #[track_caller]
    pub fn new(value: T) -> Self {
        Self(loom::cell::UnsafeCell::new(value))
    }

    /// The value, out of its cell.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: Default> Default for UnsafeCell<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Shared access for the duration of `f`.
    #[track_caller]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        self.0.with(f)
    }

    /// Exclusive access for the duration of `f`.
    #[track_caller]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        self.0.with_mut(f)
    }
}

/// Tells the model when data that lives outside of any [`UnsafeCell`] is being read or written.
///
/// It stands for the data in loom's race detection, so that the data may have any type, be unsized,
/// and be projected.
pub(crate) struct Watch {
    cell: loom::cell::UnsafeCell<()>,
    /// The accesses that are open. Kept here and not in guards: a guard may be forgotten and its
    /// lock released all the same. Which of several readers opened which does not matter: an access
    /// ends for the thread that ends it.
    open: RefCell<Open>,
}

#[derive(Default)]
struct Open {
    writing: Option<loom::cell::MutPtr<()>>,
    reading: Vec<loom::cell::ConstPtr<()>>,
}

// SAFETY: every thread of a model runs on one OS thread and is switched only inside loom
// operations. What opens an access touches `open` after the loom operation of the same call, what
// closes one takes it out first; no thread is switched out while it is half done.
unsafe impl Send for Watch {}
// SAFETY: as above.
unsafe impl Sync for Watch {}

impl Watch {
    #[track_caller]
    pub(crate) fn new() -> Self {
        Self { cell: loom::cell::UnsafeCell::new(()), open: RefCell::default() }
    }

    /// Exclusive access begins. Fails the model if another access is open or is not ordered before
    /// this one.
    #[track_caller]
    pub(crate) fn open_write(&self) {
        let access = self.cell.get_mut();
        self.open.borrow_mut().writing = Some(access);
    }

    /// The exclusive access ends.
    pub(crate) fn close_write(&self) {
        let access = self.open.borrow_mut().writing.take();
        drop(access);
    }

    /// Shared access begins. Fails the model if an exclusive one is open or is not ordered before
    /// this one.
    #[track_caller]
    pub(crate) fn open_read(&self) {
        let access = self.cell.get();
        self.open.borrow_mut().reading.push(access);
    }

    /// A shared access ends.
    pub(crate) fn close_read(&self) {
        let access = self.open.borrow_mut().reading.pop();
        drop(access);
    }
}

/// After how many fruitless looks a spinner's further schedules are no longer explored. Not one:
/// then nothing would be explored that follows a fruitless look, which is what a spinning lock is
/// about.
const ROUNDS_EXPLORED: u32 = 2;

/// Waits, spinning, until `ready` returns true.
///
/// Schedules in which the spinner fails a second time, and something new happens after that, are
/// run but not branched on. Without this cut, models with three spinning threads never end.
pub fn spin_until(mut ready: impl FnMut() -> bool) {
    let mut rounds = 0;
    while !ready() {
        rounds += 1;
        if rounds == ROUNDS_EXPLORED {
            loom::skip_branch();
        }
        pause();
    }
}

loom::thread_local! {
    /// The handler that is due at one of this thread's points of interruption.
    static INTERRUPTION: RefCell<Option<Interruption>> = RefCell::new(None);
}

struct Interruption {
    points_to_pass: usize,
    handler: Box<dyn FnOnce()>,
}

/// A place in a protocol, between two of its steps, where a modelled signal handler may run on this
/// thread or the thread may die. Does nothing unless the thread asked for it with
/// [`model::interrupt_at`].
pub fn interruption_point() {
    interrupted_here();
}

/// Passes a point of interruption. Whether a handler was due, and has run.
fn interrupted_here() -> bool {
    let due = INTERRUPTION.with(|slot| {
        let mut slot = slot.borrow_mut();
        match slot.as_mut() {
            Some(pending) if pending.points_to_pass > 0 => {
                pending.points_to_pass -= 1;
                None
            }
            Some(_) if signal::are_blocked() => None,
            _ => slot.take(),
        }
    });
    match due {
        Some(interruption) => {
            signal::handle(interruption.handler);
            true
        }
        None => false,
    }
}

/// A model does not fork.
pub(crate) fn process_generation() -> Option<u32> {
    Some(1)
}
