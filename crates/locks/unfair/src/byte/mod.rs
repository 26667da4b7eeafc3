//! [`ByteMutex`]: one byte, for a lock inside every small object.

mod bits;
mod raw;
mod word;

pub use bits::UserBits;
pub use raw::RawByteMutex;
#[doc(hidden)]
pub use word::ByteState;

use ulocks_core::{Policy, Private, api, futex};

/// `ByteMutex<T>` is mutual exclusion around a `T` in one byte, of which six bits are yours: for a
/// lock inside every small object.
///
/// Waiters queue outside of it, in `parking_lot_core`, so a million of these are a megabyte,
/// however many of them are ever contended. This one is for the default patience and without
/// counters; [`ByteMutexWith`] has the others, and [`RawByteMutex`] is the lock alone, also as two
/// bits of a byte that exists already. Needs the feature `parking_lot`.
///
/// # The other six bits
/// [`bits`](ByteBits::bits) reaches them, with and without the lock: a colour, a mark, "deleted".
/// Nothing that is done to the lock changes them.
///
/// # Fairness
/// None. A thread that finds the mutex free takes it, also past threads that have waited for long.
/// So a thread can starve for as long as others keep the mutex busy. The longest waiter is woken
/// first; one that loses the race queues at the tail.
///
/// # Blocking
/// [`lock`](api::Mutex::lock) is one atomic read-modify-write if the mutex is free, and so is the
/// release; two if any of the six bits is set. Otherwise the caller spins as for a
/// [`BargingMutex`](crate::BargingMutex), and then sleeps in the kernel. A release goes to the
/// queue only if it may have a waiter, and makes a system call only if it has one. Neither ever
/// yields to the scheduler, with one exception. The queues of all locks share a table, and two
/// threads that meet at one lock of that table may yield. That lock is held for tens of
/// nanoseconds. A timed acquisition tries at least once, and may return late by its spinning budget
/// and by what the scheduler takes. A deadline on the time of day is converted when the wait
/// begins.
///
/// # Panics
/// None of its own. Locking a mutex that the calling thread already holds is a deadlock, or, with a
/// deadline, a timeout.
///
/// # Aborts
/// If the kernel refuses to let a waiter sleep, or to wake a sleeper: a seccomp filter forbids it.
/// A panic would leave other threads waiting for ever.
///
/// # Process-shared
/// Not available, and the types say so: the queue is in the memory of one process.
///
/// # Signals and forks
/// Signals are handled while a thread waits, and the wait goes on; it cannot be
/// [interrupted](ulocks_core::interrupt), since parking_lot_core sleeps again. A handler must not
/// use a `ByteMutex` at all, not even one that the code it interrupts cannot hold: the queue behind
/// it is not reentrant. After a `fork` of a process with several threads, the child must not wait
/// for one, nor release one that is waited for. A lock of the queue's table may have been held at
/// the fork. What another thread held stays locked there.
///
/// # Memory
/// The release is one read-modify-write and touches the mutex no more, so the thread that releases
/// last may free it at once. (`parking_lot`'s own mutex of one byte does not promise this.)
/// All-zero memory is an unlocked mutex. A guard may be forgotten, which leaves the mutex locked,
/// and a locked mutex may be moved or dropped.
///
/// Unlike every other lock of the family, **waiting may allocate**. When a thread parks for the
/// first time, it registers a thread-local destructor, and the table of queues may grow. The table
/// has about 200 bytes for each thread that has parked and still lives, and is never given back. So
/// it must not guard a global allocator. Locking without contention does neither.
///
/// # Methods
/// `ByteMutex<T>` is a name for [lock_api]'s type around a raw lock of this family. The page of
/// lock_api lists the methods: `new`, `lock`, `try_lock`, `try_lock_for`, `try_lock_until`,
/// `is_locked`, `get_mut`, `into_inner` and more. This page says what they promise.
///
/// [lock_api]: https://docs.rs/lock_api/0.5/lock_api/struct.Mutex.html
///
/// # Examples
/// ```
/// use std::sync::atomic::Ordering::Relaxed;
/// use ulocks_unfair::{ByteBits as _, ByteMutex};
///
/// struct Account {
///     id: u16,
///     cents: ByteMutex<[u8; 5]>, // little-endian
/// }
/// const CLOSED: u8 = 0b1000_0000;
/// assert_eq!(size_of::<Account>(), 8);
///
/// let account = Account { id: 1, cents: ByteMutex::new([0; 5]) };
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| account.cents.lock()[0] += 10);
///     }
/// });
/// assert_eq!(account.cents.lock()[0], 40);
///
/// account.cents.bits().fetch_or(CLOSED, Relaxed);
/// assert!(!account.cents.is_locked());
/// assert_eq!(account.cents.bits().load(Relaxed), CLOSED);
/// ```
pub type ByteMutex<T> = ByteMutexWith<T, Private>;

/// A [`ByteMutex`] with another policy: with other patience, or with counters inside, which are
/// larger than a byte.
pub type ByteMutexWith<T, P> = api::Mutex<RawByteMutex<P>, T>;

/// What holds a [`ByteMutex`] locked, and gives access to its data.
pub type ByteMutexGuard<'a, T, P = Private> = api::MutexGuard<'a, RawByteMutex<P>, T>;

/// A [`ByteMutexGuard`] narrowed to a part of the data.
pub type MappedByteMutexGuard<'a, T, P = Private> = api::MappedMutexGuard<'a, RawByteMutex<P>, T>;

/// A condition variable for a [`ByteMutex`]; sixteen bytes, which many of them can share.
///
/// `notify_one` returns `false` and `notify_all` returns 0, however many threads were notified.
/// lock_api asks this of condition variables whose waits may end spuriously. These may, in the
/// cases that [`RawCondvar`](ulocks_core::condvar::RawCondvar) lists. Its own methods return the
/// true counts: `condvar.raw().inner().notify_all()`. A waiter spins for up to 30 us before it
/// sleeps.
pub type ByteCondvar = ByteCondvarWith<Private>;

/// A [`ByteCondvar`] for a [`ByteMutexWith`] of the same policy.
pub type ByteCondvarWith<P> = api::Condvar<RawByteMutex<P>>;

mod sealed {
    pub trait Sealed {}
}

/// The user's bits of a mutex around data.
///
/// With a guard at hand, they are those of `ByteMutexGuard::mutex(&guard)`.
pub trait ByteBits: sealed::Sealed {
    /// The six bits of the byte that are not the lock's.
    fn bits(&self) -> UserBits<'_>;
}

impl<P: Policy<Scope = futex::Local>, T: ?Sized> sealed::Sealed for ByteMutexWith<T, P> {}

impl<P: Policy<Scope = futex::Local>, T: ?Sized> ByteBits for ByteMutexWith<T, P> {
    #[inline]
    fn bits(&self) -> UserBits<'_> {
        // SAFETY: the raw lock is only asked for the bits that are not its own.
        unsafe { self.raw() }.inner().bits()
    }
}
