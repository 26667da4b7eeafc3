//! The family's condition variable: it works with every [`RawMutex`], in one process or in shared memory.
//!
//! - 16 bytes, all-zero when nobody waits, no allocation, nothing to initialise.
//! - Timed by absolute deadlines. A notify without waiters makes no system call.
//! - No lost wake-ups, with or without the mutex held by the notifier, for any number of mutexes. Few spurious ones; the
//!   [list](RawCondvar#spurious-wake-ups) is complete.
//! - [`notify_all`](RawCondvar::notify_all) wakes one thread and moves the others to the mutex, where each release wakes
//!   the next, instead of waking a herd of which all but one go to sleep again. Only in one process, and only for a
//!   mutex that offers its futex ([`RawMutex::requeue_key`]).
//!
//! # State
//! | word | what | changed by |
//! |---|---|---|
//! | `moves: u32` | the futex the waiters sleep on; only "has it changed" matters | every notification that finds a waiter, once; a waiter that brings a second mutex |
//! | `aim: u32` | where a notification may move sleepers: `FRESH`, the distance to the one mutex in use, `PLAIN`, `MIXED` | waiters, before they register |
//! | `ledger: u64` | who waits and who was notified, below | everyone, by compare-exchange |
//!
//! | part of `ledger` | bits | law |
//! |---|---|---|
//! | `waiting` | 20 | threads between their registration and their leave, notified or not |
//! | `granted` | 20 | notifications given that no waiter has taken yet |
//! | `REQUEUING` | 1 | a notification is about to move sleepers to the mutex; set by its grant, cleared by it afterwards. Others wake everybody meanwhile |
//! | `REQUEUED` | 1 | somebody may sleep on the mutex: whoever leaves locks by `lock_requeued`. Set with `REQUEUING`, cleared when nobody waits and `REQUEUING` is not set |
//! | `epoch` | 22 | moves with each grant. A waiter is *covered* if `epoch` is not what it was when it registered |
//!
//! # Protocol
//! A **wait**, holding the mutex: (1) checks the aim; (2) reads `moves`; (3) registers, `waiting + 1`, remembering the
//! epoch; (4) releases the mutex; (5) sleeps on `moves` while it has the value read; (6) leaves; (7) locks the mutex.
//!
//! A **leave** is one compare-exchange: `waiting - 1`, and `granted - 1` if the waiter is covered and `granted` is not
//! zero. Who finds `moves` changed but is not covered does not leave: the change was for those who came before, and it
//! sleeps again on the newer value. Who was woken by the kernel but is not covered may have got a wake-up meant for an older
//! waiter behind it in the kernel's queue, or below it in priority: while a grant is left, it passes the wake-up on, and
//! leaves. If none is left, nobody it could be meant for has a claim to it, and it just leaves; to pass it on then would
//! let two waiters wake one another for ever.
//!
//! A **notification**: (1) grants, `granted + 1` (`granted = waiting` for all) and `epoch + 1`, or returns if nobody
//! waits; (2) moves `moves`; (3) wakes one, or wakes one and requeues the others, or wakes all.
//!
//! # Invariants
//! 1. A waiter that is covered finds `moves` different from what it read in step 2, at the latest when its notifier is
//!    past its step 2: the waiter read before it registered, the notifier moved after it saw the registration.
//!    So a covered waiter either does not fall asleep or is asleep before its notifier's step 3.
//! 2. A covered waiter never goes back to sleep on this condition variable. (It must not: if it was asleep, the wake-up
//!    it got may be the last one for it.)
//! 3. `granted` is at most the number of covered waiters. A grant covers everyone and does not exceed `waiting`; a
//!    covered waiter takes a grant when it leaves, if there is any; one that is not covered takes none.
//! 4. Covered waiters that sleep unserved are at most as many as wake-ups still to come plus covered waiters without a
//!    grant. A grant adds to both sides what it covers; a wake-up takes one from each; a leave is invariant 3.
//!    A wake-up that is not passed on takes one from one side only, but where `granted` is zero the covered alone suffice.
//!    Hence, if `granted == waiting`, everyone who waits is covered and has been or will be woken: a notification may
//!    return at once. In shared memory it does not, because a notifier may have been killed between its steps.
//! 5. A thread sleeps on the mutex only if it waits with that mutex, `REQUEUED` is set, and one of the threads that slept
//!    with it was woken. All of them lock by `lock_requeued`, so each release wakes the next until none sleeps there.
//!    Those who are moved need not be those who were notified: all of these may have left and others be asleep when the
//!    requeue comes. This is why `REQUEUED` stays while `REQUEUING` is set.
//! 6. `aim` goes `FRESH -> PLAIN` or `FRESH -> distance -> MIXED`, never back. A waiter whose mutex is not the one aimed at
//!    sets `MIXED` *and then* moves `moves`; a notifier reads `aim` after it moved `moves`, and requeues only if `moves`
//!    still has that value. So whoever the requeue finds asleep waits with the mutex aimed at.
//!
//! # Memory ordering
//! What a waiter sees of the notifier's work is the mutex's business. The orderings here keep the words in step:
//! - (R) a registration releases, (G) a grant acquires: what the waiter read of `moves` is older than the notifier's move;
//! - (M) a move releases, (W) the look at `moves` after a sleep acquires: whoever sees the move sees the grant;
//! - (A) `MIXED` is released, read acquiring, and each move is acquire and release: whoever moves later, sees it.
//!
//! # Wrap-around
//! `moves` has 32 bits. A waiter sleeps through its notification if between its step 2 and the kernel's comparison in
//! step 5 a multiple of exactly 2^32 moves happen; at a million notifications a second the thread must stay preempted
//! there for 71 minutes and be resumed on the microsecond. `epoch` has 22 bits: a waiter takes itself for not covered if
//! exactly a multiple of 2^22 grants happen while it waits, 4 seconds at the same rate; the kernel wakes the oldest
//! sleeper first, so it must be preempted on its way to sleep all this time and resumed on the microsecond.
//!
//! # Sources
//! Birrell, "Implementing Condition Variables with Semaphores" (2003), for what goes wrong with counts alone; Drepper,
//! "Futexes Are Tricky" (2004), for requeueing; glibc bug 13165 for the waiter that steals an older waiter's wake-up. From
//! the sequence futex of the Rust standard library it departs by the ledger.

use crate::const_fn;
use crate::futex::{Bits, Futex, FutexKey, Scope, Waited};
use crate::raw::RawMutex;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::{AtomicU32, AtomicU64};
use crate::time::Deadline;
use core::fmt;
use core::marker::PhantomData;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "after a timeout the caller may want to stop waiting"]
pub enum Wakeup {
    /// By a notification, or spuriously: look at the condition again.
    Notified,
    /// The deadline passed, and no notification was taken.
    TimedOut,
}

/// A condition variable for the raw mutex `L`: threads sleep until another thread says that something changed.
///
/// # Fairness
/// The kernel wakes the thread of highest real-time priority first, and among equals the one that fell asleep first. Who then
/// gets the mutex is the mutex's decision.
///
/// # Spurious wake-ups
/// A wait without a notification of its own ends only
/// - if the thread was still on its way to sleep when a notification came: it returns, as well as the sleeper that is woken;
/// - if it began while a notifier that does not hold the mutex was under way: it may return with those that are notified;
/// - if something else wakes the futex at this address, which Linux programs must expect;
/// - if 1,048,575 threads wait already: further ones do not sleep.
///
/// A notification is never lost by any of these, nor by a deadline or a signal that ends a wait at the same moment.
///
/// # Blocking
/// A wait sleeps in the kernel; it does not spin. A notification never blocks, and makes no system call if nobody waits
/// (in one process, neither if everyone who waits was notified already).
///
/// # Panics
/// Never. Unlike `parking_lot`'s, it may be used with several mutexes at once: nothing is lost, but from then on
/// `notify_all` wakes everybody instead of requeueing, and each wait costs one more atomic operation.
///
/// # Destruction
/// It may be freed or unmapped when no thread is inside of `wait` or of a notification, and none will enter one. A
/// notifier that holds the mutex while it notifies has left the notification before any waiter returns; one that does not
/// may be late, and must be waited for otherwise. To have notified everybody is not enough: they have to leave `wait`.
///
/// # Process-shared
/// If the mutex's scope is `Shared`, the condition variable may be mapped by several processes at different addresses; it
/// contains no address. It is not robust. A process that is killed inside of `wait` leaves `waiting` one too high, so that
/// notifications make a system call for nobody; one that is killed after it was woken takes that notification with
/// it, and another waiter may stay asleep until the next. One that is killed inside of a notification may not have
/// notified. Bound such waits by a deadline.
///
/// # Signals and forks
/// A signal handler may notify. A wait survives signals: it goes back to sleep. The child of a fork inherits the count of
/// waiters but not the waiters, with the effect described for a killed process.
///
/// # Examples
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
/// use ulocks_core::condvar::RawCondvar;
/// use ulocks_core::raw::RawMutex;
/// # use ulocks_testkit::broken::Plain as Mutex;
///
/// static MUTEX: Mutex = Mutex::INIT;
/// static CHANGED: RawCondvar<Mutex> = RawCondvar::new();
/// static OPEN: AtomicBool = AtomicBool::new(false);
///
/// let opener = std::thread::spawn(|| {
///     let token = MUTEX.lock();
///     OPEN.store(true, Relaxed);
///     // SAFETY: the token is from this thread's `lock`.
///     unsafe { MUTEX.unlock(token) };
///     CHANGED.notify_one();
/// });
/// let mut token = MUTEX.lock();
/// while !OPEN.load(Relaxed) {
///     // SAFETY: this thread holds the mutex by `token`.
///     (token, _) = unsafe { CHANGED.wait(&MUTEX, token, None) };
/// }
/// // SAFETY: the token is from the last `wait`, or from `lock`.
/// unsafe { MUTEX.unlock(token) };
/// opener.join().unwrap();
/// ```
#[repr(transparent)]
pub struct RawCondvar<L: RawMutex>(Protocol<L, { seeded::NOTHING }>);

impl<L: RawMutex> RawCondvar<L> {
    const_fn! {
        /// A condition variable on which nobody waits: sixteen zero bytes.
        pub fn new() -> Self {
            Self(Protocol::new())
        }
    }

    /// Releases `mutex`, sleeps until notified or until `deadline`, and acquires `mutex` again, however long that takes.
    ///
    /// A notification that comes after the release is not missed. The wait may end without one: see the
    /// [list](Self#spurious-wake-ups).
    ///
    /// # Safety
    /// `token` comes from an acquisition of `mutex` in this context.
    pub unsafe fn wait(&self, mutex: &L, token: L::Token, deadline: Option<Deadline>) -> (L::Token, Wakeup) {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.0.wait(mutex, token, deadline) }
    }

    /// Notifies one thread that waits, and returns whether there was one that had not been notified yet.
    ///
    /// After `true`, a thread that was waiting returns, and says that it was notified unless its deadline passed as well
    /// and another waiter took the notification. After `false`, in one process, either nobody was waiting or all who were
    /// return because of notifications before this one.
    #[inline]
    pub fn notify_one(&self) -> bool {
        self.0.notify_one()
    }

    /// Notifies all threads that wait, and returns how many of them had not been notified yet.
    ///
    /// All of them return.
    #[inline]
    pub fn notify_all(&self) -> usize {
        self.0.notify_all()
    }
}

impl<L: RawMutex> Default for RawCondvar<L> {
    fn default() -> Self {
        Self::new()
    }
}

impl<L: RawMutex> fmt::Debug for RawCondvar<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RawCondvar").field(&Ledger(self.0.ledger.load(Relaxed))).finish()
    }
}

/// The bugs that the models must find, one at a time. The condition variable proper has none of them: the comparisons
/// with `BUG` are decided at compile time.
#[doc(hidden)]
pub mod seeded {
    /// No bug.
    pub const NOTHING: u8 = 0;
    /// A notification wakes without moving `moves`.
    pub const NO_MOVE: u8 = 1;
    /// A waiter reads `moves` after the mutex is released.
    pub const READS_LATE: u8 = 2;
    /// A waiter registers after the mutex is released.
    pub const REGISTERS_LATE: u8 = 3;
    /// A waiter reads `moves` after it registered.
    pub const READS_AFTER_REGISTERING: u8 = 4;
    /// A covered waiter leaves without taking a grant when its deadline passes.
    pub const TIMEOUT_LEAVES_GRANT: u8 = 5;
    /// A covered waiter takes the grant and says that it timed out.
    pub const TIMEOUT_SWALLOWS_GRANT: u8 = 6;
    /// A waiter that may have slept on the mutex locks as if it had not.
    pub const PLAIN_LOCK: u8 = 7;
    /// A requeue wakes nobody.
    pub const REQUEUES_ALL: u8 = 8;
    /// A requeue that finds `moves` changed does nothing instead.
    pub const IGNORES_MISMATCH: u8 = 9;
    /// Sleepers are requeued to the first mutex ever used.
    pub const TRUSTS_AIM: u8 = 10;
    /// `MIXED` is set, but `moves` is not moved.
    pub const MIXES_QUIETLY: u8 = 11;
    /// `REQUEUED` is cleared with the last waiter, whether or not somebody is about to requeue.
    pub const CLEARS_REQUEUED: u8 = 12;
    /// (M) publishes nothing.
    pub const RELAXED_MOVE: u8 = 13;
    /// (W) learns nothing.
    pub const RELAXED_LOOK: u8 = 14;
}

/// [`RawCondvar`] with the seeded bug `BUG`.
#[doc(hidden)]
#[repr(C)]
pub struct Protocol<L: RawMutex, const BUG: u8> {
    moves: Futex<L::Scope>,
    aim: AtomicU32,
    ledger: AtomicU64,
    mutex: PhantomData<fn(&L)>,
}

#[cfg(not(all(ulocks_loom, feature = "loom")))]
const _: () = assert!(size_of::<AtomicU32>() * 2 + size_of::<AtomicU64>() == 16);

/// `aim`: no waiter yet.
const FRESH: u32 = 0;
/// `aim`: the first waiter's mutex cannot be aimed at, so nobody ever is: it has no key, or is out of range.
const PLAIN: u32 = 1;
/// `aim`: several mutexes are in use.
const MIXED: u32 = 2;
// Any other value is the distance from `moves` to the mutex in units of four bytes, in two's complement. The distances
// that the names above take are those of the condition variable's own words.

/// What waiters sleep with, here and on the mutex they are moved to; see [`RawMutex::requeue_key`].
const MOVABLE: Bits = Bits::one(0);

/// The most that one futex operation can wake or move.
const EVERYBODY: u32 = i32::MAX as u32;

impl<L: RawMutex, const BUG: u8> Protocol<L, BUG> {
    const PRIVATE: bool = <L::Scope as Scope>::PRIVATE;

    const_fn! {
        #[allow(clippy::new_without_default)]
        pub fn new() -> Self {
            Self { moves: Futex::new(0), aim: AtomicU32::new(FRESH), ledger: AtomicU64::new(0), mutex: PhantomData }
        }
    }

    /// # Safety
    /// As [`RawCondvar::wait`].
    pub unsafe fn wait(&self, mutex: &L, token: L::Token, deadline: Option<Deadline>) -> (L::Token, Wakeup) {
        self.check_aim(mutex);
        let mut read = self.moves.load(Relaxed);
        if BUG == seeded::REGISTERS_LATE {
            // SAFETY: as below.
            unsafe { mutex.unlock(token) };
            let Some(epoch) = self.register() else { return (mutex.lock(), Wakeup::Notified) };
            let left = self.sleep(read, epoch, deadline);
            return (mutex.lock_requeued(), left.wakeup);
        }
        let registered = self.register();
        if BUG == seeded::READS_AFTER_REGISTERING {
            read = self.moves.load(Relaxed);
        }
        // SAFETY: the caller's promise.
        unsafe { mutex.unlock(token) };
        if BUG == seeded::READS_LATE {
            read = self.moves.load(Relaxed);
        }
        let Some(epoch) = registered else { return (mutex.lock(), Wakeup::Notified) };
        let left = self.sleep(read, epoch, deadline);
        let may_follow_others = left.requeued && BUG != seeded::PLAIN_LOCK;
        let token = if may_follow_others { mutex.lock_requeued() } else { mutex.lock() };
        (token, left.wakeup)
    }

    /// Makes sure that no notification moves this waiter to another mutex than its own (Invariant 6).
    fn check_aim(&self, mutex: &L) {
        if !Self::PRIVATE {
            return;
        }
        let mine = mutex.requeue_key().and_then(|key| self.distance_to(key)).unwrap_or(PLAIN);
        let mut aim = self.aim.load(Acquire); // (A)
        if aim == FRESH {
            aim = match self.aim.compare_exchange(FRESH, mine, Relaxed, Acquire) {
                Ok(_) => mine,
                Err(other) => other, // (A)
            };
        }
        if aim == mine || aim == PLAIN || BUG == seeded::TRUSTS_AIM {
            return;
        }
        // `MIXED` is not enough of a reason to skip this: the waiter that set it may not have moved `moves` yet.
        self.aim.swap(MIXED, AcqRel); // (A)
        if BUG != seeded::MIXES_QUIETLY {
            self.moves.fetch_add(1, AcqRel); // (A)
        }
    }

    fn distance_to(&self, key: FutexKey<L::Scope>) -> Option<u32> {
        let bytes = key.address().wrapping_sub(self.moves.key().address()).cast_signed();
        // Futexes are aligned to four bytes.
        i32::try_from(bytes / 4).ok().map(i32::cast_unsigned).filter(|&distance| distance > MIXED)
    }

    /// The mutex's futex, if sleepers may be moved there.
    fn target(&self) -> Option<FutexKey<L::Scope>> {
        let aim = self.aim.load(Relaxed);
        (Self::PRIVATE && aim > MIXED).then(|| {
            let bytes = (aim.cast_signed() as isize) * 4;
            FutexKey::of(core::ptr::without_provenance(self.moves.key().address().wrapping_add_signed(bytes)))
        })
    }

    /// Counts the caller in; returns the epoch, or `None` if the ledger has no room for it.
    fn register(&self) -> Option<u32> {
        let mut ledger = Ledger(self.ledger.load(Relaxed));
        while ledger.waiting() < Ledger::MAX {
            // Release (R): pairs with (G) in `grant`.
            match self.ledger.compare_exchange(ledger.0, ledger.with_waiter().0, Release, Relaxed) {
                Ok(_) => return Some(ledger.epoch()),
                Err(now) => ledger = Ledger(now),
            }
        }
        None
    }

    /// Sleeps and counts the caller out.
    fn sleep(&self, mut read: u32, epoch: u32, deadline: Option<Deadline>) -> Left {
        loop {
            let waited = self.moves.wait_bits(read, MOVABLE, deadline);
            if waited == Waited::Interrupted {
                continue;
            }
            // Acquire (W): pairs with (M) in `advance`. A read-modify-write, because the waiter may sleep again on what it
            // finds here, and only that is sure to find what the kernel has just seen.
            read = self.moves.fetch_add(0, if BUG == seeded::RELAXED_LOOK { Relaxed } else { Acquire });
            let key = self.moves.key();
            let Some(left) = self.leave(epoch, waited) else { continue };
            if left.passes_on {
                key.wake(1);
            }
            return left;
        }
    }

    /// Counts the caller out, unless `moves` moved for others only and it has to sleep again.
    fn leave(&self, epoch: u32, waited: Waited) -> Option<Left> {
        let mut ledger = Ledger(self.ledger.load(Relaxed));
        loop {
            let covered = ledger.epoch() != epoch;
            let takes_grant = covered
                && ledger.granted() > 0
                && !(BUG == seeded::TIMEOUT_LEAVES_GRANT && waited == Waited::TimedOut);
            if waited == Waited::Mismatch && !covered {
                return None;
            }
            let mut next = ledger.without_waiter(takes_grant);
            if BUG == seeded::CLEARS_REQUEUED && next.waiting() == 0 {
                next = Ledger(next.0 & !Ledger::REQUEUED);
            }
            match self.ledger.compare_exchange(ledger.0, next.0, Relaxed, Relaxed) {
                Err(now) => ledger = Ledger(now),
                Ok(_) => {
                    let kept = takes_grant && BUG != seeded::TIMEOUT_SWALLOWS_GRANT;
                    let timed_out = waited == Waited::TimedOut && !kept;
                    return Some(Left {
                        wakeup: if timed_out { Wakeup::TimedOut } else { Wakeup::Notified },
                        passes_on: waited == Waited::Woken && !covered && ledger.granted() > 0,
                        requeued: ledger.is_requeued(),
                    });
                }
            }
        }
    }

    pub fn notify_one(&self) -> bool {
        let Some((granted, _)) = self.grant(1, false) else { return false };
        let key = self.moves.key();
        self.advance();
        key.wake(1);
        granted > 0
    }

    pub fn notify_all(&self) -> usize {
        let Some((granted, requeue)) = self.grant(Ledger::MAX, self.target().is_some()) else { return 0 };
        let key = self.moves.key();
        let moves = self.advance();
        // The aim is read anew: after the move, as Invariant 6 demands.
        match self.target() {
            Some(mutex) if requeue => self.wake_one_requeue_others(moves, mutex),
            _ => {
                key.wake(EVERYBODY);
            }
        }
        if requeue {
            self.end_requeuing();
        }
        granted as usize
    }

    fn end_requeuing(&self) {
        let mut ledger = Ledger(self.ledger.load(Relaxed));
        while let Err(now) =
            self.ledger.compare_exchange(ledger.0, ledger.without_requeuing().0, Relaxed, Relaxed)
        {
            ledger = Ledger(now);
        }
    }

    /// On a mismatch another notification or another mutex came between. It is rare enough that waking everybody, which is
    /// right whatever came, is better than a second attempt with an argument of its own.
    fn wake_one_requeue_others(&self, moves: u32, mutex: FutexKey<L::Scope>) {
        let first = if BUG == seeded::REQUEUES_ALL { 0 } else { 1 };
        let requeued = self.moves.cmp_requeue(moves, first, EVERYBODY, mutex);
        if requeued.is_err() && BUG != seeded::IGNORES_MISMATCH {
            self.moves.key().wake(EVERYBODY);
        }
    }

    /// Grants up to `most` notifications and covers everybody; returns how many were granted and whether the caller may
    /// requeue, or `None` if there is nobody to wake.
    ///
    /// It may requeue if it wishes to, if nobody else is about to, and if there are several to notify: a single waiter is
    /// simply woken, and needs no `lock_requeued`.
    fn grant(&self, most: u32, requeue: bool) -> Option<(u32, bool)> {
        let mut ledger = Ledger(self.ledger.load(Relaxed));
        loop {
            let open = ledger.waiting().saturating_sub(ledger.granted());
            // Invariant 4, and why it does not help in shared memory.
            if ledger.waiting() == 0 || (open == 0 && Self::PRIVATE) {
                return None;
            }
            let granted = open.min(most);
            let requeue = requeue && granted > 1 && !ledger.is_requeuing();
            let next = ledger.with_grants(granted, requeue);
            // Acquire (G): pairs with (R) in `register`.
            match self.ledger.compare_exchange(ledger.0, next.0, Acquire, Relaxed) {
                Ok(_) => return Some((granted, requeue)),
                Err(now) => ledger = Ledger(now),
            }
        }
    }

    /// Moves `moves` and returns its new value.
    fn advance(&self) -> u32 {
        if BUG == seeded::NO_MOVE {
            return self.moves.load(Relaxed);
        }
        // Release (M): pairs with (W) in `sleep`. Acquire (A): `check_aim`.
        let order = if BUG == seeded::RELAXED_MOVE { Acquire } else { AcqRel };
        self.moves.fetch_add(1, order).wrapping_add(1)
    }
}

/// How a waiter left.
struct Left {
    wakeup: Wakeup,
    /// Whether the wake-up may be another's.
    passes_on: bool,
    requeued: bool,
}

/// A value of the ledger.
#[derive(Clone, Copy)]
struct Ledger(u64);

impl Ledger {
    const FIELD_BITS: u32 = 20;
    /// The most that fits into `waiting` or `granted`.
    const MAX: u32 = (1 << Self::FIELD_BITS) - 1;
    const ONE_WAITING: u64 = 1;
    const GRANTED_SHIFT: u32 = Self::FIELD_BITS;
    const ONE_GRANTED: u64 = 1 << Self::GRANTED_SHIFT;
    const REQUEUING: u64 = 1 << (2 * Self::FIELD_BITS);
    const REQUEUED: u64 = 1 << (2 * Self::FIELD_BITS + 1);
    const EPOCH_SHIFT: u32 = 2 * Self::FIELD_BITS + 2;
    const ONE_EPOCH: u64 = 1 << Self::EPOCH_SHIFT;

    fn waiting(self) -> u32 {
        self.0 as u32 & Self::MAX
    }

    fn granted(self) -> u32 {
        (self.0 >> Self::GRANTED_SHIFT) as u32 & Self::MAX
    }

    fn is_requeuing(self) -> bool {
        self.0 & Self::REQUEUING != 0
    }

    fn is_requeued(self) -> bool {
        self.0 & Self::REQUEUED != 0
    }

    fn epoch(self) -> u32 {
        (self.0 >> Self::EPOCH_SHIFT) as u32
    }

    fn with_waiter(self) -> Self {
        Self(self.0 + Self::ONE_WAITING)
    }

    /// The epoch wraps around.
    fn with_grants(self, count: u32, requeue: bool) -> Self {
        let requeued = if requeue { Self::REQUEUING | Self::REQUEUED } else { 0 };
        Self(
            (self.0 | requeued)
                .wrapping_add(Self::ONE_GRANTED * u64::from(count))
                .wrapping_add(Self::ONE_EPOCH),
        )
    }

    /// What is counted too low, which only foreign writes to shared memory can bring about, stays at zero.
    fn without_waiter(self, takes_grant: bool) -> Self {
        let mut next = self.0;
        if takes_grant && self.granted() > 0 {
            next -= Self::ONE_GRANTED;
        }
        if self.waiting() > 0 {
            next -= Self::ONE_WAITING;
        }
        Self(next).tidied()
    }

    fn without_requeuing(self) -> Self {
        Self(self.0 & !Self::REQUEUING).tidied()
    }

    /// Without `REQUEUED`, if that is not needed any more (Invariant 5).
    fn tidied(self) -> Self {
        let needed = self.waiting() > 0 || self.is_requeuing();
        if needed { self } else { Self(self.0 & !Self::REQUEUED) }
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requeued = if self.is_requeued() { " REQUEUED" } else { "" };
        write!(f, "waiting={} granted={}{requeued} epoch={}", self.waiting(), self.granted(), self.epoch())
    }
}
