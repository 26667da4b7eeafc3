//! [`ExtendedThroughputMutex`]: a [`ThroughputMutex`](crate::ThroughputMutex) whose holder asks for
//! a time slice extension.

use super::{After, RawThroughputMutex};
use ulocks_core::slice::Extended;
use ulocks_core::{Private, api};

/// A [`ThroughputMutex`](crate::ThroughputMutex) whose holder asks not to be preempted, in threads
/// that want it.
///
/// A holder that is preempted keeps all waiters waiting for a time slice. From Linux 7.0 on the
/// kernel delays the preemption by a few microseconds if the thread asks for it. Each thread opts
/// in once, by [`enable`](ulocks_core::slice::enable). A thread that has not, or whose kernel has
/// no extensions, uses this as a `ThroughputMutex`; both kinds may use one mutex.
/// [`ulocks_core::slice`] says what is needed, and what is not promised. The promises of
/// `ThroughputMutex` hold as they are.
///
/// What it gives is predicted only, by the cost model (BENCHMARKS.md, "Time slice extensions"):
/// with eight threads on two CPUs, 3 us inside and 7 outside, as many operations, a fifth of the
/// mean wait, and a third of the longest. On sixteen CPUs with 64 threads nothing.
///
/// Where it is enabled, an acquisition and its release cost a nanosecond more together. A holder
/// that got an extension gives the CPU back in its release, which may then last as long as the
/// kernel lets others run.
///
/// **It has run on a kernel that extends time slices in a translated guest only.** Elsewhere the
/// tests play such a kernel.
///
/// # Examples
/// ```
/// use ulocks_core::slice;
/// use ulocks_unfair::ExtendedThroughputMutex;
///
/// static HITS: ExtendedThroughputMutex<u64> = ExtendedThroughputMutex::new(0);
///
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| {
///             if let Err(error) = slice::enable() {
///                 eprintln!("no time slice extensions here: {error}");
///             }
///             *HITS.lock() += 1;
///         });
///     }
/// });
/// assert_eq!(*HITS.lock(), 4);
/// ```
pub type ExtendedThroughputMutex<T> = ExtendedThroughputMutexWith<T, Private>;

/// An [`ExtendedThroughputMutex`] with another policy or another bound.
///
/// ```
/// use ulocks_core::Private;
/// use ulocks_unfair::{ExtendedThroughputMutexWith, HandOff};
///
/// static STRICT: ExtendedThroughputMutexWith<u32, Private, HandOff> = ExtendedThroughputMutexWith::new(0);
/// *STRICT.lock() += 1;
/// ```
pub type ExtendedThroughputMutexWith<T, P, B = After> = api::Mutex<Extended<RawThroughputMutex<P, B>>, T>;

/// What holds an [`ExtendedThroughputMutex`] locked, and gives access to its data.
pub type ExtendedThroughputMutexGuard<'a, T, P = Private, B = After> =
    api::MutexGuard<'a, Extended<RawThroughputMutex<P, B>>, T>;

/// A condition variable for an [`ExtendedThroughputMutex`]. While a thread waits it asks for
/// nothing.
///
/// `notify_one` returns `false` and `notify_all` returns 0, however many threads were notified.
/// lock_api asks this of condition variables whose waits may end spuriously, and these may, in the
/// cases that [`RawCondvar`](ulocks_core::condvar::RawCondvar) lists. Its own methods return the
/// true counts: `condvar.raw().inner().notify_all()`. A waiter spins for up to 12 us before it
/// sleeps.
pub type ExtendedThroughputCondvar = ExtendedThroughputCondvarWith<Private>;

/// An [`ExtendedThroughputCondvar`] for an [`ExtendedThroughputMutexWith`] of the same policy and
/// bound.
pub type ExtendedThroughputCondvarWith<P, B = After> = api::Condvar<Extended<RawThroughputMutex<P, B>>>;
