//! The soft mask: a thread says that handlers must wait, and asks the kernel only if one came.
//!
//! Each thread has a depth, and handlers that interrupt the thread read it. This is Linux' lazy
//! disabling of interrupts: two plain additions where `pthread_sigmask` would be two system calls.
//! The first signal that comes in between pays for it. Its handler puts it aside, and then really
//! blocks the class, so that all further signals stay in the kernel's queue. There is one place to
//! put a signal aside, and no ring that could overflow.
//!
//! # State
//! Of each thread, accessed by that thread and by handlers on it:
//!
//! | what | law |
//! |---|---|
//! | `depth` | how many masks are up. Written by [`raise`] and [`lower`]; a handler that changes it puts it back |
//! | `place` | `EMPTY`, `FILLING`, `FULL`: whether a signal is put aside. EMPTY to FULL by a handler with `depth > 0`; FULL to EMPTY by the `lower` that made the depth zero, with the class blocked |
//! | `arrival` | the signal that is put aside. It belongs to the handler that made `place` FILLING, and once it is FULL to the `lower` |
//! | `blocked` | the signals that are really blocked only because one is put aside. May contain signals that the thread does not block any more, never too few. Never a synchronous one |
//!
//! # Invariants
//! 1. While `depth > 0`, no handler of the class runs on the thread, except those of synchronous
//!    signals.
//! 2. The handler of a signal runs once. If `depth` is 0, it runs at once. Otherwise the signal is
//!    put aside. If the place is taken, it goes back into the kernel's queue with the class
//!    blocked.
//! 3. `place` is FULL, or `blocked` not empty, only while `depth > 0`, or between the subtraction
//!    of a [`lower`] and the end of that [`lower`].
//! 4. A handler leaves all of this as it found it. A handler that runs in the window of 3 hides the
//!    signal that was put aside. So its own masks do not act on signals that are blocked in the
//!    code that it interrupted.
//! 5. No synchronous signal is ever really blocked by this file: every set that it blocks is
//!    [`deferrable`]. If a fault finds its signal blocked, the kernel resets the action and kills
//!    the process.
//!
//! # Windows
//! A signal may come between any two instructions. What happens:
//!
//! | where | what |
//! |---|---|
//! | in [`raise`], before the depth is stored | the handler runs; what it adds it has subtracted when it returns, so that the value in our register is still right |
//! | after that | it is put aside |
//! | in [`lower`], before the depth is stored | it is put aside, and the load of `place` that follows the store finds it. If the load came first, a signal between the two would be put aside and stay there |
//! | after the store, before the load | none was put aside: the handler runs. One was: the class is blocked, and the signal waits in the kernel |
//! | in the load, and while the handler of the signal that was put aside runs | as before: the class is blocked, until after the run |
//! | when the class is unblocked | the kernel delivers what it has kept before the call returns; the depth is 0 |
//!
//! By Invariant 5 the handler of a synchronous signal may strike anywhere, also in this file and in
//! another handler. It finds one of three states:
//! - `depth > 0`: its closure runs, and looks at nothing else. Its own masks raise the depth and
//!   bring it back.
//! - `depth == 0` and `place` FULL: it is in the window of Invariant 3, and hides what is put
//!   aside. In the midst of [`Thread::take`] it writes back the same arrival.
//! - `depth == 0` and `place` EMPTY: what was put aside is in the local variables of the code
//!   below.
//!
//! While it runs the other signals of the class are blocked, so that its own masks put nothing
//! aside.
//!
//! Two ways lead to a second signal in spite of the block: the code between [`raise`] and [`lower`]
//! sets the thread's mask to one of its own; or a handler that is not wrapped was interrupted, and
//! at its end the kernel restores the mask that was there before it. The place is not EMPTY then,
//! and the signal is sent to the thread once more, as it was (`rt_tgsigqueueinfo`), after the class
//! has been blocked. It may then be behind a younger one of the same number; and a real-time signal
//! is lost if the user's queues are full (`RLIMIT_SIGPENDING`), as it would be for any sender.
//!
//! # Memory ordering
//! All of it belongs to one thread, so only the compiler could reorder it. There is a
//! `compiler_fence` after the depth is raised, and on both sides of where it is lowered. The
//! accesses are atomic and relaxed, since handlers share them. Unless a signal is put aside, none
//! is a read-modify-write.
//!
//! # Sources
//! D. Stodolsky, J. Chen, B. Bershad, "Fast Interrupt Priority Management in Operating System
//! Kernels" (1993); Linux' soft-disabled interrupts on powerpc (`arch/powerpc/kernel/irq.c`).

use super::context::Context;
use super::set::{SYNCHRONOUS, bit};
use crate::sys::sync::{interruption_point, without_unwinding};
use crate::sys::world::signal::{self, Handler, Info, Interrupted};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{
    AtomicU8, AtomicU32, AtomicU64,
    Ordering::{Relaxed, SeqCst},
    compiler_fence,
};

#[cfg(all(test, world = "machine"))]
mod tests;

const EMPTY: u8 = 0;
const FILLING: u8 = 1;
const FULL: u8 = 2;

/// A signal that is put aside.
struct Arrival {
    signal: i32,
    info: Info,
    handler: Handler,
}

/// What a thread has of the soft mask.
pub(crate) struct Thread {
    depth: AtomicU32,
    place: AtomicU8,
    blocked: AtomicU64,
    arrival: UnsafeCell<MaybeUninit<Arrival>>,
}

impl Thread {
    pub(crate) const fn new() -> Self {
        Self {
            depth: AtomicU32::new(0),
            place: AtomicU8::new(EMPTY),
            blocked: AtomicU64::new(0),
            arrival: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Takes what was put aside, if something was.
    ///
    /// # Safety
    /// No handler is putting a signal aside, and code that interrupts this puts back what it takes.
    unsafe fn take(&self) -> Option<Arrival> {
        if self.place.load(Relaxed) != FULL {
            return None;
        }
        // SAFETY: FULL says that it is written, and the caller that no handler writes. It is not
        // read again before it is written again, since the place becomes EMPTY. A handler that
        // interrupts us here writes what it has read.
        let arrival = unsafe { (*self.arrival.get()).assume_init_read() };
        compiler_fence(SeqCst);
        self.place.store(EMPTY, Relaxed);
        Some(arrival)
    }

    /// Fills the place, which the caller has claimed.
    ///
    /// # Safety
    /// The place is FILLING, or EMPTY and no other thread fills it.
    unsafe fn fill(&self, arrival: Arrival) {
        // SAFETY: the caller alone may write, and no thread reads before the place is FULL.
        unsafe { (*self.arrival.get()).write(arrival) };
        compiler_fence(SeqCst);
        self.place.store(FULL, Relaxed);
    }
}

/// The class without the signals that must never be blocked (Invariant 5).
fn deferrable() -> u64 {
    signal::class() & !SYNCHRONOUS
}

/// The signals that the calling thread blocks for no other reason than that one is put aside.
pub(super) fn blocked_for_one_aside() -> u64 {
    signal::with_thread(|thread| thread.blocked.load(Relaxed))
}

/// Whether a soft mask is up on the calling thread.
pub(super) fn is_up() -> bool {
    signal::with_thread(|thread| thread.depth.load(Relaxed) > 0)
}

/// From here on, handlers of the class wait.
#[inline(always)]
#[cfg_attr(world = "vm", track_caller)]
pub(super) fn raise() {
    signal::with_thread(|thread| {
        // Not a read-modify-write: a handler that comes between leaves the depth as it was. After
        // 2^32 guards that were forgotten the mask stays up.
        thread.depth.store(thread.depth.load(Relaxed).saturating_add(1), Relaxed);
    });
    compiler_fence(SeqCst);
    interruption_point();
}

/// Takes back one [`raise`]; the last one lets in the signals that had to wait.
#[inline(always)]
#[cfg_attr(world = "vm", track_caller)]
pub(super) fn lower() {
    compiler_fence(SeqCst);
    signal::with_thread(|thread| {
        let outer = thread.depth.load(Relaxed).wrapping_sub(1);
        debug_assert!(outer < u32::MAX, "a mask is lowered that was not raised");
        thread.depth.store(outer, Relaxed);
        compiler_fence(SeqCst);
        interruption_point();
        if outer == 0 && thread.place.load(Relaxed) != EMPTY {
            let_in(thread);
        }
    });
}

/// Runs what was put aside, and then lets the kernel deliver what it has kept. The depth is zero.
#[cold]
#[inline(never)]
#[cfg_attr(world = "vm", track_caller)]
fn let_in(thread: &Thread) {
    // As a rule they are blocked already; the header says when they are not.
    let class = deferrable();
    let newly = class & !signal::block(class);
    // First this, then the place: while the place is FULL, a handler hides both.
    let blocked = newly | thread.blocked.swap(0, Relaxed);
    // SAFETY: the depth is zero, so that no handler puts anything aside; handlers put back what
    // they take.
    if let Some(arrival) = unsafe { thread.take() } {
        let _errno = crate::sys::errno::Guard::new();
        // Its signal is not a synchronous one, and so cannot be passed on.
        let _ = run(arrival.signal, &arrival.info, arrival.handler, true);
    }
    signal::unblock(blocked);
}

/// A signal of the class has struck the calling thread. It is blocked itself, and so are the
/// deferrable signals of the class as it was when the signal was caught. Returns whether the
/// closure has run and passes the signal on.
#[cfg_attr(world = "vm", track_caller)]
pub(crate) fn arrive(signal: i32, info: &Info, handler: Handler, interrupted: &mut Interrupted) -> bool {
    signal::with_thread(|thread| {
        let is_up = thread.depth.load(Relaxed) > 0;
        if is_up && bit(signal) & SYNCHRONOUS == 0 {
            put_aside(thread, Arrival { signal, info: *info, handler }, interrupted);
            false
        } else {
            // SAFETY: if a handler were putting a signal aside, the depth would not be zero; and
            // below we put it back.
            let hidden = if is_up { None } else { unsafe { hide(thread) } };
            let is_passed_on = run(signal, info, handler, false);
            if let Some((arrival, blocked)) = hidden {
                // SAFETY: as above. What was put aside by masks of this handler, they have let in.
                unsafe { thread.fill(arrival) };
                thread.blocked.store(blocked, Relaxed);
            }
            is_passed_on
        }
    })
}

/// Takes away what the interrupted code has put aside (Invariant 4), in the order of [`let_in`].
///
/// # Safety
/// As [`Thread::take`].
unsafe fn hide(thread: &Thread) -> Option<(Arrival, u64)> {
    if thread.place.load(Relaxed) != FULL {
        return None;
    }
    let blocked = thread.blocked.swap(0, Relaxed);
    // SAFETY: the caller's word.
    unsafe { thread.take() }.map(|arrival| (arrival, blocked))
}

#[cold]
fn put_aside(thread: &Thread, arrival: Arrival, interrupted: &mut Interrupted) {
    // Before the place is claimed: a handler that finds it claimed relies on it.
    // It may have left the class meanwhile, and is blocked all the same.
    let newly = interrupted.block(deferrable() | bit(arrival.signal));
    thread.blocked.fetch_or(newly, Relaxed);
    // A handler of a signal that has just joined the class may interrupt this one: one of the two
    // gets the place.
    if thread.place.compare_exchange(EMPTY, FILLING, Relaxed, Relaxed).is_ok() {
        // SAFETY: we have claimed it.
        unsafe { thread.fill(arrival) };
    } else {
        signal::send_again(arrival.signal, &arrival.info, arrival.handler);
    }
}

/// Runs the handler, and returns whether it passes the signal on. A panic does not leave it: the
/// code below expects none.
#[cfg_attr(world = "vm", track_caller)]
fn run(signal: i32, info: &Info, handler: Handler, is_deferred: bool) -> bool {
    let context = Context::new(signal, info, is_deferred);
    without_unwinding(|| handler(&context));
    context.is_passed_on()
}
