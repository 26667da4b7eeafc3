//! [`Extended`]: any raw lock, with a time slice extension asked for while it is held.
//!
//! # Why around the lock
//! A policy of each protocol could put the request before the very read-modify-write that acquires,
//! also after a wait. It would stand in every protocol of the family, would be ignored by those
//! that forget it, and tokens would have to carry it. Around the lock it serves all of them, and
//! those of users; a lock that does not opt in is untouched, and so are its models. The price is
//! paid after a wait only:
//!
//! | acquisition | the request is set |
//! |---|---|
//! | at once | before the lock is tried, hence before it is held |
//! | after a wait | when the wait is over: a few instructions late. While it waits a thread asks for nothing |
//!
//! A preemption in those few instructions finds a holder that has not asked, as it would without
//! all this. To ask throughout the wait would close the gap and be worse: a spinner would get
//! extensions, perhaps on the CPU on which the holder is to run; and a grant would be used up
//! before the lock is held.
//!
//! The request is withdrawn, and the CPU given back, after the release, which stays the last touch
//! of the lock: what follows it is in the thread's own memory.

use crate::lock::slice::{enter, leave};
use crate::lock::traits::{Metered, RawMutex, RawMutexFair};
use crate::sys::futex::FutexKey;
use crate::sys::time::Deadline;

/// The raw lock `L`, whose holders ask for a time slice extension if their thread has been
/// [enabled](super::enable).
///
/// It promises what `L` promises, and is as large. In a thread that is not enabled it costs a
/// thread-local load at each acquisition and each release.
///
/// # Examples
/// ```
/// use ulocks_core::api::Mutex;
/// use ulocks_core::raw::RawMutex;
/// use ulocks_core::slice::{self, Extended};
///
/// fn add<L: RawMutex>(total: &Mutex<Extended<L>, u64>) {
///     // Each thread that is to profit from it, once; where it is missing the lock works the same.
///     let _ = slice::enable();
///     *total.lock() += 1; // a preemption in here may be put off by a few microseconds
/// }
/// ```
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Extended<L>(L);

impl<L> Extended<L> {
    /// Asks while `lock` is held.
    pub const fn new(lock: L) -> Self {
        Self(lock)
    }

    /// The lock itself.
    pub const fn inner(&self) -> &L {
        &self.0
    }

    /// The lock itself, out of its wrapper.
    pub fn into_inner(self) -> L {
        self.0
    }
}

impl<L: RawMutex> Extended<L> {
    #[inline]
    fn at_once(&self) -> Option<L::Token> {
        enter();
        let token = self.0.try_lock();
        if token.is_none() {
            leave();
        }
        token
    }
}

/// The request of a section that has begun just now.
#[inline]
fn entered<T>(token: T) -> T {
    enter();
    token
}

crate::initial!([L: RawMutex] Extended<L> = Self(crate::initial!(L)));

// SAFETY:
// * Exclusion and order: each acquisition is one of `L`'s, each release is `L`'s release of that
//   acquisition's token.
// * Forgotten tokens and moved locks: nothing is kept in the lock beside `L`, nor an address of it
//   elsewhere.
unsafe impl<L: RawMutex> RawMutex for Extended<L> {
    type Scope = L::Scope;
    type Token = L::Token;
    const CONDVAR_NS: u32 = L::CONDVAR_NS;

    #[inline]
    fn lock(&self) -> L::Token {
        self.at_once().unwrap_or_else(|| entered(self.0.lock()))
    }

    #[inline]
    fn try_lock(&self) -> Option<L::Token> {
        self.at_once()
    }

    #[inline]
    fn lock_until(&self, deadline: Deadline) -> Option<L::Token> {
        self.at_once().or_else(|| self.0.lock_until(deadline).map(entered))
    }

    #[inline]
    unsafe fn unlock(&self, token: L::Token) {
        // SAFETY: the token comes from an acquisition of this mutex, which was one of `L`'s, in
        // this context.
        unsafe { self.0.unlock(token) };
        // From here on the mutex may be gone.
        leave();
    }

    #[inline]
    unsafe fn unlock_to_wait(&self, token: L::Token) {
        // SAFETY: as in `unlock`.
        unsafe { self.0.unlock_to_wait(token) };
        // From here on the mutex may be gone.
        leave();
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    #[inline]
    fn requeue_key(&self) -> Option<FutexKey<L::Scope>> {
        self.0.requeue_key()
    }

    #[inline]
    fn mark_for_requeued(&self) -> bool {
        self.0.mark_for_requeued()
    }

    #[inline]
    fn lock_requeued(&self) -> L::Token {
        entered(self.0.lock_requeued())
    }
}

// SAFETY: as `RawMutex`; the fair release is `L`'s.
unsafe impl<L: RawMutexFair> RawMutexFair for Extended<L> {
    #[inline]
    unsafe fn unlock_fair(&self, token: L::Token) {
        // SAFETY: as in `unlock`.
        unsafe { self.0.unlock_fair(token) };
        leave();
    }
}

impl<L: Metered> Metered for Extended<L> {
    type Meter = L::Meter;

    fn meter(&self) -> &L::Meter {
        self.0.meter()
    }
}
