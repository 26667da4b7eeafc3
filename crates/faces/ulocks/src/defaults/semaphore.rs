//! The semaphore.

use crate::fair::SemaphoreWith;
use crate::policy::Private;

#[cfg(feature = "arc_lock")]
#[cfg_attr(docsrs, doc(cfg(feature = "arc_lock")))]
#[doc(inline)]
pub use crate::fair::OwnedPermit;
#[doc(inline)]
pub use crate::fair::Permit;

/// A `Semaphore` hands out permits strictly in the order of arrival: no thread overtakes a waiter,
/// also if it wants fewer permits. 24 bytes.
///
/// It is [`fair::Semaphore`](crate::fair::Semaphore), whose page has the promises at full length.
/// Other patience and counters are in [`SemaphoreWith`](crate::fair::SemaphoreWith). For sets of
/// operations on several semaphores take [`SemArray`](crate::semarray::SemArray). To protect data
/// with a single permit, take a mutex. [`migrate`](crate::migrate) is for those who come from
/// tokio.
///
/// # Fairness
/// Strict. While there is a waiter, the permits are for the waiters. A request for many at the head
/// of the queue holds up small ones behind it until it is served or times out.
/// [`try_acquire`](Semaphore::try_acquire) fails then, whatever the count says. No thread starves.
/// The order costs: the head waiter may have to be woken while other threads could have gone on.
///
/// # Blocking
/// An acquisition is one atomic read-modify-write if there are permits and no waiters, and so is a
/// release. Otherwise the head waiter spins for some 30 us and then sleeps in the kernel. On four
/// CPUs and more, waiters behind it may be awake too. A release never waits. In async code take
/// [`acquire_async`](Semaphore::acquire_async): a task waits in the queue of the threads, and its
/// future may be dropped at any moment.
///
/// # Closing
/// [`close`](Semaphore::close) is for good: all waiters leave without permits, and each later
/// acquisition fails, also of zero permits. A permit that is out stays what it is, and goes back
/// when it is dropped. [`available_permits`](Semaphore::available_permits) tells when all are back.
///
/// | methods | of a closed semaphore, or if it is closed while they wait |
/// |---|---|
/// | `acquire`, `acquire_many`, `acquire_owned`, `acquire_many_owned` | panic |
/// | those with `unless_closed` in their names | return [`Err(Closed)`](crate::fair::Closed) at once |
/// | those with `interruptible` in their names | return [`Err(AcquireError::Closed)`](crate::fair::AcquireError) at once |
/// | those that begin with `try_` | return `None` at once, also before their time is up; [`is_closed`](Semaphore::is_closed) tells why |
/// | `release`, and all methods of a [`Permit`] | do what they always do |
///
/// # Errors
/// [`release`](Semaphore::release) fails, and changes nothing, if there would be more than
/// [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
/// [`acquire_unless_closed`](Semaphore::acquire_unless_closed) fails if the semaphore is closed.
///
/// # Panics
/// If more permits than [`MAX_PERMITS`](Semaphore::MAX_PERMITS) are asked for, or if 1,073,741,823
/// threads wait already. If it is closed, in the methods that [Closing](#closing) names. If the
/// kernel refuses to let a waiter sleep (a seccomp filter), the process aborts.
///
/// # Process-shared
/// No. `ulocks_shm::Semaphore` is for processes: the permits of one that dies come back.
///
/// # Signals and forks
/// A signal handler may try to acquire. It may also release and close, whatever it interrupts,
/// unless tasks wait. A wait goes on after a signal, or ends if its name has `interruptible`. The
/// child of a `fork` has a copy with the count of that moment, and may go on with it unless threads
/// waited.
///
/// # Methods
/// | method | what it does |
/// |---|---|
/// | [`new`](Semaphore::new) | a semaphore with so many permits; `const`, so it can be a `static` |
/// | [`acquire`](Semaphore::acquire) | waits for a permit |
/// | [`acquire_many`](Semaphore::acquire_many) | waits for several permits together |
/// | [`acquire_unless_closed`](Semaphore::acquire_unless_closed), [`acquire_many_unless_closed`](Semaphore::acquire_many_unless_closed) | the same, or an error if the semaphore is closed |
/// | [`acquire_async`](Semaphore::acquire_async), [`acquire_many_async`](Semaphore::acquire_many_async) | the same for a task: a future |
/// | [`try_acquire`](Semaphore::try_acquire), [`try_acquire_many`](Semaphore::try_acquire_many) | the same if there are as many, no waiters, and it is not closed: `Option` of a [`Permit`] |
/// | [`try_acquire_for`](Semaphore::try_acquire_for), [`try_acquire_many_for`](Semaphore::try_acquire_many_for) | the same, or gives up after a `Duration` |
/// | [`try_acquire_until`](Semaphore::try_acquire_until), [`try_acquire_many_until`](Semaphore::try_acquire_many_until) | the same, or gives up at an `Instant` or a [`Deadline`](crate::time::Deadline) |
/// | [`acquire_interruptible`](Semaphore::acquire_interruptible), [`acquire_many_interruptible`](Semaphore::acquire_many_interruptible) | waits, or gives up when a signal handler runs or it is closed: an [`AcquireError`](crate::fair::AcquireError) |
/// | [`acquire_interruptible_until`](Semaphore::acquire_interruptible_until), [`acquire_many_interruptible_until`](Semaphore::acquire_many_interruptible_until) | the same, or gives up at an `Instant` or a [`Deadline`](crate::time::Deadline) |
/// | [`release`](Semaphore::release), [`add_permits`](Semaphore::add_permits) | puts permits in, whether they were acquired before or not; too many are an error, or a panic |
/// | [`close`](Semaphore::close), [`is_closed`](Semaphore::is_closed) | ends the giving of permits, and whether that was done |
/// | [`available_permits`](Semaphore::available_permits) | how many are free at this moment |
/// | [`raw`](Semaphore::raw) | the semaphore without guards |
#[cfg_attr(
    feature = "arc_lock",
    doc = "| [`acquire_owned`](Semaphore::acquire_owned), \
           [`acquire_many_owned`](Semaphore::acquire_many_owned), \
           [`acquire_owned_unless_closed`](Semaphore::acquire_owned_unless_closed), \
           [`acquire_many_owned_unless_closed`](Semaphore::acquire_many_owned_unless_closed) | waits, on \
           an `Arc`, for an [`OwnedPermit`] |\n\
           | [`acquire_owned_async`](Semaphore::acquire_owned_async), \
           [`acquire_many_owned_async`](Semaphore::acquire_many_owned_async) | the same for a task |\n\
           | [`try_acquire_owned`](Semaphore::try_acquire_owned), \
           [`try_acquire_many_owned`](Semaphore::try_acquire_many_owned), \
           [`try_acquire_owned_for`](Semaphore::try_acquire_owned_for), \
           [`try_acquire_owned_until`](Semaphore::try_acquire_owned_until), \
           [`try_acquire_many_owned_for`](Semaphore::try_acquire_many_owned_for), \
           [`try_acquire_many_owned_until`](Semaphore::try_acquire_many_owned_until) | the same without \
           waiting, for a `Duration`, until an `Instant`: `Option` of an [`OwnedPermit`] |"
)]
///
/// A [`Permit`] goes back when it is dropped. [`forget`](Permit::forget) keeps it from that,
/// [`split`](Permit::split) and [`merge`](Permit::merge) divide and join, and it may be sent to
/// another thread. With the feature `arc_lock` there is `OwnedPermit`, which owns an
/// `Arc<Semaphore>` instead of a borrow. A semaphore has `Default`, which is no permits, and
/// `Debug`.
///
/// # Examples
/// At most three at once:
/// ```
/// use ulocks::Semaphore;
///
/// static SLOTS: Semaphore = Semaphore::new(3);
///
/// std::thread::scope(|scope| {
///     for _ in 0..8 {
///         scope.spawn(|| {
///             let _slot = SLOTS.acquire();
///             // no more than three are here
///         });
///     }
/// });
/// assert_eq!(SLOTS.available_permits(), 3);
/// ```
///
/// Things that one thread makes and another takes:
/// ```
/// use std::time::Duration;
/// use ulocks::Semaphore;
///
/// let made = Semaphore::new(0);
/// std::thread::scope(|scope| {
///     scope.spawn(|| made.release(2).expect("there are few"));
///     made.acquire_many(2).forget();
/// });
/// assert!(made.try_acquire_for(Duration::from_millis(1)).is_none());
/// ```
///
/// A pool that ends, and waits until all of its connections are back:
/// ```
/// use ulocks::Semaphore;
/// use ulocks::fair::Closed;
///
/// let pool = Semaphore::new(2);
/// let connections = pool.acquire_many(2);
/// std::thread::scope(|scope| {
///     let waiter = scope.spawn(|| pool.acquire_unless_closed().map(drop));
///     pool.close();
///     assert_eq!(waiter.join().unwrap(), Err(Closed));
///     scope.spawn(|| drop(connections));
///     while pool.available_permits() < 2 {
///         std::thread::yield_now();
///     }
/// });
/// assert!(pool.is_closed() && pool.try_acquire().is_none());
/// ```
pub type Semaphore = SemaphoreWith<Private>;
