//! The family's condition variable: it works with every [`RawMutex`], in one process or in shared
//! memory.

mod raw;
pub(crate) mod spins;
mod steps;
mod task;
mod word;

use crate::const_fn;
use crate::lock::traits::{Initial, RawMutex};
use crate::sys::time::Deadline;
use core::fmt;

pub use raw::Sequence;
#[doc(hidden)]
pub use steps::{Sleep, Waiting, Woken};
#[doc(hidden)]
pub use task::Notified;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "after a timeout the caller may want to stop waiting"]
pub enum Wakeup {
    /// By a notification, or spuriously: look at the condition again.
    Notified,
    /// The deadline passed, or it is [interruptible](Deadline::interruptible) and a signal handler
    /// ran; and no notification was taken.
    TimedOut,
}

/// How threads wait on a condition variable of the raw mutex `L`: [`Sequence`] for most.
///
/// # Safety
/// `wait` returns the token of an acquisition of that mutex, after it has released the token that
/// it was given.
pub unsafe trait Waits<L: RawMutex>: Initial + fmt::Debug + Send + Sync {
    /// See [`RawCondvar::wait`].
    ///
    /// # Safety
    /// As [`RawCondvar::wait`].
    unsafe fn wait(&self, mutex: &L, token: L::Token, deadline: Option<Deadline>) -> (L::Token, Wakeup);

    /// See [`RawCondvar::notify_one`].
    fn notify_one(&self) -> bool;

    /// See [`RawCondvar::notify_all`].
    fn notify_all(&self) -> usize;
}

/// How tasks wait on a condition variable of the raw mutex `L`.
///
/// # Safety
/// The future releases nothing, and acquires nothing. It may be dropped at any moment, and then
/// passes on a notification that it has got.
pub unsafe trait WaitsAsync<L: RawMutex>: Waits<L> {
    /// The future of [`notified`](Self::notified).
    type Notified<'a>: Future<Output = ()> + Send + Sync
    where
        Self: 'a;

    /// A waiter, which is queued when it is polled first, and ready when it was notified.
    fn notified(&self) -> Self::Notified<'_>;

    /// Notifies others in the place of a waiter that was notified and is dropped before it has the
    /// mutex. All of them: one that came after the notification may be told first.
    fn pass_on(&self) {
        self.notify_all();
    }
}

/// A condition variable for the raw mutex `L`: threads sleep until another thread says that
/// something changed.
///
/// The sections below are about most mutexes. [Mutexes with a queue](Self#mutexes-with-a-queue)
/// have another condition variable.
///
/// # Fairness
/// Waiters that spin are notified before sleepers, whatever the priority of the sleepers and
/// however long they have waited. Of the sleepers, the kernel wakes the thread of highest real-time
/// priority first, and among equals the thread that fell asleep first. While new waiters keep
/// taking the notifications in their spins, a sleeper waits. The policy `NoSpin` excludes this. The
/// mutex decides which notified thread gets it first.
///
/// # Spurious wake-ups
/// A wait without a notification of its own ends only
/// - if the thread was still on its way to sleep when a notification came: it returns, as well as
///   the sleeper that is woken;
/// - if it was spinning, and a waiter whose deadline had passed took the notification: both return;
/// - if it began while a notifier that does not hold the mutex was under way: it may return with
///   those that are notified;
/// - if a future that was notified is dropped, which notifies all others in its place;
/// - if something else wakes the futex at this address, which Linux programs must expect;
/// - if 65,535 threads wait already: further ones do not sleep. They still time out.
///
/// A notification is never lost by any of these, nor by a deadline or a signal that ends a wait at
/// the same moment.
///
/// # Blocking
/// A wait in one process spins first, for as long as the mutex says ([`RawMutex::CONDVAR_NS`]; 30
/// us by default), and then sleeps in the kernel. At most three waiters spin at a time. After three
/// failed spins in a row, waiters sleep at once, and about one wait in 29 tries again. The policy
/// `NoSpin` never spins, and neither do waits between processes. The spin does not look at the
/// deadline, so a timed wait may end that much later.
///
/// If the mutex is held, and offers its futex ([`RawMutex::requeue_key`]), a notification wakes no
/// sleeper. It moves sleepers to the mutex, whose releases wake one after the other. A waiter
/// returns only when a notification that is about to do so is done, some 2 us later at most if its
/// thread runs.
///
/// A notification never blocks. It makes no system call if no thread waits. In one process it makes
/// none either if all waiters were notified already, or if a waiter that spins takes it. That
/// waiter may have been preempted in its spin. Then it takes the notification when it runs again.
///
/// # Aborts
/// If the kernel refuses to let a waiter sleep, or to wake a sleeper: a seccomp filter forbids it.
/// A panic would leave other threads waiting for ever.
///
/// # Panics
/// Never. Unlike `parking_lot`'s, it may be used with several mutexes at once. Nothing is lost
/// then, but from then on notifications wake sleepers instead of moving them. Each wait costs one
/// more atomic operation.
///
/// # Destruction
/// It may be freed or unmapped when no thread is inside of `wait` or of a notification, and none
/// will enter one. A notifier that holds the mutex while it notifies has left the notification
/// before any waiter returns. A notifier that does not hold it may be late, and must be waited for
/// otherwise. It is not enough to have notified all waiters: they have to leave `wait`.
///
/// # Process-shared
/// If the mutex's scope is `Shared`, the condition variable may be mapped by several processes at
/// different addresses; it contains no address. It is not robust. A process that is killed inside
/// of `wait` leaves `waiting` one too high, so that notifications make a system call for no thread.
/// If it is killed after it was woken, that notification is lost with it, and another waiter may
/// stay asleep until the next. If it is killed inside of a notification, it may not have notified.
/// Bound such waits by a deadline.
///
/// # Tasks
/// With a mutex of which tasks wait, they wait here, too, by
/// [`wait_async`](crate::task::AsyncCondvar::wait_async). Where one sleeper is woken, threads and
/// tasks take turns. After the first task no notification moves sleepers. A task that is notified
/// is woken at once, also if the mutex is held: it contends when it is polled.
///
/// # Signals and forks
/// A signal handler may notify, unless a task has ever waited. A wait survives signals: it goes
/// back to sleep. With an [interruptible](Deadline::interruptible) deadline it ends instead, as if
/// the deadline had passed, and acquires the mutex as always. The child of a fork inherits the
/// count of waiters but not the waiters: until a thread of the child waits, a notification makes a
/// system call for no thread. No notification of the child is for a waiter of the parent.
///
/// # Mutexes with a queue
/// The waiters of `ThroughputMutex` and `Calock` stand in a queue on the condition variable, too.
/// There
/// - a notification reaches the newest waiter that spins, if one of the newest eight does, and else
///   the one that has waited longest. It reaches the latter, too, if another thread notifies or
///   gives up a wait meanwhile, or if a dropped task passes it on;
/// - a notification moves threads into the queue of the mutex, in their order. It wakes at most one
///   of them, if the mutex is free. Threads that spin contend at once instead, and tasks when they
///   are polled;
/// - no wait ends without a notification. But if more than two notifications come while another
///   thread is about to notify, or gives up a wait, all waiters are notified;
/// - what `notify_one` and `notify_all` return may be too low while another thread notifies, or
///   gives up a wait;
/// - several mutexes at once make nothing slower;
/// - a notification that has reached the last waiter may be late: it touches neither the condition
///   variable nor the mutex any more when that waiter returns;
/// - the child of a fork must not use it if threads waited when it was forked: their places are
///   there, and they are not.
///
/// # Examples
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
/// use ulocks_core::condvar::RawCondvar;
/// use ulocks_core::raw::RawMutex;
///
/// /// A door that opens once, for any mutex of the family.
/// struct Door<L: RawMutex> {
///     mutex: L,
///     changed: RawCondvar<L>,
///     is_open: AtomicBool,
/// }
///
/// impl<L: RawMutex> Door<L> {
///     fn open(&self) {
///         let token = self.mutex.lock();
///         self.is_open.store(true, Relaxed);
///         // SAFETY: the token is from this thread's `lock`.
///         unsafe { self.mutex.unlock(token) };
///         self.changed.notify_all();
///     }
///
///     fn wait(&self) {
///         let mut token = self.mutex.lock();
///         while !self.is_open.load(Relaxed) {
///             // SAFETY: this thread holds the mutex by `token`.
///             (token, _) = unsafe { self.changed.wait(&self.mutex, token, None) };
///         }
///         // SAFETY: the token is from the last `wait`, or from `lock`.
///         unsafe { self.mutex.unlock(token) };
///     }
/// }
/// ```
#[repr(transparent)]
pub struct RawCondvar<L: RawMutex>(L::Condvar);

impl<L: RawMutex> RawCondvar<L> {
    const_fn! {
        /// A condition variable without waiters: sixteen zero bytes.
        pub fn new() -> Self {
            Self(crate::initial!(L::Condvar))
        }
    }

    /// Releases `mutex`, sleeps until notified or until `deadline`, and acquires `mutex` again,
    /// however long that takes.
    ///
    /// A notification that comes after the release is not missed. The wait may end without one: see
    /// the [list](Self#spurious-wake-ups).
    ///
    /// # Safety
    /// `token` comes from an acquisition of `mutex` in this context.
    pub unsafe fn wait(&self, mutex: &L, token: L::Token, deadline: Option<Deadline>) -> (L::Token, Wakeup) {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.0.wait(mutex, token, deadline) }
    }

    /// How its waiters wait.
    pub(crate) fn waits(&self) -> &L::Condvar {
        &self.0
    }

    /// Notifies one thread that waits, and returns whether there was one that had not been notified
    /// yet.
    ///
    /// After `true`, a thread that was waiting returns, and says that it was notified unless its
    /// deadline passed as well and another waiter took the notification. After `false`, in one
    /// process, either no thread was waiting, or all waiters return because of notifications before
    /// this one.
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
        f.debug_tuple("RawCondvar").field(&self.0).finish()
    }
}
