//! [`Queue`]: messages between processes, of which any may be killed.

mod error;
mod ring;

pub use error::{PopError, PushError};

use crate::robust::condvar::Condvar;
use crate::robust::mutex::raw::RawMutex;
use crate::robust::mutex::{Mutex, Refused};
use crate::robust::queue::Patience;
use crate::slots::Member;
use core::fmt;
use core::mem::MaybeUninit;
use core::time::Duration;
use ulocks_core::sync::Ordering::{Acquire, Relaxed};
use ulocks_core::sync::{AtomicU32, AtomicU64, UnsafeCell};
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Shared, futex};

/// A queue of up to `CAPACITY` messages between processes, of which any may be killed: each message
/// is there whole or not at all, and is popped at most once. 64 bytes beside the messages, rounded
/// up to 64.
///
/// Any number of threads push and pop. Each takes part in the region in which the queue lies
/// (`Region::with_member`), and passes its [`Member`]. A message is copied in and out.
///
/// # Fairness
/// Messages are popped in the order in which they were pushed. Threads are served in no order: they
/// contend for a barging mutex. Of those that sleep, the one that has slept longest is woken first.
/// If that one is stopped (`SIGSTOP`), the message may stay, beside others that sleep. It stays
/// until that one goes on or dies, another thread comes to pop, or the next push wakes another one.
/// The same holds of a thread that sleeps for a place.
///
/// # Blocking
/// Each call but the looks acquires a robust mutex for the copy of its messages. [`try_push`] and
/// [`try_pop`] wait for no more than that. A deadline bounds the wait for a place or a message, not
/// the wait for the mutex. The other calls spin for some microseconds, and then sleep in the kernel
/// (`futex_waitv`). A call that finds a thread asleep for what it brings makes a system call.
///
/// # Errors
/// [`PushError`] gives the message back. [`PopError`] says whether a message may still come. Both
/// have `Refused` for memory that was overwritten. A death is no error: it leaves nothing to
/// repair.
///
/// # Panics
/// If the member is not of this queue's region, or is that of the process's parent.
///
/// # Process-shared
/// That is what it is for. A message that a killed process was about to push is not there. One that
/// it had popped is gone with it: delivery is at most once. If a message must not be lost, note it
/// elsewhere before the push, and strike it out when the work is done.
///
/// A file keeps its messages. A queue that was closed stays closed, until [`reopen`](Self::reopen).
/// What is said of a death is not true of a power cut. The disk has pages of different moments
/// then, so messages may be lost, torn, or come again. The queue still works.
///
/// # Signals and forks
/// A signal handler must not use it. A child of fork joins by itself.
///
/// # Sources
/// The bounded buffer of C. A. R. Hoare, "Monitors" (1974).
///
/// # Examples
/// ```
/// use ulocks_shm::{PopError, Queue, Region, SharedSafe};
///
/// #[derive(SharedSafe, Clone, Copy)]
/// #[repr(C)]
/// struct Order {
///     number: u64,
///     price: f64,
/// }
///
/// let orders = Region::<Queue<Order, 100>>::options().anonymous()?;
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         orders.with_member(|me| {
///             for number in 0..1000 {
///                 orders.push(me, Order { number, price: 1.5 }).expect("an open queue");
///             }
///             orders.close(me).expect("a whole queue");
///         })
///     });
///     orders.with_member(|me| {
///         let mut next = 0;
///         let end = loop {
///             match orders.pop(me) {
///                 Ok(order) => assert_eq!(order.number, next),
///                 Err(end) => break end,
///             }
///             next += 1;
///         };
///         assert_eq!((end, next), (PopError::Closed, 1000));
///     })
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`try_push`]: Self::try_push
/// [`try_pop`]: Self::try_pop
// All but the messages is one cache line, which moves from thread to thread with the mutex.
#[repr(C, align(64))]
pub struct Queue<T, const CAPACITY: usize, P: Policy<Scope = futex::Global> = Shared> {
    mutex: Mutex<(), RawMutex<P>>,
    closed: AtomicU32,
    arrived: Condvar<P>,
    freed: Condvar<P>,
    pushed: AtomicU64,
    popped: AtomicU64,
    places: [UnsafeCell<MaybeUninit<T>>; CAPACITY],
}

/// How often a look at the length begins again.
const LOOKS: u32 = 8;

// SAFETY: places are accessed by the holder of the mutex only. Messages move between threads, and
// are `Send`.
unsafe impl<T: Send, const N: usize, P: Policy<Scope = futex::Global>> Sync for Queue<T, N, P> {}

impl<T: Copy + Send, const CAPACITY: usize, P: Policy<Scope = futex::Global>> Queue<T, CAPACITY, P> {
    /// An empty queue. All-zero bytes are one.
    #[allow(clippy::new_without_default)]
    #[must_use]
    pub fn new() -> Self {
        Self {
            mutex: Mutex::new(()),
            closed: AtomicU32::new(0),
            arrived: Condvar::new(),
            freed: Condvar::new(),
            pushed: AtomicU64::new(0),
            popped: AtomicU64::new(0),
            places: core::array::from_fn(|_| UnsafeCell::new(MaybeUninit::uninit())),
        }
    }

    /// Pushes a message; waits for a place if there is none.
    ///
    /// # Errors
    /// [`PushError::Closed`], also if the queue is closed meanwhile.
    ///
    /// # Panics
    /// See [the type](Self#panics).
    #[inline]
    pub fn push(&self, me: &Member<'_>, message: T) -> Result<(), PushError<T>> {
        self.push_one(me, message, Patience::Forever)
    }

    /// Pushes a message if there is a place.
    ///
    /// # Errors
    /// [`PushError::Full`], [`PushError::Closed`].
    ///
    /// # Panics
    /// See [the type](Self#panics).
    #[inline]
    pub fn try_push(&self, me: &Member<'_>, message: T) -> Result<(), PushError<T>> {
        self.push_one(me, message, Patience::Never)
    }

    /// Pushes a message; waits for a place until `deadline`.
    ///
    /// # Errors
    /// As [`push`](Self::push); [`PushError::Full`] if there was no place in time.
    ///
    /// # Panics
    /// See [the type](Self#panics).
    pub fn push_until(&self, me: &Member<'_>, message: T, deadline: Deadline) -> Result<(), PushError<T>> {
        self.push_one(me, message, Patience::Until(deadline))
    }

    /// Pushes a message; waits for a place for at most `timeout`.
    ///
    /// # Errors
    /// As [`push_until`](Self::push_until).
    ///
    /// # Panics
    /// See [the type](Self#panics).
    pub fn push_for(&self, me: &Member<'_>, message: T, timeout: Duration) -> Result<(), PushError<T>> {
        self.push_one(me, message, Patience::within(timeout))
    }

    /// Pushes the first of the `messages`, as many as there are places for; waits for the first
    /// place. Returns how many it has pushed: the rest was not, and is for another call. Those that
    /// were follow one another, and a death pushes all of them or none.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    ///
    /// # Panics
    /// See [the type](Self#panics).
    ///
    /// # Examples
    /// ```
    /// use ulocks_shm::{Queue, Region};
    ///
    /// let queue = Region::<Queue<u64, 4>>::options().anonymous()?;
    /// queue.with_member(|me| {
    ///     assert_eq!(queue.push_slice(me, &[1, 2, 3, 4, 5])?, 4);
    ///     let mut taken = [0; 8];
    ///     let number = queue.pop_slice(me, &mut taken)?;
    ///     assert_eq!(taken[..number], [1, 2, 3, 4]);
    ///     Ok::<_, Box<dyn std::error::Error>>(())
    /// })??;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use = "the messages behind the returned number were not pushed"]
    pub fn push_slice(&self, me: &Member<'_>, messages: &[T]) -> Result<usize, PushError<()>> {
        self.push_some(me, messages, Patience::Forever)
    }

    /// Pops the oldest message; waits for one if there is none.
    ///
    /// If all threads that push have died, it waits for ever: no death closes the queue. Use
    /// [`pop_for`](Self::pop_for) then, or [`close`](Self::close) the queue when they have died.
    ///
    /// # Errors
    /// [`PopError::Closed`] if the queue is closed, or becomes so, and no message is left.
    ///
    /// # Panics
    /// See [the type](Self#panics).
    #[inline]
    pub fn pop(&self, me: &Member<'_>) -> Result<T, PopError> {
        self.pop_one(me, Patience::Forever)
    }

    /// Pops the oldest message, if there is one.
    ///
    /// # Errors
    /// [`PopError::Empty`], [`PopError::Closed`].
    ///
    /// # Panics
    /// See [the type](Self#panics).
    #[inline]
    pub fn try_pop(&self, me: &Member<'_>) -> Result<T, PopError> {
        self.pop_one(me, Patience::Never)
    }

    /// Pops the oldest message; waits for one until `deadline`.
    ///
    /// # Errors
    /// As [`pop`](Self::pop); [`PopError::Empty`] if no message came in time.
    ///
    /// # Panics
    /// See [the type](Self#panics).
    pub fn pop_until(&self, me: &Member<'_>, deadline: Deadline) -> Result<T, PopError> {
        self.pop_one(me, Patience::Until(deadline))
    }

    /// Pops the oldest message; waits for one for at most `timeout`.
    ///
    /// # Errors
    /// As [`pop_until`](Self::pop_until).
    ///
    /// # Panics
    /// See [the type](Self#panics).
    pub fn pop_for(&self, me: &Member<'_>, timeout: Duration) -> Result<T, PopError> {
        self.pop_one(me, Patience::within(timeout))
    }

    /// Pops the oldest messages into the first places of `taken`, as many as there are; waits for
    /// the first one. How many it has popped. A death pops all or none.
    ///
    /// # Errors
    /// As [`pop`](Self::pop).
    ///
    /// # Panics
    /// See [the type](Self#panics).
    pub fn pop_slice(&self, me: &Member<'_>, taken: &mut [T]) -> Result<usize, PopError> {
        let (most, mut places) = (taken.len(), taken.iter_mut());
        self.pop_some(me, most, Patience::Forever, |message| {
            if let Some(place) = places.next() {
                *place = message;
            }
        })
    }

    /// Lets the queue take no more messages. Those in it can be popped. All threads that wait for a
    /// place return, and those that wait for a message if none is left.
    ///
    /// # Errors
    /// If memory was overwritten.
    ///
    /// # Panics
    /// See [the type](Self#panics).
    pub fn close(&self, me: &Member<'_>) -> Result<(), Refused> {
        let held = self.lock(me)?;
        self.arrived.notify_all(me);
        self.freed.notify_all(me);
        self.closed.store(1, Relaxed); // (close)
        drop(held);
        Ok(())
    }

    /// Lets a closed queue take messages again, as where a file outlives its programs.
    ///
    /// # Errors
    /// If memory was overwritten.
    ///
    /// # Panics
    /// See [the type](Self#panics).
    pub fn reopen(&self, me: &Member<'_>) -> Result<(), Refused> {
        let held = self.lock(me)?;
        self.closed.store(0, Relaxed); // (close)
        drop(held);
        Ok(())
    }
}

impl<T, const CAPACITY: usize, P: Policy<Scope = futex::Global>> Queue<T, CAPACITY, P> {
    /// How many messages are in the queue, at the moment of the look. May be too many if messages
    /// are popped during the look again and again.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        let mut popped = self.popped.load(Acquire);
        let mut pushed = self.pushed.load(Acquire);
        // If no message was popped between the two, they are of one moment.
        for _ in 0..LOOKS {
            let now = self.popped.load(Acquire);
            if now == popped {
                break;
            }
            (popped, pushed) = (now, self.pushed.load(Acquire));
        }
        // Also of overwritten memory: not more than there can be.
        usize::try_from(pushed.wrapping_sub(popped)).unwrap_or(CAPACITY).min(CAPACITY)
    }

    /// Whether no message is in the queue, at the moment of the look.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether no place is free, at the moment of the look.
    #[must_use]
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len() == CAPACITY
    }

    /// How many messages it has room for.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        CAPACITY
    }

    /// Whether a thread has closed the queue, at the moment of the look.
    #[must_use]
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Relaxed) != 0
    }

    /// Unlocks a queue that no thread uses. The messages stay.
    ///
    /// # Safety
    /// `this` is valid for reads and writes, and no thread of any process uses it.
    #[cfg(regions)]
    pub(crate) unsafe fn reset_locks_of(this: *mut Self) {
        // SAFETY: the caller's promise; the mutex is in `this`.
        unsafe { Mutex::reset_lock(&raw mut (*this).mutex) };
        // SAFETY: the caller's promise.
        let this = unsafe { &*this };
        this.arrived.reset();
        this.freed.reset();
    }
}

impl<T, const CAPACITY: usize, P: Policy<Scope = futex::Global>> fmt::Debug for Queue<T, CAPACITY, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Queue");
        shown.field("len", &self.len()).field("capacity", &CAPACITY).field("closed", &self.is_closed());
        shown.finish_non_exhaustive()
    }
}
