//! The child of a fork: one thread, and locks whose waiters stayed behind.
//!
//! A lock of this family may name its waiters: nodes in a queue, or a mark that a release wakes a
//! sleeper. In a child of `fork` those threads do not exist, and a release would hand the lock to
//! one of them. Programs fork with mutexes held: handlers of `pthread_atfork` lock them before, and
//! unlock them in both processes after.
//!
//! So each mutex and rwlock has the number of the fork that it has lived through: its *generation*,
//! zero in a process that is not a child. In a child, the first function that finds an older
//! generation begins the lock anew. A lock that was held is held without waiters then, whichever
//! thread it was; others are free. The word of a `PiMutex` names the first thread of the child
//! then, which is the one that forked. In a process that is not a child, no function looks.
//!
//! Owners are told by their thread pointers, and a new thread of the child may get the memory of a
//! thread that stayed behind, and so its pointer. So a lock that is begun anew keeps no owner but
//! the thread that forked: another one becomes [`NOBODY`].
//!
//! Condition variables need none of this: see the section on forks of `RawCondvar`.

use crate::choice::{Choice, note_fork};
use crate::mutex::Mutex;
use crate::{condvar, myself, stats};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicU32, AtomicU64};
use ulocks_core::{spin, tid};

/// How many forks are between this process and the one that loaded the library.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The lock is being begun anew, for the generation in the other bits.
const RENEWING: u32 = 1 << 31;

/// An owner that is not in this process. It is the pointer of no thread, since those are even.
pub const NOBODY: u64 = 1;

/// The thread that forked, by its thread pointer; zero while it is not known.
static FORKER: AtomicU64 = AtomicU64::new(0);

/// Has `fork` call a handler in the child.
pub fn register() {
    extern "C" fn child() {
        note_fork();
    }
    // SAFETY: the handler is a function that stays.
    _ = unsafe { libc::pthread_atfork(None, None, Some(child)) };
}

/// What a child begins anew at once.
pub fn begin_child() {
    GENERATION.fetch_add(1, Relaxed);
    FORKER.store(0, Relaxed);
    look_for_forker();
    condvar::forget();
    stats::forget();
}

/// Begins the mutex anew if it is older than this process.
pub fn renew_mutex(mutex: &Mutex, choice: Choice) {
    renew(&mutex.generation, || mutex.renew(choice));
}

/// Calls `begin_anew` in one thread, if `generation` is not that of the process.
pub fn renew(generation: &AtomicU32, begin_anew: impl FnOnce()) {
    let now = GENERATION.load(Relaxed);
    let renewing = now | RENEWING;
    loop {
        // Acquire: pairs with the release below. What was begun anew is seen by the threads that
        // find the new generation.
        match generation.load(Acquire) {
            same if same == now => return,
            // The other thread may be one that this one keeps from its CPU.
            same if same == renewing => spin::outlast(|| generation.load(Relaxed) != renewing),
            // Also the mark of a thread of the parent, which was at it as another thread forked.
            older => {
                if generation.compare_exchange(older, renewing, Relaxed, Relaxed).is_ok() {
                    begin_anew();
                    generation.store(now, Release);
                    return;
                }
            }
        }
    }
}

/// The thread that forked is the first of the child, and has the number of the process.
fn look_for_forker() {
    if tid::current() == std::process::id() {
        FORKER.store(myself(), Relaxed);
    }
}

/// Makes the owner of a lock that is begun anew [`NOBODY`], unless it is the thread that forked.
pub fn renew_owner(owner: &AtomicU64) {
    if FORKER.load(Relaxed) == 0 {
        look_for_forker();
    }
    let is_here = match (owner.load(Relaxed), FORKER.load(Relaxed)) {
        (0, _) => true, // It has none.
        // The thread that forked has called no function yet. This thread is a new one.
        (owner, 0) => owner != myself(),
        (owner, forker) => owner == forker,
    };
    if !is_here {
        owner.store(NOBODY, Relaxed);
    }
}

/// Gives a lock of the parent the value of a new one. It is one copy: another thread may fork
/// beside it, and its child takes what it finds for the state of the lock.
pub fn renew_lock<L>(lock: &L, new: L) {
    // SAFETY: it is valid and aligned, and the locks of `pthread.h` end without a destructor. No
    // other thread uses it: those of the parent are not in this process, and those of this process
    // wait in `renew`, or for the first call in the child.
    unsafe { core::ptr::from_ref(lock).cast_mut().write(new) };
}
