//! The protocol of [`PiMutex`](crate::PiMutex): the kernel's priority-inheriting futex, with a spin
//! in front of it.
//!
//! # Properties
//! - Exclusion; what a holder did happens before the next acquisition returns.
//! - Of the waiters in the kernel the one of highest priority gets the mutex, and among equals the
//!   one that came first. Meanwhile the owner runs with the priority of the best of them. If the
//!   owner itself waits for another such mutex, so does the owner of that, and so on.
//! - Without waiters, one read-modify-write to acquire and one to release.
//! - What cannot end is told: [`PiError::Deadlock`], [`PiError::OwnerGone`].
//! - Timed, on either clock. Four bytes; all-zero is unlocked; nothing is allocated in user space;
//!   works between processes of one pid namespace.
//! - What releases is the last touch, in user space and in the kernel: the thread that releases
//!   last may unmap the mutex.
//!
//! # State
//! The values are those of [`State`]. `me` is the caller's thread id, `it` another's.
//!
//! | from | to | by | step |
//! |---|---|---|---|
//! | 0 | `me` | an arrival, at once or while it spins | (take) |
//! | `me` | 0 | the owner | (free) |
//! | `it` | `it`, `WAITERS` | the kernel, for an arrival that then sleeps | (enqueue) |
//! | 0 | `me`, maybe `WAITERS` | the kernel, for an arrival that came in time after all | (take late) |
//! | `me`, `WAITERS` | `it`, `WAITERS` | the kernel, for the owner, to the best waiter | (hand over) |
//! | `it`, `WAITERS` | `me`, `WAITERS` | the kernel, for an arrival of higher priority, if `it` was handed the mutex and has not run since | (steal) |
//! | `me`, marked | 0 | the kernel, for the owner, if all waiters have timed out | (clear) |
//! | `it`, `WAITERS` | the same, orphaned: `it` has ended, and the kernel has woken the best waiter | the kernel, at the end of the owner | (end) |
//! | `it`, `WAITERS`, orphaned | `me`, `WAITERS`, `OWNER_DIED` | the kernel, for that waiter as it runs | (bequeath) |
//!
//! The kernel refuses an arriving thread, and a requeue to the mutex, between (end) and (bequeath).
//! [`Futex`] asks it again then. The models have no (steal).
//!
//! # Invariants
//! 1. User space changes the word only from 0 to its own id and from its own id, unmarked, to 0.
//!    Hence a mark set by the kernel is never overwritten. While there is a waiter, the release is
//!    a call, which hands over: no wake-up is lost.
//! 2. At most one thread holds the mutex: the word has one id in it, and gets it in (take), (take
//!    late), (hand over), (steal) and (bequeath) only, from a word that has none or by the kernel
//!    on behalf of an owner that gives it up, has ended, or does not know yet that it is the owner.
//! 3. A thread that returns from the kernel with the mutex finds its own id in the word.
//! 4. The word is released by the thread whose id is in it and by no other. So a guard that was
//!    copied by fork into another process does nothing, as long as that process does not hold the
//!    mutex itself. It forgets the copy before it locks: else the drop of the copy releases its own
//!    lock.
//!
//! # The spin
//! While a thread waits in the kernel the word goes from id to id and never becomes 0. A spin is
//! futile then, and the spinner's priority is lent to no thread. So an arriving thread spins, with
//! loads, only while no waiter is known. It goes to the kernel as soon as it sees a mark that was
//! not there when it came, or that has passed from one owner to another.
//!
//! A mark that the thread finds on its arrival is doubtful. (hand over) marks the word of the new
//! owner whether or not another thread waits, so the mark outlives the last waiter by one
//! ownership. A thread that believes it becomes a waiter, and makes it true for another ownership.
//! Two threads would never meet an unmarked word again: each acquisition would cost two system
//! calls and a sleep. So the arriving thread gives a doubtful mark [`DOUBT_NS`]: if the mark was
//! stale, (clear) clears it meanwhile. An arriving thread may enter the queue later by that time.
//! The policy `NoSpin` has none of it.
//!
//! Measured on two CPUs of a Xeon, two threads with empty critical sections: 7 M/s without the
//! doubt, 33 M/s with it, 0.3 M/s without any spin, as in glibc. The doubt is not longer, since the
//! thread of a true mark may be asleep, and need this CPU. With 1 us in place of 3 us an item of a
//! buffer took a quarter less CPU time (the same machine, 23 November 2026).
//!
//! # Ordering
//! Each (take) is Acquire and pairs with (free), Release, and with (clear). The kernel's changes
//! are read-modify-writes with a full barrier. A thread that was handed the mutex by (hand over) or
//! (bequeath) has itself done nothing to the word, and no end of a call orders anything, so it
//! looks at the word again: (look again) is Acquire and reads what (take late), (hand over) or
//! (bequeath) wrote, which it needs for `OWNER_DIED` in any case.
//!
//! # Sources
//! Documentation/locking/pi-futex.rst and kernel/futex/pi.c of Linux. T. Gleixner's and I. Molnar's
//! futex of 2006. From glibc (`nptl/pthread_mutex_lock.c`) it departs by the spin and by telling
//! what glibc answers with eternal sleep: ESRCH, and EDEADLK on mutexes that do not check errors.

use super::word::State;
use ulocks_core::futex::{Futex, PiError};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::spin::{self, Look, Spin};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::without_unwinding;
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Private, raw, tid};

const UNLOCKED: u32 = State::UNLOCKED.0;

/// The longest spin at a mark that was there before the thread came, in nanoseconds.
const DOUBT_NS: u32 = 1_000;

/// How an acquisition ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "what the mutex protects may be half changed"]
pub enum Taken {
    /// The owner before has unlocked.
    Sound,
    /// The owner before ended without unlocking.
    OwnerDied,
}

/// The raw mutex, without data: one futex, and the counters if the policy has any.
#[derive(Debug)]
#[repr(C)]
pub struct RawPiMutex<P: Policy = Private> {
    futex: Futex<P::Scope>,
    meter: P::Meter,
}

impl<P: Policy> RawPiMutex<P> {
    ulocks_core::const_fn! {
        /// An unlocked mutex; its bytes are all zero.
        pub fn new() -> Self {
            Self { futex: Futex::new(UNLOCKED), meter: P::Meter::INIT }
        }
    }

    /// The counters.
    pub fn meter(&self) -> &P::Meter {
        &self.meter
    }

    /// The word as it is at this moment, or was a moment ago.
    pub fn state(&self) -> State {
        State(self.futex.load(Relaxed))
    }

    /// The futex, for a condition variable that moves its sleepers here.
    pub(crate) fn futex(&self) -> &Futex<P::Scope> {
        &self.futex
    }

    /// Acquires the mutex, waiting until `deadline`, if there is one.
    ///
    /// # Errors
    /// [`PiError::TimedOut`]; [`PiError::Deadlock`], also if the caller holds the mutex already,
    /// which takes no call to find out; [`PiError::OwnerGone`]; and the kernel's other refusals.
    /// The mutex is not the caller's then.
    #[inline]
    pub fn acquire(&self, deadline: Option<Deadline>) -> Result<Taken, PiError> {
        let me = tid::current();
        let taken = match self.take(me) {
            Ok(()) => Ok(Taken::Sound),
            Err(seen) => self.acquire_contended(me, seen, deadline),
        };
        self.meter.ended(taken.is_ok());
        taken
    }

    /// Acquires the mutex if that needs no waiting; `None` if a thread owns it, the caller
    /// included.
    ///
    /// # Errors
    /// The kernel's refusals, of a word that has an owner's mark and no owner.
    #[inline]
    pub fn try_acquire(&self) -> Result<Option<Taken>, PiError> {
        let taken = match self.take(tid::current()) {
            Ok(()) => Some(Taken::Sound),
            Err(seen) if seen.owner() != 0 => return Ok(None),
            // A mark without an owner is for the kernel to sort out; it can take the word, user
            // space cannot.
            Err(_) => self.futex.try_lock_pi()?.then(|| self.look_again()),
        };
        if taken.is_some() {
            self.meter.count(Event::Acquired);
        }
        Ok(taken)
    }

    /// Releases the mutex if the caller holds it. What a copy of a guard in a child of fork stands
    /// for is its parent's, and stays as it is.
    #[inline]
    pub(crate) fn release(&self) {
        self.meter.released();
        let me = tid::current();
        // (free); from here on the mutex may be gone.
        if let Err(seen) = self.futex.compare_exchange(me, UNLOCKED, Release, Relaxed) {
            self.release_contended(me, State(seen));
        }
    }

    /// (take): takes the mutex if it is free, or tells what was seen.
    #[inline(always)]
    fn take(&self, me: u32) -> Result<(), State> {
        self.futex.compare_exchange(UNLOCKED, me, Acquire, Relaxed).map(drop).map_err(State)
    }

    /// An arrival that found the mutex taken: spins while no thread waits, then waits.
    #[cold]
    #[inline(never)]
    fn acquire_contended(&self, me: u32, seen: State, deadline: Option<Deadline>) -> Result<Taken, PiError> {
        // No other thread writes this id, so what was seen is not old.
        if seen.owner() == me {
            return Err(PiError::Deadlock);
        }
        if deadline.is_some_and(|deadline| deadline.has_passed()) {
            return Err(PiError::TimedOut);
        }
        self.meter.count(Event::Contended);
        let doubt = DOUBT_NS.min(P::Spin::SATURATED_NS);
        if spin::backing_off_for::<P>(P::Spin::ARRIVAL_NS, doubt, || self.look(me, seen)) {
            self.meter.count(Event::Spun);
            return Ok(Taken::Sound);
        }
        self.meter.count(Event::Slept);
        self.futex.lock_pi(deadline).map(|()| self.look_again())
    }

    /// A spinning waiter's look at the mutex, which was in the state `found` when it came; it takes
    /// it if it is free.
    #[inline]
    fn look(&self, me: u32, found: State) -> Look {
        match self.state() {
            State::UNLOCKED if self.take(me).is_ok() => Look::Acquired,
            seen if seen.is_unmarked() => Look::Taken,
            doubtful if doubtful == found => Look::Saturated,
            _ => Look::Hopeless,
        }
    }

    /// The kernel has given the mutex to a waiter on a condition variable.
    pub(crate) fn look_after_sleep(&self) -> Taken {
        self.meter.count(Event::Acquired);
        self.look_again()
    }

    /// (look again): what an owner by the kernel's hand finds in the word.
    fn look_again(&self) -> Taken {
        let seen = State(self.futex.load(Acquire));
        debug_assert_eq!(seen.owner(), tid::current(), "the kernel gave the mutex to another: {seen:?}");
        if seen.owner_died() { Taken::OwnerDied } else { Taken::Sound }
    }

    /// (hand over), (clear): the release of a marked mutex, unless it is another's (invariant 4).
    #[cold]
    #[inline(never)]
    fn release_contended(&self, me: u32, seen: State) {
        if seen.owner() != me {
            return;
        }
        self.meter.count(Event::Woke);
        if let Err(error) = self.futex.unlock_pi() {
            // The waiters would sleep for as long as this thread lives.
            without_unwinding(|| panic!("a PiMutex could not be released: {error}"));
        }
    }
}

impl<P: Policy> raw::Metered for RawPiMutex<P> {
    type Meter = P::Meter;

    fn meter(&self) -> &P::Meter {
        &self.meter
    }
}

impl<P: Policy> Default for RawPiMutex<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// What the infallible operations make of an acquisition: after the end of an owner it is none, for
/// that owner may have leaked its guard.
fn sound(taken: Taken) -> Result<(), PiError> {
    match taken {
        Taken::Sound => Ok(()),
        Taken::OwnerDied => Err(PiError::OwnerGone),
    }
}

/// What the infallible operations say of an error.
#[cold]
#[inline(never)]
#[track_caller]
fn refused(error: PiError) -> ! {
    panic!("a PiMutex cannot be locked: {error}");
}

ulocks_core::initial!([P: Policy] RawPiMutex<P> = Self::new());

// SAFETY:
// * One token at a time: invariant 2. A thread to which the kernel gives the mutex at the end of an
//   owner gets no token, by `sound`: the owner's was not given up.
// * A release happens before the next acquisition returns: section "Ordering".
// * The token is nothing and no address is kept, so it may be forgotten; the word names its owner
//   wherever it is moved. (The kernel keeps the address of a futex while a thread waits there,
//   which borrows the mutex, so it cannot be moved.)
unsafe impl<P: Policy> raw::RawMutex for RawPiMutex<P> {
    type Scope = P::Scope;
    type Token = ();
    type Condvar = ulocks_core::condvar::Sequence<Self>;
    const CONDVAR_NS: u32 = P::Spin::CONDVAR_NS;

    /// # Panics
    /// On every error of [`acquire`](Self::acquire), and after the end of an owner. Then the
    /// calling thread has the mutex, which stays locked.
    #[inline]
    fn lock(&self) {
        if let Err(error) = self.acquire(None).and_then(sound) {
            refused(error);
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        match self.try_acquire().and_then(|taken| taken.map(sound).transpose()) {
            Ok(taken) => taken,
            Err(error) => refused(error),
        }
    }

    /// # Panics
    /// As [`lock`](raw::RawMutex::lock), but for the time-out.
    #[inline]
    fn lock_until(&self, deadline: Deadline) -> Option<()> {
        match self.acquire(Some(deadline)).and_then(sound) {
            Ok(()) => Some(()),
            Err(PiError::TimedOut) => None,
            Err(error) => refused(error),
        }
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        self.release();
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.state().owner() != 0
    }
}
