//! The condition variable.

use crate::unfair::RawThroughputMutex;
use ulocks_core::{api, lock_api};

/// A `Condvar` lets threads wait until something is true under a [`Mutex`](crate::Mutex): sixteen
/// bytes.
///
/// A wait may end without a notification. So look at the condition in a loop, or let
/// [`wait_while`](Condvar#method.wait_while) do that. The condition variables of the other mutexes
/// are beside these, such as [`fair::FairCondvar`](crate::fair::FairCondvar).
///
/// # Fairness
/// A notification reaches the newest waiter that spins, if one of the newest eight does, and else
/// the one that has waited longest. So a sleeper may be passed for as long as new waiters are
/// notified in their spins. The mutex decides which notified thread gets it first.
///
/// # Blocking
/// A waiter spins for up to 30 us, three of them at a time, and then sleeps in the kernel. It
/// returns when it has the mutex again, however long that takes, also after a timeout. A
/// notification never waits. It makes no system call if no thread waits, or if a waiter that spins
/// takes it. If the mutex is held, it moves sleepers to the queue of the mutex, whose releases wake
/// one after the other. A notification that finds no waiter is not kept.
///
/// # Panics
/// None. It may be used with several mutexes at once. If the kernel refuses to let a waiter sleep
/// (a seccomp filter), the process aborts.
///
/// # Process-shared
/// No, as its mutex. [`BargingCondvarWith`](crate::unfair::BargingCondvarWith)`<Shared>` is, and
/// the crate `ulocks-shm` has one for processes that may be killed.
///
/// # Signals and forks
/// A signal handler may notify, unless tasks wait. A wait goes on after a signal, or ends if it is
/// one of those in [`interrupt`](crate::interrupt). The child of a `fork` must not use a condition
/// variable on which threads waited: it has their places without the waiters.
///
/// # Methods
/// | method | what it does |
/// |---|---|
/// | [`new`](Condvar#method.new) | a condition variable without waiters; `const`, so it can be a `static` |
/// | [`wait`](Condvar#method.wait) | unlocks, waits for a notification, and locks again |
/// | [`wait_for`](Condvar#method.wait_for) | the same, for a `Duration` at most: [`WaitTimeoutResult`](crate::WaitTimeoutResult) |
/// | [`wait_until`](Condvar#method.wait_until) | the same, until an `Instant` at most |
/// | [`wait_while`](Condvar#method.wait_while) | waits while a condition on the data is true |
/// | [`wait_while_for`](Condvar#method.wait_while_for) | the same, for a `Duration` at most |
/// | [`wait_while_until`](Condvar#method.wait_while_until) | the same, until an `Instant` at most |
/// | [`wait_interruptible`], [`wait_interruptible_until`] | waits, or gives up when a signal handler runs; methods of [`InterruptibleCondvar`] |
/// | [`notify_one`](Condvar#method.notify_one) | ends the wait of one thread; `false`, whether one waited or not |
/// | [`notify_all`](Condvar#method.notify_all) | ends the wait of all threads; 0, however many waited |
/// | [`raw`](Condvar#method.raw) | the raw one; `raw().inner()` has notifications that tell how many they reached |
///
/// lock_api asks for `false` and 0 where waits may end without a notification. Each wait takes the
/// guard by `&mut`, and the guard is good again when it returns.
///
/// [`wait_interruptible`]: crate::interrupt::InterruptibleCondvar::wait_interruptible
/// [`wait_interruptible_until`]: crate::interrupt::InterruptibleCondvar::wait_interruptible_until
/// [`InterruptibleCondvar`]: crate::interrupt::InterruptibleCondvar
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use ulocks::{Condvar, Mutex};
///
/// static READY: Mutex<bool> = Mutex::new(false);
/// static CHANGED: Condvar = Condvar::new();
///
/// let maker = std::thread::spawn(|| {
///     *READY.lock() = true;
///     CHANGED.notify_one();
/// });
/// let mut ready = READY.lock();
/// CHANGED.wait_while(&mut ready, |ready| !*ready);
/// assert!(*ready);
///
/// let wait = CHANGED.wait_while_for(&mut ready, |ready| *ready, Duration::from_millis(1));
/// assert!(wait.timed_out() && *ready);
/// drop(ready);
/// maker.join().unwrap();
/// ```
pub type Condvar = lock_api::Condvar<api::RawCondvar<RawThroughputMutex>>;
