//! The protocol of [`ByteMutex`](crate::ByteMutex): Molnar's mutex in two bits, with the queue in
//! the parking lot.
//!
//! # Properties
//! - Exclusion; what a holder did happens before the next acquisition returns.
//! - Barging: a thread that finds the lock free takes it, waiters or not. No bound on waiting.
//! - One byte, of which the lock uses two bits. The other six are the user's: every operation
//!   preserves them, and they may change at any moment, by read-modify-writes of any thread,
//!   whether it holds the lock or not.
//! - One read-modify-write to acquire and one to release when no thread contends and none of the
//!   user's bits is set: it is tried on the guess that this is so. If bits are set, the failed try
//!   tells which, and a second one succeeds.
//! - What releases is one read-modify-write, and the last touch: a wake-up that follows names the
//!   byte by its address only. So the thread that releases last may free the byte at once (law 2 of
//!   ARCHITECTURE.md).
//! - All-zero is an unlocked lock. The byte holds no address and may be moved while locked.
//! - The lot allocates when a thread first parks, and has a thread-local destructor: the exception
//!   to law 1.
//!
//! # State
//! The lock's bits of the byte, as in [`ByteState`]. Each transition is one read-modify-write that
//! leaves the user's bits as they are:
//!
//! | from | to | by | label |
//! |---|---|---|---|
//! | free | `LOCKED` | an arriving thread, or a waiter that owes no thread a wake-up | (take) |
//! | free | `LOCKED PARKED` | a debtor | (take and mark) |
//! | `LOCKED` | `LOCKED PARKED` | a waiter that is about to park | (mark) |
//! | `LOCKED` | free | the holder | (release) |
//! | `LOCKED PARKED` | free | the holder, which then unparks one | (release and unpark) |
//!
//! A *debtor* is a waiter that was unparked and left others in the queue: the lot tells it so. It
//! owes them a mark, and pays when it sees `PARKED` set, by (mark), by (take and mark) or by
//! another's hand.
//!
//! # Invariants
//! 1. At most one thread holds the lock: only transitions out of "free" acquire.
//! 2. `PARKED` is never set while the lock is free: (mark) sets it on a held lock, and a release
//!    clears both at once.
//! 3. No thread parks unless the byte was `LOCKED PARKED` at that moment: the lot looks while its
//!    queue is locked.
//! 4. *No waiter is forgotten.* While a waiter is in the queue, `PARKED` is set, or a release that
//!    cleared it is on its way to the parking lot, or there is a debtor that has not paid. A thread
//!    that parks has `PARKED` set (invariant 3). (release and unpark) goes to the parking lot. The
//!    parking lot tells the waiter that it unparks that it is a debtor, if others are left. A
//!    debtor pays before it acquires, parks or times out.
//!
//!    A debtor may be content with a mark that it only *saw*. The release before its own unpark had
//!    cleared the mark, and the debtor has seen that release. So the mark was set after that. The
//!    thread that set it is followed by a release that finds the queue as the debtor left it, or
//!    emptier.
//! 5. `PARKED` may be stale, which costs one visit to the lot that finds no thread, never the other
//!    way round.
//! 6. An unpark that is late, and meant for a lock that was at this address before, is a spurious
//!    one: it takes a waiter out of the queue, and breaks nothing, for the waiter is awake and
//!    invariant 4 does not count it any more; if it leaves others behind, these are told of twice.
//!
//! # The waiting rule
//! That of `unfair::BargingMutex`: wake one, and no other until that one had its round. (release
//! and unpark) clears the mark together with the lock, so threads that come and go meanwhile
//! release without a visit to the lot. An arriving thread spins before it parks, half as long if it
//! sees the mark; a woken waiter that finds the lock taken again does so for a while. No thread
//! yields. A loser parks at the tail.
//!
//! # Ordering
//! (take) and (take and mark) are Acquire, and pair with (release) and (release and unpark), which
//! are Release. The user's changes of the byte are read-modify-writes, hence part of the release
//! sequence: an acquisition that reads from one of them still synchronises with the release before
//! it. (mark) and the looks in the spins are Relaxed. The look in the lot is Relaxed: a release
//! that visited the lot before is visible to it by the lot's rule 1, and one that has not will find
//! the thread.
//!
//! # Sources
//! F. Pizlo, "Locking in WebKit" (2016): two bits of any byte, and a parking lot. `parking_lot` by
//! A. d'Antras: the same in Rust. Both leave the mark set until the queue is empty, so that each
//! release visits the lot while a thread waits, and clear it under the queue's lock: before the
//! release (WebKit, `parking_lot` 0.12), which lengthens every critical section, or after it
//! (0.13), which touches a byte that may be gone. Here it goes with the release, and the woken
//! waiter knows whether to set it again.

use super::bits::UserBits;
use super::word::ByteState;
use core::fmt;
use ulocks_core::futex;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::parking_lot::{ParkKey, Parked};
use ulocks_core::spin::{self, Look};
use ulocks_core::sync::AtomicU8;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Private, raw};

/// The raw lock, without data: the bits `LOCKED` and `PARKED` of a byte of which the rest is the
/// user's, and the counters if the policy has any.
///
/// It is one byte, unlocked if those bits are zero. The six other bits are reached by
/// [`bits`](Self::bits); they are preserved by whatever is done to the lock, and may change while
/// it is held or waited for. A byte that exists already, in a header whose layout is given, becomes
/// a lock by [`from_byte`](Self::from_byte), with those two of its bits that are free.
///
/// What waiting costs, and where it must not be used, is described at
/// [`ByteMutex`](crate::ByteMutex).
///
/// # Examples
/// A bit for the lock in a byte full of flags, in an object that is laid out by others:
/// ```
/// use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
/// use ulocks_core::Private;
/// use ulocks_core::raw::RawMutex as _;
/// use ulocks_unfair::RawByteMutex;
///
/// #[repr(C)]
/// struct Header {
///     kind: u8,
///     flags: AtomicU8, // bits 6 and 7 are free
/// }
/// type Lock = RawByteMutex<Private, 0b0100_0000, 0b1000_0000>;
///
/// impl Header {
///     fn lock(&self) -> &Lock {
///         // SAFETY: everything else in this program changes `flags` by `fetch_or` and `fetch_and`
///         // of bits 0 to 5. There is no other lock in it.
///         unsafe { Lock::from_byte(&self.flags) }
///     }
/// }
///
/// let header = Header { kind: 7, flags: AtomicU8::new(0b0001_0001) };
/// header.lock().lock();
/// header.flags.fetch_or(0b10, Relaxed);
/// // SAFETY: locked above.
/// unsafe { header.lock().unlock(()) };
/// assert_eq!(header.flags.load(Relaxed), 0b0001_0011);
/// ```
///
/// It is a lock of one process, and there is no other policy for it:
/// ```compile_fail,E0271
/// static LOCK: ulocks_unfair::RawByteMutex<ulocks_core::Shared> = ulocks_unfair::RawByteMutex::new();
/// ```
/// The two bits are two bits:
/// ```compile_fail,E0080
/// static LOCK: ulocks_unfair::RawByteMutex<ulocks_core::Private, 1, 1> = ulocks_unfair::RawByteMutex::new();
/// ```
#[repr(C)]
pub struct RawByteMutex<P = Private, const LOCKED: u8 = 0b01, const PARKED: u8 = 0b10>
where
    P: Policy<Scope = futex::Local>,
{
    byte: AtomicU8,
    meter: P::Meter,
}

impl<P, const LOCKED: u8, const PARKED: u8> RawByteMutex<P, LOCKED, PARKED>
where
    P: Policy<Scope = futex::Local>,
{
    /// What (take and mark) and (mark) leave.
    const BOTH: u8 = ByteState::<LOCKED, PARKED>::LOCK_BITS;

    ulocks_core::const_fn! {
        /// An unlocked lock; its bytes are all zero.
        pub fn new() -> Self {
            Self::with_bits(0)
        }
    }

    ulocks_core::const_fn! {
        /// An unlocked lock, and `bits` of the user's.
        ///
        /// # Panics
        /// If one of `bits` is the lock's.
        pub fn with_bits(bits: u8) -> Self {
            assert!(bits & Self::BOTH == 0, "the initial bits include the lock's own: they have to be the user's");
            Self { byte: AtomicU8::new(bits), meter: P::Meter::INIT }
        }
    }

    /// A byte as a lock. Only for policies that count nothing; others do not compile.
    ///
    /// # Safety
    /// As long as the lock is used, by any thread, whatever else accesses the byte
    /// - leaves the bits `LOCKED` and `PARKED` alone, which are zero before the first use,
    /// - changes the others by atomic read-modify-writes, not by stores, and
    /// - is no lock of this kind with other bits: the queue is the byte's, and two locks in one
    ///   byte lose wake-ups.
    #[inline(always)]
    pub const unsafe fn from_byte(byte: &AtomicU8) -> &Self {
        const {
            assert!(
                size_of::<Self>() == size_of::<AtomicU8>() && align_of::<Self>() == align_of::<AtomicU8>(),
                "a byte has no room for counters: take a policy whose meter is Off"
            );
        }
        // SAFETY: `Self` is an `AtomicU8` and a meter that takes no room, says the assertion; so it
        // is valid where an `AtomicU8` is, and is borrowed as long.
        unsafe { &*core::ptr::from_ref(byte).cast::<Self>() }
    }

    /// The user's part of the byte.
    #[inline(always)]
    pub const fn bits(&self) -> UserBits<'_, LOCKED, PARKED> {
        UserBits::of(&self.byte)
    }

    /// The counters.
    pub fn meter(&self) -> &P::Meter {
        &self.meter
    }

    #[inline(always)]
    fn state(&self) -> ByteState<LOCKED, PARKED> {
        ByteState(self.byte.load(Relaxed))
    }

    /// The name of the queue in the lot.
    #[inline(always)]
    fn key(&self) -> ParkKey {
        ParkKey::of(&raw const self.byte)
    }

    /// (take) for an arriving thread: guesses that the byte is zero, which costs one step if it is,
    /// and two if the user has set bits.
    #[inline(always)]
    fn arrive(&self) -> bool {
        self.take(ByteState(0), LOCKED)
    }

    /// (take) and (take and mark): takes the lock if it is free, leaving `held` in its bits; `seen`
    /// is what the byte was, or may be.
    #[inline(always)]
    fn take(&self, mut seen: ByteState<LOCKED, PARKED>, held: u8) -> bool {
        while !seen.is_locked() {
            match self.exchange(seen, seen.with(held)) {
                Ok(()) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// As [`take`](Self::take); if the lock is held, sees to it that it is marked.
    fn take_or_mark(&self, held: u8) -> bool {
        let mut seen = self.state();
        while !seen.is_contended() {
            let free = !seen.is_locked();
            match self.exchange(seen, seen.with(if free { held } else { PARKED })) {
                Ok(()) => {
                    if !free || held == Self::BOTH {
                        self.owe_wake();
                    }
                    return free;
                }
                Err(now) => seen = now,
            }
        }
        false
    }

    /// (take), (take and mark) or (mark). Fails also when nothing but the user's bits has changed.
    #[inline(always)]
    fn exchange(
        &self,
        seen: ByteState<LOCKED, PARKED>,
        next: ByteState<LOCKED, PARKED>,
    ) -> Result<(), ByteState<LOCKED, PARKED>> {
        // Acquire: pairs with (release) and (release and unpark). (mark) could do without.
        match self.byte.compare_exchange(seen.0, next.0, Acquire, Relaxed) {
            Ok(_) => Ok(()),
            Err(now) => Err(ByteState(now)),
        }
    }

    /// A spinning waiter's look at the lock; it takes it if it is free, leaving `held` in its bits.
    #[inline]
    fn look(&self, held: u8) -> Look {
        match self.state() {
            free if !free.is_locked() && self.take(free, held) => Look::Acquired,
            contended if contended.is_contended() => Look::Saturated,
            _ => Look::Taken,
        }
    }

    /// An arriving thread that found the lock taken: spins, then parks. False if `deadline` passed
    /// first.
    #[cold]
    #[inline(never)]
    fn lock_contended(&self, deadline: Option<Deadline>) -> bool {
        self.meter.count(Event::Contended);
        if spin::backing_off::<P>(|| self.look(LOCKED)) {
            self.meter.count(Event::Spun);
            return true;
        }
        self.lock_parked(deadline)
    }

    /// A waiter that parks. `held` is what it leaves in the byte if it acquires: as a debtor
    /// (invariant 4), the mark too.
    fn lock_parked(&self, deadline: Option<Deadline>) -> bool {
        let mut held = LOCKED;
        loop {
            if self.take_or_mark(held) {
                return true;
            }
            held = LOCKED; // the mark has paid
            self.meter.count(Event::Slept);
            let still = || self.state().is_contended(); // invariant 3
            // SAFETY:
            // * The key is that of the byte, which is borrowed. Only this lock parks there: the
            //   byte is its own, or `from_byte` has asked for that.
            // * `still` does not panic: it loads the byte and looks at its bits.
            // * For that it calls neither the lot nor `parking_lot_core`.
            match unsafe { self.key().park(still, deadline) } {
                Parked::Refused => {}
                Parked::TimedOut => return false,
                Parked::Unparked { others } => {
                    if others {
                        held = Self::BOTH;
                    }
                    if spin::closely::<P>(|| self.look(held)) {
                        if held == Self::BOTH {
                            self.owe_wake();
                        }
                        return true;
                    }
                }
            }
        }
    }

    /// Counts the visit to the lot that comes of having marked the byte (release and unpark). The
    /// release cannot count it, for it must not touch the lock again.
    #[inline]
    fn owe_wake(&self) {
        self.meter.count(Event::Woke);
    }

    #[inline(always)]
    fn release(&self) {
        let key = self.key();
        // (release), (release and unpark); from here on the byte may be gone. A guess first, as in
        // `arrive`.
        let mut was = ByteState::<LOCKED, PARKED>(LOCKED);
        while let Err(now) = self.byte.compare_exchange(was.0, was.user_bits(), Release, Relaxed) {
            was = ByteState(now);
        }
        if was.is_contended() {
            Self::unpark_one(key);
        }
    }

    /// The wake-up a release owes. By key: the byte may be gone.
    #[cold]
    #[inline(never)]
    fn unpark_one(key: ParkKey) {
        key.unpark_one();
    }
}

impl<P, const LOCKED: u8, const PARKED: u8> raw::Metered for RawByteMutex<P, LOCKED, PARKED>
where
    P: Policy<Scope = futex::Local>,
{
    type Meter = P::Meter;

    fn meter(&self) -> &P::Meter {
        &self.meter
    }
}

impl<P, const LOCKED: u8, const PARKED: u8> Default for RawByteMutex<P, LOCKED, PARKED>
where
    P: Policy<Scope = futex::Local>,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<P, const LOCKED: u8, const PARKED: u8> fmt::Debug for RawByteMutex<P, LOCKED, PARKED>
where
    P: Policy<Scope = futex::Local>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RawByteMutex").field(&self.state()).finish()
    }
}

ulocks_core::initial!([P: Policy<Scope = futex::Local>, const LOCKED: u8, const PARKED: u8] RawByteMutex<P, LOCKED, PARKED> = Self::new());

// SAFETY:
// * One token at a time: invariant 1.
// * A release happens before the next acquisition returns: section "Ordering".
// * The token is nothing and no address is kept, so it may be forgotten and the lock moved or
//   dropped.
unsafe impl<P, const LOCKED: u8, const PARKED: u8> raw::RawMutex for RawByteMutex<P, LOCKED, PARKED>
where
    P: Policy<Scope = futex::Local>,
{
    type Scope = futex::Local;
    type Token = ();
    type Condvar = ulocks_core::condvar::Sequence<Self>;
    const CONDVAR_NS: u32 = <P::Spin as spin::Spin>::CONDVAR_NS;

    #[inline]
    fn lock(&self) {
        if !self.arrive() {
            self.lock_contended(None);
        }
        self.meter.count(Event::Acquired);
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        let taken = self.arrive();
        if taken {
            self.meter.count(Event::Acquired);
        }
        taken.then_some(())
    }

    #[inline]
    fn lock_until(&self, deadline: Deadline) -> Option<()> {
        let taken = self.arrive() || (!deadline.has_passed() && self.lock_contended(Some(deadline)));
        self.meter.ended(taken);
        taken.then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        self.meter.released();
        self.release();
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.state().is_locked()
    }
}
